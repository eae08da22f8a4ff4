//! Whether NEGOTIATE was tampered with: FSCTL_VALIDATE_NEGOTIATE_INFO. \[MS-SMB2\] 3.2.5.5
//!
//! In 3.1.1 the hash over NEGOTIATE is part of every key. Before, somebody in between could have
//! taken dialects out of what we offered; the server is asked, under the session's key, what it
//! saw.

use wire::dialect::Dialect;
use wire::fsctl::{CtlCode, ValidateNegotiateInfoRequest, ValidateNegotiateInfoResponse};
use wire::{Status, TreeId, ioctl};

use super::connection::Connection;
use super::effect::Effects;
use super::flight::Owner;
use super::message::Message;
use super::negotiate::{capabilities, security_mode};
use super::request::{RequestId, Step};
use super::session::Session;
use super::violation::Violation;

/// Bytes of the answer. \[MS-SMB2\] 2.2.32.6
const ANSWER_LEN: u32 = 24;

impl Connection {
    /// Whether the server has something to prove: dialects 3.0 and 3.0.2, and 2.x where more was
    /// offered. A guest has no key to ask with.
    pub(super) fn needs_validation(&self, session: &Session) -> bool {
        let offered_3 = (self.config.dialects.iter()).any(|dialect| *dialect >= Dialect::SMB_3_0);
        offered_3 && session.negotiated.dialect < Dialect::SMB_3_1_1 && self.channel.is_some()
    }

    /// Asks for the proof, unless that was done; the TREE_CONNECT is answered when it is there.
    pub(super) fn validate(
        &mut self,
        id: RequestId,
        tree: Option<TreeId>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        self.unvalidated.push(id);
        if self.unvalidated.len() > 1 {
            return Ok(());
        }
        let input = ValidateNegotiateInfoRequest {
            capabilities: capabilities(&self.config),
            guid: self.config.client_guid,
            security_mode: security_mode(&self.config),
            dialects: self.config.dialects.clone(),
        };
        let step = Step::Ioctl {
            file: None,
            code: CtlCode::VALIDATE_NEGOTIATE_INFO,
            input: input.encode(),
            max_output: ANSWER_LEN,
        };
        let envelope = self.envelope(tree, false, true);
        match self.send_step(&step, Owner::Validate, &envelope, effects) {
            true => Ok(()),
            // An answer without a credit, and none is left.
            false => Err(Violation::LimitReached("credits, all gone")),
        }
    }

    /// Takes the proof. It is signed or sealed: that was checked.
    pub(super) fn take_validation(
        &mut self,
        message: &Message<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        match message.header.status {
            Status::SUCCESS => self.check_validation(message.bytes)?,
            // A server of old does not know the question, and says so under its key; who is in
            // between cannot. [MS-SMB2] 3.2.5.5
            Status::NOT_SUPPORTED | Status::INVALID_DEVICE_REQUEST | Status::FILE_CLOSED => {}
            _ => return Err(Violation::NegotiateTampered("no proof of it")),
        }
        self.is_validated = true;
        for id in core::mem::take(&mut self.unvalidated) {
            self.conclude_if_done(id, effects);
        }
        Ok(())
    }

    fn check_validation(&self, bytes: &[u8]) -> Result<(), Violation> {
        let bad = Violation::NegotiateTampered("the proof says otherwise");
        let response = ioctl::Response::decode(bytes).map_err(Violation::Malformed)?;
        let proof = ValidateNegotiateInfoResponse::decode(response.output);
        let proof = proof.map_err(Violation::Malformed)?;
        let negotiated = self.negotiated.as_ref().expect("NEGOTIATE came first");
        let is_same = proof.capabilities == negotiated.capabilities
            && proof.guid == negotiated.server_guid
            && proof.security_mode == self.server_security_mode
            && proof.dialect == negotiated.dialect;
        if is_same { Ok(()) } else { Err(bad) }
    }
}
