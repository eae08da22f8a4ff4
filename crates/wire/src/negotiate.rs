//! NEGOTIATE: select the dialect and its parameters. \[MS-SMB2\] 2.2.3, 2.2.4
//!
//! This module decodes the contexts of dialect 3.1.1 as opaque data; [`crate::negotiate_context`]
//! decodes the data.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::dialect::{Capabilities, Dialect, SecurityMode};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::Guid;
use crate::layout::{begin, fill_empty, u16_of, u32_of};
use crate::negotiate_context::{self, RawContext};
use crate::time::FileTime;

const REQUEST_LEN: usize = 36;
const RESPONSE_LEN: usize = 64;

/// A NEGOTIATE request, the first SMB2 request of a connection: the client offers SMB dialects and
/// their parameters. \[MS-SMB2\] 2.2.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Whether the client supports message signing or requires it.
    pub security_mode: SecurityMode,
    /// Protocol features that the client supports, such as leases and multichannel.
    pub capabilities: Capabilities,
    /// ClientGuid: a GUID that identifies the client computer on all its connections.
    pub client_guid: Guid,
    /// The SMB dialects that the client offers, in the order of the message.
    pub dialects: Vec<Dialect>,
    /// The negotiate contexts: parameters of dialect 3.1.1; empty unless 3.1.1 is among the
    /// dialects.
    pub contexts: Vec<RawContext<'a>>,
}

impl<'a> Request<'a> {
    /// Decodes a NEGOTIATE request from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "NEGOTIATE request")?;
        reader.structure_size("NEGOTIATE request", 36)?;
        let dialect_count = reader.u16("DialectCount")?;
        let security_mode = SecurityMode(reader.u16("SecurityMode")?);
        reader.skip("Reserved", 2)?;
        let capabilities = Capabilities(reader.u32("Capabilities")?);
        let client_guid = reader.guid("ClientGuid")?;
        // Without dialect 3.1.1, these eight bytes are the reserved ClientStartTime.
        let context_offset = reader.u32("NegotiateContextOffset")?;
        let context_count = reader.u16("NegotiateContextCount")?;
        reader.skip("Reserved2", 2)?;
        let dialects = decode_dialects(&mut reader, dialect_count)?;
        let contexts = if dialects.contains(&Dialect::SMB_3_1_1) {
            negotiate_context::decode_list(message, context_offset, context_count)?
        } else {
            Vec::new()
        };
        Ok(Self {
            security_mode,
            capabilities,
            client_guid,
            dialects,
            contexts,
        })
    }

    /// Appends the body of a NEGOTIATE request to `message`, which must hold exactly its 64-byte
    /// SMB2 header. Panics when `message` has another length, or a field is too long for its length
    /// field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        let has_contexts = self.dialects.contains(&Dialect::SMB_3_1_1);
        let dialects_end = HEADER_LEN + REQUEST_LEN + 2 * self.dialects.len();
        begin(message, 36);
        message.put_u16(u16_of(self.dialects.len()));
        message.put_u16(self.security_mode.0);
        message.put_u16(0);
        message.put_u32(self.capabilities.0);
        message.put(&self.client_guid.0);
        if has_contexts {
            message.put_u32(u32_of(dialects_end.next_multiple_of(8)));
            message.put_u16(u16_of(self.contexts.len()));
            message.put_u16(0);
        } else {
            message.put_u64(0);
        }
        for dialect in &self.dialects {
            message.put_u16(dialect.0);
        }
        if has_contexts {
            message.align(8);
            negotiate_context::encode_list(&self.contexts, message);
        }
    }
}

fn decode_dialects(reader: &mut Reader<'_>, count: u16) -> Result<Vec<Dialect>, DecodeError> {
    let bytes = reader.bytes("Dialects", 2 * usize::from(count))?;
    let pairs = bytes.chunks_exact(2);
    Ok(pairs
        .map(|pair| Dialect(u16::from_le_bytes([pair[0], pair[1]])))
        .collect())
}

