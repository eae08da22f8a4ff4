//! A client of SMB Direct over emulated RDMA that sends any bytes, valid or not.
//!
//! It does not use the crates under test: the sent bytes must not depend on them.

pub mod port;
pub mod site;
pub mod smb;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::subject::Server;

/// How long a peer may take to answer or to close.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Receives that a peer that behaves posts.
pub const RECEIVES: u32 = 255;
/// Bytes of a header of the emulation.
const HEADER_BYTES: usize = 24;
/// Bytes of the data transfer header, with its padding. \[MS-SMBD\] 2.2.3
const TRANSFER_BYTES: usize = 24;
/// Messages that are received before their credits are granted anew without data.
const OWED_MAX: u16 = 64;

/// The kinds of the messages of the emulation.
pub mod kind {
    /// The first message of both peers.
    pub const HELLO: u8 = 1;
    /// Receives were posted.
    pub const POSTED: u8 = 2;
    /// A SEND.
    pub const SEND: u8 = 3;
    /// A SEND with invalidation.
    pub const SEND_AND_INVALIDATE: u8 = 4;
    /// Memory that the peer may read.
    pub const TO_READ: u8 = 5;
    /// Memory that the peer may write.
    pub const TO_WRITE: u8 = 6;
    /// The peer must release memory.
    pub const WITHDRAW: u8 = 7;
    /// The peer has released memory.
    pub const WITHDRAWN: u8 = 8;
}

/// The header of a message of the emulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// One of [`kind`].
    pub kind: u8,
    /// Receives that were posted.
    pub posted: u32,
    /// A key, or a version.
    pub key: u32,
    /// Bytes of memory.
    pub length: u32,
    /// Where the memory is.
    pub address: u64,
}

impl Header {
    /// As it is sent.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind, 0, 0, 0];
        for number in [self.posted, self.key, self.length] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(self.address.to_ne_bytes());
        bytes
    }
}

/// An SMB Direct negotiate request. \[MS-SMBD\] 2.2.1
#[derive(Clone, Copy, Debug)]
pub struct Negotiate {
    /// The fields of 16 bits: MinVersion, MaxVersion, Reserved, CreditsRequested.
    pub short: [u16; 4],
    /// The fields of 32 bits: PreferredSendSize, MaxReceiveSize, MaxFragmentedSize.
    pub long: [u32; 3],
}

impl Default for Negotiate {
    fn default() -> Self {
        Self {
            short: [0x0100, 0x0100, 0, 255],
            long: [8192, 8192, 1 << 20],
        }
    }
}

impl Negotiate {
    /// As it is sent.
    pub fn encode(&self) -> Vec<u8> {
        let short = self.short.iter().flat_map(|field| field.to_le_bytes());
        let long = self.long.iter().flat_map(|field| field.to_le_bytes());
        short.chain(long).collect()
    }
}

/// A data transfer header. \[MS-SMBD\] 2.2.3
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The fields of 16 bits: CreditsRequested, CreditsGranted, Flags, Reserved.
    pub short: [u16; 4],
    /// The fields of 32 bits: RemainingDataLength, DataOffset, DataLength.
    pub long: [u32; 3],
}

impl Transfer {
    /// In front of `length` bytes, behind which `remaining` follow.
    pub fn of(length: u32, remaining: u32) -> Self {
        let offset = if length == 0 { 0 } else { 24 };
        Self {
            short: [255, 0, 0, 0],
            long: [remaining, offset, length],
        }
    }

    /// As it is sent, with padding behind it where there are data.
    pub fn encode(&self, data: &[u8]) -> Vec<u8> {
        let short = self.short.iter().flat_map(|field| field.to_le_bytes());
        let long = self.long.iter().flat_map(|field| field.to_le_bytes());
        let mut bytes: Vec<u8> = short.chain(long).collect();
        if !data.is_empty() {
            bytes.resize(TRANSFER_BYTES, 0);
            bytes.extend_from_slice(data);
        }
        bytes
    }
}

/// The next event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A SEND of these bytes.
    Sent(Vec<u8>),
    /// Something else of the emulation: its kind.
    Other(u8),
    /// The peer has closed.
    Closed,
    /// Nothing within the time limit.
    Nothing,
}

