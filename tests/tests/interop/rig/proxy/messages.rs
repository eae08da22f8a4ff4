//! Messages of SMB Direct between two ends of emulated RDMA. The server reads and writes the memory
//! of the process that connects to it: this one, in which the client lives as well.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use smbeam_tests::direct::port;
use socket2::{Domain, SockAddr, Socket, Type};

use super::kinds::{Kind, kinds};
use super::{Line, Shared, link};

/// Bytes in front of the payload of a SEND.
const HEADER_BYTES: usize = 24;
/// The kinds of header that are SENDs.
const SENDS: [u8; 2] = [3, 4];
/// More than any SEND has.
const MESSAGE_BYTES: usize = 1 << 20;

/// Relays to a port of emulated RDMA, from the port that it returns.
pub(super) fn relay(server: u16, shared: Arc<Shared>) -> Result<u16> {
    let (listener, port) = port::listen()?;
    thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let _ = meet(client, server, &shared);
        }
    });
    Ok(port)
}

/// Removes the name of a port: no client can connect any more.
pub(super) fn forget(port: u16) {
    let _ = fs::remove_file(port::path(port));
}

fn meet(client: Socket, port: u16, shared: &Arc<Shared>) -> io::Result<()> {
    let server = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    server.connect(&SockAddr::unix(port::path(port))?)?;
    link([client, server], pass, shared)
}

fn pass(mut from: &Socket, mut to: &Socket, line: Line, shared: &Shared) -> io::Result<()> {
    let (mut passed, mut sends) = (0, Sends::default());
    let mut message = vec![0; MESSAGE_BYTES];
    loop {
        let bytes = from.read(&mut message)?;
        if bytes == 0 {
            return Ok(());
        }
        let message = &message[..bytes];
        let found = sends.kinds(message);
        // Half a message is none.
        if shared.passes(line, passed, bytes, found).is_some() {
            return Ok(());
        }
        to.write_all(message)?;
        passed += bytes as u64;
    }
}

/// The SENDs that went one way.
#[derive(Default)]
struct Sends {
    has_negotiated: bool,
    /// Missing bytes of the message that passes in fragments.
    remaining: u32,
}

impl Sends {
    /// The messages of SMB that begin with a SEND. \[MS-SMBD\] 2.2.3
    fn kinds(&mut self, message: &[u8]) -> Vec<Kind> {
        let is_send = message.first().is_some_and(|kind| SENDS.contains(kind));
        if !is_send {
            return Vec::new();
        }
        if !self.has_negotiated {
            self.has_negotiated = true;
            return Vec::new();
        }
        let transfer = &message[HEADER_BYTES..];
        let field = |at: usize| {
            let bytes = transfer.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let (Some(remaining), Some(offset), Some(length)) = (field(8), field(12), field(16)) else {
            return Vec::new();
        };
        if length == 0 {
            return Vec::new();
        }
        let is_first = self.remaining == 0;
        self.remaining = remaining;
        let data = transfer.get(offset as usize..).unwrap_or_default();
        if is_first { kinds(data) } else { Vec::new() }
    }
}
