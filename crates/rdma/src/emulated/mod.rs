//! RDMA between two processes on one machine, or inside one process, for tests and demonstrations.
//!
//! A listener on port N is the socket `N.sock` in a directory that both peers know; it holds the
//! lock of `N.lock` beside it, so that a socket without a listener can be replaced. Messages go
//! through the socket. To access memory of the peer, a process uses the system calls of a debugger,
//! so it needs permission to debug the peer. The process that starts an operation checks the rules
//! of RDMA: it compares key, bounds and permission with the regions that the peer has announced. An
//! operation that violates them fails and ends the connection, as on a reliable connection of a
//! device.
//!
//! The processor of the process that starts an operation copies each byte once; a device does this
//! without the processor. A SEND is copied twice, into the kernel and out of it.

mod faults;
mod message;
mod peer_memory;
mod queue_pair;
mod sys;

use std::fs::{self, File, TryLockError};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};

use crate::emulated::queue_pair::{EmulatedQueuePair, Ends};
use crate::provider::{Attributes, Listener, Network, Provider, QueuePair, Request};
use crate::slots::Slot;

pub use faults::{Faults, FaultsError, VARIABLE};

/// Range of ports for listeners and clients without a fixed port. RFC 6335 6
const ANY_PORTS: std::ops::RangeInclusive<u16> = 49152..=65535;

/// A provider of RDMA connections that needs no device: it connects processes of one machine.
/// Processes that connect to each other use the same directory.
#[derive(Debug)]
pub struct Emulated {
    directory: PathBuf,
    faults: Faults,
}

impl Emulated {
    /// Makes a provider that stores its sockets in this directory, which is created if it does not
    /// exist. `faults` are the errors that the provider injects into all connections at random; the
    /// default value injects none.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new(directory: &Path, faults: Faults) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        sys::allow_access();
        Ok(Self {
            directory: directory.to_owned(),
            faults,
        })
    }

    fn path(&self, port: u16) -> PathBuf {
        self.directory.join(format!("{port}.sock"))
    }

    fn listen_on(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        let path = self.path(address.port());
        let lock = lock_port(&path.with_extension("lock"))?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = sys::socket()?;
        sys::listen(socket.as_fd(), &path)?;
        Ok(Box::new(EmulatedListener {
            socket,
            path,
            address,
            faults: self.faults,
            _lock: lock,
        }))
    }
}

/// Takes a port for a listener. A socket of this port that exists already is of a process that has
/// ended, even if it accepts connections: the kernel may complete the operations of an io_uring
/// instance, and keep their descriptors open, after the process has been waited for.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`]: another listener has the port. Or the file cannot be created.
fn lock_port(path: &Path) -> io::Result<File> {
    let lock = File::create(path)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::AddrInUse.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Provider for Emulated {
    fn name(&self) -> &'static str {
        "emulated"
    }

    fn addresses(&self) -> io::Result<Vec<(IpAddr, Network)>> {
        Ok(vec![(Ipv4Addr::LOCALHOST.into(), Network::Emulated)])
    }

    fn to_listen(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        // A port is one socket for all addresses.
        addresses.iter().copied().take(1).collect()
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>> {
        if address.port() != 0 {
            return self.listen_on(address);
        }
        for port in ANY_PORTS {
            match self.listen_on(SocketAddr::new(address.ip(), port)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                result => return result,
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    fn connect(
        &self,
        address: SocketAddr,
        attributes: &Attributes,
    ) -> io::Result<Box<dyn QueuePair>> {
        let socket = sys::socket()?;
        let own = take_port(&socket)?;
        let path = self.path(address.port());
        sys::connect(socket.as_fd(), &path).map_err(|error| match error.kind() {
            // The socket does not exist, has no listener any more, or its queue is full.
            io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::WouldBlock => {
                io::Error::new(io::ErrorKind::ConnectionRefused, path.display().to_string())
            }
            _ => error,
        })?;
        let ends = Ends {
            local: SocketAddr::new(address.ip(), own),
            peer: address,
        };
        let queue_pair = EmulatedQueuePair::new(socket, ends, attributes, self.faults)?;
        Ok(Box::new(queue_pair))
    }
}

/// Gives a socket a free port, so that both peers use the same name for a connection.
fn take_port(socket: &OwnedFd) -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let (first, count) = (*ANY_PORTS.start(), ANY_PORTS.len() as u16);
    // Processes start at different ports, so that they do not try the same ones.
    let begin = (std::process::id() as u16).wrapping_mul(631);
    for _ in 0..count {
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(begin);
        let port = first + number % count;
        match sys::bind_port(socket.as_fd(), port) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            result => return result.map(|()| port),
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

#[derive(Debug)]
struct EmulatedListener {
    socket: OwnedFd,
    path: PathBuf,
    address: SocketAddr,
    faults: Faults,
    /// The lock of the port, until the listener is dropped.
    _lock: File,
}

impl Listener for EmulatedListener {
    fn accept(&self) -> io::Result<Option<Box<dyn Request>>> {
        loop {
            let socket = match sys::accept(self.socket.as_fd()) {
                Ok(socket) => socket,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => return Err(error),
                },
            };
            let port = sys::peer_port(socket.as_fd()).unwrap_or(0);
            let ends = Ends {
                local: self.address,
                peer: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            };
            return Ok(Some(Box::new(EmulatedRequest {
                socket,
                ends,
                faults: self.faults,
            })));
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for EmulatedListener {
    fn drop(&mut self) {
        // Another process may have removed it before.
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Debug)]
struct EmulatedRequest {
    socket: OwnedFd,
    ends: Ends,
    faults: Faults,
}

impl Request for EmulatedRequest {
    fn peer_addr(&self) -> SocketAddr {
        self.ends.peer
    }

    fn accept(
        self: Box<Self>,
        attributes: &Attributes,
        receives: Vec<Slot>,
    ) -> io::Result<Box<dyn QueuePair>> {
        let Self {
            socket,
            ends,
            faults,
        } = *self;
        let mut queue_pair = EmulatedQueuePair::new(socket, ends, attributes, faults)?;
        for slot in receives {
            queue_pair.post_receive(slot);
        }
        queue_pair.flush();
        Ok(Box::new(queue_pair))
    }
}
