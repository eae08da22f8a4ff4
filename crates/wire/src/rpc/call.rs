//! The messages of a call: request, response, fault. \[C706\] 12.6.4.9, 12.6.4.10, 12.6.4.7

use alloc::vec::Vec;

use super::pdu::{Body, PacketFlags, Pdu};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u32_of;
use crate::open_enum::open_enum;

/// The body of an RPC request: the arguments of a call, or a part of them. \[C706\] 12.6.4.9
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Hint for the receiver: length in bytes of the encoded arguments in this and all later
    /// fragments of the call; or 0 for no hint.
    pub alloc_hint: u32,
    /// Identifier of the RPC interface, which the client chose in its bind.
    pub context_id: u16,
    /// Operation number: selects a function of the RPC interface.
    pub opnum: u16,
    /// UUID of the object that the call applies to; `None` for the interfaces of this crate, which
    /// have no objects.
    pub object: Option<Guid>,
    /// The arguments of the call in NDR encoding (the stub), or a part of them.
    pub stub: &'a [u8],
}

impl<'a> Request<'a> {
    /// Length in bytes of an RPC request fragment before its arguments, without an object UUID.
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

/// The body of an RPC response: the results of a call, or a part of them. \[C706\] 12.6.4.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// Hint for the receiver: length in bytes of the encoded results in this and all later
    /// fragments of the call; or 0 for no hint.
    pub alloc_hint: u32,
    /// Identifier of the RPC interface, which the client chose in its bind.
    pub context_id: u16,
    /// Number of cancel requests that the server received for the call.
    pub cancel_count: u8,
    /// The results of the call in NDR encoding (the stub), or a part of them.
    pub stub: &'a [u8],
}

impl<'a> Response<'a> {
    /// Length in bytes of an RPC response fragment before its results.
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
    /// The status of an RPC fault: why a call failed. \[C706\] Appendix E, \[MS-RPCE\] 3.3.3.5
    FaultStatus(u32) {
        /// The user may not make the call.
        ACCESS_DENIED = 0x0000_0005,
        /// RPC_X_BAD_STUB_DATA: the server cannot decode the arguments.
        BAD_STUB_DATA = 0x0000_06F7,
        /// nca_op_rng_error: the interface does not have the operation number.
        OP_RANGE = 0x1C01_0002,
        /// nca_unk_if: the connection has not negotiated the interface.
        UNKNOWN_INTERFACE = 0x1C01_0003,
        /// nca_proto_error: the order of the fragments violates the protocol.
        PROTOCOL_ERROR = 0x1C01_000B,
        /// nca_out_args_too_big: the results are too long for the client.
        OUT_ARGUMENTS_TOO_BIG = 0x1C01_0013,
        /// nca_s_fault_context_mismatch: the server has not given out this context handle.
        CONTEXT_MISMATCH = 0x1C00_001A,
        /// nca_s_fault_remote_no_memory: the arguments are too long for the server.
        NO_MEMORY = 0x1C00_001B,
    }
}

/// The body of an RPC fault: the server reports that the call failed without results. \[C706\]
/// 12.6.4.7
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Identifier of the RPC interface, which the client chose in its bind.
    pub context_id: u16,
    /// Number of cancel requests that the server received for the call.
    pub cancel_count: u8,
    /// The reason for which the call failed, such as an unknown operation number.
    pub status: FaultStatus,
}

impl Fault {
    /// Length of a fault in bytes.
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

/// Encodes an RPC request as fragments of at most `max_fragment` bytes. `stub` has the arguments in
/// NDR encoding. `call_id` identifies the call, `context_id` the interface as chosen in the bind,
/// and `opnum` the operation.
///
/// # Panics
/// Panics when `max_fragment` is less than 32 bytes: a header and eight bytes of arguments.
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

/// Encodes an RPC response as fragments of at most `max_fragment` bytes. `stub` has the results in
/// NDR encoding. `call_id` and `context_id` are those of the request.
///
/// # Panics
/// Panics when `max_fragment` is less than 32 bytes: a header and eight bytes of results.
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

/// Splits a stub into parts of a multiple of eight bytes, except the last, as \[C706\] 12.6.4.9
/// requires.
fn cut<'a>(
    stub: &'a [u8],
    max_fragment: u16,
    mut part: impl FnMut(&'a [u8], usize, PacketFlags) -> Pdu<'a>,
) -> Vec<Vec<u8>> {
    let capacity = usize::from(max_fragment).saturating_sub(Request::HEAD_LEN) & !7;
    assert!(capacity > 0, "a fragment can hold a part of the stub");
    let mut fragments = Vec::with_capacity(stub.len() / capacity + 1);
    let mut left = stub;
    let mut flags = PacketFlags::FIRST_FRAG;
    loop {
        let (piece, rest) = left.split_at(left.len().min(capacity));
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
