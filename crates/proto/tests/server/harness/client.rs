//! A client that sends the requests of a test, and checks the invariants of every response.

use std::sync::Arc;

use crypto::derive::{KeySchedule, SessionKeys, session_keys};
use crypto::{Cipher, EncryptionKey, PreauthHash, SigningAlgorithm, SigningKey, SigningNonce};
use proto::id::ConnectionId;
use wire::compound::Members;
use wire::dialect::{Capabilities, Dialect, SecurityMode};
use wire::header::{HEADER_LEN, SIGNATURE, Target};
use wire::negotiate_context::{
    ContextType, Encryption, HashAlgorithm, PreauthIntegrity, RawContext, Signing, Transport,
    TransportFlags,
};
use wire::transform::{ASSOCIATED_DATA, FLAG_ENCRYPTED, TRANSFORM_LEN, Transform};
use wire::{Command, Flags, Guid, Header, MessageId, SessionId, Status, TreeId, Utf16};
use wire::{negotiate, negotiate_context, session_setup, tree_connect};

use super::rig::Rig;

/// The options that a client offers in NEGOTIATE.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) dialects: Vec<Dialect>,
    pub(crate) ciphers: Vec<Cipher>,
    pub(crate) signing: Vec<SigningAlgorithm>,
    pub(crate) security_mode: SecurityMode,
    pub(crate) capabilities: Capabilities,
    /// Whether the client accepts transport security in place of encryption.
    pub(crate) transport_security: bool,
    /// The ClientGuid.
    pub(crate) client_guid: Guid,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dialects: vec![Dialect::SMB_3_1_1],
            ciphers: vec![Cipher::Aes128Ccm, Cipher::Aes128Gcm],
            signing: vec![SigningAlgorithm::AesCmac, SigningAlgorithm::AesGmac],
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::LARGE_MTU | Capabilities::ENCRYPTION,
            transport_security: false,
            client_guid: Guid([5; 16]),
        }
    }
}

impl Options {
    pub(crate) fn only(dialect: Dialect) -> Self {
        Self {
            dialects: vec![dialect],
            ..Self::default()
        }
    }
}

/// A request. A test may change any field of the header before it sends the request.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) header: Header,
    /// 64 bytes for the header, then the body.
    pub(crate) bytes: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) header: Header,
    pub(crate) message: Vec<u8>,
    pub(crate) was_encrypted: bool,
}

impl Answer {
    pub(crate) fn status(&self) -> Status {
        self.header.status
    }

    pub(crate) fn is_signed(&self) -> bool {
        self.header.flags.contains(Flags::SIGNED)
    }
}

/// One connection of a client, with one session at most.
pub(crate) struct Client {
    pub(crate) id: ConnectionId,
    pub(crate) options: Options,
    pub(crate) dialect: Dialect,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) signing_algorithm: SigningAlgorithm,
    pub(crate) preauth: PreauthHash,
    pub(crate) login_hash: PreauthHash,
    pub(crate) next_message: u64,
    pub(crate) session: SessionId,
    pub(crate) tree: TreeId,
    pub(crate) signing: Option<Arc<SigningKey>>,
    pub(crate) inbound: Option<EncryptionKey>,
    pub(crate) outbound: Option<EncryptionKey>,
    pub(crate) signs: bool,
    pub(crate) encrypts: bool,
    pub(crate) nonce: u64,
}

/// 64 zero bytes for the header, then the body.
pub(crate) fn bytes_of(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    encode(&mut bytes);
    bytes
}

impl Client {
    /// A client with an accepted connection and no sent request.
    pub(crate) fn new(rig: &mut Rig, options: Options) -> Self {
        let id = rig.accept();
        Self::on(id, options)
    }

    pub(crate) fn on(id: ConnectionId, options: Options) -> Self {
        Self {
            id,
            options,
            dialect: Dialect(0),
            cipher: None,
            signing_algorithm: SigningAlgorithm::HmacSha256,
            preauth: PreauthHash::new(),
            login_hash: PreauthHash::new(),
            next_message: 0,
            session: SessionId(0),
            tree: TreeId(0),
            signing: None,
            inbound: None,
            outbound: None,
            signs: false,
            encrypts: false,
            nonce: 1,
        }
    }

    /// A client that has negotiated, logged in as `user` and connected to `share`.
    pub(crate) fn in_share(rig: &mut Rig, options: Options, user: &str, share: &str) -> Self {
        let mut client = Self::logged_in(rig, options, user);
        assert_eq!(client.enter(rig, share).status(), Status::SUCCESS);
        client
    }