/// One connection.
#[derive(Debug)]
pub struct Direct {
    socket: Socket,
    port: u16,
    /// SENDs that this client may make.
    credits: u32,
    /// Number of received SENDs that are not yet granted as new credits.
    owed: u16,
    /// Bytes of one SEND that the peer takes.
    max_send: usize,
    /// Bytes of one SEND that we take.
    max_receive: usize,
    /// The received fragments of a message.
    assembly: Vec<u8>,
    /// Messages that arrived during a wait for credits.
    waiting: VecDeque<Vec<u8>>,
}

impl Direct {
    /// Connects to SMB Direct of a server of the tests, and sends nothing.
    pub fn connect(server: &Server) -> Result<Self> {
        Self::connect_at(&port::rdma_directory(), server.address("smbdirect").port())
    }

    /// Connects to a port, and sends nothing.
    pub fn connect_at(directory: &Path, target: u16) -> Result<Self> {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        let port = take_port(&socket)?;
        socket.connect(&SockAddr::unix(port::path_in(directory, target))?)?;
        Ok(Self::on(socket, port))
    }

    /// An accepted connection.
    pub fn on(socket: Socket, port: u16) -> Self {
        Self {
            socket,
            port,
            credits: 0,
            owed: 0,
            max_send: 0,
            max_receive: usize::MAX,
            assembly: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Connects and negotiates, as it should be.
    pub fn negotiated(server: &Server) -> Result<Self> {
        let mut direct = Self::connect(server)?;
        direct.hello(RECEIVES + 1)?;
        direct.negotiate(&Negotiate::default())?;
        Ok(direct)
    }

    /// The name of this client in the server's log.
    pub fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Credits of this client.
    pub fn credits(&self) -> u32 {
        self.credits
    }

    /// Sends bytes as they are. A closed connection is no error here: the next `hear` reports it.
    pub fn raw(&self, bytes: &[u8]) -> Result<()> {
        let closed = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        self.socket.set_write_timeout(Some(ANSWER_LIMIT))?;
        match (&self.socket).write_all(bytes) {
            Err(error) if !closed.contains(&error.kind()) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sends a header of the emulation.
    pub fn say(&self, header: Header) -> Result<()> {
        self.raw(&header.encode())
    }

    /// Sends hello with the number of posted receives.
    pub fn hello(&self, posted: u32) -> Result<()> {
        self.say(Header {
            kind: kind::HELLO,
            posted,
            key: 1,
            ..Header::default()
        })
    }

    /// Lets the peer reach memory. It must stay where it is for as long as that lasts.
    pub fn announce(&self, kind: u8, key: u32, memory: &[u8]) -> Result<()> {
        self.say(Header {
            kind,
            key,
            posted: 0,
            length: u32::try_from(memory.len())?,
            address: memory.as_ptr() as u64,
        })
    }

    /// A SEND of these bytes, for which as many receives are posted as were used.
    pub fn send(&self, message: &[u8]) -> Result<()> {
        let header = Header {
            kind: kind::SEND,
            ..Header::default()
        };
        self.raw(&[header.encode(), message.to_vec()].concat())
    }

    /// Sends a request of SMB Direct and takes the answer in.
    pub fn negotiate(&mut self, request: &Negotiate) -> Result<()> {
        self.send(&request.encode())?;
        let answer = self.hear_sent(ANSWER_LIMIT)?;
        let Heard::Sent(answer) = answer else {
            bail!("SMB Direct is not negotiated: {answer:?}");
        };
        ensure!(answer.len() == 32, "an answer of {} bytes", answer.len());
        ensure!(u32_at(&answer, 12) == 0, "it is refused: {answer:?}");
        self.credits = u16_at(&answer, 10).into();
        self.max_send = usize::try_from(u32_at(&answer, 24))?;
        self.max_receive = usize::try_from(request.long[1])?;
        self.owed = 0;
        // Credits for all that is posted.
        self.transfer(Transfer {
            short: [255, 255, 0, 0],
            ..Transfer::of(0, 0)
        })
    }

    /// A SEND without data, for which a credit is taken.
    pub fn transfer(&mut self, transfer: Transfer) -> Result<()> {
        self.credits = self.credits.saturating_sub(1);
        self.send(&transfer.encode(&[]))
    }

    /// Sends a message as it should be.
    pub fn send_message(&mut self, message: &[u8]) -> Result<()> {
        let mut left = message.len();
        for piece in message.chunks(self.max_send - TRANSFER_BYTES) {
            left -= piece.len();
            let transfer = Transfer::of(u32::try_from(piece.len())?, u32::try_from(left)?);
            self.send_granting(transfer, piece)?;
        }
        Ok(())
    }

    /// Sends `data`, and grants all owed credits with it.
    fn send_granting(&mut self, mut transfer: Transfer, data: &[u8]) -> Result<()> {
        while self.credits == 0 {
            let heard = self.hear_transfer(ANSWER_LIMIT)?;
            ensure!(
                matches!(heard, Heard::Sent(_)),
                "no credit is granted: {heard:?}"
            );
        }
        self.credits -= 1;
        transfer.short[1] = std::mem::take(&mut self.owed);
        let header = Header {
            kind: kind::SEND,
            posted: transfer.short[1].into(),
            ..Header::default()
        };
        self.raw(&[header.encode(), transfer.encode(data)].concat())
    }

    /// Waits for the next event.
    pub fn hear(&self, limit: Duration) -> Result<Heard> {
        let mut bytes = vec![0; 1 << 17];
        self.socket
            .set_read_timeout(Some(limit.max(Duration::from_millis(1))))?;
        let count = match (&self.socket).read(&mut bytes) {
            Ok(count) => count,
            Err(error) => match error.kind() {
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => 0,
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(Heard::Nothing),
                ErrorKind::Interrupted => return Ok(Heard::Other(0)),
                _ => return Err(error.into()),
            },
        };
        bytes.truncate(count);
        Ok(match bytes.first() {
            None => Heard::Closed,
            Some(&(kind::SEND | kind::SEND_AND_INVALIDATE)) => {
                Heard::Sent(bytes.get(HEADER_BYTES..).context("a cut header")?.to_vec())
            }
            Some(other) => Heard::Other(*other),
        })
    }

    /// The next SEND, or why there is none.
    pub fn hear_sent(&self, limit: Duration) -> Result<Heard> {
        let end = Instant::now() + limit;
        loop {
            let heard = self.hear(end.saturating_duration_since(Instant::now()))?;
            if !matches!(heard, Heard::Other(_)) {
                return Ok(heard);
            }
        }
    }

    /// The next whole message, or why there is none.
    pub fn hear_message(&mut self, limit: Duration) -> Result<Heard> {
        let end = Instant::now() + limit;
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(Heard::Sent(message));
            }
            let heard = self.hear_transfer(end.saturating_duration_since(Instant::now()))?;
            if !matches!(heard, Heard::Sent(_)) {
                return Ok(heard);
            }
        }
    }

    /// Receives one transfer with its credits.
    fn hear_transfer(&mut self, limit: Duration) -> Result<Heard> {
        let heard = self.hear_sent(limit)?;
        let Heard::Sent(bytes) = &heard else {
            return Ok(heard);
        };
        ensure!(bytes.len() >= 20, "a transfer of {} bytes", bytes.len());
        ensure!(
            bytes.len() <= self.max_receive,
            "a SEND of {} bytes",
            bytes.len()
        );
        self.credits += u32::from(u16_at(bytes, 2));
        self.owed += 1;
        let [remaining, offset, length] =
            [8, 12, 16].map(|at| usize::try_from(u32_at(bytes, at)).unwrap_or(usize::MAX));
        let wants_answer = u16_at(bytes, 4) & 1 != 0;
        if self.credits > 0 && (wants_answer || self.owed >= OWED_MAX) {
            self.send_granting(Transfer::of(0, 0), &[])?;
        }
        let data = bytes.get(offset..offset.saturating_add(length));
        self.assembly
            .extend_from_slice(data.context("no such data")?);
        if length > 0 && remaining == 0 {
            self.waiting.push_back(std::mem::take(&mut self.assembly));
        }
        Ok(heard)
    }

    /// Whether the peer closes within `limit`; messages before that are ignored.
    pub fn is_closed(&self, limit: Duration) -> Result<bool> {
        let end = Instant::now() + limit;
        loop {
            match self.hear(end.saturating_duration_since(Instant::now()))? {
                Heard::Closed => return Ok(true),
                Heard::Nothing => return Ok(false),
                Heard::Sent(_) | Heard::Other(_) => {}
            }
        }
    }
}

/// A port as a client has one, by which the peer calls us.
fn take_port(socket: &Socket) -> Result<u16> {
    const FIRST: u16 = 49_152;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = u16::try_from(std::process::id() % 16_384)?.wrapping_mul(37);
    for _ in 0..16_384 {
        let number = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(begin);
        let port = FIRST + number % 16_384;
        let name = SockAddr::unix(format!("\0smbeam-rdma-{port}"))?;
        match socket.bind(&name) {
            Ok(()) => return Ok(port),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!("no port is free")
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}
