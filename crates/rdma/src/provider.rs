//! The traits of RDMA providers, listeners and queue pairs.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::operand::{Exposed, Piece, RemoteRegion, Sink};
use crate::slots::Slot;

/// Makes connections over RDMA. All threads share one provider.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The name of the provider in a configuration and in the log.
    fn name(&self) -> &'static str;

    /// The addresses of this host that accept RDMA connections.
    ///
    /// # Errors
    /// The provider cannot list its devices.
    fn addresses(&self) -> io::Result<Vec<(IpAddr, Network)>>;

    /// Selects those of `addresses` that need separate listeners, for a caller that wants to listen
    /// on all of them.
    fn to_listen(&self, addresses: &[IpAddr]) -> Vec<IpAddr>;

    /// Listens on an address. With port 0 the provider chooses the port.
    ///
    /// # Errors
    /// The address is in use, or does not support listening.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>>;

    /// Starts to connect. The caller may post receives at once; everything else must wait for
    /// [`Event::Connected`]. A later failure is [`Event::Disconnected`].
    ///
    /// # Errors
    /// The provider cannot reach that address.
    fn connect(
        &self,
        address: SocketAddr,
        attributes: &Attributes,
    ) -> io::Result<Box<dyn QueuePair>>;
}

/// The network protocol of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// RDMA over TCP. SMB Direct uses port 5445 there. \[MS-SMBD\] 2.1
    Iwarp,
    /// InfiniBand, or RDMA over Converged Ethernet. SMB Direct uses port 445 there. \[MS-SMBD\] 2.1
    InfiniBand,
    /// No network: both peers are on this machine.
    Emulated,
}

/// Requested properties of a queue pair. A device may provide less of each: see [`Limits`].
#[derive(Clone, Debug)]
pub struct Attributes {
    /// Number of posted receives.
    pub receives: u32,
    /// Number of SENDs and one-sided operations in flight. More operations wait in the provider.
    pub sends: u32,
    /// Number of pieces of one SEND.
    pub pieces: u32,
    /// Maximum number of RDMA READs in flight, in each direction.
    pub reads: u32,
    /// Interrupt moderation: number of completions that the device may collect before it raises an
    /// interrupt, and the longest delay. Not all devices support it. `None` means an interrupt for
    /// each completion.
    pub moderation: Option<(u16, Duration)>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            // The number of credits that Windows and Linux request.
            receives: 255,
            sends: 512,
            pieces: 4,
            // The value of most devices.
            reads: 16,
            moderation: None,
        }
    }
}

/// Properties of a connected queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of receives that may be posted.
    pub receives: u32,
    /// Number of SENDs and one-sided operations in flight. More operations wait in the provider.
    pub sends: u32,
    /// Number of pieces of one SEND. RDMA WRITEs have no limit: the provider splits them.
    pub pieces: u32,
    /// Largest SEND in bytes.
    pub message_bytes: usize,
    /// Number of outgoing RDMA READs in flight. More operations wait in the provider.
    pub reads: u32,
    /// Number of regions that may be exposed at one time.
    pub exposed: u32,
    /// Whether a SEND of the peer may invalidate a local region (remote invalidation).
    pub remote_invalidation: bool,
}

/// Identifies an operation. The caller that posts the operation chooses the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// Accepts connections.
pub trait Listener: Send + fmt::Debug {
    /// Returns the next connection request without waiting. `None` if no request waits.
    ///
    /// # Errors
    /// The listener has failed and gets no more requests, except when the system only lacks
    /// resources.
    fn accept(&self) -> io::Result<Option<Box<dyn Request>>>;

    /// Readable when `accept` may return a request.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// The local address.
    fn local_addr(&self) -> SocketAddr;
}

/// A connection request of a peer. Dropping it rejects the request.
pub trait Request: Send + fmt::Debug {
    /// The address of the peer.
    fn peer_addr(&self) -> SocketAddr;

    /// Accepts the request and makes the queue pair, which belongs to this thread from now on. It
    /// posts `receives` before it answers, so that the peer's first messages find a receive. The
    /// caller must not post anything else before [`Event::Connected`].
    ///
    /// # Errors
    /// The device cannot make a queue pair.
    fn accept(
        self: Box<Self>,
        attributes: &Attributes,
        receives: Vec<Slot>,
    ) -> io::Result<Box<dyn QueuePair>>;
}

/// One reliable connection. It belongs to one thread.
///
/// The operations of a queue pair start in the order of their posts. The provider may hold them
/// back until [`flush`](Self::flush). Each operation returns its memory with one [`Event`], exactly
/// once, also if the connection ends first. A failed operation ends the connection. Dropping the
/// queue pair ends it too, and frees the memory of its operations when no device and no peer can
/// access it any more.
pub trait QueuePair: fmt::Debug {
    /// The limits. Valid after [`Event::Connected`].
    fn limits(&self) -> Limits;

    /// The address of the peer.
    fn peer_addr(&self) -> SocketAddr;

    /// The local address.
    fn local_addr(&self) -> SocketAddr;

    /// Posts memory for one message of the peer. A message that finds no receive ends the
    /// connection. The peer learns of the receive with the next [`flush`](Self::flush) at the
    /// latest.
    fn post_receive(&mut self, slot: Slot);

    /// Sends one message with the bytes of all pieces, at most [`Limits::pieces`]. With
    /// `invalidate`, the peer gets its region of that key back, out of this side's reach, before it
    /// gets the message.
    fn post_send(&mut self, id: WorkId, pieces: Vec<Piece>, invalidate: Option<u32>);

