//! The contexts that keep an open over a lost connection.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::{FileId, Guid};
use crate::open_enum::open_flags;

/// DHnQ, request: 16 reserved bytes. \[MS-SMB2\] 2.2.13.2.3
pub const DURABLE_REQUEST_DATA: [u8; 16] = [0; 16];
/// DHnQ, response: 8 reserved bytes. \[MS-SMB2\] 2.2.14.2.3
pub const DURABLE_RESPONSE_DATA: [u8; 8] = [0; 8];

/// DHnC, request; the response has none. \[MS-SMB2\] 2.2.13.2.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableReconnect {
    /// The open.
    pub file_id: FileId,
}

impl DurableReconnect {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DHnC", 16)?;
        let file_id = Reader::new(data).file_id("DHnC")?;
        Ok(Self { file_id })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_file_id(self.file_id);
        data
    }
}

open_flags! {
    /// Flags of a durable open. \[MS-SMB2\] 2.2.13.2.11
    DurableFlags(u32) {
        /// The open is persistent.
        PERSISTENT = 0x0000_0002,
    }
}

/// DH2Q, request. \[MS-SMB2\] 2.2.13.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableRequestV2 {
    /// How long to keep the open; 0 for the server's choice.
    pub timeout_ms: u32,
    /// Whether the open should be persistent.
    pub flags: DurableFlags,
    /// The client's name for the CREATE.
    pub create_guid: Guid,
}

impl DurableRequestV2 {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2Q", 32)?;
        let mut reader = Reader::new(data);
        let timeout_ms = reader.u32("Timeout")?;
        let flags = DurableFlags(reader.u32("Flags")?);
        reader.skip("Reserved", 8)?;
        Ok(Self {
            timeout_ms,
            flags,
            create_guid: reader.guid("CreateGuid")?,
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.timeout_ms);
        data.put_u32(self.flags.0);
        data.put_u64(0);
        data.put(&self.create_guid.0);
        data
    }
}

/// DH2Q, response. \[MS-SMB2\] 2.2.14.2.12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableResponseV2 {
    /// How long the open is kept.
    pub timeout_ms: u32,
    /// Whether the open is persistent.
    pub flags: DurableFlags,
}

impl DurableResponseV2 {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2Q", 8)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            timeout_ms: reader.u32("Timeout")?,
            flags: DurableFlags(reader.u32("Flags")?),
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.timeout_ms);
        data.put_u32(self.flags.0);
        data
    }
}

/// DH2C, request; the response has none. \[MS-SMB2\] 2.2.13.2.12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableReconnectV2 {
    /// The open.
    pub file_id: FileId,
    /// The client's name for the CREATE.
    pub create_guid: Guid,
    /// Whether the open was persistent.
    pub flags: DurableFlags,
}

impl DurableReconnectV2 {
    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2C", 36)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            file_id: reader.file_id("DH2C")?,
            create_guid: reader.guid("CreateGuid")?,
            flags: DurableFlags(reader.u32("Flags")?),
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_file_id(self.file_id);
        data.put(&self.create_guid.0);
        data.put_u32(self.flags.0);
        data
    }
}
