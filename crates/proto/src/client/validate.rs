//! Validation of NEGOTIATE: FSCTL_VALIDATE_NEGOTIATE_INFO. \[MS-SMB2\] 3.2.5.5
//!
//! In 3.1.1 the hash over NEGOTIATE is part of every key. Before that, an attacker in the path
//! could remove dialects from the offer. So the client asks the server, under the key of the
//! session, for the offer that it received.

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

/// Length of the response in bytes. \[MS-SMB2\] 2.2.32.6
const ANSWER_LEN: u32 = 24;

impl Connection {
    /// Whether the server must confirm NEGOTIATE: in dialects 3.0 and 3.0.2, and in 2.x if the
    /// client offered 3.x. A guest has no key for that.
    pub(super) fn needs_validation(&self, session: &Session) -> bool {
        let offered_3 = (self.config.dialects.iter()).any(|dialect| *dialect >= Dialect::SMB_3_0);
        offered_3 && session.negotiated.dialect < Dialect::SMB_3_1_1 && self.channel.is_some()
    }

    /// Requests the confirmation once. The TREE_CONNECT is answered after it.
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
            // The server granted no credit, and none is left.
            false => Err(Violation::LimitReached("no credits are left")),
        }
    }

    /// Handles the confirmation, whose signature or encryption was verified.
    pub(super) fn take_validation(
        &mut self,
        message: &Message<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        match message.header.status {
            Status::SUCCESS => self.check_validation(message.bytes)?,
            // An old server does not know the request and returns a signed error, which an attacker
            // in the path cannot do. [MS-SMB2] 3.2.5.5
            Status::NOT_SUPPORTED | Status::INVALID_DEVICE_REQUEST | Status::FILE_CLOSED => {}
            _ => {
                return Err(Violation::NegotiateTampered(
                    "the server did not confirm it",
                ));
            }
        }
        self.is_validated = true;
        for id in core::mem::take(&mut self.unvalidated) {
            self.conclude_if_done(id, effects);
        }
        Ok(())
    }

    fn check_validation(&self, bytes: &[u8]) -> Result<(), Violation> {
        let bad = Violation::NegotiateTampered("the server received another offer");
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
