//! SESSION_SETUP: log in, or bind to a session that is logged in. \[MS-SMB2\] 3.2.4.2.3, 3.2.5.3

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU16, AtomicU64};

use crypto::derive::{KeySchedule, SessionKeys, channel_signing_key, session_keys};
use crypto::{EncryptionKey, PreauthHash, SigningKey, SigningNonce};
use spin::Mutex;
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::header::HEADER_LEN;
use wire::session_setup::{Request, RequestFlags, Response, SessionFlags};
use wire::{Command, Flags, Header, SessionId, Status};
use zeroize::Zeroizing;

use super::config::Protection;
use super::connection::{Connection, Phase};
use super::effect::{Effect, Effects, Leg};
use super::encode::Body;
use super::flight::Owner;
use super::login::{Login, LoginStep};
use super::message::Message;
use super::negotiate::security_mode;
use super::negotiated::Negotiated;
use super::send::Envelope;
use super::session::{EncryptionKeys, Session};
use super::violation::{Violation, invalid};
use crate::time::Now;

impl Connection {
    /// Starts the login: asks the authenticator for the first token.
    pub(super) fn start_login(&mut self, effects: &mut Effects) -> Result<(), Violation> {
        let session_id = match &self.binding {
            Some(session) if !can_be_bound(session) => {
                return Err(Violation::LoginUntrusted(
                    "the session does not accept further channels",
                ));
            }
            Some(session) => session.id,
            None => SessionId(0),
        };
        self.login = Some(Login {
            session_id,
            preauth: self.preauth.clone(),
            step: LoginStep::Authenticating,
        });
        effects.push(Effect::Authenticate(Vec::new()));
        Ok(())
    }

    /// Continues the login with `leg`, the I/O driver's result for the security token in
    /// [`Effect::Authenticate`]. Appends the next SESSION_SETUP, or [`Effect::Ready`] or
    /// [`Effect::Disconnect`] at the end of the login. The driver calls this once for each such
    /// effect.
    ///
    /// # Panics
    /// No [`Effect::Authenticate`] is pending.
    pub fn authenticated(&mut self, now: Now, leg: Leg, effects: &mut Effects) {
        if self.phase == Phase::Over {
            return;
        }
        let login = self.login.as_mut().expect("a login is in progress");
        let step = core::mem::replace(&mut login.step, LoginStep::Waiting);
        let result = match (step, leg) {
            (LoginStep::Waiting, _) => panic!("no authentication step is pending"),
            (_, Leg::Failed) => Err(Violation::LoginUntrusted(
                "the server sent a token that is not valid",
            )),
            (LoginStep::Authenticating, Leg::Token(token)) => {
                self.send_session_setup(&token, effects)
            }
            (LoginStep::Concluding(answer), Leg::Done { session_key }) => {
                self.conclude(&answer, &Zeroizing::new(session_key), effects)
            }
            (LoginStep::Authenticating, Leg::Done { .. }) => Err(Violation::LoginUntrusted(
                "the server requests more tokens than the mechanism has",
            )),
            (LoginStep::Concluding(_), Leg::Token(_)) => Err(Violation::LoginUntrusted(
                "the server finished before the mechanism",
            )),
        };
        self.settle(now, result, effects);
    }

    fn send_session_setup(&mut self, token: &[u8], effects: &mut Effects) -> Result<(), Violation> {
        if self.credits.free() == 0 {
            // No pending response would return a credit.
            return Err(Violation::LimitReached("no credits are left"));
        }
        let flags = match self.binding {
            Some(_) => RequestFlags::BINDING,
            None => RequestFlags::NONE,
        };
        let request = Request {
            flags,
            security_mode: security_mode(&self.config),
            capabilities: Capabilities::NONE,
            channel: 0,
            previous_session_id: self.previous.as_ref().map_or(SessionId(0), |lost| lost.id),
            security_buffer: token,
        };
        let mut head = vec![0; HEADER_LEN];
        request.encode(&mut head);
        let body = Body {
            command: Command::SESSION_SETUP,
            head,
            payload: None,
        };
        let login = self.login.as_ref().expect("a login is in progress");
        // Every binding counts its messages from the start and uses the one key of the session. So
        // with AES-GMAC a nonce repeats on each further channel. [MS-SMB2] 3.2.4.2.3 leaves no
        // choice. Encryption, or offering AES-CMAC alone, avoids that.
        let key = (self.binding.as_ref()).and_then(|session| session.signing.clone());
        let envelope = Envelope {
            session_id: login.session_id,
            key,
            ..Envelope::default()
        };
        let mut message = self.message(body, Owner::SessionSetup, &envelope);
        // The hash covers the bytes that the server receives, with the signature of a binding.
        if let Some(sign) = message.sign.take() {
            sign.apply(&mut message.head, &[], 0);
        }
        let login = self.login.as_mut().expect("a login is in progress");
        login.preauth.update(&message.head);
        self.push(vec![message], None, effects);
        Ok(())
    }