    /// A client that has negotiated and logged in as `user`.
    pub(crate) fn logged_in(rig: &mut Rig, options: Options, user: &str) -> Self {
        let mut client = Self::new(rig, options);
        assert_eq!(client.negotiate(rig).status(), Status::SUCCESS);
        assert_eq!(client.log_in(rig, user).status(), Status::SUCCESS);
        client
    }

    pub(crate) fn message(&mut self, command: Command, bytes: Vec<u8>) -> Message {
        let header = Header {
            credit_charge: 1,
            status: Status::SUCCESS,
            command,
            credits: 1,
            flags: Flags::NONE,
            next_command: 0,
            message_id: MessageId(self.next_message),
            target: Target::Sync {
                process_id: 0xFEFF,
                tree_id: self.tree,
            },
            session_id: self.session,
            signature: [0; 16],
        };
        if command != Command::CANCEL {
            self.next_message += 1;
        }
        Message { header, bytes }
    }

    /// Sends a request and returns its only response.
    pub(crate) fn ask(&mut self, rig: &mut Rig, message: Message) -> Answer {
        let mut answers = self.ask_all(rig, vec![message]);
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    /// Sends a frame of requests and returns the responses of the next frame.
    pub(crate) fn ask_all(&mut self, rig: &mut Rig, messages: Vec<Message>) -> Vec<Answer> {
        self.say(rig, messages);
        self.hear(rig).expect("an answer")
    }

    pub(crate) fn ask_body(&mut self, rig: &mut Rig, command: Command, bytes: Vec<u8>) -> Answer {
        let message = self.message(command, bytes);
        self.ask(rig, message)
    }

    /// Sends a frame of one or several messages.
    pub(crate) fn say(&mut self, rig: &mut Rig, messages: Vec<Message>) {
        let frame = self.frame(messages);
        rig.deliver(self.id, &frame);
    }

    /// The bytes of a frame, signed and encrypted according to `signs` and `encrypts`.
    pub(crate) fn frame(&mut self, messages: Vec<Message>) -> Vec<u8> {
        let count = messages.len();
        let mut frame = Vec::new();
        for (index, message) in messages.into_iter().enumerate() {
            frame.extend(self.encode(message, index + 1 == count));
        }
        if self.encrypts {
            self.encrypt(&frame)
        } else {
            frame
        }
    }

    fn encode(&mut self, message: Message, is_last: bool) -> Vec<u8> {
        let Message {
            mut header,
            mut bytes,
        } = message;
        if !is_last {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            header.next_command = bytes.len() as u32;
        }
        let key = self
            .signing
            .clone()
            .filter(|_| self.signs && !self.encrypts);
        if key.is_some() {
            header.flags |= Flags::SIGNED;
        }
        let mut head = Vec::new();
        header.encode(&mut head);
        bytes[..HEADER_LEN].copy_from_slice(&head);
        if let Some(key) = key {
            let nonce = SigningNonce {
                message_id: header.message_id.0,
                from_server: false,
                is_cancel: header.command == Command::CANCEL,
            };
            let signature = key.sign(nonce, &[&bytes]);
            bytes[SIGNATURE].copy_from_slice(&signature);
        }
        bytes
    }

    /// Encrypts a frame of encoded messages.
    pub(crate) fn encrypt(&mut self, frame: &[u8]) -> Vec<u8> {
        let key = self.outbound.as_ref().expect("the client has keys");
        self.nonce += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.nonce.to_le_bytes());
        let mut transform = Transform {
            signature: [0; 16],
            nonce,
            original_message_size: frame.len() as u32,
            flags: FLAG_ENCRYPTED,
            session_id: self.session,
        };
        let mut bytes = frame.to_vec();
        let head = transform.encode();
        let nonce = &nonce[..key.cipher().nonce_len()];
        transform.signature = key.encrypt_in_place(nonce, &head[ASSOCIATED_DATA], &mut bytes);
        [transform.encode().as_slice(), &bytes].concat()
    }

    /// The next frame from the server, if there is one.
    pub(crate) fn hear(&mut self, rig: &mut Rig) -> Option<Vec<Answer>> {
        let frame = rig.read(self.id)?;
        let was_encrypted = frame.starts_with(&wire::transform::PROTOCOL_ID);
        let frame = if was_encrypted {
            self.decrypt(&frame)
        } else {
            frame
        };
        let members = Members::new(&frame).map(|member| member.expect("a well-formed compound"));
        let answers = members.map(|message| self.check(message, was_encrypted));
        Some(answers.collect())
    }

