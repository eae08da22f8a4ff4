//! A received frame: its protocol, decryption, and the MessageIds of its members. \[MS-SMB2\]
//! 3.3.5.2

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::compound::Members;
use wire::dialect::Dialect;
use wire::{Command, DecodeError, Header, SessionId};
use wire::{smb1, transform};

use crate::effect::{Effects, Inbound};
use crate::server::connection::Connection;
use crate::server::connection::task::Task;
use crate::server::session::{Rules, Session};
use crate::time::Now;
use crate::violation::Violation;

impl Connection {
    /// Processes a frame, or returns the violation that ends the connection.
    pub(super) fn frame(
        &mut self,
        now: Now,
        frame: Inbound<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let Inbound { bytes, scratch: _ } = frame;
        if bytes.len() > self.max_frame() {
            return Err(Violation::FrameTooLong(bytes.len() as u64));
        }
        match bytes.first_chunk() {
            Some(&transform::PROTOCOL_ID) => self.encrypted_frame(now, bytes, effects),
            Some(&smb1::PROTOCOL_ID) => self.smb1_negotiate(now, bytes, effects),
            _ => self.message(now, None, bytes, Some(0), effects),
        }
    }

    /// Runs a message that is neither encrypted nor compressed any more. `session` encrypted it.
    /// `offset` is its place in the frame in bytes; `None` where it is not in the frame: then
    /// effects copy the bytes that they need.
    fn message(
        &mut self,
        now: Now,
        session: Option<Arc<Session>>,
        bytes: &[u8],
        offset: Option<usize>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        match bytes.first_chunk() {
            Some(&wire::header::PROTOCOL_ID) => {}
            Some(&other) => return Err(unknown_protocol(other)),
            None => {
                return Err(Violation::Malformed(DecodeError::Truncated {
                    field: "ProtocolId",
                    needed: 4,
                    left: bytes.len(),
                }));
            }
        }
        self.count_members(bytes)?;
        let task = Task::new(self.task_id(), session);
        self.run(now, task, bytes, offset, effects);
        Ok(())
    }

    /// Decrypts a frame in place. Any error in an encrypted frame ends the connection.
    /// \[MS-SMB2\] 3.3.5.2.1.1
    fn encrypted_frame(
        &mut self,
        now: Now,
        bytes: &mut [u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let parts = transform::split(bytes).map_err(Violation::Malformed)?;
        let session_id = parts.header.session_id;
        let session = self.decrypting_session(&parts.header)?;
        let keys = session.state.lock().encryption_keys.clone();
        let key = keys.ok_or(Violation::CannotDecrypt(session_id))?.inbound;
        let nonce = &parts.header.nonce[..key.cipher().nonce_len()];
        let tag = &parts.header.signature;
        key.decrypt_in_place(nonce, parts.associated_data, parts.ciphertext, tag)
            .map_err(|_| Violation::CannotDecrypt(session_id))?;
        // A second encryption or a compression inside is not negotiated: `message` refuses it.
        let (message, offset) = (&*parts.ciphertext, transform::TRANSFORM_LEN);
        self.message(now, Some(session), message, Some(offset), effects)
    }

    /// Runs the message of a frame that is longer than the frame: `expand` appends it to the
    /// scratch buffer. The message is subject to the limit of frames.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no compression is negotiated yet")
    )]
    fn expanded_frame(
        &mut self,
        now: Now,
        session: Option<Arc<Session>>,
        frame: Inbound<'_>,
        expand: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<(), Violation>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let Inbound { bytes, scratch } = frame;
        scratch.clear();
        expand(bytes, scratch)?;
        if scratch.len() > self.max_frame() {
            return Err(Violation::FrameTooLong(scratch.len() as u64));
        }
        self.message(now, session, scratch, None, effects)
    }

    /// The session that decrypts a frame. A login in progress has no key yet.
    fn decrypting_session(&self, header: &transform::Transform) -> Result<Arc<Session>, Violation> {
        let cannot_decrypt = Violation::CannotDecrypt(header.session_id);
        let negotiated = self.negotiated.as_ref().ok_or(cannot_decrypt)?;
        let can_decrypt = negotiated.dialect >= Dialect::SMB_3_0 && negotiated.cipher.is_some();
        // In 3.0 and 3.0.2 the field is the EncryptionAlgorithm, and 1 is AES-128-CCM.
        if !can_decrypt || header.flags != transform::FLAG_ENCRYPTED {
            return Err(cannot_decrypt);
        }
        self.find_session(header.session_id).ok_or(cannot_decrypt)
    }

    /// The session of this connection that has this id and is not over.
    pub(in crate::server) fn find_session(&self, id: SessionId) -> Option<Arc<Session>> {
        self.find_rules(id).map(|(session, _)| session)
    }

    /// The same, with what holds for every request on it.
    pub(super) fn find_rules(&self, id: SessionId) -> Option<(Arc<Session>, Rules)> {
        let session = self.sessions.get(&id)?;
        let rules = session.rules()?;
        Some((session.clone(), rules))
    }

    /// Checks every header of a frame and takes the MessageIds, before the first member runs.
    fn count_members(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let mut count = 0;
        for member in Members::new(bytes) {
            let message = member.map_err(Violation::Malformed)?;
            let header = Header::decode(message).map_err(Violation::Malformed)?;
            count += 1;
            if count > self.config.limits.compound_messages {
                return Err(Violation::LimitReached("compound_messages"));
            }
            self.check_header(&header)?;
        }
        if self.negotiated.is_none() && count > 1 {
            return Err(Violation::UnexpectedNegotiate);
        }
        Ok(())
    }

    fn check_header(&mut self, header: &Header) -> Result<(), Violation> {
        if header.is_response() {
            return Err(Violation::UnexpectedMessage(header.command));
        }
        let is_negotiate = header.command == Command::NEGOTIATE;
        match (self.negotiated.is_some(), is_negotiate) {
            (true, true) => return Err(Violation::UnexpectedNegotiate),
            (false, false) => return Err(Violation::NotNegotiated(header.command)),
            _ => {}
        }
        // [MS-SMB2] 3.3.5.2.3: a CANCEL has the MessageId of the request to cancel.
        let is_counted = header.command != Command::CANCEL;
        if is_counted && !self.window.take(header.message_id, self.charge(header)) {
            return Err(Violation::MessageIdOutOfWindow(header.message_id));
        }
        Ok(())
    }

    /// Credits that a request uses up. \[MS-SMB2\] 3.3.5.2.3
    pub(super) fn charge(&self, header: &Header) -> u16 {
        if self.has_large_mtu() {
            header.credit_charge.max(1)
        } else {
            1
        }
    }
}

