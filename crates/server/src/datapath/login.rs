//! Logins: client tokens go to the acceptor, and an accepted login gets the rights of its account.
//!
//! The parts that may block run on the threads for logins: the user file, mechanisms that ask a
//! server, and look-ups of Unix accounts. The delay of password guesses is a timer.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use auth::{Acceptor, AppPasswordRights, Claim, FileTime, UserKind};
use proto::effect::Outcome;
use proto::login::{
    Accepted, Account, AccountKind, AccountsRevision, AppPassword, Authenticate, Authenticated,
    ConversationId,
};
use proto::token::Logon;
use ring::{Either, either};
use tracing::warn;
use wire::Status;

use super::context::{Context, Started};
use super::logins::{Login, NextStep};
use crate::audit::{self, Record};
use crate::client_address::ClientAddress;
use crate::codes::Reason as _;
use crate::counters::RefusedLogin;
use crate::login_attempts::Admission;
use crate::unix_account;

/// Shortest time before the refusal of a login without a check: the client must not try again at
/// once.
const UNCHECKED_DELAY: Duration = Duration::from_secs(2);

/// Starts the next step of a login. The outcome of a refused login waits for the configured delay.
pub(crate) fn authenticate(
    context: &Rc<Context>,
    step: Authenticate,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let context = Rc::clone(context);
    let next = (context.logins.borrow_mut()).begin_step(step.conversation);
    Started::Pending(async move {
        match run_step(&context, step, next).await {
            Ok(authenticated) => Outcome::Authenticated(authenticated),
            Err(refused) => {
                let Refused { status, delay } = refused;
                let delay = delay.max(context.worker.live().times.failed_login_delay);
                context.handle().sleep(delay).await;
                Outcome::Authenticated(Authenticated::Refused(status, Vec::new()))
            }
        }
    })
}

/// Drops the state of a login that is over.
pub(crate) fn end(context: &Context, conversation: ConversationId) {
    context.logins.borrow_mut().end(conversation);
}

/// A refused login.
struct Refused {
    status: Status,
    /// Shortest time before the answer.
    delay: Duration,
}

impl Refused {
    fn new(status: Status) -> Self {
        Self {
            status,
            delay: Duration::ZERO,
        }
    }

    /// The server has not checked the password.
    fn unchecked(status: Status) -> Self {
        Self {
            status,
            delay: UNCHECKED_DELAY,
        }
    }
}

/// The client and the account of a login, for the log.
struct Client<'a> {
    context: &'a Context,
    claim: Option<Claim>,
}

impl Client<'_> {
    /// Counts and logs a refused login.
    fn note_refused(&self, kind: RefusedLogin, reason: &dyn std::fmt::Display) {
        self.context.worker.counters.count_refused_login(kind);
        let (peer, transport) = (self.context.peer, self.context.transport);
        let (user, workstation) = match &self.claim {
            Some(claim) => (&*claim.user, &*claim.workstation),
            None => ("", ""),
        };
        let code = kind.code();
        warn!(%peer, %transport, user, workstation, %reason, code, "login refused");
        let client = audit::Client { peer, transport };
        let audit = &self.context.worker.shared.audit;
        audit.write(|| Record::of_refused_login((user, workstation), reason, client));
    }

    /// Notes that the server cannot process the login.
    fn overloaded(&self) -> Refused {
        let reason = &"too many logins wait for a thread";
        self.note_refused(RefusedLogin::Overloaded, reason);
        Refused::unchecked(Status::INSUFFICIENT_RESOURCES)
    }
}

/// Runs one step of a login.
async fn run_step(
    context: &Rc<Context>,
    step: Authenticate,
    next: NextStep,
) -> Result<Authenticated, Refused> {
    let Authenticate {
        conversation,
        token,
    } = step;
    let threads = &context.worker.shared.login_threads;
    let mut client = Client {
        context,
        claim: None,
    };
    let Login { acceptor, revision } = match next {
        NextStep::Further(login) => login,
        NextStep::First => {
            let shared = context.worker.shared.clone();
            let accounts = threads.run(move || shared.current_accounts()).await;
            let (config, revision) = accounts.ok_or_else(|| client.overloaded())?;
            Login {
                acceptor: Acceptor::new(config),
                revision,
            }
        }
    };
    client.claim = acceptor.claim(&token);
    wait_for_check(&client).await?;
    let (acceptor, step) = if acceptor.may_block(&token) {
        let blocking = move || process(acceptor, &token);
        let done = threads.run(blocking).await;
        done.ok_or_else(|| client.overloaded())?
    } else {
        process(acceptor, &token)
    };
    let login = Login { acceptor, revision };
    (context.logins.borrow_mut()).end_step(conversation, login);
    note_result(&client, &step);
    match step {
        auth::Step::Continue(token) => Ok(Authenticated::Continue(token)),
        auth::Step::Done(accepted) => accept(&client, *accepted, revision).await,
        auth::Step::Refused { reason, .. } => {
            client.note_refused(reason.into(), &reason);
            Err(Refused::new(status_of(reason)))
        }
    }
}

