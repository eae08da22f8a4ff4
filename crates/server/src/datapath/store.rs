//! Operations on the store of the server.

use std::rc::Rc;
use std::sync::Arc;

use proto::effect::Outcome;
use proto::store::StoreOp;

use super::context::{Context, Started};

/// Starts an operation on the store. It runs on a thread.
pub(crate) fn store(
    context: &Rc<Context>,
    operation: StoreOp,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let shared = Arc::clone(&context.worker.shared);
    let (handle, source) = (context.handle().clone(), context.source.get());
    Started::Pending(async move {
        let execute = move || shared.store.execute(operation);
        handle.blocking_for(source, execute).await.into()
    })
}
