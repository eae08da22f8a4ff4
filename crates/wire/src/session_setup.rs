//! SESSION_SETUP: authenticate a user and create a session. \[MS-SMB2\] 2.2.5, 2.2.6

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::dialect::{Capabilities, SecurityMode};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::SessionId;
use crate::layout::{begin, fill_empty, u16_of};
use crate::open_enum::open_flags;

const REQUEST_LEN: usize = 24;
const RESPONSE_LEN: usize = 8;

open_flags! {
    /// Flags of a SESSION_SETUP request. \[MS-SMB2\] 2.2.5
    RequestFlags(u8) {
        /// The request binds this connection, as a further channel, to the existing session in the
        /// header.
        BINDING = 0x01,
    }
}

open_flags! {
    /// Properties of a session in a SESSION_SETUP response. \[MS-SMB2\] 2.2.6
    SessionFlags(u16) {
        /// The server authenticated the user as a guest. The session has no key.
        IS_GUEST = 0x0001,
        /// The server authenticated the user as anonymous. The session has no key.
        IS_NULL = 0x0002,
        /// The client must encrypt all messages of the session.
        ENCRYPT_DATA = 0x0004,
    }
}

/// A SESSION_SETUP request: one step of a login, with a security token of the client.
/// \[MS-SMB2\] 2.2.5
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Flags of the request: whether it binds the connection, as a further channel, to an existing
    /// session.
    pub flags: RequestFlags,
    /// Whether the client supports message signing or requires it. One byte on the wire.
    pub security_mode: SecurityMode,
    /// Protocol features that the client supports; a server evaluates only DFS.
    pub capabilities: Capabilities,
    /// Reserved field of the request (Channel); clients send zero, and servers ignore it.
    pub channel: u32,
    /// Identifier of an earlier session of the same client, which the server closes after the
    /// login; 0 for none.
    pub previous_session_id: SessionId,
    /// Security token of the client: an SPNEGO token or an NTLM message.
    pub security_buffer: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes a SESSION_SETUP request from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "SESSION_SETUP request")?;
        reader.structure_size("SESSION_SETUP request", 25)?;
        let flags = RequestFlags(reader.u8("Flags")?);
        let security_mode = SecurityMode(u16::from(reader.u8("SecurityMode")?));
        let capabilities = Capabilities(reader.u32("Capabilities")?);
        let channel = reader.u32("Channel")?;
        let offset = reader.u16("SecurityBufferOffset")?;
        let length = reader.u16("SecurityBufferLength")?;
        let previous_session_id = SessionId(reader.u64("PreviousSessionId")?);
        let security_buffer = slice_at(message, "SecurityBuffer", offset.into(), length.into())?;
        Ok(Self {
            flags,
            security_mode,
            capabilities,
            channel,
            previous_session_id,
            security_buffer,
        })
    }

    /// Appends the body of a SESSION_SETUP request to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length, or a field is too long for
    /// its length field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 25);
        message.put_u8(self.flags.0);
        message.put_u8(self.security_mode.0.to_le_bytes()[0]);
        message.put_u32(self.capabilities.0);
        message.put_u32(self.channel);
        message.put_u16(u16_of(HEADER_LEN + REQUEST_LEN));
        message.put_u16(u16_of(self.security_buffer.len()));
        message.put_u64(self.previous_session_id.0);
        message.put(self.security_buffer);
        fill_empty(message, REQUEST_LEN);
    }
}

/// A SESSION_SETUP response: one step of a login, with a security token of the server.
/// \[MS-SMB2\] 2.2.6
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Flags of the session: whether the user is a guest or anonymous, and whether the session
    /// requires encryption.
    pub flags: SessionFlags,
    /// Security token of the server: an SPNEGO token or an NTLM message; may be empty.
    pub security_buffer: &'a [u8],
}

impl<'a> Response<'a> {
    /// Decodes a SESSION_SETUP response from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "SESSION_SETUP response")?;
        reader.structure_size("SESSION_SETUP response", 9)?;
        let flags = SessionFlags(reader.u16("SessionFlags")?);
        let offset = reader.u16("SecurityBufferOffset")?;
        let length = reader.u16("SecurityBufferLength")?;
        let security_buffer = slice_at(message, "SecurityBuffer", offset.into(), length.into())?;
        Ok(Self {
            flags,
            security_buffer,
        })
    }

    /// Appends the body of a SESSION_SETUP response to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length, or a field is too long for
    /// its length field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 9);
        message.put_u16(self.flags.0);
        message.put_u16(u16_of(HEADER_LEN + RESPONSE_LEN));
        message.put_u16(u16_of(self.security_buffer.len()));
        message.put(self.security_buffer);
    }
}
