//! Resilient opens.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// NETWORK_RESILIENCY_REQUEST: the input of FSCTL_LMR_REQUEST_RESILIENCY, which asks the server to
/// preserve an open after the loss of its connection. \[MS-SMB2\] 2.2.31.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResiliencyRequest {
    /// Time in ms that the server preserves the open without a connection; 0 selects the server's
    /// default.
    pub timeout_ms: u32,
}

impl ResiliencyRequest {
    /// Decodes the input buffer of an IOCTL request with FSCTL_LMR_REQUEST_RESILIENCY. Fails when
    /// `input` has less than 8 bytes.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let timeout_ms = reader.u32("Timeout")?;
        reader.skip("Reserved", 4)?;
        Ok(Self { timeout_ms })
    }

    /// Encodes the input buffer of an IOCTL request with FSCTL_LMR_REQUEST_RESILIENCY: 8 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u32(self.timeout_ms);
        input.put_u32(0);
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_8_bytes() {
        let request = ResiliencyRequest { timeout_ms: 60_000 };
        let input = request.encode();
        assert_eq!(input, [0x60, 0xEA, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ResiliencyRequest::decode(&input), Ok(request));
        assert!(ResiliencyRequest::decode(&input[..7]).is_err());
    }
}