    /// Handles a SESSION_SETUP response.
    pub(super) fn take_session_setup(
        &mut self,
        message: &Message<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let header = &message.header;
        let is_final = header.status == Status::SUCCESS;
        if !is_final && header.status != Status::MORE_PROCESSING_REQUIRED {
            return Err(Violation::LoginRefused(header.status));
        }
        let login = self.login.as_mut().expect("a login is in progress");
        let is_same = login.session_id == SessionId(0) || login.session_id == header.session_id;
        if !is_same || header.session_id == SessionId(0) {
            return Err(invalid("SessionId", header.session_id.0));
        }
        login.session_id = header.session_id;
        let response = Response::decode(message.bytes).map_err(Violation::Malformed)?;
        let token = response.security_buffer.to_vec();
        if is_final {
            login.step = LoginStep::Concluding(message.bytes.to_vec());
        } else {
            // A signed response to a binding is signed with the key of the session.
            let key = (self.binding.as_ref()).and_then(|session| session.signing.as_ref());
            if let Some(key) = key.filter(|_| header.flags.contains(Flags::SIGNED)) {
                verify(key, header, message.bytes)?;
            }
            login.preauth.update(message.bytes);
            login.step = LoginStep::Authenticating;
        }
        effects.push(Effect::Authenticate(token));
        Ok(())
    }

    /// Makes the session, or the channel, after the mutual authentication. \[MS-SMB2\] 3.2.5.3.1,
    /// 3.2.5.3.3
    fn conclude(
        &mut self,
        answer: &[u8],
        full_key: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let header = Header::decode(answer).map_err(Violation::Malformed)?;
        let flags = Response::decode(answer)
            .map_err(Violation::Malformed)?
            .flags;
        let login = self.login.take().expect("a login is in progress");
        let session = match self.binding.take() {
            Some(session) => {
                let key = self.channel_key(&login, full_key)?;
                verify_final(&key, &header, answer)?;
                self.channel = Some(key);
                session
            }
            None => self.establish(&login, flags, full_key, (&header, answer))?,
        };
        self.session = Some(session.clone());
        self.phase = Phase::Ready;
        self.login_deadline = None;
        self.is_validated = !self.needs_validation(&session);
        effects.push(Effect::Ready(session));
        self.admit_waiting(effects);
        Ok(())
    }

    /// Derives the key of a further channel from the key of its login.
    fn channel_key(&self, login: &Login, full_key: &[u8]) -> Result<Arc<SigningKey>, Violation> {
        let negotiated = self.negotiated.as_ref().expect("NEGOTIATE came first");
        if full_key.is_empty() {
            return Err(Violation::LoginUntrusted(
                "an anonymous login cannot bind a channel",
            ));
        }
        let key = channel_signing_key(schedule(negotiated, &login.preauth), &short(full_key));
        Ok(Arc::new(SigningKey::new(
            negotiated.signing_algorithm,
            &key,
        )))
    }

    /// Makes the session of the first channel.
    fn establish(
        &mut self,
        login: &Login,
        flags: SessionFlags,
        full_key: &[u8],
        (header, answer): (&Header, &[u8]),
    ) -> Result<Arc<Session>, Violation> {
        let negotiated = self.negotiated.clone().expect("NEGOTIATE came first");
        let is_keyless = flags.intersects(SessionFlags::IS_GUEST | SessionFlags::IS_NULL);
        self.check_guest(is_keyless, full_key)?;
        let is_guest = is_keyless || full_key.is_empty();
        let protection = self.config.protection;
        let encrypt =
            flags.contains(SessionFlags::ENCRYPT_DATA) || protection == Protection::Encrypt;
        let signing_required = protection != Protection::AsAsked
            || (self.server_security_mode).contains(SecurityMode::SIGNING_REQUIRED);
        let mut session = Session {
            id: login.session_id,
            is_guest,
            signing_required: signing_required && !is_guest,
            encrypt,
            signing: None,
            encryption: None,
            next_nonce: AtomicU64::new(1),
            channel_sequence: AtomicU16::new(self.first_channel_sequence()),
            caching: Mutex::default(),
            negotiated,
        };
        if !is_guest {
            let schedule = schedule(&session.negotiated, &login.preauth);
            let cipher = session.negotiated.cipher;
            let keys = session_keys(schedule, &short(full_key), full_key, cipher);
            let algorithm = session.negotiated.signing_algorithm;
            let key = Arc::new(SigningKey::new(algorithm, &keys.signing));
            let is_3 = session.negotiated.dialect >= Dialect::SMB_3_0;
            if is_3 || session.signing_required || header.flags.contains(Flags::SIGNED) {
                verify_final(&key, header, answer)?;
            }
            session.encryption = encryption(&session.negotiated, &keys);
            session.signing = Some(key.clone());
            self.channel = Some(key);
        }
        if session.encrypt && session.encryption.is_none() {
            return Err(Violation::LoginUntrusted(
                "the session cannot encrypt messages",
            ));
        }
        if let Some(lost) = &self.previous {
            check_protection(lost, &session)?;
        }
        Ok(Arc::new(session))
    }

