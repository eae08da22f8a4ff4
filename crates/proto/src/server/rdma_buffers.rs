//! Memory of the client that a READ or WRITE names, for its data to go by RDMA. \[MS-SMB2\]
//! 3.3.5.12, 3.3.5.13
//!
//! What is refused is refused with INVALID_PARAMETER, as the specification has it for a channel
//! that is not available. Two things are refused that it leaves to the client (3.2.4.6, 3.2.4.7:
//! Session.SigningRequired and Session.EncryptData are FALSE): data of an encrypted request and
//! of a session that must sign. RDMA transfers are neither encrypted nor signed: an attacker in the
//! network could read or change data that both peers consider protected. cifs.ko asks for neither
//! (smb3_use_rdma_offload); ksmbd and old Windows servers do what they are asked. An answer with
//! the data inline would be no way out: cifs.ko looks at DataRemaining alone. Windows Server 2022
//! encrypts such data with SMB2_RDMA_TRANSFORM, which is not offered here.

use alloc::vec::Vec;

use wire::Status;
use wire::dialect::Dialect;
use wire::read::Channel;
use wire::smbd::BufferDescriptorV1;

use crate::carrier::RdmaLimits;
use crate::server::context::Context;

/// The memory that a request names, cut to `length` bytes; `None` where its data go in messages.
/// If the client asks for it, every answer to the request invalidates the key.
pub(crate) fn memory(
    context: &mut Context<'_>,
    channel: Channel,
    channel_info: &[u8],
    length: u32,
) -> Result<Option<Vec<BufferDescriptorV1>>, Status> {
    // Reserved before. [MS-SMB2] 2.2.19, 2.2.21
    if channel == Channel::NONE || context.dialect < Dialect::SMB_3_0 {
        return Ok(None);
    }
    let is_known = match channel {
        Channel::RDMA_V1 => true,
        Channel::RDMA_V1_INVALIDATE => context.dialect >= Dialect::SMB_3_0_2,
        _ => false,
    };
    let limits = context.carrier.rdma.filter(|_| is_known);
    let limits = limits.ok_or(Status::INVALID_PARAMETER)?;
    if context.is_encrypted || context.session.state.lock().signing_required {
        return Err(Status::INVALID_PARAMETER);
    }
    let named = named(channel_info, &limits)?;
    if channel == Channel::RDMA_V1_INVALIDATE {
        *context.invalidate = named.first().map(|piece| piece.token);
    }
    if length > limits.max_read_write {
        return Err(Status::INVALID_PARAMETER);
    }
    cut(named, length).map(Some)
}

/// The pieces that the channel info lists: at least one, each of it within the 64 bits of an
/// address.
fn named(channel_info: &[u8], limits: &RdmaLimits) -> Result<Vec<BufferDescriptorV1>, Status> {
    let count = channel_info.len() / BufferDescriptorV1::LEN;
    if count == 0 || count > limits.max_descriptors {
        return Err(Status::INVALID_PARAMETER);
    }
    let pieces = BufferDescriptorV1::decode_list(channel_info);
    let pieces = pieces.map_err(|_| Status::INVALID_PARAMETER)?;
    let is_possible = |piece: &BufferDescriptorV1| {
        let end = piece.offset.checked_add(u64::from(piece.length));
        end.is_some()
    };
    match pieces.iter().all(is_possible) {
        true => Ok(pieces),
        false => Err(Status::INVALID_PARAMETER),
    }
}

/// The first `length` bytes of the pieces: the driver accesses no byte beyond them. Empty pieces
/// are left out.
fn cut(
    mut pieces: Vec<BufferDescriptorV1>,
    length: u32,
) -> Result<Vec<BufferDescriptorV1>, Status> {
    let mut left = length;
    for piece in &mut pieces {
        piece.length = piece.length.min(left);
        left -= piece.length;
    }
    if left > 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    pieces.retain(|piece| piece.length > 0);
    Ok(pieces)
}