/// A NEGOTIATE response: the server selects an SMB dialect and its parameters. \[MS-SMB2\] 2.2.4
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Whether the server supports message signing or requires it.
    pub security_mode: SecurityMode,
    /// The SMB dialect that the server selected.
    pub dialect: Dialect,
    /// ServerGuid: a GUID that identifies the server on all its connections.
    pub server_guid: Guid,
    /// Protocol features that the server supports, such as leases and multichannel.
    pub capabilities: Capabilities,
    /// Maximum length in bytes of a QUERY_INFO, SET_INFO, QUERY_DIRECTORY, CHANGE_NOTIFY or IOCTL
    /// buffer.
    pub max_transact_size: u32,
    /// Maximum length in bytes of the data of a READ that the server accepts.
    pub max_read_size: u32,
    /// Maximum length in bytes of the data of a WRITE that the server accepts.
    pub max_write_size: u32,
    /// Wall-clock time of the server when it made the response.
    pub system_time: FileTime,
    /// Start time of the server; current servers send 0. \[MS-SMB2\] 3.3.5.4
    pub server_start_time: FileTime,
    /// The server's first security token (SPNEGO), which lists its authentication mechanisms; may
    /// be empty.
    pub security_buffer: &'a [u8],
    /// The negotiate contexts: the selected parameters of dialect 3.1.1; empty unless the dialect
    /// is 3.1.1.
    pub contexts: Vec<RawContext<'a>>,
}

impl<'a> Response<'a> {
    /// Decodes a NEGOTIATE response from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "NEGOTIATE response")?;
        reader.structure_size("NEGOTIATE response", 65)?;
        let security_mode = SecurityMode(reader.u16("SecurityMode")?);
        let dialect = Dialect(reader.u16("DialectRevision")?);
        let context_count = reader.u16("NegotiateContextCount")?;
        let server_guid = reader.guid("ServerGuid")?;
        let capabilities = Capabilities(reader.u32("Capabilities")?);
        let max_transact_size = reader.u32("MaxTransactSize")?;
        let max_read_size = reader.u32("MaxReadSize")?;
        let max_write_size = reader.u32("MaxWriteSize")?;
        let system_time = FileTime(reader.u64("SystemTime")?);
        let server_start_time = FileTime(reader.u64("ServerStartTime")?);
        let offset = reader.u16("SecurityBufferOffset")?;
        let length = reader.u16("SecurityBufferLength")?;
        let context_offset = reader.u32("NegotiateContextOffset")?;
        let security_buffer = slice_at(message, "SecurityBuffer", offset.into(), length.into())?;
        let contexts = if dialect == Dialect::SMB_3_1_1 {
            negotiate_context::decode_list(message, context_offset, context_count)?
        } else {
            Vec::new()
        };
        Ok(Self {
            security_mode,
            dialect,
            server_guid,
            capabilities,
            max_transact_size,
            max_read_size,
            max_write_size,
            system_time,
            server_start_time,
            security_buffer,
            contexts,
        })
    }

    /// Appends the body of a NEGOTIATE response to `message`, which must hold exactly its 64-byte
    /// SMB2 header. Panics when `message` has another length, or a field is too long for its length
    /// field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        let buffer_offset = HEADER_LEN + RESPONSE_LEN;
        let has_contexts = self.dialect == Dialect::SMB_3_1_1;
        let count = if has_contexts { self.contexts.len() } else { 0 };
        begin(message, 65);
        message.put_u16(self.security_mode.0);
        message.put_u16(self.dialect.0);
        message.put_u16(u16_of(count));
        message.put(&self.server_guid.0);
        message.put_u32(self.capabilities.0);
        message.put_u32(self.max_transact_size);
        message.put_u32(self.max_read_size);
        message.put_u32(self.max_write_size);
        message.put_u64(self.system_time.0);
        message.put_u64(self.server_start_time.0);
        message.put_u16(u16_of(buffer_offset));
        message.put_u16(u16_of(self.security_buffer.len()));
        if has_contexts {
            let buffer_end = buffer_offset + self.security_buffer.len();
            message.put_u32(u32_of(buffer_end.next_multiple_of(8)));
        } else {
            message.put_u32(0);
        }
        message.put(self.security_buffer);
        if has_contexts {
            message.align(8);
            negotiate_context::encode_list(&self.contexts, message);
        }
        fill_empty(message, RESPONSE_LEN);
    }
}
