//! A client of QUIC that a test controls, within the rules or beyond them.
//!
//! The packets are quinn-proto's, which follows the rules. False transport parameters of the server
//! (`transport_parameters`) make it break them. A client runs only during the calls of its methods
//! and is silent in between. [`initial`] makes first packets without any client.

pub mod initial;
mod transport_parameters;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, ReadError, StreamId, TransportConfig, VarInt, WriteError,
};

/// The protocol that a server of SMB expects. \[MS-SMB2\] 2.1
pub const ALPN: &[u8] = b"smb";
/// How long a server may take to accept or to refuse a client.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// Bytes of the largest datagram.
const DATAGRAM_MAX: usize = 65_527;

/// The properties of a client.
#[derive(Clone, Debug)]
pub struct Manner {
    /// Its address.
    pub source: IpAddr,
    /// The protocols that it names.
    pub protocols: Vec<Vec<u8>>,
    /// Bytes that the server may send before they are read.
    pub window: u32,
    /// Transport parameters that replace those of the server: pairs of an identifier and a value.
    /// RFC 9000 18.2
    pub overrides: Vec<(u64, u64)>,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            source: Ipv4Addr::LOCALHOST.into(),
            protocols: vec![ALPN.to_vec()],
            window: 1 << 20,
            overrides: Vec::new(),
        }
    }
}

/// A client and its connection.
pub struct Peer {
    socket: UdpSocket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    stream: Option<StreamId>,
    is_connected: bool,
    end: Option<ConnectionError>,
}

impl Peer {
    /// Connects, and opens no stream yet.
    pub fn connect(server: SocketAddrV4, manner: &Manner) -> Result<Peer> {
        let mut peer = Peer::start(server, manner)?;
        peer.run(ANSWER_LIMIT, |peer| peer.is_connected || peer.end.is_some())?;
        match (&peer.end, peer.is_connected) {
            (None, true) => Ok(peer),
            (Some(end), _) => Err(anyhow!("no connection: {end}")),
            (None, false) => bail!("no answer by QUIC"),
        }
    }

