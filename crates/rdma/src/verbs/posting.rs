//! Requests to the device: queued in order, and posted in chains when the queue has space.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::device::Device;
use super::ffi;
use super::work::{Local, OneSided};

/// A request without its operation.
#[derive(Debug)]
pub(super) enum Request {
    Send {
        local: Vec<Local>,
        invalidate: Option<u32>,
    },
    Write(OneSided),
    Read(OneSided),
    /// Binds a window.
    Bind {
        window: NonNull<ffi::Mw>,
        /// The key from then on.
        key: u32,
        region: NonNull<ffi::Mr>,
        address: u64,
        length: u64,
        access: c_int,
    },
    /// Invalidates the window of a key.
    Invalidate(u32),
}

/// The send queue and the receive queue.
pub(super) struct Posting {
    qp: NonNull<ffi::Qp>,
    device: Arc<Device>,
    waiting: VecDeque<Waiting>,
    /// Number of posted requests without a completion.
    in_flight: usize,
    sends_max: u32,
    receives_max: usize,
    pieces_max: u32,
}

struct Waiting {
    request: ffi::SendWr,
    pieces: Vec<ffi::Sge>,
}

impl Posting {
    pub(super) fn new(
        qp: NonNull<ffi::Qp>,
        device: Arc<Device>,
        sends_max: u32,
        receives_max: usize,
        pieces_max: u32,
    ) -> Self {
        Self {
            qp,
            device,
            waiting: VecDeque::new(),
            in_flight: 0,
            sends_max,
            receives_max,
            pieces_max,
        }
    }

    pub(super) fn sends_max(&self) -> u32 {
        self.sends_max
    }

    pub(super) fn receives_max(&self) -> usize {
        self.receives_max
    }

    pub(super) fn pieces_max(&self) -> u32 {
        self.pieces_max
    }

    fn ops(&self) -> &ffi::ContextOps {
        // SAFETY: the device is open as long as `self.device`, and its table does not change.
        unsafe { &(*self.device.context().as_ptr()).ops }
    }

    /// Queues the requests of one operation. The completion of each has the id `id`.
    pub(super) fn queue(&mut self, id: u64, requests: Vec<Request>) {
        let requests = requests.into_iter();
        self.waiting.extend(requests.map(|it| waiting(id, it)));
    }

    /// Counts a completion, which frees an entry of the queue.
    pub(super) fn completed(&mut self) {
        assert!(self.in_flight > 0, "a completion has a request");
        self.in_flight -= 1;
    }

    /// Posts all queued requests that fit the queue, with one call.
    ///
    /// # Safety
    /// The queue pair exists. All memory, regions and windows of the requests stay valid until
    /// their completion, or until the queue pair is destroyed.
    pub(super) unsafe fn post(&mut self) -> io::Result<()> {
        let space = self.sends_max as usize - self.in_flight;
        let count = space.min(self.waiting.len());
        let mut chain: Vec<_> = self.waiting.drain(..count).collect();
        link(&mut chain);
        let Some(first) = chain.first_mut() else {
            return Ok(());
        };
        let (first, mut bad) = (&raw mut first.request, ptr::null_mut());
        let post = self.ops().post_send;
        let qp = self.qp.as_ptr();
        // SAFETY: the caller guarantees that the queue pair exists; the chain and its pieces are
        // readable during the call, which copies them.
        let mut post = || unsafe { post(qp, first, &raw mut bad) };
        let result = if self.device.capabilities().is_software {
            self.device.library().posts.run(post)
        } else {
            post()
        };
        if result != 0 {
            // The connection ends, so the number of posted requests does not matter.
            return Err(io::Error::from_raw_os_error(result.abs()));
        }
        self.in_flight += count;
        chain.iter().for_each(note_key);
        Ok(())
    }

    /// Posts a receive into one piece of memory. Its completion has the id `id`.
    ///
    /// # Safety
    /// The queue pair exists. The memory is exclusively owned and stays allocated until the
    /// completion, or until the queue pair is destroyed.
    pub(super) unsafe fn receive(&mut self, id: u64, mut piece: ffi::Sge) -> io::Result<()> {
        let mut request = ffi::RecvWr {
            wr_id: id,
            next: ptr::null_mut(),
            sg_list: &raw mut piece,
            num_sge: 1,
        };
        let mut bad = ptr::null_mut();
        let post = self.ops().post_recv;
        // SAFETY: as in `post`.
        match unsafe { post(self.qp.as_ptr(), &raw mut request, &raw mut bad) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error.abs())),
        }
    }
}

