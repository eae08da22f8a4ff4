//! A UDP socket: set-up, receiving, end.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use io_uring::{opcode, types};

use super::arrivals::{Arrivals, GROUP};
use super::datagrams::{Datagrams, UdpBuffers};
use super::sys;
use crate::config::count;
use crate::epoll::Direction;
use crate::op::Hold;
use crate::runtime::Handle;

/// Largest number of bytes of one batch of datagrams: the largest IPv4 packet without its IP and
/// UDP headers. The kernel refuses a larger batch, also one of small datagrams.
pub const DATAGRAMS_BYTES_MAX: usize = 65_535 - 20 - 8;
/// Largest number of datagrams of one send. Linux: UDP_MAX_SEGMENTS, which is 64 in older kernels.
const SEGMENTS_MAX: usize = 64;

/// A UDP socket of this thread's runtime. Clones refer to the same socket.
#[derive(Clone)]
pub struct Udp {
    pub(super) shared: Rc<Shared>,
}

pub(super) struct Shared {
    pub(super) handle: Handle,
    pub(super) socket: Rc<UdpSocket>,
    pub(super) local: SocketAddr,
    arrivals: Rc<Arrivals>,
    /// Key of the armed multishot receive (io_uring).
    operation: Cell<Option<usize>>,
    /// Token of the socket (epoll).
    pub(super) source: Option<usize>,
    /// Largest number of datagrams of one send; 1 after the kernel has refused to cut a batch.
    pub(super) segments: Cell<usize>,
}

impl Udp {
    /// Makes a socket of this thread's runtime from a bound socket, with these sizes of the
    /// kernel's buffers. Its datagrams are never fragmented.
    ///
    /// # Errors
    /// The kernel lacks a required socket option.
    pub fn new(handle: &Handle, socket: UdpSocket, buffers: UdpBuffers) -> io::Result<Self> {
        let local = socket.local_addr()?;
        sys::prepare(&socket, local.is_ipv4(), buffers)?;
        if handle.inner().epoll().is_some() {
            socket.set_nonblocking(true)?;
        }
        let source = handle.inner().watch(socket.as_fd())?;
        let shared = Shared {
            handle: handle.clone(),
            socket: Rc::new(socket),
            local,
            arrivals: handle.inner().arrivals()?,
            operation: Cell::new(None),
            source,
            segments: Cell::new(SEGMENTS_MAX),
        };
        Ok(Self {
            shared: Rc::new(shared),
        })
    }

    /// Returns the local IP address and port of the socket.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// Returns the largest number of datagrams, of `bytes` bytes each, that one batch may have; at
    /// least 1. The number is limited by [`DATAGRAMS_BYTES_MAX`] and by the kernel: it is 1 if the
    /// kernel cannot split a batch.
    #[must_use]
    pub fn segments(&self, bytes: usize) -> usize {
        let fitting = DATAGRAMS_BYTES_MAX / bytes.max(1);
        fitting.clamp(1, self.shared.segments.get())
    }

    /// Waits for the next datagrams and returns them. A connected socket reports here that the
    /// peer's port is closed.
    ///
    /// # Errors
    /// An ICMP error for sent datagrams, or the runtime has ended.
    pub async fn recv(&self) -> io::Result<Datagrams> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Polls for the next datagrams, as [`recv`](Self::recv) does: `Ready` with the datagrams of
    /// one sender, or with an error. Otherwise the waker of `context` is woken when datagrams
    /// arrive. One task at a time may receive.
    ///
    /// # Errors
    /// An ICMP error for sent datagrams, or the runtime has ended.
    pub fn poll_recv(&self, context: &mut Context<'_>) -> Poll<io::Result<Datagrams>> {
        match self.shared.source {
            None => self.shared.poll_uring(context),
            Some(token) => self.shared.poll_epoll(token, context),
        }
    }
}

impl Shared {
    fn poll_uring(&self, context: &mut Context<'_>) -> Poll<io::Result<Datagrams>> {
        let uring = self.handle.inner().uring();
        let uring = uring.expect("the driver does not change");
        loop {
            if self.operation.get().is_none() && uring.is_closed() {
                return Poll::Ready(Err(io::Error::from_raw_os_error(libc::ECANCELED)));
            }
            let key = self.operation.get().unwrap_or_else(|| self.arm());
            let (completion, hold) = ready!(uring.poll(key, context));
            if hold.is_some() {
                self.operation.set(None);
            }
            let Ok(length) = usize::try_from(completion.result) else {
                match -completion.result {
                    // No buffer was free, or a signal arrived: arm it again.
                    libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN => continue,
                    errno if is_of_one_datagram(errno) => continue,
                    errno => return Poll::Ready(Err(io::Error::from_raw_os_error(errno))),
                }
            };
            let id = completion.chunk.expect("received data is in a buffer");
            // A truncated datagram is lost, as UDP allows.
            if let Some(datagrams) = self.arrivals.received(id, length) {
                return Poll::Ready(Ok(datagrams));
            }
        }
    }

    fn arm(&self) -> usize {
        let uring = self.handle.inner().uring();
        let uring = uring.expect("the driver does not change");
        let fd = types::Fd(self.socket.as_raw_fd());
        let entry = opcode::RecvMsgMulti::new(fd, self.arrivals.header(), GROUP).build();
        let hold = Hold::Datagrams(self.socket.clone(), Rc::clone(&self.arrivals));
        // SAFETY: the entry points at the header in the arrivals. The hold owns a reference to them
        // and to the socket; the kernel picks memory from their group.
        let key = unsafe { uring.submit(entry, hold) };
        self.operation.set(Some(key));
        key
    }

    fn poll_epoll(&self, token: usize, context: &mut Context<'_>) -> Poll<io::Result<Datagrams>> {
        let epoll = self.handle.inner().epoll().expect("a token is epoll's");
        loop {
            ready!(epoll.poll_ready(token, Direction::Read, context));
            count(&self.handle.inner().stats, |stats| stats.inline_calls += 1);
            match self.arrivals.receive(self.socket.as_fd()) {
                Ok(Some(datagrams)) => return Poll::Ready(Ok(datagrams)),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    epoll.clear_ready(token, Direction::Read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error().is_some_and(is_of_one_datagram) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// Whether an error of a connected socket concerns one datagram only. A host on the path did not
/// accept that datagram, but may accept others: a path MTU probe, for example, ends with EMSGSIZE.
/// The datagram is lost, as UDP allows. Linux: icmp_err_convert
fn is_of_one_datagram(errno: i32) -> bool {
    matches!(
        errno,
        libc::EMSGSIZE
            | libc::ENOPROTOOPT
            | libc::EOPNOTSUPP
            | libc::EPROTO
            | libc::EHOSTDOWN
            | libc::ENONET
    )
}

impl Drop for Shared {
    fn drop(&mut self) {
        let operation = self.operation.get();
        let inner = self.handle.inner();
        inner.release(operation, self.source, self.socket.as_fd());
    }
}

impl fmt::Debug for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Udp")
            .field("local", &self.shared.local)
            .finish_non_exhaustive()
    }
}
