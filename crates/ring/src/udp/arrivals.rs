//! Memory for received datagrams, which the caller gets without a copy where that pays.
//!
//! A caller cuts a batch into datagrams with different lifetimes, so the batch is reference-counted
//! ([`BytesMut`]). A batch that fills at least half of its buffer is passed on with the buffer, and
//! a new buffer replaces it. Smaller batches are copied, so that a small datagram with a long life
//! does not hold 64 KiB. A buffer can be reused when the last of its datagrams is dropped.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use bytes::{Buf, BytesMut};
use io_uring::IoUring;
use io_uring::types::RecvMsgOut;

use super::control::{CONTROL_BYTES, Meta};
use super::datagrams::Datagrams;
use super::sys;
use crate::provided::Provided;

/// The group of provided buffers that datagrams are received into.
pub(crate) const GROUP: u16 = 1;
/// Number of buffers of a ring: 2 MiB, one wake-up's worth of data at 100 Gbit/s.
const COUNT: u16 = 32;
/// Bytes of the kernel's header of a message. io_uring_prep_recvmsg(3)
const HEAD_BYTES: usize = 16;
/// Bytes for the address of the sender: `sockaddr_in6`, padded for alignment.
const NAME_BYTES: usize = 32;
/// Offset of the datagrams in a buffer.
const PAYLOAD_START: usize = HEAD_BYTES + NAME_BYTES + CONTROL_BYTES;
/// Bytes of a buffer: the largest batch that the kernel gathers, and its headers.
const BUFFER_BYTES: usize = PAYLOAD_START + (64 << 10);
/// Limit of the buffers that wait for reuse while callers hold datagrams in them.
const SPARE_MAX: usize = 64;

/// The datagram buffers of one runtime.
pub(crate) struct Arrivals {
    /// The ring shared with the kernel (io_uring).
    ring: Option<Provided>,
    /// The buffers that the kernel owns, by their number in the ring. `None` only during a call.
    slots: RefCell<Vec<Option<BytesMut>>>,
    /// Handles to buffers that callers share. A buffer is reused when no caller refers to it any
    /// more.
    spare: RefCell<VecDeque<BytesMut>>,
    /// The header that defines the layout of a received message.
    header: libc::msghdr,
}

impl Arrivals {
    /// Memory for epoll, or for a ring if `ring` is given.
    ///
    /// # Safety
    ///
    /// The caller unregisters [`GROUP`] from the ring before it drops the result.
    pub(crate) unsafe fn new(ring: Option<&IoUring>) -> io::Result<Self> {
        let ring = match ring {
            // SAFETY: the caller guarantees to unregister the group first.
            Some(ring) => Some(unsafe { Provided::register(ring, COUNT, GROUP) }?),
            None => None,
        };
        let mut header = crate::sys::message(&[]);
        header.msg_namelen = NAME_BYTES as libc::socklen_t;
        header.msg_controllen = CONTROL_BYTES as _;
        let arrivals = Self {
            ring,
            slots: RefCell::default(),
            spare: RefCell::default(),
            header,
        };
        if arrivals.ring.is_some() {
            arrivals
                .slots
                .borrow_mut()
                .resize_with(COUNT.into(), || None);
            (0..COUNT).for_each(|id| arrivals.provide(id, fresh()));
        }
        Ok(arrivals)
    }

    /// The header for the receive operation. It has a fixed address.
    pub(crate) fn header(&self) -> *const libc::msghdr {
        &raw const self.header
    }

    /// Takes a message of `length` bytes from buffer `id`. `None` if the message is truncated.
    pub(crate) fn received(&self, id: u16, length: usize) -> Option<Datagrams> {
        let mut buffer = self.take(id);
        assert!(length <= buffer.capacity(), "data fits its buffer");
        // SAFETY: the length is within the capacity, and all of it was zeroed when the buffer was
        // allocated; since then only the kernel and safe code have written to it.
        unsafe { buffer.set_len(length) };
        let Some(meta) = self.parse(&buffer) else {
            self.provide(id, buffer);
            return None;
        };
        let (bytes, next) = self.cut(buffer, PAYLOAD_START);
        self.provide(id, next);
        Some(meta.with(bytes))
    }