/// Links each request to the next one and to its pieces, which do not move any more.
fn link(chain: &mut [Waiting]) {
    let mut next = ptr::null_mut();
    for waiting in chain.iter_mut().rev() {
        waiting.request.next = next;
        waiting.request.sg_list = waiting.pieces.as_mut_ptr();
        next = &raw mut waiting.request;
    }
}

/// Updates the key of a window: the driver reads the old key from the object and leaves the update
/// to the caller.
fn note_key(waiting: &Waiting) {
    let window = waiting.request.mw;
    if !window.is_null() {
        // SAFETY: the window exists, as the poster of the request guarantees, and belongs to this
        // thread.
        unsafe { (*window).rkey = waiting.request.mw_rkey };
    }
}

fn waiting(id: u64, request: Request) -> Waiting {
    let new = |opcode| ffi::SendWr::new(id, opcode, ffi::SEND_SIGNALED);
    match request {
        Request::Send { local, invalidate } => {
            let mut request = new(ffi::WR_SEND);
            if let Some(key) = invalidate {
                request.opcode = ffi::WR_SEND_WITH_INV;
                request.invalidate_rkey = key;
                // siw's driver reads the key from this field; the others ignore it.
                request.rkey = key;
            }
            // Wakes a peer that waits for messages and not for every completion.
            request.send_flags |= ffi::SEND_SOLICITED;
            with_pieces(request, local)
        }
        Request::Write(write) => with_remote(new(ffi::WR_RDMA_WRITE), write),
        Request::Read(read) => with_remote(new(ffi::WR_RDMA_READ), read),
        Request::Bind {
            window,
            key,
            region,
            address,
            length,
            access,
        } => {
            let mut request = new(ffi::WR_BIND_MW);
            request.mw = window.as_ptr();
            request.mw_rkey = key;
            request.bind_info = ffi::MwBindInfo {
                mr: region.as_ptr(),
                addr: address,
                length,
                access: access.unsigned_abs(),
            };
            with_pieces(request, Vec::new())
        }
        Request::Invalidate(key) => {
            let mut request = new(ffi::WR_LOCAL_INV);
            request.invalidate_rkey = key;
            with_pieces(request, Vec::new())
        }
    }
}

fn with_remote(mut request: ffi::SendWr, one: OneSided) -> Waiting {
    request.remote_addr = one.remote.address;
    request.rkey = one.remote.key;
    with_pieces(request, one.local)
}

fn with_pieces(mut request: ffi::SendWr, local: Vec<Local>) -> Waiting {
    request.num_sge = c_int::try_from(local.len()).expect("few pieces");
    Waiting {
        request,
        pieces: local.into_iter().map(ffi::Sge::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operand::RemoteRegion;

    fn local(address: u64) -> Local {
        Local {
            address,
            length: 10,
            key: 3,
        }
    }

    #[test]
    fn a_chain_has_its_requests_in_order_with_their_pieces() {
        let requests = [
            Request::Send {
                local: vec![local(1), local(2)],
                invalidate: Some(77),
            },
            Request::Invalidate(5),
            Request::Write(OneSided {
                local: vec![local(3)],
                remote: RemoteRegion {
                    address: 1000,
                    key: 9,
                    length: 10,
                },
            }),
        ];
        let mut chain: Vec<_> = requests.into_iter().map(|it| waiting(40, it)).collect();
        link(&mut chain);
        let opcodes: Vec<_> = chain.iter().map(|it| it.request.opcode).collect();
        let expected = [ffi::WR_SEND_WITH_INV, ffi::WR_LOCAL_INV, ffi::WR_RDMA_WRITE];
        assert_eq!(opcodes, expected);
        let places: Vec<_> = chain.iter().map(|it| &raw const it.request).collect();
        assert_eq!(chain[0].request.next.cast_const(), places[1]);
        assert_eq!(chain[1].request.next.cast_const(), places[2]);
        assert!(chain[2].request.next.is_null());
        assert_eq!(chain[0].request.num_sge, 2);
        assert_eq!(chain[0].request.invalidate_rkey, 77);
        assert_eq!((chain[0].request.wr_id, chain[0].pieces[1].addr), (40, 2));
        assert_eq!(
            chain[2].request.sg_list.cast_const(),
            chain[2].pieces.as_ptr()
        );
        assert_eq!(
            (chain[2].request.remote_addr, chain[2].request.rkey),
            (1000, 9)
        );
    }
}
