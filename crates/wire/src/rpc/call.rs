//! A call: request, response, fault. \[C706\] 12.6.4.9, 12.6.4.10, 12.6.4.7

use alloc::vec::Vec;

use super::pdu::{Body, PacketFlags, Pdu};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u32_of;
use crate::open_enum::open_enum;

/// A call, or a part of one. \[C706\] 12.6.4.9
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Bytes of the stubs of this part and all that follow; a hint, or 0.
    pub alloc_hint: u32,
    /// The interface, as the bind named it.
    pub context_id: u16,
    /// Which call.
    pub opnum: u16,
    /// An object; no interface here has any.
    pub object: Option<Guid>,
    /// The arguments.
    pub stub: &'a [u8],
}

impl<'a> Request<'a> {
    /// Bytes of a fragment before its stub.
    pub const HEAD_LEN: usize = 24;

    pub(super) fn decode(reader: &mut Reader<'a>, flags: PacketFlags) -> Result<Self, DecodeError> {
        let alloc_hint = reader.u32("alloc_hint")?;
        let context_id = reader.u16("p_cont_id")?;
        let opnum = reader.u16("opnum")?;
        let has_object = flags.contains(PacketFlags::OBJECT_UUID);
        let object = has_object.then(|| reader.guid("object")).transpose()?;
        Ok(Self {
            alloc_hint,
            context_id,
            opnum,
            object,
            stub: reader.rest(),
        })
    }

    pub(super) fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put_u32(self.alloc_hint);
        fragment.put_u16(self.context_id);
        fragment.put_u16(self.opnum);
        if let Some(object) = self.object {
            fragment.put(&object.0);
        }
        fragment.put(self.stub);
    }
}

/// What a call came to, or a part of it. \[C706\] 12.6.4.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Bytes of the stubs of this part and all that follow; a hint, or 0.
    pub alloc_hint: u32,
    /// The interface, as the bind named it.
    pub context_id: u16,
    /// Cancels that were received.
    pub cancel_count: u8,
    /// The results.
    pub stub: &'a [u8],
}

impl<'a> Response<'a> {
    /// Bytes of a fragment before its stub.
    pub const HEAD_LEN: usize = 24;

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let alloc_hint = reader.u32("alloc_hint")?;
        let context_id = reader.u16("p_cont_id")?;
        let cancel_count = reader.u8("cancel_count")?;
        reader.skip("reserved", 1)?;
        Ok(Self {
            alloc_hint,
            context_id,
            cancel_count,
            stub: reader.rest(),
        })
    }

    pub(super) fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put_u32(self.alloc_hint);
        fragment.put_u16(self.context_id);
        fragment.put_u8(self.cancel_count);
        fragment.put_u8(0);
        fragment.put(self.stub);
    }
}

open_enum! {
    /// Why a call failed before it could say so itself. \[C706\] Appendix E, \[MS-RPCE\] 3.3.3.5
    FaultStatus(u32) {
        /// Not for this user.
        ACCESS_DENIED = 0x0000_0005,
        /// RPC_X_BAD_STUB_DATA: the arguments cannot be read.
        BAD_STUB_DATA = 0x0000_06F7,
        /// nca_op_rng_error: the interface has no such call.
        OP_RANGE = 0x1C01_0002,
        /// nca_unk_if: no such interface was agreed on.
        UNKNOWN_INTERFACE = 0x1C01_0003,
        /// nca_proto_error: fragments in an order that makes no sense.
        PROTOCOL_ERROR = 0x1C01_000B,
        /// nca_out_args_too_big: the results do not fit.
        OUT_ARGUMENTS_TOO_BIG = 0x1C01_0013,
        /// nca_s_fault_remote_no_memory: the arguments do not fit.
        NO_MEMORY = 0x1C00_001B,
    }
}

/// Why a call failed. \[C706\] 12.6.4.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The interface, as the bind named it.
    pub context_id: u16,
    /// Cancels that were received.
    pub cancel_count: u8,
    /// Why.
    pub status: FaultStatus,
}

impl Fault {
    /// Bytes of a fault.
    const LEN: u32 = 32;

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.skip("alloc_hint", 4)?;
        let context_id = reader.u16("p_cont_id")?;
        let cancel_count = reader.u8("cancel_count")?;
        reader.skip("reserved", 1)?;
        let status = FaultStatus(reader.u32("status")?);
        Ok(Self {
            context_id,
            cancel_count,
            status,
        })
    }

    pub(super) fn encode(&self, fragment: &mut Vec<u8>) {
        fragment.put_u32(Self::LEN);
        fragment.put_u16(self.context_id);
        fragment.put_u8(self.cancel_count);
        fragment.put_u8(0);
        fragment.put_u32(self.status.0);
        fragment.put_u32(0);
    }
}

/// The fragments of a call, none longer than `max_fragment` bytes.
///
/// # Panics
/// When `max_fragment` has no room for eight bytes of stub.
pub fn request_fragments(
    call_id: u32,
    context_id: u16,
    opnum: u16,
    stub: &[u8],
    max_fragment: u16,
) -> Vec<Vec<u8>> {
    cut(stub, max_fragment, |part, left, flags| Pdu {
        call_id,
        flags,
        body: Body::Request(Request {
            alloc_hint: u32_of(left),
            context_id,
            opnum,
            object: None,
            stub: part,
        }),
    })
}

/// The fragments of what a call came to, none longer than `max_fragment` bytes.
///
/// # Panics
/// When `max_fragment` has no room for eight bytes of stub.
pub fn response_fragments(
    call_id: u32,
    context_id: u16,
    stub: &[u8],
    max_fragment: u16,
) -> Vec<Vec<u8>> {
    cut(stub, max_fragment, |part, left, flags| Pdu {
        call_id,
        flags,
        body: Body::Response(Response {
            alloc_hint: u32_of(left),
            context_id,
            cancel_count: 0,
            stub: part,
        }),
    })
}

/// Cuts a stub in parts of a multiple of eight bytes, as \[C706\] 12.6.4.9 has it but for the last.
fn cut<'a>(
    stub: &'a [u8],
    max_fragment: u16,
    mut part: impl FnMut(&'a [u8], usize, PacketFlags) -> Pdu<'a>,
) -> Vec<Vec<u8>> {
    let room = usize::from(max_fragment).saturating_sub(Request::HEAD_LEN) & !7;
    assert!(room > 0, "a fragment has room for a stub");
    let mut fragments = Vec::with_capacity(stub.len() / room + 1);
    let mut left = stub;
    let mut flags = PacketFlags::FIRST_FRAG;
    loop {
        let (piece, rest) = left.split_at(left.len().min(room));
        if rest.is_empty() {
            flags |= PacketFlags::LAST_FRAG;
        }
        let mut fragment = Vec::with_capacity(Request::HEAD_LEN + piece.len());
        part(piece, left.len(), flags).encode(&mut fragment);
        fragments.push(fragment);
        if rest.is_empty() {
            return fragments;
        }
        (left, flags) = (rest, PacketFlags::NONE);
    }
}
