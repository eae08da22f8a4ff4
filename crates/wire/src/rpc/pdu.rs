//! A fragment: the header that all have in common, and what stands behind it. \[C706\] 12.6.3

use alloc::vec::Vec;

use super::{Bind, BindAck, BindNak, Fault, Request, Response};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u16_of;
use crate::open_enum::{open_enum, open_flags};

open_enum! {
    /// What a fragment is. \[C706\] 12.6.1, \[MS-RPCE\] 2.2.2.1
    PacketType(u8) {
        /// A call.
        REQUEST = 0,
        /// What a call came to.
        RESPONSE = 2,
        /// That a call failed, and why.
        FAULT = 3,
        /// Asks for interfaces.
        BIND = 11,
        /// Which interfaces there are.
        BIND_ACK = 12,
        /// That there are none, and why.
        BIND_NAK = 13,
        /// Asks for more interfaces.
        ALTER_CONTEXT = 14,
        /// Which of them there are.
        ALTER_CONTEXT_RESP = 15,
        /// The third leg of a login.
        AUTH3 = 16,
        /// Asks the client to go.
        SHUTDOWN = 17,
        /// Asks for a call to be cancelled.
        CO_CANCEL = 18,
        /// Gives up on a call.
        ORPHANED = 19,
    }
}

open_flags! {
    /// pfc_flags. \[C706\] 12.6.3.1
    PacketFlags(u8) {
        /// The first fragment of a call.
        FIRST_FRAG = 0x01,
        /// The last fragment of a call.
        LAST_FRAG = 0x02,
        /// A cancel is pending; of a bind: headers can be signed.
        PENDING_CANCEL = 0x04,
        /// Several calls at one time.
        CONC_MPX = 0x10,
        /// Of a fault: the call was not begun.
        DID_NOT_EXECUTE = 0x20,
        /// The client wants no answer.
        MAYBE = 0x40,
        /// The id of an object follows the fixed part of a request.
        OBJECT_UUID = 0x80,
    }
}

impl PacketFlags {
    /// A fragment that is whole by itself.
    pub const WHOLE: Self = Self(Self::FIRST_FRAG.0 | Self::LAST_FRAG.0);
}

/// The first byte of drep: integers are little-endian. \[C706\] 14.1
const LITTLE_ENDIAN: u8 = 0x10;

/// What every fragment begins with. \[C706\] 12.6.3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub packet_type: PacketType,
    /// Flags.
    pub flags: PacketFlags,
    /// Whether its integers are big-endian: then it can be measured, and not be read.
    pub is_big_endian: bool,
    /// Bytes of the fragment, this header included.
    pub frag_length: u16,
    /// Bytes for a security provider at its end.
    pub auth_length: u16,
    /// The call.
    pub call_id: u32,
}

impl Header {
    /// Bytes of the header.
    pub const LEN: usize = 16;

    /// Reads the header at the start of a fragment.
    pub fn decode(fragment: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(fragment);
        let version = reader.u8("rpc_vers")?;
        if version != 5 {
            return Err(invalid("rpc_vers", version));
        }
        // 5.1 differs in nothing that is used here. [C706] 12.6.3.1
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

    /// Appends the header of a fragment without credentials.
    fn encode(packet_type: PacketType, flags: PacketFlags, call_id: u32, fragment: &mut Vec<u8>) {
        fragment.put(&[5, 0, packet_type.0, flags.0]);
        fragment.put(&[LITTLE_ENDIAN, 0, 0, 0]);
        // frag_length, once it is known.
        fragment.put_u16(0);
        fragment.put_u16(0);
        fragment.put_u32(call_id);
    }
}

fn invalid(field: &'static str, value: impl Into<u64>) -> DecodeError {
    let value = value.into();
    DecodeError::Invalid { field, value }
}

/// A fragment that is neither big-endian nor bears credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// The call.
    pub call_id: u32,
    /// Flags.
    pub flags: PacketFlags,
    /// What it is.
    pub body: Body<'a>,
}

/// What a fragment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Asks for interfaces.
    Bind(Bind),
    /// Which interfaces there are.
    BindAck(BindAck),
    /// That there are none.
    BindNak(BindNak),
    /// Asks for more interfaces.
    AlterContext(Bind),
    /// Which of them there are.
    AlterContextResp(BindAck),
    /// A call, or a part of one.
    Request(Request<'a>),
    /// What a call came to, or a part of it.
    Response(Response<'a>),
    /// Why a call failed.
    Fault(Fault),
    /// Another, with what follows its header.
    Other(PacketType, &'a [u8]),
}

impl<'a> Pdu<'a> {
    /// Reads a fragment: all of it, and nothing more.
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
        Ok(Self {
            call_id: header.call_id,
            flags: header.flags,
            body,
        })
    }

    /// Appends the fragment.
    ///
    /// # Panics
    /// When it is longer than 65,535 bytes: whoever encodes has cut it.
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
    /// What the header calls it.
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
