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

/// The most bytes of one send: what the length of an IPv4 packet leaves beside both headers. A
/// batch of more is refused by the kernel, whatever the size of its datagrams.
pub const DATAGRAMS_BYTES_MAX: usize = 65_535 - 20 - 8;
/// The most datagrams of one send. Linux: UDP_MAX_SEGMENTS, which older kernels have as 64.
const SEGMENTS_MAX: usize = 64;

/// A UDP socket of this thread. Clones refer to the same socket.
#[derive(Clone)]
pub struct Udp {
    pub(super) shared: Rc<Shared>,
}

pub(super) struct Shared {
    pub(super) handle: Handle,
    pub(super) socket: Rc<UdpSocket>,
    pub(super) local: SocketAddr,
    arrivals: Rc<Arrivals>,
    /// The multishot receive that is armed (io_uring).
    operation: Cell<Option<usize>>,
    /// The token of the socket (epoll).
    pub(super) source: Option<usize>,
    /// The most datagrams of one send: 1 where the kernel has refused to cut batches.
    pub(super) segments: Cell<usize>,
}

impl Udp {
    /// Takes over a bound socket. Its datagrams are never fragmented.
    ///
    /// # Errors
    /// The kernel lacks what UDP needs here.
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

    /// The address that the socket is bound to.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// The most datagrams of `bytes` bytes each that one send takes.
    #[must_use]
    pub fn segments(&self, bytes: usize) -> usize {
        let fitting = DATAGRAMS_BYTES_MAX / bytes.max(1);
        fitting.clamp(1, self.shared.segments.get())
    }

    /// The next datagrams. A socket that is connected reports here that nobody listens there.
    ///
    /// # Errors
    /// What the kernel heard about datagrams that were sent, or the runtime has ended.
    pub async fn recv(&self) -> io::Result<Datagrams> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// `recv` for hand-written futures.
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
                    // All memory was out, or a signal came: it is armed again.
                    libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN => continue,
                    errno if is_of_one_datagram(errno) => continue,
                    errno => return Poll::Ready(Err(io::Error::from_raw_os_error(errno))),
                }
            };
            let id = completion.chunk.expect("received data is in a buffer");
            // What is not whole is lost, as datagrams may be.
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
        // SAFETY: the entry points at the header in the arrivals, which the hold owns a reference
        // to, as it owns the socket; the kernel picks memory from their group.
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

/// Whether a connected socket reports so that something on the way did not take a datagram, which
/// others may well take: one that asks how long they may be is told with EMSGSIZE. It is lost, as
/// datagrams may be. Linux: icmp_err_convert
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
        inner.let_go(operation, self.source, self.socket.as_fd());
    }
}

impl fmt::Debug for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Udp")
            .field("local", &self.shared.local)
            .finish_non_exhaustive()
    }
}
