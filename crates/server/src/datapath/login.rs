//! Logins: client tokens go to the acceptor, and an accepted login gets the rights of its account.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::SystemTime;

use auth::{Acceptor, FileTime, Refusal, Step, UserKind};
use proto::effect::Outcome;
use proto::login::{Accepted, Account, AccountKind, Authenticate, Authenticated, ConversationId};
use tracing::warn;
use wire::Status;

use super::context::{Context, Started};
use crate::unix_account;

/// Starts the next step of a login. The outcome of a refused login waits for the configured delay.
pub(crate) fn authenticate(
    context: &Rc<Context>,
    step: Authenticate,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let Authenticate {
        conversation,
        token,
    } = step;
    let shared = &context.worker.shared;
    let acceptor = (context.logins.borrow_mut())
        .begin_step(conversation, || Acceptor::new(shared.accounts.current()));
    let authenticated = match acceptor {
        None => Authenticated::Refused(Status::INSUFFICIENT_RESOURCES, Vec::new()),
        Some(mut acceptor) => {
            let authenticated = run_step(&mut acceptor, &token, context.peer);
            context.logins.borrow_mut().end_step(conversation, acceptor);
            authenticated
        }
    };
    if !matches!(authenticated, Authenticated::Refused(..)) {
        return Started::Done(Outcome::Authenticated(authenticated));
    }
    let delay = context.handle().sleep(shared.times.failed_login_delay);
    Started::Pending(async move {
        delay.await;
        Outcome::Authenticated(authenticated)
    })
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
        Step::Continue(token) => Authenticated::Continue(token),
        Step::Done(accepted) => accept(*accepted, peer),
        Step::Refused { token, reason } => {
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