    /// Session.ChannelSequence of a new session. The server compares it with the one that it stores
    /// for a reclaimed open, so it continues. \[MS-SMB2\] 3.3.5.2.10
    fn first_channel_sequence(&self) -> u16 {
        let lost = self.previous.as_ref();
        lost.map_or(0, |lost| lost.channel_sequence())
    }

    /// Refuses a guest, which has no keys, if messages must be protected.
    /// \[MS-SMB2\] 3.2.5.3.1
    fn check_guest(&self, is_keyless: bool, full_key: &[u8]) -> Result<(), Violation> {
        let is_protected = self.config.protection != Protection::AsAsked;
        let is_named = !full_key.is_empty();
        if is_keyless && is_named && !self.config.allow_guest {
            return Err(Violation::LoginUntrusted(
                "the server mapped the login to its guest account",
            ));
        }
        if is_protected && (is_keyless || !is_named) {
            return Err(Violation::LoginUntrusted(
                "a guest session cannot sign or encrypt messages",
            ));
        }
        Ok(())
    }
}

/// Checks that the session in place of a lost one protects its messages as that one did. The limits
/// of requests depend on that, and a lost connection must not weaken the protection.
fn check_protection(lost: &Session, session: &Session) -> Result<(), Violation> {
    let of = |it: &Session| (it.is_guest, it.signing_required, it.encrypt);
    match of(lost) == of(session) {
        true => Ok(()),
        false => Err(Violation::LoginUntrusted(
            "the server protects the session in another way than before the loss",
        )),
    }
}

/// Whether further channels can bind to the session: dialects 3.x, with a key.
fn can_be_bound(session: &Session) -> bool {
    session.negotiated.dialect >= Dialect::SMB_3_0 && session.signing.is_some()
}

/// The first 16 bytes, padded with zeros. \[MS-SMB2\] 3.2.5.3.1
fn short(full_key: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    let len = full_key.len().min(key.len());
    key[..len].copy_from_slice(&full_key[..len]);
    key
}

fn schedule<'a>(negotiated: &Negotiated, preauth: &'a PreauthHash) -> KeySchedule<'a> {
    match negotiated.dialect {
        Dialect::SMB_3_1_1 => KeySchedule::Smb311(preauth),
        dialect if dialect >= Dialect::SMB_3_0 => KeySchedule::Smb30,
        _ => KeySchedule::Smb2,
    }
}

fn encryption(negotiated: &Negotiated, keys: &SessionKeys) -> Option<EncryptionKeys> {
    let cipher = negotiated.cipher?;
    let pair = keys.encryption.as_ref()?;
    let key = |bytes: &[u8]| Arc::new(EncryptionKey::new(cipher, bytes));
    Some(EncryptionKeys {
        inbound: key(pair.server_to_client.as_bytes()),
        outbound: key(pair.client_to_server.as_bytes()),
    })
}

/// Verifies the last response of a login. Its signature proves that the server has the key.
fn verify_final(key: &SigningKey, header: &Header, answer: &[u8]) -> Result<(), Violation> {
    if header.flags.contains(Flags::SIGNED) {
        verify(key, header, answer)
    } else {
        Err(Violation::BadSignature(header.session_id))
    }
}

fn verify(key: &SigningKey, header: &Header, message: &[u8]) -> Result<(), Violation> {
    let nonce = SigningNonce {
        message_id: header.message_id.0,
        from_server: true,
        is_cancel: false,
    };
    if key.verify(nonce, &[message], &header.signature) {
        Ok(())
    } else {
        Err(Violation::BadSignature(header.session_id))
    }
}
