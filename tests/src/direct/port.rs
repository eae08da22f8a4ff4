//! Ports of emulated RDMA: sockets in the directory where servers and clients of tests meet.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};
use socket2::{Domain, SockAddr, Socket, Type};

/// The first port of relays and scripted peers; the servers of tests use higher ones, see
/// [`crate::ports`].
const FIRST: u16 = 10_000;
const COUNT: u16 = 10_000;
/// Connections that may wait.
const BACKLOG: i32 = 64;

/// The directory where servers and clients of emulated RDMA meet. All tests use the same one: their
/// ports differ.
pub fn rdma_directory() -> PathBuf {
    env::temp_dir().join("smbeam-tests-rdma")
}

/// The file of a port.
pub fn path(port: u16) -> PathBuf {
    path_in(&rdma_directory(), port)
}

/// The same in a directory of one's own.
pub fn path_in(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!("{port}.sock"))
}

/// Listens on a port of which there is no file. Servers that are killed leave theirs behind.
///
/// # Errors
/// The directory cannot be made, or no port is free.
pub fn listen() -> Result<(Socket, u16)> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    fs::create_dir_all(rdma_directory())?;
    // Processes begin at different places.
    let begin = (process::id() % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let port = FIRST + (begin.wrapping_mul(131) % COUNT + number) % COUNT;
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        match socket.bind(&SockAddr::unix(path(port))?) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => continue,
            result => result?,
        }
        socket.listen(BACKLOG)?;
        return Ok((socket, port));
    }
    bail!("no port of emulated RDMA is free")
}
