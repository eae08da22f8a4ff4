//! Further connections of a client, bound to the session of the first.

use crypto::derive::{KeySchedule, session_keys};
use crypto::{EncryptionKey, SigningKey};
use std::sync::Arc;
use wire::dialect::{Capabilities, Dialect};
use wire::{Command, Flags, Guid, SessionId, Status, create, create_context, session_setup};

use super::client::{Answer, Client, Message, Options, bytes_of};
use super::oplocks::Ask;
use super::rig::Rig;

impl Client {
    /// A further connection of `first`, bound to its session by the same user.
    pub(crate) fn channel_of(rig: &mut Rig, first: &Self) -> Self {
        let mut channel = Self::beside(rig, first);
        let answer = channel.log_in_bound(rig, first, "alice");
        assert_eq!(answer.status(), Status::SUCCESS);
        channel
    }

    /// A further connection that has negotiated the options of `first` and has its session's keys.
    pub(crate) fn beside(rig: &mut Rig, first: &Self) -> Self {
        let mut channel = Self::new(rig, first.options.clone());
        assert_eq!(channel.negotiate(rig).status(), Status::SUCCESS);
        channel.knows(first);
        channel
    }

    /// Copies the session of another connection and its keys.
    pub(crate) fn knows(&mut self, first: &Self) {
        self.session = first.session;
        self.tree = first.tree;
        self.signing.clone_from(&first.signing);
        self.signs = true;
        self.login_hash = self.preauth.clone();
    }

    pub(crate) fn binding(&mut self, token: &str) -> Message {
        let request = session_setup::Request {
            flags: session_setup::RequestFlags::BINDING,
            security_mode: self.options.security_mode,
            capabilities: Capabilities::NONE,
            channel: 0,
            previous_session_id: SessionId(0),
            security_buffer: token.as_bytes(),
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let mut message = self.message(Command::SESSION_SETUP, bytes);
        message.header.credits = 64;
        message
    }

    /// Sends a leg of a login that binds this connection.
    pub(crate) fn log_in_bound(&mut self, rig: &mut Rig, first: &Self, token: &str) -> Answer {
        let message = self.binding(token);
        let frame = self.frame(vec![message]);
        self.login_hash.update(&frame);
        rig.deliver(self.id, &frame);
        // The status of the response says which key signs: that of the session or of the channel.
        let session_key = self.signing.take();
        let answer = self.hear(rig).expect("an answer").remove(0);
        match answer.status() {
            Status::SUCCESS => self.take_channel(first),
            _ => self.signing = session_key,
        }
        if answer.status() == Status::MORE_PROCESSING_REQUIRED {
            self.login_hash.update(&answer.message);
        }
        assert!(answer.is_signed(), "{:?}", answer.status());
        self.check(&answer.message, false);
        answer
    }

    /// A CREATE with a CreateGuid, so that it can be replayed.
    pub(crate) fn named_open(&mut self, name: &str, ask: Ask, create_guid: u8) -> Message {
        let message = self.open_message(name, ask);
        let mut request = create::Request::decode(&message.bytes).expect("it was just made");
        let data = create_context::DurableRequestV2 {
            timeout_ms: 0,
            flags: create_context::DurableFlags::NONE,
            create_guid: Guid([create_guid; 16]),
        }
        .encode();
        request.contexts.push(create_context::RawContext {
            name: create_context::name::DURABLE_REQUEST_V2,
            data: &data,
        });
        let bytes = bytes_of(|bytes| request.encode(bytes));
        Message { bytes, ..message }
    }

    /// The signing key comes from the binding, the encryption keys from the first login.
    fn take_channel(&mut self, first: &Self) {
        let keys = |client: &Self| {
            let schedule = match client.dialect {
                Dialect::SMB_3_1_1 => KeySchedule::Smb311(&client.login_hash),
                _ => KeySchedule::Smb30,
            };
            session_keys(
                schedule,
                &Rig::SESSION_KEY,
                &Rig::SESSION_KEY,
                client.cipher,
            )
        };
        let key = SigningKey::new(self.signing_algorithm, &keys(self).signing);
        self.signing = Some(Arc::new(key));
        if let (Some(cipher), Some(pair)) = (self.cipher, &keys(first).encryption) {
            let key = |bytes: &[u8]| EncryptionKey::new(cipher, bytes);
            self.outbound = Some(key(pair.client_to_server.as_bytes()));
            self.inbound = Some(key(pair.server_to_client.as_bytes()));
        }
        self.encrypts = first.encrypts;
        // The channels share a key, so that their nonces must differ.
        self.nonce = u64::from(u32::MAX) * self.id.0;
    }
}

impl Message {
    /// The same as a replay after the loss of a channel. The ChannelSequence is in the field that
    /// holds the status in a response.
    pub(crate) fn replayed(mut self, channel_sequence: u16) -> Self {
        self.header.flags |= Flags::REPLAY_OPERATION;
        self.numbered(channel_sequence)
    }

    /// The same as a first try after the loss of a channel.
    pub(crate) fn numbered(mut self, channel_sequence: u16) -> Self {
        self.header.status = Status(u32::from(channel_sequence));
        self
    }
}

/// Options of a client of a dialect with multichannel.
pub(crate) fn multichannel(dialect: Dialect) -> Options {
    let default = Options::default();
    Options {
        dialects: vec![dialect],
        capabilities: default.capabilities | Capabilities::MULTI_CHANNEL,
        ..default
    }
}
