//! A frame as it comes: which protocol, unsealed, its members counted. \[MS-SMB2\] 3.3.5.2

use alloc::sync::Arc;

use wire::compound::Members;
use wire::dialect::Dialect;
use wire::{Command, DecodeError, Header, SessionId};
use wire::{smb1, transform};

use crate::effect::Effects;
use crate::server::connection::Connection;
use crate::server::connection::task::Task;
use crate::server::session::{Rules, Session};
use crate::time::Now;
use crate::violation::Violation;

impl Connection {
    /// Takes a frame, or says why the connection ends.
    pub(super) fn frame(
        &mut self,
        now: Now,
        bytes: &mut [u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        if bytes.len() > self.max_frame() {
            return Err(Violation::FrameTooLong(bytes.len() as u64));
        }
        match bytes.first_chunk() {
            Some(&wire::header::PROTOCOL_ID) => self.clear_frame(now, bytes, effects),
            Some(&transform::PROTOCOL_ID) => self.sealed_frame(now, bytes, effects),
            Some(&smb1::PROTOCOL_ID) => self.smb1_negotiate(now, bytes, effects),
            Some(&other) => Err(unknown_protocol(other)),
            None => Err(Violation::Malformed(DecodeError::Truncated {
                field: "ProtocolId",
                needed: 4,
                left: bytes.len(),
            })),
        }
    }

    fn clear_frame(
        &mut self,
        now: Now,
        bytes: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        self.count_members(bytes)?;
        let task = Task::new(self.task_id(), None);
        self.run(now, task, bytes, Some(0), effects);
        Ok(())
    }

    /// \[MS-SMB2\] 3.3.5.2.1.1: whatever is wrong with a sealed frame ends the connection.
    fn sealed_frame(
        &mut self,
        now: Now,
        bytes: &mut [u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let parts = transform::split(bytes).map_err(Violation::Malformed)?;
        let session_id = parts.header.session_id;
        let session = self.unsealing_session(&parts.header)?;
        let sealing = session.state.lock().sealing.clone();
        let key = sealing.ok_or(Violation::CannotDecrypt(session_id))?.inbound;
        let nonce = &parts.header.nonce[..key.cipher().nonce_len()];
        let tag = &parts.header.signature;
        key.decrypt_in_place(nonce, parts.associated_data, parts.ciphertext, tag)
            .map_err(|_| Violation::CannotDecrypt(session_id))?;
        let message = &*parts.ciphertext;
        // A seal within a seal, or a compressed message: neither is offered.
        if let Some(&protocol) = message.first_chunk()
            && protocol != wire::header::PROTOCOL_ID
        {
            return Err(unknown_protocol(protocol));
        }
        self.count_members(message)?;
        let task = Task::new(self.task_id(), Some(session));
        self.run(now, task, message, Some(transform::TRANSFORM_LEN), effects);
        Ok(())
    }

    /// The session whose key opens a frame: a login that is not done has none.
    fn unsealing_session(&self, header: &transform::Transform) -> Result<Arc<Session>, Violation> {
        let unsealable = Violation::CannotDecrypt(header.session_id);
        let negotiated = self.negotiated.as_ref().ok_or(unsealable)?;
        let is_sealing = negotiated.dialect >= Dialect::SMB_3_0 && negotiated.cipher.is_some();
        // In 3.0 and 3.0.2 the field is the EncryptionAlgorithm, and 1 is AES-128-CCM.
        if !is_sealing || header.flags != transform::FLAG_ENCRYPTED {
            return Err(unsealable);
        }
        self.find_session(header.session_id).ok_or(unsealable)
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
            if count > self.server.config.limits.compound_messages {
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
        // [MS-SMB2] 3.3.5.2.3: CANCEL comes with the id of what it cancels.
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