    fn decrypt(&self, frame: &[u8]) -> Vec<u8> {
        let transform = Transform::decode(frame).expect("a transform header");
        assert_eq!(transform.session_id, self.session);
        assert_eq!(transform.flags, FLAG_ENCRYPTED);
        let key = self.inbound.as_ref().expect("the client has keys");
        let mut bytes = frame[TRANSFORM_LEN..].to_vec();
        assert_eq!(bytes.len(), transform.original_message_size as usize);
        let nonce = &transform.nonce[..key.cipher().nonce_len()];
        key.decrypt_in_place(
            nonce,
            &frame[ASSOCIATED_DATA],
            &mut bytes,
            &transform.signature,
        )
        .expect("the frame decrypts");
        bytes
    }

    /// Checks the invariants of every response.
    pub(crate) fn check(&self, message: &[u8], was_encrypted: bool) -> Answer {
        let header = Header::decode(message).expect("a header");
        assert!(header.is_response());
        let answer = Answer {
            header,
            message: message.to_vec(),
            was_encrypted,
        };
        // Without a key the server returns the signature of the request.
        let is_echo = header.status == Status::USER_SESSION_DELETED;
        if is_echo && answer.is_signed() {
            assert!(!was_encrypted);
        } else if answer.is_signed() {
            assert!(!was_encrypted, "an encrypted message is not signed");
            let nonce = SigningNonce {
                message_id: header.message_id.0,
                from_server: true,
                is_cancel: false,
            };
            // At the last leg of a login the key is not known yet; `log_in` checks that response.
            if let Some(key) = &self.signing {
                assert!(
                    key.verify(nonce, &[message], &header.signature),
                    "{header:?}"
                );
            }
        } else {
            assert_eq!(header.signature, [0; 16]);
        }
        answer
    }

    pub(crate) fn negotiate(&mut self, rig: &mut Rig) -> Answer {
        let bytes = self.negotiate_bytes();
        let message = self.message(Command::NEGOTIATE, bytes);
        let frame = self.frame(vec![message]);
        self.preauth.update(&frame);
        rig.deliver(self.id, &frame);
        let answer = self.hear(rig).expect("an answer").remove(0);
        if answer.status() == Status::SUCCESS {
            self.preauth.update(&answer.message);
            self.learn(&answer);
        }
        answer
    }

    /// A NEGOTIATE with the client's options.
    pub(crate) fn negotiate_bytes(&self) -> Vec<u8> {
        let flags = TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY;
        let transport = match self.options.transport_security {
            true => vec![Transport { flags }.encode()],
            false => Vec::new(),
        };
        self.negotiate_bytes_with(ContextType::TRANSPORT_CAPABILITIES, &transport)
    }