/// Waits until the password of the client may be checked.
async fn wait_for_check(client: &Client<'_>) -> Result<(), Refused> {
    let context = client.context;
    let Some(name) = checked_name(client) else {
        return Ok(());
    };
    let attempts = &context.worker.shared.login_attempts;
    let address = ClientAddress::from(context.peer);
    let wait = match attempts.admit(name, address, Instant::now()) {
        Admission::After(wait) if wait.is_zero() => return Ok(()),
        Admission::After(wait) => wait,
        Admission::TooMany => {
            let reason = &"too many logins of the client or to the account have failed";
            client.note_refused(RefusedLogin::TooManyFailures, reason);
            return Err(Refused::unchecked(Status::REQUEST_NOT_ACCEPTED));
        }
        Admission::LockedOut => {
            let reason = &"the client is locked out (security.lockout_threshold)";
            client.note_refused(RefusedLogin::LockedOut, reason);
            return Err(Refused::unchecked(Status::ACCOUNT_LOCKED_OUT));
        }
    };
    let (wait, input_ended) = (
        pin!(context.handle().sleep(wait)),
        pin!(context.input_ended.raised()),
    );
    match either(wait, input_ended).await {
        Either::First(()) => Ok(()),
        Either::Second(()) => {
            let reason = &"the connection ended before the check of the password";
            client.note_refused(RefusedLogin::Disconnected, reason);
            Err(Refused::new(Status::LOGON_FAILURE))
        }
    }
}

/// The user name, if a password of it is checked.
fn checked_name<'a>(client: &'a Client<'_>) -> Option<&'a str> {
    let claim = client.claim.as_ref()?;
    claim.needs_password.then_some(&*claim.user)
}

/// Passes a client token to the acceptor of its login.
fn process(mut acceptor: Acceptor, token: &[u8]) -> (Acceptor, auth::Step) {
    let now = FileTime::from(SystemTime::now());
    let step = acceptor.step(token, now, &auth::fresh_entropy());
    (acceptor, step)
}

/// Counts the result of a checked password.
fn note_result(client: &Client<'_>, step: &auth::Step) {
    let Some(name) = checked_name(client) else {
        return;
    };
    let attempts = &client.context.worker.shared.login_attempts;
    let (address, now) = (ClientAddress::from(client.context.peer), Instant::now());
    match step {
        auth::Step::Done(_) => attempts.note_success(name, address, now),
        auth::Step::Refused { reason, .. } if reason.is_failed_guess() => {
            attempts.note_failure(name, address, now);
        }
        auth::Step::Refused { .. } | auth::Step::Continue(_) => {
            attempts.note_other(name, address, now);
        }
    }
}

/// Finds the rights with which the sessions of an account run.
async fn accept(
    client: &Client<'_>,
    accepted: auth::Accepted,
    revision: AccountsRevision,
) -> Result<Authenticated, Refused> {
    let user = &accepted.user;
    let kind = match user.kind {
        UserKind::Named => AccountKind::Named,
        UserKind::Guest => AccountKind::Guest,
        UserKind::Anonymous => AccountKind::Anonymous,
    };
    let logon = match kind {
        AccountKind::Named => Logon::Authenticated,
        AccountKind::Guest => Logon::Guest,
        AccountKind::Anonymous => Logon::Anonymous,
    };
    let unix = match kind {
        AccountKind::Named => Some(user.unix.clone().unwrap_or_else(|| user.name.clone())),
        AccountKind::Guest | AccountKind::Anonymous => None,
    };
    let threads = &client.context.worker.shared.login_threads;
    let (shared, name) = (client.context.worker.shared.clone(), user.name.clone());
    let look_up = move || match unix {
        Some(unix) => unix_account::identity(&unix)
            .map(|(token, groups)| (token, shared.accounts.groups(&name, groups))),
        None => Ok((unix_account::guest(logon), Arc::default())),
    };
    let found = threads.run(look_up).await;
    let (token, groups) = match found.ok_or_else(|| client.overloaded())? {
        Ok(token) => token,
        Err(error) => {
            client.note_refused(RefusedLogin::NoUnixAccount, &error);
            return Err(Refused::new(Status::LOGON_FAILURE));
        }
    };
    if let Some(password) = &user.app_password {
        let now = FileTime::from(SystemTime::now()).to_unix();
        let last_use = &client.context.worker.shared.last_use;
        last_use.note(&user.name, &password.name, now);
    }
    let session_key = if user.kind.has_keys() {
        accepted.full_session_key.to_vec()
    } else {
        Vec::new()
    };
    Ok(Authenticated::Accepted(Accepted {
        token: accepted.token,
        session_key,
        account: Account {
            app_password: accepted.user.app_password.map(app_password),
            name: accepted.user.name,
            kind,
            token,
            revision,
            groups,
        },
    }))
}

/// The rights of an app password in the form of the core.
fn app_password(rights: AppPasswordRights) -> Arc<AppPassword> {
    let AppPasswordRights {
        name,
        shares,
        read_only,
    } = rights;
    Arc::new(AppPassword {
        name,
        shares,
        read_only,
    })
}

/// The status of a refused login. It does not reveal whether the name or the password was wrong.
fn status_of(reason: auth::Refusal) -> Status {
    use auth::Refusal;
    match reason {
        Refusal::Disabled => Status::ACCOUNT_DISABLED,
        Refusal::Expired => Status::PASSWORD_EXPIRED,
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