    /// Writes the bytes of all pieces, one after the other, into the peer's regions, one after the
    /// other. The lengths of pieces and regions need not match. The caller guarantees that the
    /// regions have space for all bytes.
    fn post_write(&mut self, id: WorkId, pieces: Vec<Piece>, remote: &[RemoteRegion]);

    /// Writes `length` bytes of a file, starting at `offset`, into the peer's regions, which have
    /// space for all of them. It writes from the page cache, without a buffer, before it returns.
    /// Returns whether it did. It returns false if the provider does not support this, if the file
    /// ends, or if the data is not in the page cache. The regions may then hold any bytes, and the
    /// caller has to read the data and post it.
    ///
    /// A device cannot do this: it reads registered memory only. A registration of a mapping pins
    /// its pages even when the file changes, and on-demand paging ends the connection where the
    /// file was truncated.
    fn write_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        remote: &[RemoteRegion],
    ) -> bool {
        let _ = (file, offset, length, remote);
        false
    }

    /// Fills `range` of the sink with the bytes of the peer's regions, one after the other. The
    /// regions have at least this number of bytes.
    fn post_read(&mut self, id: WorkId, sink: Sink, range: Range<usize>, remote: &[RemoteRegion]);

    /// Exposes memory to the peer until [`Event::Revoked`] returns it. The returned description is
    /// for the peer. It is valid in every message that is posted after this call.
    ///
    /// # Errors
    /// The device accepts no more regions. The error returns the memory.
    fn expose(&mut self, memory: Exposed) -> Result<RemoteRegion, (io::Error, Exposed)>;

    /// Ends the exposure of a region. [`Event::Revoked`] reports the end. The call has no effect if
    /// the key is unknown or the peer has invalidated it meanwhile.
    fn revoke(&mut self, key: u32);

    /// Starts all posted operations. Callers call it once after a batch of posts.
    fn flush(&mut self);

    /// Appends all new events to `events`, without waiting.
    fn poll(&mut self, events: &mut Vec<Event>);

    /// Prepares a wait and returns its condition. After the wait the caller calls
    /// [`poll`](Self::poll), which may find nothing. A `poll` during the wait takes no wake-up
    /// away: the descriptor also reports later events.
    fn arm(&mut self) -> Wait;

    /// Whether an operation waits for the descriptor to become writable. This does not arm
    /// anything.
    fn is_blocked(&self) -> bool {
        false
    }

    /// The descriptor for [`arm`](Self::arm). It never changes.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Ends the connection. All pending operations end with [`Failure::Flushed`], and the last
    /// event is [`Event::Disconnected`].
    fn disconnect(&mut self);
}

/// What the caller waits for before it polls the queue pair again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// No wait: events are ready.
    No,
    /// Wait until the descriptor is readable.
    Readable,
    /// Wait until the descriptor is readable or writable.
    ReadableOrWritable,
}

/// An event of a queue pair.
#[derive(Debug)]
pub enum Event {
    /// Both peers are ready. The first event, unless connecting failed.
    Connected,
    /// The connection has ended. The last event, except for operations that are posted later: these
    /// end with [`Failure::Flushed`] at once.
    Disconnected(Failure),
    /// A message of the peer. The number is its length in bytes, from the start of the slot. If the
    /// message invalidated a region, [`Event::Revoked`] came before it.
    Received(Slot, usize),
    /// A receive ended without a message.
    Unused(Slot),
    /// A SEND ended.
    Sent(WorkId, Vec<Piece>, Result<(), Failure>),
    /// An RDMA WRITE ended. If it succeeded, the peer has the bytes when it gets a message that is
    /// posted after the WRITE.
    Written(WorkId, Vec<Piece>, Result<(), Failure>),
    /// An RDMA READ ended.
    Read(WorkId, Sink, Result<(), Failure>),
    /// The peer cannot access the region of this key any more. When a connection ends, every
    /// exposed region has this event.
    Revoked(u32, Exposed),
}

/// Why an operation or a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The local side has ended the connection.
    Disconnected,
    /// The peer has ended the connection or disappeared.
    PeerDisconnected,
    /// The peer rejects the connection, or no listener uses the address.
    Refused(String),
    /// The connection ended before the operation completed.
    Flushed,
    /// The operation violates the key, the bounds or the permission of the peer's memory.
    RemoteAccess,
    /// The peer had no receive posted.
    ReceiverNotReady,
    /// A message was longer than its receive.
    TooLong,
    /// The peer violates the protocol of this provider.
    Protocol(String),
    /// The device reports an error.
    Device(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => f.write_str("disconnected"),
            Self::PeerDisconnected => f.write_str("the peer has disconnected"),
            Self::Refused(why) => write!(f, "connection refused: {why}"),
            Self::Flushed => f.write_str("the connection ended before the operation completed"),
            Self::RemoteAccess => f.write_str("the operation may not access the peer's memory"),
            Self::ReceiverNotReady => f.write_str("the peer has no receive posted"),
            Self::TooLong => f.write_str("a message is longer than its receive"),
            Self::Protocol(violation) => write!(f, "the peer violates the protocol: {violation}"),
            Self::Device(error) => write!(f, "the device failed: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        let kind = match failure {
            Failure::Disconnected => io::ErrorKind::NotConnected,
            Failure::Refused(_) => io::ErrorKind::ConnectionRefused,
            Failure::PeerDisconnected | Failure::Flushed => io::ErrorKind::ConnectionReset,
            Failure::RemoteAccess
            | Failure::ReceiverNotReady
            | Failure::TooLong
            | Failure::Protocol(_)
            | Failure::Device(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, failure)
    }
}
