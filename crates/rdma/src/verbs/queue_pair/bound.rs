//! A queue pair with its completion queue, on a device.

use std::io;
use std::ptr;
use std::sync::Arc;

use crate::provider::Attributes;
use crate::verbs::channel::Id;
use crate::verbs::completions::Completions;
use crate::verbs::device::Device;
use crate::verbs::ffi;
use crate::verbs::posting::Posting;

/// Smallest useful queue. Devices with fewer entries are not supported.
const QUEUE_ENTRIES_MIN: u32 = 16;

/// The objects of a connection on its device. The order of the fields is the order of their end.
/// The queue pair itself ends before, with `Id::destroy_qp`.
pub(super) struct Bound {
    pub(super) posting: Posting,
    pub(super) completions: Completions,
}

/// Makes queue pair and completion queue, smaller if the device's capacity requires it.
pub(super) fn make_queue_pair(
    id: &Id,
    device: &Arc<Device>,
    attributes: &Attributes,
) -> io::Result<Bound> {
    let most = device.capabilities().queue_entries;
    let mut sends = attributes.sends.max(QUEUE_ENTRIES_MIN).min(most);
    let mut receives = attributes.receives.max(1).min(most);
    loop {
        match make_queue_pair_of(id, device, attributes, sends, receives) {
            Err(_) if sends > QUEUE_ENTRIES_MIN => {
                (sends, receives) = (sends / 2, (receives / 2).max(QUEUE_ENTRIES_MIN));
                sends = sends.max(QUEUE_ENTRIES_MIN);
            }
            result => return result,
        }
    }
}

fn make_queue_pair_of(
    id: &Id,
    device: &Arc<Device>,
    attributes: &Attributes,
    sends: u32,
    receives: u32,
) -> io::Result<Bound> {
    let capabilities = device.capabilities();
    // One entry for each entry of both queues: it never overflows.
    let entries = sends + receives;
    if entries > capabilities.completion_entries {
        return Err(io::Error::other(
            "the device cannot make a completion queue of this size",
        ));
    }
    let completions = Completions::new(device, entries, attributes.moderation)?;
    let pieces = attributes.pieces.clamp(1, capabilities.pieces);
    let mut init = ffi::QpInitAttr {
        qp_context: ptr::null_mut(),
        send_cq: completions.cq(),
        recv_cq: completions.cq(),
        srq: ptr::null_mut(),
        cap: ffi::QpCap {
            max_send_wr: sends,
            max_recv_wr: receives,
            max_send_sge: pieces,
            max_recv_sge: 1,
            max_inline_data: 0,
        },
        qp_type: ffi::QPT_RC,
        sq_sig_all: 0,
    };
    // SAFETY: `Bound` holds the domain (through its device) and the completion queue. They end
    // after the queue pair: see `VerbsQueuePair::end`, which runs at the latest when that is
    // dropped.
    let qp = unsafe { id.create_qp(device.pd(), &mut init) }?;
    // The device may have made the queues larger; the completion queue fits the requested sizes.
    let posting = Posting::new(qp, Arc::clone(device), sends, receives as usize, pieces);
    Ok(Bound {
        posting,
        completions,
    })
}
