//! Look-ups of SIDs and names of accounts. They may ask a directory server.

use std::rc::Rc;
use std::sync::Arc;

use proto::account::AccountQuery;
use proto::effect::Outcome;
use wire::Status;

use super::context::{Context, Started};

/// Starts a look-up. It runs on the threads for logins, which may wait for a directory server.
pub(crate) fn look_up_accounts(
    context: &Rc<Context>,
    query: AccountQuery,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let context = Rc::clone(context);
    let sids = Arc::clone(&context.worker.shared.sids);
    Started::Pending(async move {
        let threads = &context.worker.shared.login_threads;
        match threads.run(move || sids.look_up(&query)).await {
            Some(found) => Outcome::Accounts(found),
            None => Outcome::Failed(Status::INSUFFICIENT_RESOURCES),
        }
    })
}
