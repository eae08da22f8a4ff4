//! Logins: client tokens go to the acceptor, and an accepted login gets the rights of its account.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::SystemTime;

use auth::{Acceptor, FileTime, Refusal, UserKind};
use proto::effect::Outcome;
use proto::login::{Accepted, Account, AccountKind, Authenticate, Authenticated, ConversationId};
use tracing::warn;
use wire::Status;

use super::context::{Context, Started};
use crate::unix_account;

/// Starts the next step of a login. A step that may block runs on a thread. The outcome of a
/// refused login waits for the configured delay.
pub(crate) fn authenticate(
    context: &Rc<Context>,
    step: Authenticate,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let Authenticate {
        conversation,
        token,
    } = step;
    let accounts = &context.worker.shared.accounts;
    let acceptor = (context.logins.borrow_mut())
        .begin_step(conversation, || Acceptor::new(accounts.current()));
    let step = match acceptor {
        None => Step::Done(Authenticated::Refused(
            Status::INSUFFICIENT_RESOURCES,
            Vec::new(),
        )),
        Some(acceptor) if acceptor.may_block(&token) => Step::Blocking(acceptor, token),
        Some(mut acceptor) => {
            let authenticated = run_step(&mut acceptor, &token, context.peer);
            end_step(context, conversation, acceptor);
            Step::Done(authenticated)
        }
    };
    let step = match step {
        Step::Done(Authenticated::Refused(..)) | Step::Blocking(..) => step,
        Step::Done(authenticated) => {
            return Started::Done(Outcome::Authenticated(authenticated));
        }
    };
    let context = Rc::clone(context);
    Started::Pending(async move {
        let authenticated = match step {
            Step::Done(authenticated) => authenticated,
            Step::Blocking(acceptor, token) => {
                run_blocking_step(&context, conversation, acceptor, token).await
            }
        };
        if matches!(authenticated, Authenticated::Refused(..)) {
            let delay = context.worker.shared.times.failed_login_delay;
            context.handle().sleep(delay).await;
        }
        Outcome::Authenticated(authenticated)
    })
}

/// A step of a login.
enum Step {
    /// The step has run.
    Done(Authenticated),
    /// The step with this token may block.
    Blocking(Acceptor, Vec<u8>),
}

/// Runs a step on a thread. The connection and its worker serve other requests meanwhile.
async fn run_blocking_step(
    context: &Context,
    conversation: ConversationId,
    mut acceptor: Acceptor,
    token: Vec<u8>,
) -> Authenticated {
    let peer = context.peer;
    let step = move || {
        // The thread may still have the credentials of its last file operation. If it cannot
        // restore those of the process, the mechanism cannot read its files and refuses the login.
        let _ = vfs::identity::own();
        let authenticated = run_step(&mut acceptor, &token, peer);
        (acceptor, authenticated)
    };
    let (acceptor, authenticated) = context
        .handle()
        .blocking_for(context.source.get(), step)
        .await;
    end_step(context, conversation, acceptor);
    authenticated
}

fn end_step(context: &Context, conversation: ConversationId, acceptor: Acceptor) {
    let mut logins = context.logins.borrow_mut();
    logins.end_step(conversation, acceptor);
}

/// Drops the state of a login that is over.
pub(crate) fn end(context: &Context, conversation: ConversationId) {
    context.logins.borrow_mut().end(conversation);
}

/// Passes a client token to the acceptor of its login.
fn run_step(acceptor: &mut Acceptor, token: &[u8], peer: SocketAddr) -> Authenticated {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).expect("the kernel has random bytes");
    match acceptor.step(token, FileTime::from(SystemTime::now()), &entropy) {
        auth::Step::Continue(token) => Authenticated::Continue(token),
        auth::Step::Done(accepted) => accept(*accepted, peer),
        auth::Step::Refused { token, reason } => {
            warn!(%peer, %reason, "login refused");
            Authenticated::Refused(status_of(reason), token.unwrap_or_default())
        }
    }
}

/// Finds the rights with which the sessions of an account run.
fn accept(accepted: auth::Accepted, peer: SocketAddr) -> Authenticated {
    let user = &accepted.user;
    let (kind, token) = match user.kind {
        UserKind::Named => {
            let unix = user.unix.as_deref().unwrap_or(&user.name);
            match unix_account::token(unix) {
                Ok(token) => (AccountKind::Named, token),
                Err(error) => {
                    warn!(%peer, user = %user.name, %error, "login refused");
                    return Authenticated::Refused(Status::LOGON_FAILURE, Vec::new());
                }
            }
        }
        UserKind::Guest => (AccountKind::Guest, unix_account::guest()),
        UserKind::Anonymous => (AccountKind::Anonymous, unix_account::guest()),
    };
    let session_key = if user.kind.has_keys() {
        accepted.full_session_key.to_vec()
    } else {
        Vec::new()
    };
    Authenticated::Accepted(Accepted {
        token: accepted.token,
        session_key,
        account: Account {
            name: accepted.user.name,
            kind,
            token,
        },
    })
}

/// The status of a refused login. It does not reveal whether the name or the password was wrong.
fn status_of(reason: Refusal) -> Status {
    match reason {
        Refusal::Disabled => Status::ACCOUNT_DISABLED,
        Refusal::Anonymous => Status::ACCESS_DENIED,
        Refusal::Malformed => Status::INVALID_PARAMETER,
        Refusal::BadUser
        | Refusal::BadPassword
        | Refusal::NtlmV1
        | Refusal::Downgrade
        | Refusal::MicMismatch
        | Refusal::MechListMicMismatch
        | Refusal::NoCommonMechanism => Status::LOGON_FAILURE,
    }
}

#[cfg(test)]
mod tests;
