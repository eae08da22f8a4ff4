//! Connecting and disconnecting: NEGOTIATE, SESSION_SETUP, TREE_CONNECT, and their opposites.

use auth::{FileTime, Framing, Initiator, InitiatorStep};
use crypto::{Cipher, SigningAlgorithm};
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::negotiate_context::{
    self as context, ContextType, Encryption, HashAlgorithm, PreauthIntegrity, RawContext, Signing,
};
use wire::text::utf16;
use wire::{Command, Guid, Header, SessionId, Status, TreeId, Utf16, session_setup, tree_connect};

use super::call::{Call, Intent};
use super::keys::{Agreed, Keys};
use super::ledger::Pending;
use super::{Client, Order, Phase, Shared};
use crate::check::{Check, ensure};
use crate::login::credentials;
use crate::scenario::Protection;

/// The share that is open to all users.
pub(crate) const DATA: &str = "data";
/// The share of user 0.
pub(crate) const PRIVATE: &str = "private";

impl Client {
    pub(super) fn guid(&self) -> Guid {
        Guid([self.machine as u8 + 1; 16])
    }

    fn security_mode(&self) -> SecurityMode {
        match self.protection {
            Protection::Plain => SecurityMode::SIGNING_ENABLED,
            _ => SecurityMode::SIGNING_ENABLED | SecurityMode::SIGNING_REQUIRED,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let has_3_0 = self
            .offered
            .iter()
            .any(|dialect| *dialect >= Dialect::SMB_3_0);
        match has_3_0 {
            true => Capabilities::LARGE_MTU | Capabilities::ENCRYPTION,
            false => Capabilities::LARGE_MTU,
        }
    }

    pub(super) fn negotiate(&mut self, shared: &mut Shared<'_>) {
        self.phase = Phase::Negotiating;
        let salt = self.choices.bytes();
        let integrity = PreauthIntegrity {
            hash_algorithms: vec![HashAlgorithm::SHA_512],
            salt: &salt,
        };
        let ciphers = self.some_of([1, 2, 3, 4]);
        let ciphers = ciphers.into_iter().map(context::Cipher).collect();
        let algorithms = self.some_of([0, 1, 2]);
        let algorithms = algorithms.into_iter().map(context::SigningAlgorithm);
        let mut contexts = vec![
            (
                ContextType::PREAUTH_INTEGRITY_CAPABILITIES,
                integrity.encode(),
            ),
            (
                ContextType::ENCRYPTION_CAPABILITIES,
                Encryption { ciphers }.encode(),
            ),
            (
                ContextType::SIGNING_CAPABILITIES,
                Signing {
                    algorithms: algorithms.collect(),
                }
                .encode(),
            ),
        ];
        if self.has_posix {
            let data = context::POSIX_EXTENSIONS.0.to_vec();
            contexts.push((ContextType::POSIX_EXTENSIONS_AVAILABLE, data));
        }
        let raw = contexts.iter().map(|(context_type, data)| RawContext {
            context_type: *context_type,
            data,
        });
        let request = wire::negotiate::Request {
            security_mode: self.security_mode(),
            capabilities: self.capabilities(),
            client_guid: self.guid(),
            dialects: self.offered.clone(),
            contexts: raw.collect(),
        };
        let call = Call::new(Command::NEGOTIATE, Intent::Negotiate, |out| {
            request.encode(out);
        });
        self.submit_one(call, shared);
    }

    /// Returns the end of the list from a random index: never empty.
    fn some_of<const N: usize>(&mut self, ids: [u16; N]) -> Vec<u16> {
        let start = self.choices.index(N);
        ids[start..].to_vec()
    }

    pub(super) fn negotiated(&mut self, message: &[u8], shared: &mut Shared<'_>) -> Check {
        let response = wire::negotiate::Response::decode(message);
        let response = response.map_err(|error| format!("NEGOTIATE: {error}"))?;
        let dialect = response.dialect;
        ensure(self.offered.contains(&dialect), || {
            format!("{dialect:?} was not offered")
        })?;
        let mut agreed = Agreed {
            dialect,
            cipher: None,
            signing: SigningAlgorithm::HmacSha256,
            has_large_mtu: response.capabilities.contains(Capabilities::LARGE_MTU),
            has_posix: false,
        };
        if dialect >= Dialect::SMB_3_0 {
            agreed.signing = SigningAlgorithm::AesCmac;
            let encrypts = response.capabilities.contains(Capabilities::ENCRYPTION);
            agreed.cipher = encrypts.then_some(Cipher::Aes128Ccm);
        }
        if dialect == Dialect::SMB_3_1_1 {
            self.preauth.update(message);
            read_contexts(&response.contexts, &mut agreed)?;
        }
        self.agreed = Some(agreed);
        let is_right = !self.choices.per_mille(50);
        self.log_in(false, is_right, shared);
        Ok(())
    }

    /// Starts a login: the first one of the connection, or one that renews the session.
    pub(super) fn log_in(&mut self, is_again: bool, is_right: bool, shared: &mut Shared<'_>) {
        if !is_again {
            self.phase = Phase::LoggingIn;
        }
        let framing = self.choices.pick(&[Framing::Spnego, Framing::Raw]);
        let mut initiator = Initiator::new(credentials(self.user, is_right), "cifs/sim", framing);
        // The first token of NTLM has neither time nor random bytes.
        let token = initiator.start(FileTime(0), &[0; 32]);
        let token = token.expect("NTLM always has a first token");
        self.initiator = Some(initiator);
        self.login_preauth = self.preauth.clone();
        self.logins += 1;
        let intent = Intent::Login {
            number: self.logins,
            is_again,
            is_right,
        };
        self.setup(&token, intent, shared);
    }

    fn setup(&mut self, token: &[u8], intent: Intent, shared: &mut Shared<'_>) {
        let request = session_setup::Request {
            flags: session_setup::RequestFlags::NONE,
            security_mode: self.security_mode(),
            capabilities: Capabilities::NONE,
            channel: 0,
            previous_session_id: self.previous,
            security_buffer: token,
        };
        let call = Call::new(Command::SESSION_SETUP, intent, |out| request.encode(out));
        self.submit_one(call, shared);
    }

    /// Processes the response to a leg of a login.
    pub(super) fn logged_in(
        &mut self,
        pending: &Pending,
        header: &Header,
        message: &[u8],
        is_encrypted: bool,
        shared: &mut Shared<'_>,
    ) -> Check {
        let Intent::Login {
            number,
            is_again,
            is_right,
        } = pending.intent
        else {
            unreachable!("the request is a login");
        };
        if number != self.logins {
            return self.gave_up(header);
        }
        if header.status != Status::MORE_PROCESSING_REQUIRED && header.status != Status::SUCCESS {
            return self.login_failed(header, is_right, shared);
        }
        let response = session_setup::Response::decode(message);
        let response = response.map_err(|error| format!("SESSION_SETUP: {error}"))?;
        self.session = header.session_id;
        let time = FileTime(shared.now.wall.0);
        let entropy = self.choices.bytes();
        let mut initiator = self
            .initiator
            .take()
            .ok_or("a response to a login that the client did not start")?;
        if header.status == Status::MORE_PROCESSING_REQUIRED {
            self.login_preauth.update(message);
            let step = initiator.step(response.security_buffer, time, &entropy);
            let Ok(InitiatorStep::Continue(token)) = step else {
                return Err(format!("a login failed: {step:?}"));
            };
            self.initiator = Some(initiator);
            self.setup(&token, pending.intent.clone(), shared);
            return Ok(());
        }
        ensure(is_right, || "a wrong password was good enough".into())?;
        if !is_again {
            let key = initiator.session_key().ok_or("a login without a key")?;
            let agreed = self.agreed.as_ref().expect("NEGOTIATE came first");
            let keys = Keys::derive(agreed, &self.login_preauth, &key);
            self.keys.insert(self.session, keys);
        }
        let must_sign = Pending {
            intent: Intent::Any,
            is_signed: true,
            memory: Vec::new(),
            ..*pending
        };
        self.check_signature(&must_sign, header, message, is_encrypted)?;
        self.previous = SessionId(0);
        self.is_logged_in = true;
        if !is_again {
            self.enter_tree(shared);
        }
        Ok(())
    }

    /// The response belongs to a renewal of a session that the client has left.
    fn gave_up(&self, header: &Header) -> Check {
        let is_back = header.status == Status::SUCCESS && self.phase != Phase::LoggingIn;
        ensure(!is_back, || format!("a session is back: {header:?}"))
    }

    /// Only a wrong password and the end of the session may make a login fail.
    fn login_failed(&mut self, header: &Header, is_right: bool, shared: &mut Shared<'_>) -> Check {
        let is_expected = match is_right {
            false => header.status == Status::LOGON_FAILURE,
            true => header.status == Status::USER_SESSION_DELETED,
        };
        ensure(is_expected, || format!("a login failed: {header:?}"))?;
        self.initiator = None;
        self.session = SessionId(0);
        self.is_logged_in = false;
        self.log_in(false, true, shared);
        Ok(())
    }

    fn enter_tree(&mut self, shared: &mut Shared<'_>) {
        self.phase = Phase::EnteringTree;
        let is_bold = self.choices.per_mille(100);
        if is_bold && self.can_send(2) {
            let forbidden = match self.user {
                0 => "nowhere",
                _ => PRIVATE,
            };
            self.submit(vec![tree(forbidden, Intent::ForbiddenTree)], shared);
        }
        self.submit_one(tree(DATA, Intent::Tree), shared);
    }

    pub(super) fn entered(&mut self, header: &Header, shared: &mut Shared<'_>) -> Check {
        match header.status {
            Status::SUCCESS => {
                self.tree = header.tree_id().ok_or("a tree without an id")?;
                self.phase = Phase::Running;
                self.reconnect(shared);
                shared.orders.push(Order::Think);
                Ok(())
            }
            // The disk has failed in the lookup of the root; the next attempt may succeed.
            Status::IO_DEVICE_ERROR => {
                self.submit_one(tree(DATA, Intent::Tree), shared);
                Ok(())
            }
            status => Err(format!("the share of all is closed: {status:?}")),
        }
    }

    /// Disconnects from the tree and connects again.
    pub(super) fn change_tree(&mut self, shared: &mut Shared<'_>) {
        self.leave_all(shared);
        let leave = Call::new(Command::TREE_DISCONNECT, Intent::LeaveTree, |out| {
            wire::tree_disconnect::Request.encode(out);
        });
        self.phase = Phase::EnteringTree;
        self.submit_one(leave, shared);
    }

    pub(super) fn left_tree(&mut self, header: &Header, shared: &mut Shared<'_>) -> Check {
        ensure(header.status == Status::SUCCESS, || {
            format!("a tree could not be left: {header:?}")
        })?;
        self.tree = TreeId(0);
        self.forget_slots(false, shared);
        self.submit_one(tree(DATA, Intent::Tree), shared);
        Ok(())
    }

    /// Logs off and on again.
    pub(super) fn log_off(&mut self, shared: &mut Shared<'_>) {
        self.leave_all(shared);
        self.phase = Phase::LoggingIn;
        // A renewal of the session no longer matters.
        self.logins += 1;
        self.initiator = None;
        let request = wire::logoff::Request;
        let call = Call::new(Command::LOGOFF, Intent::Logoff, |out| request.encode(out));
        self.submit_one(call, shared);
    }

    pub(super) fn logged_off(&mut self, header: &Header, shared: &mut Shared<'_>) -> Check {
        ensure(header.status == Status::SUCCESS, || {
            format!("a logoff failed: {header:?}")
        })?;
        self.session = SessionId(0);
        self.is_logged_in = false;
        self.forget_slots(true, shared);
        self.tree = TreeId(0);
        self.log_in(false, true, shared);
        Ok(())
    }
}

impl Client {
    /// The server has closed all opens. Resilient ones outlive a LOGOFF, as a lost connection.
    fn forget_slots(&mut self, is_logoff: bool, shared: &mut Shared<'_>) {
        let now = shared.tick();
        for (number, slot) in std::mem::take(&mut self.slots) {
            if !is_logoff || !slot.is_resilient {
                shared.refused_locks.closed((self.id, number), now);
            }
        }
    }
}

fn tree(name: &str, intent: Intent) -> Call {
    let path = utf16(&format!("\\\\sim\\{name}"));
    let request = tree_connect::Request {
        flags: tree_connect::RequestFlags::NONE,
        path: Utf16(&path),
    };
    Call::new(Command::TREE_CONNECT, intent, |out| request.encode(out))
}

fn read_contexts(contexts: &[RawContext<'_>], agreed: &mut Agreed) -> Check {
    agreed.cipher = None;
    let bad = |error| format!("a negotiate context: {error}");
    for RawContext { context_type, data } in contexts {
        match *context_type {
            ContextType::ENCRYPTION_CAPABILITIES => {
                let ciphers = Encryption::decode(data).map_err(bad)?.ciphers;
                ensure(ciphers.len() == 1, || format!("chosen: {ciphers:?}"))?;
                agreed.cipher = Cipher::from_id(ciphers[0].0);
            }
            ContextType::SIGNING_CAPABILITIES => {
                let algorithms = Signing::decode(data).map_err(bad)?.algorithms;
                ensure(algorithms.len() == 1, || format!("chosen: {algorithms:?}"))?;
                let signing = SigningAlgorithm::from_id(algorithms[0].0);
                agreed.signing = signing.ok_or("an unknown signing algorithm")?;
            }
            ContextType::POSIX_EXTENSIONS_AVAILABLE => agreed.has_posix = true,
            _ => {}
        }
    }
    Ok(())
}