    /// The same, with additional contexts of one type.
    pub(crate) fn negotiate_bytes_with(&self, kind: ContextType, others: &[Vec<u8>]) -> Vec<u8> {
        let Options {
            dialects,
            ciphers,
            signing,
            security_mode,
            capabilities,
            transport_security: _,
            client_guid,
        } = &self.options;
        let integrity = PreauthIntegrity {
            hash_algorithms: vec![HashAlgorithm::SHA_512],
            salt: &[7; 32],
        };
        let ciphers = (ciphers.iter())
            .map(|cipher| negotiate_context::Cipher(cipher.id()))
            .collect();
        let algorithms = (signing.iter())
            .map(|algorithm| negotiate_context::SigningAlgorithm(algorithm.id()))
            .collect();
        let data = [
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
                Signing { algorithms }.encode(),
            ),
        ];
        let others = others.iter().map(|data| (kind, data.clone()));
        let data: Vec<_> = data.into_iter().chain(others).collect();
        let contexts = (data.iter())
            .filter(|(_, data)| data[0] != 0)
            .map(|(context_type, data)| RawContext {
                context_type: *context_type,
                data,
            })
            .collect();
        let request = negotiate::Request {
            security_mode: *security_mode,
            capabilities: *capabilities,
            client_guid: *client_guid,
            dialects: dialects.clone(),
            contexts,
        };
        bytes_of(|bytes| request.encode(bytes))
    }

    fn learn(&mut self, answer: &Answer) {
        let response = negotiate::Response::decode(&answer.message).expect("a response");
        self.dialect = response.dialect;
        self.signing_algorithm = match response.dialect {
            dialect if dialect >= Dialect::SMB_3_0 => SigningAlgorithm::AesCmac,
            _ => SigningAlgorithm::HmacSha256,
        };
        if response.capabilities.contains(Capabilities::ENCRYPTION) {
            self.cipher = Some(Cipher::Aes128Ccm);
        }
        for context in response.contexts {
            match context.context_type {
                ContextType::ENCRYPTION_CAPABILITIES => {
                    let chosen = Encryption::decode(context.data).expect("a context").ciphers;
                    assert_eq!(chosen.len(), 1);
                    self.cipher = Cipher::from_id(chosen[0].0);
                }
                ContextType::SIGNING_CAPABILITIES => {
                    let chosen = Signing::decode(context.data).expect("a context").algorithms;
                    assert_eq!(chosen.len(), 1);
                    let chosen = SigningAlgorithm::from_id(chosen[0].0);
                    self.signing_algorithm = chosen.expect("one that was offered");
                }
                _ => {}
            }
        }
    }

    pub(crate) fn setup(&mut self, token: &str, previous: SessionId) -> Message {
        let request = session_setup::Request {
            flags: session_setup::RequestFlags::NONE,
            security_mode: self.options.security_mode,
            capabilities: Capabilities::NONE,
            channel: 0,
            previous_session_id: previous,
            security_buffer: token.as_bytes(),
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::SESSION_SETUP, bytes)
    }

    pub(crate) fn log_in(&mut self, rig: &mut Rig, token: &str) -> Answer {
        self.log_in_replacing(rig, token, SessionId(0))
    }

    /// Sends the first or the next leg of a login. `previous` names the session to replace.
    pub(crate) fn log_in_replacing(
        &mut self,
        rig: &mut Rig,
        token: &str,
        previous: SessionId,
    ) -> Answer {
        let message = self.setup(token, previous);
        if message.header.session_id == SessionId(0) {
            self.login_hash = self.preauth.clone();
        }
        let frame = self.frame(vec![message]);
        self.login_hash.update(&frame);
        rig.deliver(self.id, &frame);
        let answer = self.hear(rig).expect("an answer").remove(0);
        self.take_login(&answer);
        answer
    }

    /// Updates the state of the client from the response to a leg of a login.
    pub(crate) fn take_login(&mut self, answer: &Answer) {
        match answer.status() {
            Status::MORE_PROCESSING_REQUIRED => {
                self.login_hash.update(&answer.message);
                self.session = answer.header.session_id;
            }
            Status::SUCCESS => self.take_session(answer),
            _ => {}
        }
    }

    fn take_session(&mut self, answer: &Answer) {
        use wire::session_setup::SessionFlags;
        self.session = answer.header.session_id;
        let response = session_setup::Response::decode(&answer.message).expect("a response");
        let has_no_key = SessionFlags::IS_GUEST | SessionFlags::IS_NULL;
        if response.flags.intersects(has_no_key) {
            assert!(!answer.is_signed());
            return;
        }
        if self.signing.is_none() {
            self.derive();
        }
        assert!(answer.is_signed(), "the last answer of a login is signed");
        self.check(&answer.message, answer.was_encrypted);
        self.encrypts |= response.flags.contains(SessionFlags::ENCRYPT_DATA);
        self.signs = self.dialect >= Dialect::SMB_3_1_1;
    }

    fn derive(&mut self) {
        let schedule = match self.dialect {
            Dialect::SMB_3_1_1 => KeySchedule::Smb311(&self.login_hash),
            dialect if dialect >= Dialect::SMB_3_0 => KeySchedule::Smb30,
            _ => KeySchedule::Smb2,
        };
        let keys: SessionKeys =
            session_keys(schedule, &Rig::SESSION_KEY, &Rig::SESSION_KEY, self.cipher);
        let key = SigningKey::new(self.signing_algorithm, &keys.signing);
        self.signing = Some(Arc::new(key));
        if let (Some(cipher), Some(pair)) = (self.cipher, &keys.encryption) {
            let key = |bytes: &[u8]| EncryptionKey::new(cipher, bytes);
            self.outbound = Some(key(pair.client_to_server.as_bytes()));
            self.inbound = Some(key(pair.server_to_client.as_bytes()));
        }
    }

    /// A TREE_CONNECT to a share of the server.
    pub(crate) fn connect_message(&mut self, share: &str) -> Message {
        let path = wire::text::utf16(&format!("\\\\server\\{share}"));
        let request = tree_connect::Request {
            flags: tree_connect::RequestFlags::NONE,
            path: Utf16(&path),
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        self.message(Command::TREE_CONNECT, bytes)
    }

    pub(crate) fn enter(&mut self, rig: &mut Rig, share: &str) -> Answer {
        let message = self.connect_message(share);
        let answer = self.ask(rig, message);
        if answer.status() == Status::SUCCESS {
            self.tree = answer.header.tree_id().expect("not an async answer");
        }
        answer
    }

    pub(crate) fn echo(&mut self, rig: &mut Rig) -> Answer {
        let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
        self.ask_body(rig, Command::ECHO, bytes)
    }
}
