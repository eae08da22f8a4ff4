//! The create contexts of durable and persistent opens, which survive a lost connection.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::{FileId, Guid};
use crate::open_enum::open_flags;

/// Data of a DURABLE_REQUEST (DHnQ) create context in a request for a durable open of version 1: 16
/// reserved bytes, which are zero. \[MS-SMB2\] 2.2.13.2.3
pub const DURABLE_REQUEST_DATA: [u8; 16] = [0; 16];
/// Data of a DURABLE_REQUEST (DHnQ) create context in a response that grants a durable open of
/// version 1: 8 reserved bytes, which are zero. \[MS-SMB2\] 2.2.14.2.3
pub const DURABLE_RESPONSE_DATA: [u8; 8] = [0; 8];

/// Data of a DURABLE_RECONNECT (DHnC) create context in a request: the client reconnects to a
/// durable open of version 1. The response has no such context. \[MS-SMB2\] 2.2.13.2.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableReconnect {
    /// FileId of the durable open, from the CREATE response before the connection was lost.
    pub file_id: FileId,
}

impl DurableReconnect {
    /// Decodes the data of a DURABLE_RECONNECT (DHnC) create context. Fails unless `data` has 16
    /// bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DHnC", 16)?;
        let file_id = Reader::new(data).file_id("DHnC")?;
        Ok(Self { file_id })
    }

    /// Encodes the data of a DURABLE_RECONNECT (DHnC) create context: 16 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_file_id(self.file_id);
        data
    }
}

open_flags! {
    /// Flags of a durable open of version 2. \[MS-SMB2\] 2.2.13.2.11
    DurableFlags(u32) {
        /// The open is persistent: it survives a restart of the server.
        PERSISTENT = 0x0000_0002,
    }
}

/// Data of a DURABLE_REQUEST_V2 (DH2Q) create context in a request: the client asks the server to
/// preserve the open when the connection is lost. \[MS-SMB2\] 2.2.13.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableRequestV2 {
    /// Time in ms that the server preserves the open without a connection; 0 selects the server's
    /// default.
    pub timeout_ms: u32,
    /// Flags of the request: whether the client requests a persistent open, which survives a
    /// failover of the server.
    pub flags: DurableFlags,
    /// CreateGuid: a random identifier of the CREATE from the client. It lets the server recognize
    /// a repeated request.
    pub create_guid: Guid,
}

impl DurableRequestV2 {
    /// Decodes the data of a DURABLE_REQUEST_V2 (DH2Q) create context in a request. Fails unless
    /// `data` has 32 bytes.
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

    /// Encodes the data of a DURABLE_REQUEST_V2 (DH2Q) create context in a request: 32 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.timeout_ms);
        data.put_u32(self.flags.0);
        data.put_u64(0);
        data.put(&self.create_guid.0);
        data
    }
}

/// Data of a DURABLE_REQUEST_V2 (DH2Q) create context in a response: the server granted a durable
/// open. \[MS-SMB2\] 2.2.14.2.12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableResponseV2 {
    /// Time in ms that the server preserves the open without a connection.
    pub timeout_ms: u32,
    /// Flags of the response: whether the open is persistent (survives a failover of the server),
    /// not only durable.
    pub flags: DurableFlags,
}

impl DurableResponseV2 {
    /// Decodes the data of a DURABLE_REQUEST_V2 (DH2Q) create context in a response. Fails unless
    /// `data` has 8 bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2Q", 8)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            timeout_ms: reader.u32("Timeout")?,
            flags: DurableFlags(reader.u32("Flags")?),
        })
    }

    /// Encodes the data of a DURABLE_REQUEST_V2 (DH2Q) create context in a response: 8 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u32(self.timeout_ms);
        data.put_u32(self.flags.0);
        data
    }
}

/// Data of a DURABLE_RECONNECT_V2 (DH2C) create context in a request: the client reconnects to a
/// durable or persistent open of version 2. The response has no such context.
/// \[MS-SMB2\] 2.2.13.2.12
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableReconnectV2 {
    /// FileId of the durable open, from the CREATE response before the connection was lost.
    pub file_id: FileId,
    /// CreateGuid that the client sent in the CREATE that opened the file.
    pub create_guid: Guid,
    /// Flags of the reconnect: whether the open was persistent.
    pub flags: DurableFlags,
}

impl DurableReconnectV2 {
    /// Decodes the data of a DURABLE_RECONNECT_V2 (DH2C) create context. Fails unless `data` has 36
    /// bytes.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        check_length(data, "DH2C", 36)?;
        let mut reader = Reader::new(data);
        Ok(Self {
            file_id: reader.file_id("DH2C")?,
            create_guid: reader.guid("CreateGuid")?,
            flags: DurableFlags(reader.u32("Flags")?),
        })
    }

    /// Encodes the data of a DURABLE_RECONNECT_V2 (DH2C) create context: 36 bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_file_id(self.file_id);
        data.put(&self.create_guid.0);
        data.put_u32(self.flags.0);
        data
    }
}