    /// Receives once, without waiting (epoll).
    pub(crate) fn receive(&self, fd: BorrowedFd<'_>) -> io::Result<Option<Datagrams>> {
        let mut buffer = self.spare();
        let received = sys::recv_message(fd, &mut buffer);
        let meta = received.map(|message| message.meta());
        match meta {
            Ok(Some(meta)) => {
                let (bytes, next) = self.cut(buffer, 0);
                self.keep(next);
                Ok(Some(meta.with(bytes)))
            }
            Ok(None) => {
                self.keep(buffer);
                Ok(None)
            }
            Err(error) => {
                self.keep(buffer);
                Err(error)
            }
        }
    }

    /// Returns a buffer with unwanted data to the kernel.
    pub(crate) fn give_back(&self, id: u16) {
        let buffer = self.take(id);
        self.provide(id, buffer);
    }

    /// Parses the metadata of a message in a buffer.
    fn parse(&self, buffer: &[u8]) -> Option<Meta> {
        let message = RecvMsgOut::parse(buffer, &self.header).ok()?;
        let is_truncated = message.is_payload_truncated() || message.is_control_data_truncated();
        if is_truncated {
            return None;
        }
        let length = message.payload_data().len();
        Meta::new(message.name_data(), message.control_data(), length)
    }

    /// Returns the bytes from `start` on, and a buffer for the next message.
    fn cut(&self, mut buffer: BytesMut, start: usize) -> (BytesMut, BytesMut) {
        if buffer.len() < BUFFER_BYTES / 2 {
            let bytes = BytesMut::from(&buffer[start..]);
            return (bytes, buffer);
        }
        let mut bytes = buffer.split();
        bytes.advance(start);
        let mut spare = self.spare.borrow_mut();
        if spare.len() >= SPARE_MAX {
            spare.pop_front();
        }
        spare.push_back(buffer);
        drop(spare);
        (bytes, self.spare())
    }

    fn keep(&self, buffer: BytesMut) {
        self.spare.borrow_mut().push_front(buffer);
    }

    /// A free buffer: the oldest shared one if no caller refers to it any more, or a new one.
    fn spare(&self) -> BytesMut {
        let mut spare = self.spare.borrow_mut();
        match spare.pop_front() {
            Some(mut oldest) => {
                oldest.clear();
                if oldest.try_reclaim(BUFFER_BYTES) {
                    return oldest;
                }
                spare.push_back(oldest);
                fresh()
            }
            None => fresh(),
        }
    }

    fn take(&self, id: u16) -> BytesMut {
        let buffer = self.slots.borrow_mut()[usize::from(id)].take();
        buffer.expect("the kernel names a buffer that it owns")
    }

    /// Gives a buffer to the kernel.
    fn provide(&self, id: u16, mut buffer: BytesMut) {
        buffer.clear();
        assert!(buffer.capacity() >= BUFFER_BYTES, "a buffer is whole");
        let start = NonNull::from(buffer.spare_capacity_mut()).cast::<u8>();
        let ring = self.ring.as_ref().expect("only a ring has buffers");
        // SAFETY: the slot was empty, so the buffer of this number is not in the ring. From here on
        // the buffer stays in its slot until a completion names it. Nothing else refers to its
        // memory, which does not move with the handle, and `Self` outlives the registration.
        unsafe { ring.provide(id, start, BUFFER_BYTES) };
        let old = self.slots.borrow_mut()[usize::from(id)].replace(buffer);
        assert!(old.is_none(), "a buffer is provided once");
    }
}

/// A new buffer. It is zeroed, so all of it may be read.
fn fresh() -> BytesMut {
    let mut buffer = BytesMut::zeroed(BUFFER_BYTES);
    buffer.clear();
    buffer
}

impl Meta {
    fn with(self, bytes: BytesMut) -> Datagrams {
        let segment = match self.segment {
            Some(segment) if segment > 0 => segment,
            _ => bytes.len(),
        };
        Datagrams {
            segment,
            peer: self.peer,
            local: self.local,
            ecn: self.ecn,
            bytes,
        }
    }
}

const _: () = assert!(PAYLOAD_START.is_multiple_of(8) && CONTROL_BYTES.is_multiple_of(8));
