//! Whether NEGOTIATE was tampered with.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::dialect::{Capabilities, Dialect, SecurityMode};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u16_of;

/// VALIDATE_NEGOTIATE_INFO, input. \[MS-SMB2\] 2.2.31.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidateNegotiateInfoRequest {
    /// As in the NEGOTIATE.
    pub capabilities: Capabilities,
    /// As in the NEGOTIATE.
    pub guid: Guid,
    /// As in the NEGOTIATE.
    pub security_mode: SecurityMode,
    /// As in the NEGOTIATE.
    pub dialects: Vec<Dialect>,
}

impl ValidateNegotiateInfoRequest {
    /// Reads the input.
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

    /// The input.
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

/// VALIDATE_NEGOTIATE_INFO, output. \[MS-SMB2\] 2.2.32.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateNegotiateInfoResponse {
    /// As in the NEGOTIATE.
    pub capabilities: Capabilities,
    /// As in the NEGOTIATE.
    pub guid: Guid,
    /// As in the NEGOTIATE.
    pub security_mode: SecurityMode,
    /// As in the NEGOTIATE.
    pub dialect: Dialect,
}

impl ValidateNegotiateInfoResponse {
    /// Reads the output.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(output);
        Ok(Self {
            capabilities: Capabilities(reader.u32("Capabilities")?),
            guid: reader.guid("Guid")?,
            security_mode: SecurityMode(reader.u16("SecurityMode")?),
            dialect: Dialect(reader.u16("Dialect")?),
        })
    }

    /// The output.
    pub fn encode(&self) -> Vec<u8> {
        let mut output = Vec::new();
        output.put_u32(self.capabilities.0);
        output.put(&self.guid.0);
        output.put_u16(self.security_mode.0);
        output.put_u16(self.dialect.0);
        output
    }
}
