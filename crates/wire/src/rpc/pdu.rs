//! Fragments: the common header and the bodies. \[C706\] 12.6.3

use alloc::vec::Vec;

use super::{Bind, BindAck, BindNak, Fault, Request, Response};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u16_of;
use crate::open_enum::{open_enum, open_flags};

open_enum! {
    /// The type of an RPC fragment. \[C706\] 12.6.1, \[MS-RPCE\] 2.2.2.1
    PacketType(u8) {
        /// The arguments of a call, from the client.
        REQUEST = 0,
        /// The results of a call, from the server.
        RESPONSE = 2,
        /// The server reports that a call failed without results.
        FAULT = 3,
        /// The client requests interfaces on a new connection.
        BIND = 11,
        /// The server responds to a bind.
        BIND_ACK = 12,
        /// The server refuses a bind.
        BIND_NAK = 13,
        /// The client requests further interfaces on the connection.
        ALTER_CONTEXT = 14,
        /// The server responds to an alter_context.
        ALTER_CONTEXT_RESP = 15,
        /// The client sends the third message of an authentication.
        AUTH3 = 16,
        /// The server asks the client to close the connection.
        SHUTDOWN = 17,
        /// The client cancels a call.
        CO_CANCEL = 18,
        /// The client abandons a call and ignores its results.
        ORPHANED = 19,
    }
}

open_flags! {
    /// Flags of an RPC fragment (pfc_flags). \[C706\] 12.6.3.1
    PacketFlags(u8) {
        /// The first fragment of a call.
        FIRST_FRAG = 0x01,
        /// The last fragment of a call.
        LAST_FRAG = 0x02,
        /// A cancel of the call is pending. In a bind, the bit means that the peer supports signed
        /// headers.
        PENDING_CANCEL = 0x04,
        /// The peer supports several concurrent calls on a connection.
        CONC_MPX = 0x10,
        /// Only in a fault: the server did not execute the call.
        DID_NOT_EXECUTE = 0x20,
        /// The client expects no response to the call.
        MAYBE = 0x40,
        /// An object UUID follows the fixed part of a request.
        OBJECT_UUID = 0x80,
    }
}

impl PacketFlags {
    /// The flags of a fragment that is an RPC call's only one: both FIRST_FRAG and LAST_FRAG.
    pub const WHOLE: Self = Self(Self::FIRST_FRAG.0 | Self::LAST_FRAG.0);
}

/// The first byte of the data representation: little-endian integers. \[C706\] 14.1
const LITTLE_ENDIAN: u8 = 0x10;

/// The common header of all RPC fragments (PDUs), 16 bytes. \[C706\] 12.6.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the RPC fragment, such as request, response or bind.
    pub packet_type: PacketType,
    /// Flags of the RPC fragment, such as first or last fragment of its call.
    pub flags: PacketFlags,
    /// Whether the integers of the fragment are big-endian. For such a fragment, this crate decodes
    /// only the header.
    pub is_big_endian: bool,
    /// Length of the whole fragment in bytes, including this header.
    pub frag_length: u16,
    /// Length in bytes of the authentication data at the end of the fragment; 0 without
    /// authentication.
    pub auth_length: u16,
    /// Identifier of the RPC call, which the client chose. All fragments of the call carry it.
    pub call_id: u32,
}

impl Header {
    /// Length of the encoded header of an RPC fragment in bytes.
    pub const LEN: usize = 16;

    /// Decodes the header at the start of an RPC fragment. Fails when `fragment` is too short, the
    /// version is not 5.0 or 5.1, or the stated length is less than the header.
    pub fn decode(fragment: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(fragment);
        let version = reader.u8("rpc_vers")?;
        if version != 5 {
            return Err(invalid("rpc_vers", version));
        }
        // Version 5.1 has the same layout in everything that this crate uses. [C706] 12.6.3.1
        let minor = reader.u8("rpc_vers_minor")?;
        if minor > 1 {
            return Err(invalid("rpc_vers_minor", minor));
        }
        let packet_type = PacketType(reader.u8("PTYPE")?);
        let flags = PacketFlags(reader.u8("pfc_flags")?);
        let drep: [u8; 4] = reader.array("drep")?;
        let is_big_endian = drep[0] & LITTLE_ENDIAN == 0;
        let (mut frag_length, mut auth_length) =
            (reader.u16("frag_length")?, reader.u16("auth_length")?);
        let mut call_id = reader.u32("call_id")?;
        if is_big_endian {
            frag_length = frag_length.swap_bytes();
            auth_length = auth_length.swap_bytes();
            call_id = call_id.swap_bytes();
        }
        if usize::from(frag_length) < Self::LEN {
            return Err(invalid("frag_length", frag_length));
        }
        Ok(Self {
            packet_type,
            flags,
            is_big_endian,
            frag_length,
            auth_length,
            call_id,
        })
    }

    /// Appends the header of a fragment without authentication data.
    fn encode(packet_type: PacketType, flags: PacketFlags, call_id: u32, fragment: &mut Vec<u8>) {
        fragment.put(&[5, 0, packet_type.0, flags.0]);
        fragment.put(&[LITTLE_ENDIAN, 0, 0, 0]);
        // frag_length, which Pdu::encode sets.
        fragment.put_u16(0);
        fragment.put_u16(0);
        fragment.put_u32(call_id);
    }
}

