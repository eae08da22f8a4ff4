//! Validation of NEGOTIATE: the client checks that no attacker changed it in transit.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::dialect::{Capabilities, Dialect, SecurityMode};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u16_of;

/// Input of FSCTL_VALIDATE_NEGOTIATE_INFO: the client repeats its NEGOTIATE request in a signed
/// message, so that the server detects changes in transit. \[MS-SMB2\] 2.2.31.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidateNegotiateInfoRequest {
    /// Capabilities that the client sent in its NEGOTIATE request.
    pub capabilities: Capabilities,
    /// ClientGuid that the client sent in its NEGOTIATE request.
    pub guid: Guid,
    /// SecurityMode that the client sent in its NEGOTIATE request.
    pub security_mode: SecurityMode,
    /// Dialects that the client sent in its NEGOTIATE request, in the same order.
    pub dialects: Vec<Dialect>,
}

impl ValidateNegotiateInfoRequest {
    /// Decodes the input buffer of an IOCTL request with FSCTL_VALIDATE_NEGOTIATE_INFO. Fails when
    /// `input` is too short.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let capabilities = Capabilities(reader.u32("Capabilities")?);
        let guid = reader.guid("Guid")?;
        let security_mode = SecurityMode(reader.u16("SecurityMode")?);
        let count = usize::from(reader.u16("DialectCount")?);
        let pairs = reader.bytes("Dialects", 2 * count)?.chunks_exact(2);
        let dialects = pairs
            .map(|pair| Dialect(u16::from_le_bytes([pair[0], pair[1]])))
            .collect();
        Ok(Self {
            capabilities,
            guid,
            security_mode,
            dialects,
        })
    }

    /// Encodes the input buffer of an IOCTL request with FSCTL_VALIDATE_NEGOTIATE_INFO.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u32(self.capabilities.0);
        input.put(&self.guid.0);
        input.put_u16(self.security_mode.0);
        input.put_u16(u16_of(self.dialects.len()));
        for dialect in &self.dialects {
            input.put_u16(dialect.0);
        }
        input
    }
}

/// Output of FSCTL_VALIDATE_NEGOTIATE_INFO: the server repeats its NEGOTIATE response in a signed
/// message, so that the client detects changes in transit. \[MS-SMB2\] 2.2.32.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateNegotiateInfoResponse {
    /// Capabilities that the server sent in its NEGOTIATE response.
    pub capabilities: Capabilities,
    /// ServerGuid that the server sent in its NEGOTIATE response.
    pub guid: Guid,
    /// SecurityMode that the server sent in its NEGOTIATE response.
    pub security_mode: SecurityMode,
    /// Dialect that the server selected in its NEGOTIATE response.
    pub dialect: Dialect,
}

impl ValidateNegotiateInfoResponse {
    /// Decodes the output buffer of an IOCTL response with FSCTL_VALIDATE_NEGOTIATE_INFO. Fails
    /// when `output` is too short.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            capabilities: Capabilities(reader.u32("Capabilities")?),
            guid: reader.guid("Guid")?,
            security_mode: SecurityMode(reader.u16("SecurityMode")?),
            dialect: Dialect(reader.u16("Dialect")?),
        })
    }

    /// Encodes the output buffer of an IOCTL response with FSCTL_VALIDATE_NEGOTIATE_INFO.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = Vec::new();
        output.put_u32(self.capabilities.0);
        output.put(&self.guid.0);
        output.put_u16(self.security_mode.0);
        output.put_u16(self.dialect.0);
        output
    }
}