fn unknown_protocol(protocol: [u8; 4]) -> Violation {
    Violation::Malformed(DecodeError::Invalid {
        field: "ProtocolId",
        value: u64::from(u32::from_le_bytes(protocol)),
    })
}

#[cfg(test)]
mod tests {
    use wire::dialect::{Capabilities, SecurityMode};
    use wire::header::Target;
    use wire::negotiate::Request;
    use wire::{Flags, Guid, MessageId, Status, TreeId};

    use super::*;
    use crate::carrier::Carrier;
    use crate::effect::Effect;
    use crate::id::ConnectionId;
    use crate::server::Server;
    use crate::server::config::Config;

    fn negotiate() -> Vec<u8> {
        let header = Header {
            credit_charge: 0,
            status: Status::SUCCESS,
            command: Command::NEGOTIATE,
            credits: 1,
            flags: Flags::NONE,
            next_command: 0,
            message_id: MessageId(0),
            target: Target::Sync {
                process_id: 0,
                tree_id: TreeId(0),
            },
            session_id: SessionId(0),
            signature: [0; 16],
        };
        let mut message = Vec::new();
        header.encode(&mut message);
        let request = Request {
            security_mode: SecurityMode::SIGNING_ENABLED,
            capabilities: Capabilities::NONE,
            client_guid: Guid::default(),
            dialects: Vec::from([Dialect::SMB_2_1]),
            contexts: Vec::new(),
        };
        request.encode(&mut message);
        message
    }

    fn connection() -> Connection {
        let server = Server::new(Config::default(), Now::default());
        let id = ConnectionId(1);
        Connection::new(server, id, Carrier::TCP, [0; 32], Now::default())
    }

    #[test]
    fn a_transform_may_make_a_message_longer() {
        let message = negotiate();
        let (mut effects, mut scratch) = (Effects::new(), Vec::from([1, 2, 3]));
        let frame = Inbound {
            bytes: &mut [7],
            scratch: &mut scratch,
        };
        let expand = |bytes: &[u8], out: &mut Vec<u8>| {
            assert_eq!(bytes, [7]);
            out.extend_from_slice(&message);
            Ok(())
        };
        let result = connection().expanded_frame(Now::default(), None, frame, expand, &mut effects);
        assert_eq!(result, Ok(()));
        assert!(matches!(effects.pop(), Some(Effect::Send(_))));
        assert_eq!(scratch, message);
    }

    #[test]
    fn a_longer_message_is_subject_to_the_limit_of_frames() {
        let (mut effects, mut scratch) = (Effects::new(), Vec::new());
        let frame = Inbound {
            bytes: &mut [7],
            scratch: &mut scratch,
        };
        let mut connection = connection();
        let length = connection.max_frame() + 1;
        let expand = |_: &[u8], out: &mut Vec<u8>| {
            out.resize(length, 0);
            Ok(())
        };
        let result = connection.expanded_frame(Now::default(), None, frame, expand, &mut effects);
        assert_eq!(result, Err(Violation::FrameTooLong(length as u64)));
    }
}
