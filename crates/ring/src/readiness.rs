//! Readiness of any descriptor: completion channels of RDMA devices, sockets other than TCP.
//!
//! Each wait is one poll operation in the ring. A multishot poll would save the submission, which
//! leaves with the next enter anyway. But it would report every arrival, also those that the owner
//! has read long before.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use io_uring::{opcode, types};

use crate::epoll::Direction;
use crate::op::Hold;
use crate::runtime::Handle;
use crate::signal::{Either, either};
use crate::sys;

/// The readiness of a file descriptor that [`Readiness::ready`] waits for. A descriptor with an
/// error is always ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// The descriptor is readable, which includes end of file and a hang-up of the peer.
    Readable,
    /// The descriptor is readable or writable.
    ReadableOrWritable,
}

impl Interest {
    fn events(self) -> libc::c_short {
        match self {
            Self::Readable => libc::POLLIN | libc::POLLRDHUP,
            Self::ReadableOrWritable => libc::POLLIN | libc::POLLRDHUP | libc::POLLOUT,
        }
    }
}

/// Waits for the readiness of a file descriptor. This object owns a duplicate of the descriptor, so
/// the owner may close the original at any time. One task at a time may wait.
#[derive(Debug)]
pub struct Readiness {
    handle: Handle,
    fd: Rc<OwnedFd>,
    /// The token of the descriptor (epoll).
    source: Option<usize>,
}

impl Readiness {
    /// Makes an object that waits for the readiness of `fd`, which must support poll(2).
    ///
    /// # Errors
    /// The process has no free descriptor, or `fd` does not support poll(2).
    pub fn new(handle: &Handle, fd: BorrowedFd<'_>) -> io::Result<Self> {
        let fd = fd.try_clone_to_owned()?;
        let source = handle.inner().watch(fd.as_fd())?;
        Ok(Self {
            handle: handle.clone(),
            fd: Rc::new(fd),
            source,
        })
    }

    /// Waits until the descriptor has the readiness `interest`, or returns at once if it has.
    /// Dropping the future loses no event.
    ///
    /// # Errors
    /// The runtime has ended.
    pub async fn ready(&self, interest: Interest) -> io::Result<()> {
        if let Some(token) = self.source {
            return self.ready_epoll(token, interest).await;
        }
        let events = interest.events() as u32;
        let entry = opcode::PollAdd::new(types::Fd(self.fd.as_raw_fd()), events).build();
        // SAFETY: the entry refers to no memory; the hold owns the descriptor.
        let operation = unsafe { self.handle.operate(entry, Hold::Poll(self.fd.clone())) };
        operation.await.0.map(drop)
    }

    /// epoll reports changes only, so poll(2) checks whether the descriptor is still ready.
    async fn ready_epoll(&self, token: usize, interest: Interest) -> io::Result<()> {
        let epoll = self.handle.inner().epoll().expect("a token is epoll's");
        while !sys::is_ready(self.fd.as_fd(), interest.events())? {
            epoll.clear_ready(token, Direction::Read);
            let readable = std::pin::pin!(self.handle.ready(token, Direction::Read));
            match interest {
                Interest::Readable => readable.await,
                Interest::ReadableOrWritable => {
                    epoll.clear_ready(token, Direction::Write);
                    let writable = std::pin::pin!(self.handle.ready(token, Direction::Write));
                    match either(readable, writable).await {
                        Either::First(()) | Either::Second(()) => {}
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        let inner = self.handle.inner();
        inner.release(None, self.source, self.fd.as_fd());
    }
}
