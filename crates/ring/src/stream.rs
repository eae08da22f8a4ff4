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

/// A TCP connection. Clones refer to the same connection, so that one task can receive while
/// another sends. The socket is closed when the last clone is gone and what was under way on it
/// has ended.
#[derive(Clone)]
pub struct Stream {
    pub(crate) shared: Rc<Shared>,
}

/// Bytes that an accepted socket takes for a peer on this machine before whoever sends has to wait
/// (the kernel counts twice as many, with what it needs itself): what waits there for long is out
/// of the cache when it is received. See docs/design/data-path.md. A client does not gain by it: it
/// sends little, or files that it splices.
const WITHIN_MACHINE_BYTES: i32 = 512 << 10;

pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) socket: Rc<TcpStream>,
    /// The token of the socket (epoll).
    pub(crate) source: Option<usize>,
    pub(crate) receive: RefCell<Receive>,
    /// Bytes from which on the kernel wakes whoever receives.
    pub(crate) low_water: Cell<usize>,
    /// A send is under way, or was dropped before its end: no other may follow.
    pub(crate) is_sending: Cell<bool>,
    /// What files are sent through, once one was.
    pub(crate) pipe: OnceCell<Rc<Pipe>>,
}

impl Stream {
    /// Connects to `address`.
    pub async fn connect(handle: &Handle, address: SocketAddr) -> io::Result<Self> {
        if handle.inner().epoll().is_some() {
            return Self::connect_epoll(handle, address).await;
        }
        let socket = sys::tcp_socket(&address, 0)?;
        let raw = Box::new(RawAddress::new(&address));
        let fd = types::Fd(socket.as_raw_fd());
        let entry = opcode::Connect::new(fd, raw.as_ptr(), raw.length()).build();
        // SAFETY: the entry points into the box, which the hold owns with the socket.
        let operation = unsafe { handle.operate(entry, Hold::Connect(socket, raw)) };
        match operation.await {
            (result, Hold::Connect(socket, _raw)) => {
                result?;
                let stream = Self::of(handle, TcpStream::from(socket))?;
                stream.expect_no_congestion();
                Ok(stream)
            }
            _ => unreachable!("an operation gives back what it was given"),
        }
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket.peer_addr()
    }

    /// The address of this side.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket.local_addr()
    }

    /// Ends one or both directions. Receives and sends under way see it.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shared.socket.shutdown(how)
    }

    /// Takes over a socket that was accepted, by whichever thread.
    pub fn new(handle: &Handle, socket: TcpStream) -> io::Result<Self> {
        // With epoll a file is spliced to it by this thread, which must not wait for the peer.
        if handle.inner().epoll().is_some() {
            socket.set_nonblocking(true)?;
        }
        let stream = Self::of(handle, socket)?;
        if stream.expect_no_congestion() {
            let (name, bytes) = (libc::SO_SNDBUF, WITHIN_MACHINE_BYTES);
            // Where the kernel refuses it is slower.
            let _ = sys::set_socket_option(stream.shared.socket.as_fd(), name, bytes);
        }
        Ok(stream)
    }

    /// Says whether the peer is on this machine.
    fn expect_no_congestion(&self) -> bool {
        let is_here = sys::has_peer_on_this_machine(&self.shared.socket);
        if is_here {
            sys::expect_no_congestion(self.shared.socket.as_fd());
        }
        is_here
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
        // A socket that is connecting becomes writable when that has ended, well or not.
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
    /// After EAGAIN (epoll): waits until the direction is ready again.
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
        inner.let_go(operation, self.source, self.socket.as_fd());
    }
}

/// To tell the kernel more about the connection.
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
