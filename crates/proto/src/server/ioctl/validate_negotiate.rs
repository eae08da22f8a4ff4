//! VALIDATE_NEGOTIATE_INFO: detects a downgrade of the negotiation. \[MS-SMB2\] 3.3.5.15.12

use wire::Status;
use wire::fsctl::{CtlCode, ValidateNegotiateInfoRequest, ValidateNegotiateInfoResponse};
use wire::ioctl::Request;

use super::request::{check_flags, check_no_open, reply};
use crate::server::connection::Connection;
use crate::server::connection::task::Flow;
use crate::server::negotiate::best_dialect;
use crate::server::negotiated::Negotiated;
use crate::violation::Violation;

/// Bytes of a VALIDATE_NEGOTIATE_INFO response. \[MS-SMB2\] 2.2.32.6
const VALIDATE_NEGOTIATE_LEN: u32 = 24;

/// Whether the request is about the connection and needs no tree: Samba serves it even without a
/// session, so that a client finds out about a downgrade as early as it likes.
pub(in crate::server) fn is_about_connection(message: &[u8]) -> bool {
    Request::decode(message)
        .is_ok_and(|request| request.ctl_code == CtlCode::VALIDATE_NEGOTIATE_INFO)
}

impl Connection {
    /// Serves VALIDATE_NEGOTIATE_INFO. \[MS-SMB2\] 3.3.5.15.12
    pub(in crate::server) fn connection_ioctl(&self, message: &[u8]) -> Result<Flow, Status> {
        let request = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        check_flags(&request)?;
        check_no_open(&request)?;
        let seen = ValidateNegotiateInfoRequest::decode(request.input)
            .map_err(|_| Status::INVALID_PARAMETER)?;
        if request.max_output_response < VALIDATE_NEGOTIATE_LEN {
            return Err(Status::BUFFER_TOO_SMALL);
        }
        let negotiated = self.negotiated.as_ref().expect("NEGOTIATE came first");
        let dialect = best_dialect(&self.config, &seen.dialects);
        if dialect != Some(negotiated.dialect) || !is_what_came(&seen, negotiated) {
            return Ok(Flow::End(Violation::NegotiateTampered));
        }
        let answer = ValidateNegotiateInfoResponse {
            capabilities: negotiated.capabilities,
            guid: self.config.guid,
            security_mode: negotiated.security_mode,
            dialect: negotiated.dialect,
        };
        Ok(Flow::Done(reply(&request, &answer.encode())))
    }
}

fn is_what_came(seen: &ValidateNegotiateInfoRequest, negotiated: &Negotiated) -> bool {
    seen.guid == negotiated.client_guid
        && seen.capabilities == negotiated.client_capabilities
        && seen.security_mode == negotiated.client_security_mode
}
