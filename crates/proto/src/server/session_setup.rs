//! SESSION_SETUP: log in, in several legs; log in again. \[MS-SMB2\] 3.3.5.5

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crypto::derive::{KeySchedule, SessionKeys, session_keys};
use crypto::{EncryptionKey, PreauthHash, SigningKey};
use spin::Mutex;
use wire::dialect::{Dialect, SecurityMode};
use wire::session_setup::{Request, RequestFlags, Response, SessionFlags};
use wire::{Header, SessionId, Status};

use crate::audit::{Action, Event};
use crate::effect::{Effect, Effects, Outcome};
use crate::login::{Accepted, Account, AccountKind, Authenticate, Authenticated, ConversationId};
use crate::report::{LoginRefusal, Report};
use crate::server::channel::{Channel, ChannelList};
use crate::server::connection::Connection;
use crate::server::connection::login::{Login, LoginStep, Purpose};
use crate::server::connection::task::{self, Flow, Task, TaskId, Then};
use crate::server::context::Reply;
use crate::server::ledger::Resource;
use crate::server::negotiated::Negotiated;
use crate::server::session::{EncryptionKeys, Origin, Session, SessionState};
use crate::time::Now;

impl Connection {
    /// Takes a leg of a login.
    pub(super) fn session_setup(
        &mut self,
        now: Now,
        task: &Task,
        request: &mut task::Request,
        message: &[u8],
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        let setup = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        let bound = match setup.flags.contains(RequestFlags::BINDING) {
            true => Some(self.bindable(now, request, message)?),
            false => None,
        };
        let id = self.login_id(request, task, bound)?;
        request.header.session_id = id;
        let login = self.logins.get_mut(id).expect("there is one by now");
        if login.is_busy {
            return Err(Status::REQUEST_NOT_ACCEPTED);
        }
        login.is_busy = true;
        login.preauth.update(message);
        let authenticate = Authenticate {
            conversation: login.conversation,
            token: setup.security_buffer.to_vec(),
        };
        let op = self.allocate_op();
        effects.push(Effect::Authenticate(op, authenticate));
        let step = LoginStep::Authenticate {
            security_mode: setup.security_mode,
            previous: setup.previous_session_id,
        };
        Ok(Flow::Wait(op, Then::Login(step)))
    }

