//! One transport connection of any transport: the bytes of frames, both ways.
//!
//! Server and client drive every transport through this type. The modules of the transports have
//! what only one of them needs: a handshake, a certificate, registered memory. The stream carries
//! frames, each with the prefix of its [`Framing`](crate::Framing).

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::ops::Range;

use ring::{Buffer, Chunk, Part, Region, Signal};

use crate::{quic, smbdirect};

/// An open connection of any transport (TCP, NetBIOS, QUIC or SMB Direct) that can send and receive
/// frames. Clones refer to the same connection, so that one task can receive while another one
/// sends.
#[derive(Clone, Debug)]
pub enum Stream {
    /// A TCP socket: direct TCP or the NetBIOS session service.
    Socket(ring::Stream),
    /// The stream of a QUIC connection.
    #[expect(private_interfaces, reason = "it is made by this crate only")]
    Quic(quic::Stream),
    /// A queue pair of RDMA: SMB Direct.
    SmbDirect(smbdirect::Stream),
}

impl From<ring::Stream> for Stream {
    fn from(stream: ring::Stream) -> Self {
        Self::Socket(stream)
    }
}

impl From<smbdirect::Stream> for Stream {
    fn from(stream: smbdirect::Stream) -> Self {
        Self::SmbDirect(stream)
    }
}

impl Stream {
    /// Returns a handle for RDMA access to memory of the peer; `None` if the transport is not SMB
    /// Direct.
    #[must_use]
    pub fn rdma_memory(&self) -> Option<smbdirect::RdmaMemory> {
        match self {
            Self::SmbDirect(stream) => Some(stream.rdma_memory()),
            Self::Socket(_) | Self::Quic(_) => None,
        }
    }

    /// Reports that the peer has logged in. SMB Direct and QUIC then accept more data of the peer
    /// at a time (receive credits, receive window). Without effect for TCP and NetBIOS.
    pub fn trust(&self) {
        match self {
            Self::SmbDirect(stream) => stream.trust(),
            Self::Quic(stream) => stream.trust(),
            Self::Socket(_) => {}
        }
    }

    /// Waits for the next bytes of the stream and returns them; a chunk can hold any number of
    /// bytes. An empty chunk means end of stream. Dropping the future loses no bytes. Only one task
    /// may receive at a time.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn recv(&self) -> io::Result<Chunk> {
        match self {
            Self::Socket(stream) => stream.recv().await,
            Self::Quic(stream) => stream.recv().await,
            Self::SmbDirect(stream) => stream.recv().await,
        }
    }

    /// Fills `range` of `buffer` with the next bytes of the stream. Returns the buffer with the
    /// result. Dropping the future before its end ends the connection. Only one task may receive at
    /// a time.
    ///
    /// # Errors
    /// The connection is lost; `UnexpectedEof` if the stream ends before the range is full.
    pub async fn recv_into(&self, buffer: Buffer, range: Range<usize>) -> (io::Result<()>, Buffer) {
        match self {
            Self::Socket(stream) => stream.recv_into(buffer, range).await,
            Self::Quic(stream) => stream.recv_into(buffer, range).await,
            Self::SmbDirect(stream) => stream.recv_into(buffer, range).await,
        }
    }

    /// Fills `range` of `region` with the next bytes of the stream. Returns the region with the
    /// result. Dropping the future before its end ends the connection. Only one task may receive at
    /// a time.
    ///
    /// # Errors
    /// The connection is lost; `UnexpectedEof` if the stream ends before the range is full.
    pub async fn recv_into_region(
        &self,
        region: Region,
        range: Range<usize>,
    ) -> (io::Result<()>, Region) {
        match self {
            Self::Socket(stream) => stream.recv_into_region(region, range).await,
            Self::Quic(stream) => stream.recv_into(region, range).await,
            Self::SmbDirect(stream) => stream.recv_into(region, range).await,
        }
    }

    /// Sends all parts in order, as adjacent bytes of the stream. Returns the parts, also after an
    /// error, when the transport no longer needs their memory. File ranges are allowed only if the
    /// transport [sends them](crate::Transport::sends_files). Only one task may send at a time.
    /// Dropping the future before its end ends the connection.
    ///
    /// # Errors
    /// The connection is lost, or a file range cannot be read.
    pub async fn send(&self, parts: Vec<Part>) -> (io::Result<()>, Vec<Part>) {
        match self {
            Self::Socket(stream) => stream.send(parts).await,
            Self::Quic(stream) => stream.send(parts).await,
            Self::SmbDirect(stream) => stream.send(parts).await,
        }
    }

    /// Waits for the next bytes of the stream and writes them to the start of `range` of `buffer`.
    /// Returns the number of received bytes and the buffer. The number is 0 if `interrupt` is
    /// raised first. QUIC and SMB Direct fill the whole range and ignore `interrupt`. Only one task
    /// may receive at a time. Dropping the future before its end ends the connection.
    ///
    /// # Errors
    /// The connection is lost; `UnexpectedEof` at the end of the stream.
    pub async fn recv_part_into(
        &self,
        buffer: Buffer,
        range: Range<usize>,
        interrupt: &Signal,
    ) -> (io::Result<usize>, Buffer) {
        if let Self::Socket(stream) = self {
            return stream.recv_part_into(buffer, range, interrupt).await;
        }
        let length = range.len();
        let (result, buffer) = self.recv_into(buffer, range).await;
        (result.map(|()| length), buffer)
    }

    /// Returns the number of sent bytes that the peer has acknowledged. `None` unless the transport
    /// is TCP.
    #[must_use]
    pub fn acknowledged(&self) -> Option<u64> {
        match self {
            Self::Socket(stream) => Some(stream.acknowledged()),
            Self::Quic(_) | Self::SmbDirect(_) => None,
        }
    }

    /// Shuts down the directions of the connection that `how` names. Pending receives and sends of
    /// that direction end.
    ///
    /// # Errors
    /// The peer has disconnected.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Socket(stream) => stream.shutdown(how),
            Self::Quic(stream) => {
                stream.shutdown(how);
                Ok(())
            }
            Self::SmbDirect(stream) => {
                stream.shutdown();
                Ok(())
            }
        }
    }

    /// Returns the IP address and port of the peer.
    ///
    /// # Errors
    /// The peer has disconnected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Socket(stream) => stream.peer_addr(),
            Self::Quic(stream) => Ok(stream.peer_addr()),
            Self::SmbDirect(stream) => Ok(stream.peer_addr()),
        }
    }

    /// Returns measurements of the network path; `None` unless the transport is QUIC.
    #[must_use]
    pub fn path(&self) -> Option<quic::Path> {
        match self {
            Self::Quic(stream) => Some(stream.path()),
            Self::Socket(_) | Self::SmbDirect(_) => None,
        }
    }

    /// Returns the IP address and port of this end of the connection.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Socket(stream) => stream.local_addr(),
            Self::Quic(stream) => stream.local_addr(),
            Self::SmbDirect(stream) => Ok(stream.local_addr()),
        }
    }
}
