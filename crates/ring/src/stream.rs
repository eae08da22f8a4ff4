//! A TCP connection: set-up, state of both directions, end.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;

use io_uring::{opcode, types};

use crate::epoll::Direction;
use crate::op::Hold;
use crate::pipe::Pipe;
use crate::recv::Receive;
use crate::runtime::Handle;
use crate::sys::{self, RawAddress};

/// A TCP connection of this thread's runtime. Clones refer to the same connection, so that one task
/// can receive while another one sends. The socket is closed when the last clone is dropped and all
/// its operations have ended.
#[derive(Clone)]
pub struct Stream {
    pub(crate) shared: Rc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) socket: Rc<TcpStream>,
    /// Token of the socket (epoll).
    pub(crate) source: Option<usize>,
    pub(crate) receive: RefCell<Receive>,
    /// Low-water mark in bytes: the kernel wakes the receiver from this number on.
    pub(crate) low_water: Cell<usize>,
    /// A send is pending or was dropped before its end: no other send may follow.
    pub(crate) is_sending: Cell<bool>,
    /// The pipe for splicing files, created with the first one.
    pub(crate) pipe: OnceCell<Rc<Pipe>>,
}

impl Stream {
    /// Connects to a TCP server at `address`.
    ///
    /// # Errors
    /// An error of socket(2) or connect(2), such as a refused connection.
    pub async fn connect(handle: &Handle, address: SocketAddr) -> io::Result<Self> {
        if handle.inner().epoll().is_some() {
            return Self::connect_epoll(handle, address).await;
        }
        let socket = sys::tcp_socket(&address, 0)?;
        let raw = Box::new(RawAddress::new(&address));
        let fd = types::Fd(socket.as_raw_fd());
        let entry = opcode::Connect::new(fd, raw.as_ptr(), raw.length()).build();
        // SAFETY: the entry points into the box, which the hold owns together with the socket.
        let operation = unsafe { handle.operate(entry, Hold::Connect(socket, raw)) };
        match operation.await {
            (result, Hold::Connect(socket, _raw)) => {
                result?;
                let stream = Self::of(handle, TcpStream::from(socket))?;
                stream.expect_no_congestion();
                Ok(stream)
            }
            _ => unreachable!("an operation returns its hold"),
        }
    }

    /// Returns the IP address and port of the peer.
    ///
    /// # Errors
    /// The peer has disconnected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket.peer_addr()
    }

    /// Returns the IP address and port of this end of the connection.
    ///
    /// # Errors
    /// An error of getsockname(2), which does not occur for an open socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket.local_addr()
    }

    /// Returns the number of sent bytes that the peer has acknowledged. Bytes in the buffers of
    /// this machine do not count.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        sys::bytes_acked(self.shared.socket.as_fd())
    }

    /// Shuts down the directions of the connection that `how` names. Pending receives and sends of
    /// that direction end.
    ///
    /// # Errors
    /// The peer has disconnected.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shared.socket.shutdown(how)
    }

    /// Makes a stream of this thread's runtime from a connected socket, which any thread may have
    /// accepted.
    ///
    /// # Errors
    /// The system refuses an option of the socket.
    pub fn new(handle: &Handle, socket: TcpStream) -> io::Result<Self> {
        // With epoll this thread splices files into the socket and must not wait for the peer.
        if handle.inner().epoll().is_some() {
            socket.set_nonblocking(true)?;
        }
        let stream = Self::of(handle, socket)?;
        stream.expect_no_congestion();
        Ok(stream)
    }

    /// Selects the congestion control for a peer on the same machine.
    fn expect_no_congestion(&self) {
        if sys::has_peer_on_this_machine(&self.shared.socket) {
            sys::expect_no_congestion(self.shared.socket.as_fd());
        }
    }

    fn of(handle: &Handle, socket: TcpStream) -> io::Result<Self> {
        let source = handle.inner().watch(socket.as_fd())?;
        let shared = Shared {
            handle: handle.clone(),
            socket: Rc::new(socket),
            source,
            receive: RefCell::default(),
            low_water: Cell::new(1),
            is_sending: Cell::new(false),
            pipe: OnceCell::new(),
        };
        Ok(Self {
            shared: Rc::new(shared),
        })
    }

    async fn connect_epoll(handle: &Handle, address: SocketAddr) -> io::Result<Self> {
        let socket = sys::tcp_socket(&address, libc::SOCK_NONBLOCK)?;
        let result = sys::connect(socket.as_fd(), &address);
        let stream = Self::of(handle, TcpStream::from(socket))?;
        match result {
            Ok(()) => {
                stream.expect_no_congestion();
                return Ok(stream);
            }
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        // A connecting socket becomes writable when the connect has succeeded or failed.
        loop {
            stream.shared.wait(Direction::Write).await;
            match stream.shared.socket.take_error()? {
                Some(error) => return Err(error),
                None if stream.peer_addr().is_ok() => {
                    stream.expect_no_congestion();
                    return Ok(stream);
                }
                None => {}
            }
        }
    }
}

impl Shared {
    /// Waits until the direction is ready again (epoll). Called after EAGAIN.
    pub(crate) async fn wait(&self, direction: Direction) {
        let token = self
            .source
            .expect("only a watched socket waits for readiness");
        let epoll = self.handle.inner().epoll().expect("a token is epoll's");
        epoll.clear_ready(token, direction);
        self.handle.ready(token, direction).await;
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let operation = self.receive.get_mut().operation();
        let inner = self.handle.inner();
        inner.release(operation, self.source, self.socket.as_fd());
    }
}

/// For socket options that this crate does not offer.
impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.socket.as_fd()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("socket", &self.shared.socket)
            .finish_non_exhaustive()
    }
}
