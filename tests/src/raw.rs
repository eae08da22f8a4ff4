//! A client that sends any bytes, valid or not.
//!
//! It knows just enough of SMB2 to begin a connection, and does not use the crates under
//! test: the sent bytes must not depend on them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use quinn_proto::Dir;

use crate::quic::{Manner, Peer};

/// Bytes of the header of a request.
pub const HEADER_BYTES: usize = 64;
/// How long a server may take to answer or to close.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// The statuses that the tests meet.
pub mod status {
    /// `STATUS_SUCCESS`
    pub const SUCCESS: u32 = 0;
    /// `STATUS_INVALID_PARAMETER`
    pub const INVALID_PARAMETER: u32 = 0xc000_000d;
    /// `STATUS_ACCESS_DENIED`
    pub const ACCESS_DENIED: u32 = 0xc000_0022;
    /// `STATUS_USER_SESSION_DELETED`
    pub const USER_SESSION_DELETED: u32 = 0xc000_0203;
}

/// The commands that the tests send.
pub mod command {
    /// NEGOTIATE
    pub const NEGOTIATE: u16 = 0;
    /// `SESSION_SETUP`
    pub const SESSION_SETUP: u16 = 1;
    /// READ
    pub const READ: u16 = 8;
    /// WRITE
    pub const WRITE: u16 = 9;
    /// CANCEL
    pub const CANCEL: u16 = 12;
    /// ECHO
    pub const ECHO: u16 = 13;
}

/// A connection.
#[derive(Debug)]
pub struct Raw {
    pipe: Pipe,
    next_message_id: u64,
}

/// The transport of the frames.
#[derive(Debug)]
enum Pipe {
    Tcp(TcpStream),
    Quic(Box<Peer>),
}

/// A server's reaction to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// It answered with this frame, without the four bytes of its length.
    Answer(Vec<u8>),
    /// It closed the connection.
    Closed,
    /// It did neither for as long as we waited.
    Silence,
}

impl Raw {
    /// Connects to `address`.
    pub fn connect(address: SocketAddrV4) -> Result<Raw> {
        Ok(Raw::on(TcpStream::connect(address)?)?)
    }