    /// Sends its first packet and waits for nothing.
    pub fn start(server: SocketAddrV4, manner: &Manner) -> Result<Peer> {
        let socket = UdpSocket::bind((manner.source, 0))?;
        let config = EndpointConfig::default();
        let mut endpoint = Endpoint::new(Arc::new(config), None, false, None);
        let crypto = QuicClientConfig::try_from(initial::tls(&manner.protocols)?)?;
        let crypto = transport_parameters::Config::new(crypto, manner.overrides.clone());
        let mut config = ClientConfig::new(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        transport
            .stream_receive_window(manner.window.into())
            .receive_window(manner.window.into())
            .max_concurrent_bidi_streams(0_u32.into())
            .max_concurrent_uni_streams(0_u32.into())
            .mtu_discovery_config(None);
        config.transport_config(Arc::new(transport));
        let server = SocketAddr::V4(server);
        let (handle, connection) = endpoint.connect(Instant::now(), config, server, "localhost")?;
        let mut peer = Peer {
            socket,
            endpoint,
            handle,
            connection,
            stream: None,
            is_connected: false,
            end: None,
        };
        peer.transmit()?;
        Ok(peer)
    }

    /// The address by which the server knows it.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Opens one more stream. Later writes and reads use the first stream.
    pub fn open(&mut self, direction: Dir) -> Result<StreamId> {
        let opened = self.connection.streams().open(direction);
        let stream = opened.context("no stream may be opened")?;
        self.stream.get_or_insert(stream);
        Ok(stream)
    }

    /// Runs for as long as `limit`, until `is_done`; `false`: it never was.
    pub fn run(
        &mut self,
        limit: Duration,
        mut is_done: impl FnMut(&mut Peer) -> bool,
    ) -> io::Result<bool> {
        let end = Instant::now() + limit;
        loop {
            self.hear();
            self.transmit()?;
            if is_done(self) {
                self.transmit()?;
                return Ok(true);
            }
            let now = Instant::now();
            if now >= end {
                return Ok(false);
            }
            let timer = self.connection.poll_timeout();
            if timer.is_some_and(|timer| timer <= now) {
                self.connection.handle_timeout(now);
                continue;
            }
            let until = timer.map_or(end, |timer| timer.min(end));
            self.receive(until.saturating_duration_since(now))?;
        }
    }

    /// Runs until the connection has ended, and returns the reason.
    pub fn ended(&mut self) -> Result<ConnectionError> {
        self.run(ANSWER_LIMIT, |peer| peer.end.is_some())?;
        self.end.clone().context("the connection has not ended")
    }

    /// Sends all of `bytes` on a stream, or as much as the server takes before it closes.
    pub fn write(&mut self, stream: StreamId, bytes: &[u8], limit: Duration) -> io::Result<usize> {
        let mut count = 0;
        let mut is_over = false;
        self.run(limit, |peer| {
            while count < bytes.len() && !is_over {
                match peer.connection.send_stream(stream).write(&bytes[count..]) {
                    Ok(more) => count += more,
                    Err(WriteError::Blocked) => break,
                    Err(WriteError::Stopped(_) | WriteError::ClosedStream) => is_over = true,
                }
            }
            is_over || count == bytes.len() || peer.end.is_some()
        })?;
        Ok(count)
    }

    /// Sends on the first stream.
    pub fn send(&mut self, bytes: &[u8], limit: Duration) -> io::Result<usize> {
        match self.stream {
            Some(stream) => self.write(stream, bytes, limit),
            None => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// Reads the available bytes of the first stream; 0: it has ended.
    pub fn read(&mut self, buffer: &mut [u8], limit: Duration) -> io::Result<usize> {
        let stream = self.stream.ok_or(ErrorKind::NotConnected)?;
        let mut result = None;
        self.run(limit, |peer| {
            result = peer.try_read(stream, buffer);
            result.is_some()
        })?;
        result.unwrap_or_else(|| Err(ErrorKind::TimedOut.into()))
    }

    fn try_read(&mut self, stream: StreamId, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        let mut stream = self.connection.recv_stream(stream);
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(_) => return Some(Ok(0)),
        };
        let result = match chunks.next(buffer.len()) {
            Ok(Some(chunk)) => {
                buffer[..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                Some(Ok(chunk.bytes.len()))
            }
            Ok(None) => Some(Ok(0)),
            Err(ReadError::Blocked) => self.end.is_some().then_some(Ok(0)),
            Err(ReadError::Reset(_)) => Some(Err(ErrorKind::ConnectionReset.into())),
        };
        let _ = chunks.finalize();
        result
    }

    /// Ends the first stream.
    pub fn finish(&mut self) {
        if let Some(stream) = self.stream {
            let _ = self.connection.send_stream(stream).finish();
        }
        let _ = self.transmit();
    }

    /// Resets the first stream. RFC 9000 19.4
    pub fn reset(&mut self) -> Result<()> {
        let stream = self.stream.context("no stream")?;
        let reset = self
            .connection
            .send_stream(stream)
            .reset(VarInt::from_u32(7));
        reset.map_err(|_| anyhow!("the stream is closed"))
    }

    /// Asks the server to stop sending on the first stream. RFC 9000 19.5
    pub fn stop(&mut self) -> Result<()> {
        let stream = self.stream.context("no stream")?;
        let stopped = self
            .connection
            .recv_stream(stream)
            .stop(VarInt::from_u32(7));
        stopped.map_err(|_| anyhow!("the stream is closed"))
    }

    /// Sends a datagram, which is not part of any stream. RFC 9221
    pub fn send_datagram(&mut self, bytes: &'static [u8]) -> Result<()> {
        let sent = self
            .connection
            .datagrams()
            .send(Bytes::from_static(bytes), true);
        sent.map_err(|error| anyhow!("no datagram: {error}"))
    }

    /// Continues from another port; returns the previous socket.
    pub fn move_to(&mut self, socket: UdpSocket) -> UdpSocket {
        std::mem::replace(&mut self.socket, socket)
    }

    fn transmit(&mut self) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(DATAGRAM_MAX);
        let now = Instant::now();
        while let Some(transmit) = self.connection.poll_transmit(now, 1, &mut bytes) {
            let sent = self
                .socket
                .send_to(&bytes[..transmit.size], transmit.destination);
            match sent {
                // The server has ended: the missing answer shows that as well.
                Err(error) if error.kind() != ErrorKind::ConnectionRefused => return Err(error),
                _ => bytes.clear(),
            }
        }
        Ok(())
    }

    fn receive(&mut self, limit: Duration) -> io::Result<()> {
        let limit = limit.max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(limit))?;
        let mut bytes = BytesMut::zeroed(DATAGRAM_MAX);
        let (count, from) = match self.socket.recv_from(&mut bytes) {
            Ok(received) => received,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock
                | ErrorKind::TimedOut
                | ErrorKind::Interrupted
                | ErrorKind::ConnectionRefused => return Ok(()),
                _ => return Err(error),
            },
        };
        bytes.truncate(count);
        let now = Instant::now();
        let mut answer = Vec::new();
        let event = self
            .endpoint
            .handle(now, from, None, None, bytes, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.connection.handle_event(event);
        }
        Ok(())
    }

    fn hear(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(answer);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::ConnectionLost { reason } => {
                    self.end.get_or_insert(reason);
                }
                _ => {}
            }
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("socket", &self.socket)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