fn invalid(field: &'static str, value: impl Into<u64>) -> DecodeError {
    let value = value.into();
    DecodeError::Invalid { field, value }
}

/// An RPC fragment (PDU) with little-endian integers and without authentication data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// Identifier of the RPC call, which the client chose. All fragments of the call carry it.
    pub call_id: u32,
    /// Flags of the fragment. `encode` sets OBJECT_UUID when a request has an object.
    pub flags: PacketFlags,
    /// Contents of the RPC fragment after the common header.
    pub body: Body<'a>,
}

/// The contents of an RPC fragment after the common header; the variant is the type of the
/// fragment, such as bind or request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The client requests interfaces on a new connection.
    Bind(Bind),
    /// The server responds to a bind.
    BindAck(BindAck),
    /// The server refuses a bind.
    BindNak(BindNak),
    /// The client requests further interfaces on the connection.
    AlterContext(Bind),
    /// The server responds to an alter_context.
    AlterContextResp(BindAck),
    /// The arguments of a call, or a part of them.
    Request(Request<'a>),
    /// The results of a call, or a part of them.
    Response(Response<'a>),
    /// The server reports that a call failed without results.
    Fault(Fault),
    /// A fragment of another type, with the bytes after its header.
    Other(PacketType, &'a [u8]),
}

impl<'a> Pdu<'a> {
    /// Decodes exactly one RPC fragment.
    ///
    /// # Errors
    /// Fails when `fragment` has another length than its header states, is big-endian, has
    /// authentication data, or its contents are truncated.
    pub fn decode(fragment: &'a [u8]) -> Result<Self, DecodeError> {
        let header = Header::decode(fragment)?;
        if header.is_big_endian {
            return Err(invalid("drep", 0_u8));
        }
        if header.auth_length != 0 {
            return Err(invalid("auth_length", header.auth_length));
        }
        if usize::from(header.frag_length) != fragment.len() {
            return Err(invalid("frag_length", header.frag_length));
        }
        let mut reader = Reader::new(fragment);
        reader.skip("header", Header::LEN)?;
        let body = match header.packet_type {
            PacketType::BIND => Body::Bind(Bind::decode(&mut reader)?),
            PacketType::BIND_ACK => Body::BindAck(BindAck::decode(&mut reader)?),
            PacketType::BIND_NAK => Body::BindNak(BindNak::decode(&mut reader)?),
            PacketType::ALTER_CONTEXT => Body::AlterContext(Bind::decode(&mut reader)?),
            PacketType::ALTER_CONTEXT_RESP => Body::AlterContextResp(BindAck::decode(&mut reader)?),
            PacketType::REQUEST => Body::Request(Request::decode(&mut reader, header.flags)?),
            PacketType::RESPONSE => Body::Response(Response::decode(&mut reader)?),
            PacketType::FAULT => Body::Fault(Fault::decode(&mut reader)?),
            other => Body::Other(other, reader.rest()),
        };
        // Only a request has an object. [C706] 12.6.4.9
        let flags = match body {
            Body::Request(_) => header.flags,
            _ => header.flags.without(PacketFlags::OBJECT_UUID),
        };
        Ok(Self {
            call_id: header.call_id,
            flags,
            body,
        })
    }

    /// Appends the encoded RPC fragment to `fragment`.
    ///
    /// # Panics
    /// Panics when the encoding is longer than 65,535 bytes, or a list has more than 255 elements.
    /// The caller splits long arguments and results beforehand.
    pub fn encode(&self, fragment: &mut Vec<u8>) {
        let start = fragment.len();
        let mut flags = self.flags.without(PacketFlags::OBJECT_UUID);
        if let Body::Request(Request {
            object: Some(_), ..
        }) = &self.body
        {
            flags |= PacketFlags::OBJECT_UUID;
        }
        Header::encode(self.body.packet_type(), flags, self.call_id, fragment);
        match &self.body {
            Body::Bind(bind) | Body::AlterContext(bind) => bind.encode(fragment),
            Body::BindAck(ack) | Body::AlterContextResp(ack) => ack.encode(start, fragment),
            Body::BindNak(nak) => nak.encode(fragment),
            Body::Request(request) => request.encode(fragment),
            Body::Response(response) => response.encode(fragment),
            Body::Fault(fault) => fault.encode(fragment),
            Body::Other(_, bytes) => fragment.put(bytes),
        }
        let length = u16_of(fragment.len() - start);
        fragment[start + 8..start + 10].copy_from_slice(&length.to_le_bytes());
    }
}

impl Body<'_> {
    /// Returns the type of the RPC fragment with these contents, for its header.
    pub fn packet_type(&self) -> PacketType {
        match self {
            Self::Bind(_) => PacketType::BIND,
            Self::BindAck(_) => PacketType::BIND_ACK,
            Self::BindNak(_) => PacketType::BIND_NAK,
            Self::AlterContext(_) => PacketType::ALTER_CONTEXT,
            Self::AlterContextResp(_) => PacketType::ALTER_CONTEXT_RESP,
            Self::Request(_) => PacketType::REQUEST,
            Self::Response(_) => PacketType::RESPONSE,
            Self::Fault(_) => PacketType::FAULT,
            Self::Other(other, _) => *other,
        }
    }
}