    /// A client on a connection that was made already.
    pub fn on(stream: TcpStream) -> std::io::Result<Raw> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        Ok(Raw {
            pipe: Pipe::Tcp(stream),
            next_message_id: 0,
        })
    }

    /// Connects by QUIC and opens the stream.
    pub fn over_quic(address: SocketAddrV4) -> Result<Raw> {
        let mut peer = Peer::connect(address, &Manner::default())?;
        peer.open(Dir::Bi)?;
        Ok(Raw::on_peer(peer))
    }

    /// A client on the first stream of a connection that was made already.
    pub fn on_peer(peer: Peer) -> Raw {
        Raw {
            pipe: Pipe::Quic(Box::new(peer)),
            next_message_id: 0,
        }
    }

    /// The QUIC client of the connection, if it uses QUIC.
    pub fn peer(&mut self) -> Option<&mut Peer> {
        match &mut self.pipe {
            Pipe::Tcp(_) => None,
            Pipe::Quic(peer) => Some(peer),
        }
    }

    /// Connects and negotiates SMB 3.1.1.
    pub fn negotiated(address: SocketAddrV4) -> Result<Raw> {
        let mut raw = Raw::connect(address)?;
        raw.negotiate()?;
        Ok(raw)
    }

    /// Negotiates; fails unless the server agrees to SMB 3.1.1.
    pub fn negotiate(&mut self) -> Result<()> {
        let reaction = self.request(command::NEGOTIATE, &negotiate_body())?;
        ensure!(
            reaction.status() == Some(status::SUCCESS),
            "NEGOTIATE: {reaction:?}"
        );
        let dialect = reaction.bytes_at(HEADER_BYTES + 4, 2);
        ensure!(dialect == Some(&[0x11, 0x03]), "the dialect is {dialect:?}");
        Ok(())
    }

    /// Sends an ECHO; fails unless it is answered well.
    pub fn echo(&mut self) -> Result<()> {
        let reaction = self.request(command::ECHO, &[4, 0, 0, 0])?;
        ensure!(
            reaction.status() == Some(status::SUCCESS),
            "ECHO: {reaction:?}"
        );
        Ok(())
    }

    /// Sends a request with the next message id and waits for the reaction.
    pub fn request(&mut self, command: u16, body: &[u8]) -> Result<Reaction> {
        let mut message = header(command, self.next_message_id).to_vec();
        message.extend_from_slice(body);
        self.next_message_id += 1;
        self.exchange(&message)
    }

    /// Sends `message` in a frame and waits for the reaction.
    pub fn exchange(&mut self, message: &[u8]) -> Result<Reaction> {
        self.send(&frame(message))?;
        self.reaction()
    }

    /// Sends bytes as they are. A closed connection is no error here:
    /// [`reaction`](Self::reaction) reports it.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = match &mut self.pipe {
            Pipe::Tcp(stream) => stream.write_all(bytes),
            Pipe::Quic(peer) => peer.send(bytes, ANSWER_LIMIT).map(drop),
        };
        match sent {
            Err(error) if !is_closed(error.kind()) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Waits until bytes have arrived, and leaves them unread. Only over TCP.
    pub fn wait_for_data(&mut self) -> Result<()> {
        let Pipe::Tcp(stream) = &self.pipe else {
            bail!("a connection over QUIC cannot be peeked at");
        };
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        ensure!(stream.peek(&mut [0])? == 1, "the connection has ended");
        Ok(())
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) {
        match &mut self.pipe {
            Pipe::Tcp(stream) => drop(stream.shutdown(Shutdown::Write)),
            Pipe::Quic(peer) => peer.finish(),
        }
    }

    /// Waits for an answer or the end of the connection, for [`ANSWER_LIMIT`] at most.
    pub fn reaction(&mut self) -> Result<Reaction> {
        self.reaction_within(ANSWER_LIMIT)
    }

    /// Waits for an answer or the end of the connection, at most for `limit`.
    pub fn reaction_within(&mut self, limit: Duration) -> Result<Reaction> {
        let mut length = [0; 4];
        match self.read_full(&mut length, limit)? {
            Some(4) => {}
            Some(_) => return Ok(Reaction::Closed),
            None => return Ok(Reaction::Silence),
        }
        let mut message = vec![0; u32::from_be_bytes(length) as usize & 0x00ff_ffff];
        match self.read_full(&mut message, limit)? {
            Some(count) if count == message.len() => Ok(Reaction::Answer(message)),
            Some(_) => Ok(Reaction::Closed),
            None => Ok(Reaction::Silence),
        }
    }

    /// Reads until `buffer` is full or the connection ends; none when `limit` is over.
    fn read_full(&mut self, buffer: &mut [u8], limit: Duration) -> Result<Option<usize>> {
        let end = Instant::now() + limit;
        let mut count = 0;
        while count < buffer.len() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let read = match &mut self.pipe {
                Pipe::Tcp(stream) => {
                    stream.set_read_timeout(Some(left))?;
                    stream.read(&mut buffer[count..])
                }
                Pipe::Quic(peer) => peer.read(&mut buffer[count..], left),
            };
            match read {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if is_closed(error.kind()) => break,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(None),
                    ErrorKind::Interrupted => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(Some(count))
    }
}

impl Reaction {
    /// The status of the answer.
    pub fn status(&self) -> Option<u32> {
        let bytes = self.bytes_at(8, 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Whether the server closed the connection or answered with an error.
    pub fn is_refusal(&self) -> bool {
        match self {
            Reaction::Closed => true,
            Reaction::Silence => false,
            Reaction::Answer(_) => self.status().is_some_and(|status| status >= 0xc000_0000),
        }
    }

    /// Some bytes of the answer.
    pub fn bytes_at(&self, offset: usize, length: usize) -> Option<&[u8]> {
        match self {
            Reaction::Answer(message) => message.get(offset..offset.checked_add(length)?),
            _ => None,
        }
    }
}

/// `message` with its length before it, as SMB over TCP has it.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), message].concat()
}

/// The header of a request that asks for a few credits. [MS-SMB2] 2.2.1.2
pub fn header(command: u16, message_id: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(b"\xfeSMB");
    header[4] = 64;
    // Credit charge; 2.0.2 would have 0 here.
    header[6] = 1;
    header[12..14].copy_from_slice(&command.to_le_bytes());
    header[14] = 8;
    header[24..32].copy_from_slice(&message_id.to_le_bytes());
    header
}

/// The body of a NEGOTIATE that offers every dialect, one preauth hash, two ciphers and a signing
/// algorithm. [MS-SMB2] 2.2.3
pub fn negotiate_body() -> Vec<u8> {
    const DIALECTS: [u16; 5] = [0x0202, 0x0210, 0x0300, 0x0302, 0x0311];
    let mut body = vec![36, 0, 5, 0, 1, 0, 0, 0, 0x7f, 0, 0, 0];
    body.extend_from_slice(b"smbeam-test-guid");
    // 64 + 36 bytes, 10 of dialects, 2 of padding.
    body.extend_from_slice(&112_u32.to_le_bytes());
    body.extend_from_slice(&[3, 0, 0, 0]);
    body.extend(DIALECTS.iter().flat_map(|dialect| dialect.to_le_bytes()));
    body.extend_from_slice(&[0, 0]);
    let preauth = [&[1, 0, 32, 0, 1, 0][..], &[0x5a; 32]].concat();
    for (kind, data) in [
        (1_u16, preauth.as_slice()),
        (2, &[2, 0, 2, 0, 1, 0]),
        (8, &[1, 0, 2, 0]),
    ] {
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend_from_slice(&kind.to_le_bytes());
        body.extend_from_slice(&u16::try_from(data.len()).unwrap_or(0).to_le_bytes());
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(data);
    }
    body
}

/// The body of a `SESSION_SETUP` with the given place of a token. [MS-SMB2] 2.2.5
pub fn session_setup_body(offset: u16, length: u16, token: &[u8]) -> Vec<u8> {
    let mut body = vec![25, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0];
    body.extend_from_slice(&offset.to_le_bytes());
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(&[0; 8]);
    body.extend_from_slice(token);
    body
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}
