//! Accepting connections.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use io_uring::{opcode, types};

use crate::epoll::Direction;
use crate::op::Hold;
use crate::operation::check;
use crate::runtime::Handle;
use crate::stream::Stream;
use crate::sys;

/// Connections that the kernel completes before the listener accepts them. The kernel caps the
/// number at somaxconn.
const BACKLOG: i32 = 4096;
/// First and longest pause after the system runs out of descriptors or memory.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// A listening TCP socket of this thread's runtime.
pub struct Listener {
    handle: Handle,
    socket: Rc<TcpListener>,
    /// Key of the armed multishot accept (io_uring).
    operation: Cell<Option<usize>>,
    /// Token of the socket (epoll).
    source: Option<usize>,
    pause: RefCell<Duration>,
}

impl Listener {
    /// Listens on `address`. With `reuse_port`, several listeners (one per worker) may share the
    /// address, and the kernel distributes connections over them. A listener on an IPv6 address
    /// accepts IPv6 only.
    ///
    /// # Errors
    /// An error of socket(2), bind(2) or listen(2), such as an address in use.
    pub fn bind(handle: &Handle, address: SocketAddr, reuse_port: bool) -> io::Result<Self> {
        let is_epoll = handle.inner().epoll().is_some();
        let flags = if is_epoll { libc::SOCK_NONBLOCK } else { 0 };
        let fd = sys::tcp_socket(&address, flags)?;
        sys::set_socket_option(fd.as_fd(), libc::SO_REUSEADDR, 1)?;
        if reuse_port {
            sys::set_socket_option(fd.as_fd(), libc::SO_REUSEPORT, 1)?;
        }
        if address.is_ipv6() {
            sys::set_v6_only(fd.as_fd())?;
        }
        sys::bind(fd.as_fd(), &address)?;
        sys::listen(fd.as_fd(), BACKLOG)?;
        Self::of(handle, TcpListener::from(fd))
    }

    /// Accepts the connections of a listening socket. Other threads and processes may accept from
    /// it, too. Sets whether the socket blocks, which all its descriptors share.
    ///
    /// # Errors
    /// The kernel cannot watch the socket.
    pub fn new(handle: &Handle, socket: TcpListener) -> io::Result<Self> {
        // io_uring fails at once on a socket that does not block.
        let is_epoll = handle.inner().epoll().is_some();
        socket.set_nonblocking(is_epoll)?;
        Self::of(handle, socket)
    }

    fn of(handle: &Handle, socket: TcpListener) -> io::Result<Self> {
        let source = handle.inner().watch(socket.as_fd())?;
        Ok(Self {
            handle: handle.clone(),
            socket: Rc::new(socket),
            operation: Cell::new(None),
            source,
            pause: RefCell::new(PAUSE.0),
        })
    }

    /// Returns the address and port that the socket listens on.
    ///
    /// # Errors
    /// An error of getsockname(2), which does not occur for a listening socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Waits for the next connection and returns it as a stream of this thread's runtime.
    ///
    /// # Errors
    /// The listening socket has failed, or the runtime has ended (ECANCELED). Connections that
    /// broke before the accept are skipped. While the system lacks descriptors or memory, this
    /// function pauses and tries again.
    pub async fn accept(&self) -> io::Result<Stream> {
        loop {
            let socket = self.accept_socket().await?;
            match Stream::new(&self.handle, socket) {
                Err(error) if is_shortage(&error) => self.pause(&error).await,
                result => return result,
            }
        }
    }

    /// Waits for the next connection and returns its socket. Any thread may make a [`Stream`] of
    /// it. While the system lacks descriptors or memory, this function pauses and tries again. It
    /// skips connections that broke before the accept.
    ///
    /// # Errors
    /// The listening socket has failed, or the runtime has ended (ECANCELED).
    pub async fn accept_socket(&self) -> io::Result<TcpStream> {
        loop {
            let result = match self.source {
                None => poll_fn(|context| self.poll_uring(context)).await,
                Some(token) => self.accept_epoll(token).await,
            };
            match result {
                Ok(socket) => {
                    self.pause.replace(PAUSE.0);
                    return Ok(socket);
                }
                Err(error) if is_shortage(&error) => self.pause(&error).await,
                Err(error) if is_transient(&error) => self.handle.yield_now().await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn pause(&self, error: &io::Error) {
        let pause = self.pause.replace_with(|pause| PAUSE.1.min(*pause * 2));
        tracing::warn!(%error, ?pause, "cannot accept connections for now");
        self.handle.sleep(pause).await;
    }

    fn poll_uring(&self, context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let uring = self
            .handle
            .inner()
            .uring()
            .expect("the driver does not change");
        let key = self.operation.get().unwrap_or_else(|| self.arm());
        uring.poll(key, context).map(|(completion, hold)| {
            if hold.is_some() {
                self.operation.set(None);
            }
            let fd = check(completion.result)?;
            Ok(TcpStream::from(sys::own_from_completion(fd)))
        })
    }

    fn arm(&self) -> usize {
        let uring = self
            .handle
            .inner()
            .uring()
            .expect("the driver does not change");
        let fd = types::Fd(self.socket.as_raw_fd());
        let entry = opcode::AcceptMulti::new(fd)
            .flags(libc::SOCK_CLOEXEC)
            .build();
        // SAFETY: the entry refers to no memory; the hold owns the socket.
        let key = unsafe { uring.submit(entry, Hold::Accept(Rc::clone(&self.socket))) };
        self.operation.set(Some(key));
        key
    }

    async fn accept_epoll(&self, token: usize) -> io::Result<TcpStream> {
        loop {
            match self.socket.accept() {
                Ok((socket, _peer)) => return Ok(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let epoll = self.handle.inner().epoll().expect("a token is epoll's");
                    epoll.clear_ready(token, Direction::Read);
                    self.handle.ready(token, Direction::Read).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns whether an error of accept(2) means that the system lacks descriptors or memory. A later
/// attempt may succeed.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    let shortages = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    error
        .raw_os_error()
        .is_some_and(|errno| shortages.contains(&errno))
}

/// Whether an error of accept(2) concerns only the new connection, not the listener. ECANCELED
/// follows the driver's own cancel of a flooded multishot accept, which the next poll arms again. A
/// runtime that ends does not poll.
fn is_transient(error: &io::Error) -> bool {
    let transient = [
        libc::ECONNABORTED,
        libc::EINTR,
        libc::EAGAIN,
        libc::ECANCELED,
        libc::EPROTO,
        libc::EPERM,
        libc::ENETDOWN,
        libc::EHOSTDOWN,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::ENOPROTOOPT,
        libc::ENOTCONN,
    ];
    error
        .raw_os_error()
        .is_some_and(|errno| transient.contains(&errno))
}

impl Drop for Listener {
    fn drop(&mut self) {
        let operation = self.operation.get();
        let inner = self.handle.inner();
        inner.release(operation, self.source, self.socket.as_fd());
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