    /// The session of a leg: that of a login in progress, one that logs in again, one that the
    /// connection binds to, or a new one.
    fn login_id(
        &mut self,
        request: &task::Request,
        task: &Task,
        bound: Option<Arc<Session>>,
    ) -> Result<SessionId, Status> {
        let id = match task.chain.session {
            Some(id) => id,
            None => request.header.session_id,
        };
        if let Some(login) = self.logins.get(id) {
            // Each leg of a binding says that it is one, and is signed.
            let is_alike = matches!(login.purpose, Purpose::Binding(_)) == bound.is_some();
            return is_alike.then_some(id).ok_or(Status::REQUEST_NOT_ACCEPTED);
        }
        let purpose = match bound {
            Some(session) => Purpose::Binding(session),
            None if id == SessionId(0) => Purpose::New,
            None if request.session.is_none() => return Err(Status::USER_SESSION_DELETED),
            None => Purpose::Renewal,
        };
        let is_further = !matches!(purpose, Purpose::Renewal);
        let limits = &self.config.limits;
        let is_full = self.logins.len() >= limits.logins_per_connection
            || is_further && self.sessions.len() >= limits.sessions_per_connection;
        if is_full {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        let id = match purpose {
            Purpose::New => self.unused_session_id(),
            _ => id,
        };
        let login = Login {
            conversation: ConversationId(self.number()),
            preauth: self.preauth.clone(),
            is_busy: false,
            purpose,
        };
        self.logins.insert(id, login);
        Ok(id)
    }

    /// A random id that no session of the server has.
    fn unused_session_id(&mut self) -> SessionId {
        loop {
            let id = SessionId(self.entropy.number());
            let is_special = id == SessionId(0) || id == SessionId::RELATED;
            let is_taken =
                self.logins.get(id).is_some() || self.server.sessions.lock().get(id).is_some();
            if !is_special && !is_taken {
                return id;
            }
        }
    }

    /// Continues with the outcome of a leg.
    pub(super) fn resume_login(
        &mut self,
        now: Now,
        task: TaskId,
        request: &mut task::Request,
        step: LoginStep,
        outcome: Outcome,
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        let id = request.header.session_id;
        let (security_mode, previous) = match step {
            LoginStep::Replace(accepted, mode) => {
                return self.accept(now, request, &accepted, mode, effects);
            }
            LoginStep::Authenticate {
                security_mode,
                previous,
            } => (security_mode, previous),
        };
        let Some(login) = self.logins.get_mut(id) else {
            // The connection ended in the meantime.
            return Err(Status::USER_SESSION_DELETED);
        };
        login.is_busy = false;
        let is_binding = matches!(login.purpose, Purpose::Binding(_));
        match outcome.expect_authenticated() {
            Ok(Authenticated::Continue(token)) => {
                let status = Status::MORE_PROCESSING_REQUIRED;
                Ok(Flow::Done(reply(status, SessionFlags::NONE, &token)))
            }
            Ok(Authenticated::Accepted(accepted)) => {
                // A binding replaces nothing.
                let is_waiting =
                    !is_binding && self.replace(now, task, (id, previous), &accepted, effects);
                if is_waiting {
                    let step = LoginStep::Replace(Box::new(accepted), security_mode);
                    return Ok(Flow::WaitUnasked(Then::Login(step)));
                }
                self.accept(now, request, &accepted, security_mode, effects)
            }
            Ok(Authenticated::Refused(status, _)) | Err(status) => {
                self.refuse(now, id, effects);
                Err(status)
            }
        }
    }

    /// Closes the session that the client had before it lost its connection, if it was the same
    /// user's. Whether the login is to wait for that. \[MS-SMB2\] 3.3.5.5.3
    fn replace(
        &mut self,
        now: Now,
        task: TaskId,
        (id, previous): (SessionId, SessionId),
        accepted: &Accepted,
        effects: &mut Effects,
    ) -> bool {
        if previous == SessionId(0) || previous == id {
            return false;
        }
        let found = self.server.sessions.lock().get(previous).cloned();
        let Some(session) = found.filter(|session| is_of_same_user(session, accepted)) else {
            return false;
        };
        let timeout = self.config.limits.replace_timeout;
        let deadline = Some(now.instant.after(timeout));
        let is_waiting = self.await_end(&session, task, deadline);
        session.state.lock().leave_opens();
        self.end_session(now, &session, effects);
        is_waiting
    }

    /// Handles a failed login. A failed reauthentication ends its session, as with Windows and
    /// Samba (smb2.session.reauth6): a user that no longer authenticates loses access to the files.
    /// A failed binding does not affect the session.
    fn refuse(&mut self, now: Now, id: SessionId, effects: &mut Effects) {
        let login = self.end_login(id, effects);
        let is_renewal = login.is_some_and(|login| matches!(login.purpose, Purpose::Renewal));
        if let Some(session) = self.sessions.get(&id).filter(|_| is_renewal).cloned() {
            self.end_session(now, &session, effects);
        }
    }

    /// A login that succeeded: makes the session, or renews it.
    fn accept(
        &mut self,
        now: Now,
        request: &mut task::Request,
        accepted: &Accepted,
        security_mode: SecurityMode,
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        let id = request.header.session_id;
        let Some(login) = self.end_login(id, effects) else {
            return Err(Status::USER_SESSION_DELETED);
        };
        let account = accepted.account.clone();
        let session =
            match self.session_of(now, request, &login, (accepted, security_mode), effects) {
                Ok(session) => session,
                Err(refusal) => {
                    self.audit_login(None, &account, Some(refusal), effects);
                    let report = Report::LoginRefused(account, refusal);
                    effects.push(Effect::Report(Box::new(report)));
                    return Err(refusal.status());
                }
            };
        self.audit_login(Some(id), &account, None, effects);
        effects.push(Effect::Report(Box::new(Report::LoggedIn(account))));
        // [MS-SMB2] 3.3.5.5.3: the last answer of a login is signed, even if the session needs no
        // signing.
        request.sign = session.signing_key(self.id);
        request.session = Some(session.clone());
        let flags = self.session_flags(&session);
        Ok(Flow::Done(reply(Status::SUCCESS, flags, &accepted.token)))
    }

    /// Makes the event of a login for the audit log.
    fn audit_login(
        &self,
        session: Option<SessionId>,
        account: &Account,
        refusal: Option<LoginRefusal>,
        effects: &mut Effects,
    ) {
        if self.server.settings().audit {
            let mut event = Event::new(session, account, Action::LogIn { refusal });
            event.status = refusal.map_or(Status::SUCCESS, LoginRefusal::status);
            effects.push(Effect::Audit(Box::new(event)));
        }
    }

    /// The session of a login: a new one, the renewed one, or the one that the connection joins.
    fn session_of(
        &mut self,
        now: Now,
        request: &mut task::Request,
        login: &Login,
        (accepted, security_mode): (&Accepted, SecurityMode),
        effects: &mut Effects,
    ) -> Result<Arc<Session>, LoginRefusal> {
        let session = match &login.purpose {
            Purpose::New => {
                self.establish(now, &request.header, login, (accepted, security_mode))?
            }
            Purpose::Renewal => {
                let found = self.find_session(request.header.session_id);
                let ended = LoginRefusal::Unusable(Status::USER_SESSION_DELETED);
                let session = found.ok_or(ended)?;
                renew(&session, accepted);
                session
            }
            Purpose::Binding(session) => {
                if self.server.is_outdated(&accepted.account) {
                    return Err(LoginRefusal::AccountChanged);
                }
                self.bind(request, session, &login.preauth, accepted)?;
                return Ok(session.clone());
            }
        };
        // After the session is in the table: either this check finds the change of the account, or
        // the change finds the session.
        if self.server.is_outdated(&accepted.account) {
            self.end_session(now, &session, effects);
            return Err(LoginRefusal::AccountChanged);
        }
        Ok(session)
    }

    /// Makes the session of a first login.
    fn establish(
        &mut self,
        now: Now,
        header: &Header,
        login: &Login,
        (accepted, security_mode): (&Accepted, SecurityMode),
    ) -> Result<Arc<Session>, LoginRefusal> {
        let id = header.session_id;
        let negotiated = self.negotiated.as_ref().expect("NEGOTIATE came first");
        let config = &self.server.settings();
        let is_named = accepted.account.kind == AccountKind::Named;
        let encrypts = config.encryption_required || is_named && negotiated.encrypts;
        let must_encrypt = self.must_encrypt(encrypts);
        // Without a key a session can be neither signed nor encrypted.
        if !is_named && must_encrypt {
            return Err(LoginRefusal::GuestCannotEncrypt);
        }
        if !is_named && config.signing_required {
            return Err(LoginRefusal::GuestCannotSign);
        }
        if must_encrypt && negotiated.cipher.is_none() {
            return Err(LoginRefusal::ClientCannotEncrypt);
        }
        let is_signing_wanted =
            config.signing_required || security_mode.contains(SecurityMode::SIGNING_REQUIRED);
        let keys = is_named.then(|| derive(negotiated, &login.preauth, &accepted.session_key));
        let signing = (keys.as_ref())
            .map(|keys| Arc::new(SigningKey::new(negotiated.signing, &keys.signing)));
        let user = self.server.ledger.user(&accepted.account);
        let charge = user.charge(Resource::Connections, 1)?;
        let session = Arc::new(Session {
            id,
            user,
            origin: Origin {
                dialect: negotiated.dialect,
                cipher: negotiated.cipher,
                signing: negotiated.signing,
                client_guid: negotiated.client_guid,
                signing_key: signing.clone(),
                quotas: self.quotas.clone(),
            },
            created: now.wall,
            state: Mutex::new(SessionState {
                account: accepted.account.clone(),
                signing_required: is_named && is_signing_wanted,
                encrypt: encrypts,
                encryption_keys: keys
                    .as_ref()
                    .and_then(|keys| encryption_keys(negotiated, keys)),
                expires: None,
                leaves_opens: false,
                is_closed: false,
            }),
            channels: ChannelList::new(self.id, Channel::new(signing)),
            trees: Mutex::new(BTreeMap::new()),
            opens: Mutex::new(BTreeMap::new()),
            pipes: Mutex::new(BTreeMap::new()),
            next_tree: AtomicU32::new(1),
            next_nonce: AtomicU64::new(1),
        });
        self.server.sessions.lock().insert(session.clone());
        self.sessions.insert(id, session.clone());
        self.charges.insert(id, charge);
        self.logins.deadline = None;
        Ok(session)
    }

    /// The SessionFlags of a session on this connection.
    fn session_flags(&self, session: &Session) -> SessionFlags {
        let state = session.state.lock();
        let mut flags = match state.account.kind {
            AccountKind::Named => SessionFlags::NONE,
            AccountKind::Guest => SessionFlags::IS_GUEST,
            AccountKind::Anonymous => SessionFlags::IS_NULL,
        };
        if self.must_encrypt(state.encrypt) {
            flags |= SessionFlags::ENCRYPT_DATA;
        }
        flags
    }
}

/// \[MS-SMB2\] 3.3.5.5.2: a repeated login changes the account, not the keys.
fn renew(session: &Session, accepted: &Accepted) {
    let mut state = session.state.lock();
    state.account = accepted.account.clone();
    state.expires = None;
}

/// Whether a session and a login belong to the same named user.
pub(super) fn is_of_same_user(session: &Session, accepted: &Accepted) -> bool {
    let state = session.state.lock();
    state.is_named()
        && accepted.account.kind == AccountKind::Named
        && state.account.name == accepted.account.name
}

fn derive(negotiated: &Negotiated, preauth: &PreauthHash, full_key: &[u8]) -> SessionKeys {
    let schedule = key_schedule(negotiated.dialect, preauth);
    session_keys(schedule, &short_key(full_key), full_key, negotiated.cipher)
}

/// \[MS-SMB2\] 3.3.5.5.3: Session.SessionKey is the first 16 bytes, filled up with zeroes.
pub(super) fn short_key(full_key: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    let len = full_key.len().min(key.len());
    key[..len].copy_from_slice(&full_key[..len]);
    key
}

/// How a dialect derives its keys. \[MS-SMB2\] 3.1.4.2
pub(super) fn key_schedule(dialect: Dialect, preauth: &PreauthHash) -> KeySchedule<'_> {
    match dialect {
        Dialect::SMB_3_1_1 => KeySchedule::Smb311(preauth),
        dialect if dialect >= Dialect::SMB_3_0 => KeySchedule::Smb30,
        _ => KeySchedule::Smb2,
    }
}

fn encryption_keys(negotiated: &Negotiated, keys: &SessionKeys) -> Option<EncryptionKeys> {
    let cipher = negotiated.cipher?;
    let pair = keys.encryption.as_ref()?;
    let key = |bytes: &[u8]| Arc::new(EncryptionKey::new(cipher, bytes));
    Some(EncryptionKeys {
        inbound: key(pair.client_to_server.as_bytes()),
        outbound: key(pair.server_to_client.as_bytes()),
    })
}

fn reply(status: Status, flags: SessionFlags, token: &[u8]) -> Reply {
    let response = Response {
        flags,
        security_buffer: token,
    };
    Reply::with_status(status, |body| response.encode(body))
}
