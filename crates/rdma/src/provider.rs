//! The traits of RDMA providers, listeners and queue pairs.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::operand::{Exposed, Piece, RemoteRegion, Sink};
use crate::slots::Slot;

/// A source of RDMA connections: the devices of this machine, or an emulation for tests. All
/// threads of a process share one provider.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Returns the name of the provider in a configuration and in the log.
    fn name(&self) -> &'static str;

    /// Returns the addresses of this host that accept RDMA connections, each with the kind of its
    /// network.
    ///
    /// # Errors
    /// The provider cannot list its devices.
    fn addresses(&self) -> io::Result<Vec<(IpAddr, Network)>>;

    /// Returns those of `addresses` that need separate listeners, for a caller that wants to accept
    /// connections to all of them. The others are omitted because one listener of this provider
    /// accepts the connections to several addresses.
    fn to_listen(&self, addresses: &[IpAddr]) -> Vec<IpAddr>;

    /// Listens for RDMA connections on an address. With port 0 the provider chooses the port.
    ///
    /// # Errors
    /// The address is in use, or does not support listening.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>>;

    /// Starts to connect to a listener at `address`, with a queue pair of these attributes. The
    /// caller may post receives at once; other calls must wait for [`Event::Connected`]. A later
    /// failure of the attempt is reported as [`Event::Disconnected`].
    ///
    /// # Errors
    /// The provider cannot reach that address.
    fn connect(
        &self,
        address: SocketAddr,
        attributes: &Attributes,
    ) -> io::Result<Box<dyn QueuePair>>;
}

/// The network protocol of an RDMA device. The port number of SMB Direct depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// iWARP: RDMA over TCP. SMB Direct uses port 5445 there. \[MS-SMBD\] 2.1
    Iwarp,
    /// RoCE: RDMA over Converged Ethernet. SMB Direct uses port 445 there. \[MS-SMBD\] 2.1
    Roce,
    /// InfiniBand. SMB Direct uses port 445 there. \[MS-SMBD\] 2.1
    InfiniBand,
    /// No network: both peers are on this machine.
    Emulated,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iwarp => "iWARP",
            Self::Roce => "RoCE",
            Self::InfiniBand => "InfiniBand",
            Self::Emulated => "emulated",
        })
    }
}

/// Requested properties of a queue pair. A device may provide less of each. After the connect the
/// actual properties are in [`Limits`].
#[derive(Clone, Debug)]
pub struct Attributes {
    /// Maximum number of posted receives, for which no message has arrived yet.
    pub receives: u32,
    /// Maximum number of SENDs and RDMA READs and WRITEs in flight. The provider queues further
    /// ones.
    pub sends: u32,
    /// Maximum number of [`Piece`]s of one SEND.
    pub pieces: u32,
    /// Maximum number of RDMA READs in flight in each direction: by this end, and by the peer.
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

/// The limits of a connected queue pair, as the device and the peer granted them. They can be lower
/// than the requested values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of posted receives, for which no message has arrived yet.
    pub receives: u32,
    /// Maximum number of SENDs and RDMA READs and WRITEs in flight. The provider queues further
    /// ones.
    pub sends: u32,
    /// Maximum number of [`Piece`]s of one SEND. RDMA WRITEs have no limit: the provider splits
    /// them.
    pub pieces: u32,
    /// Largest length of a SEND in bytes.
    pub message_bytes: usize,
    /// Maximum number of outgoing RDMA READs in flight. The provider queues further ones.
    pub reads: u32,
    /// Maximum number of local regions that the peer can access at one time
    /// ([`QueuePair::expose`]).
    pub exposed: u32,
    /// Whether a SEND of the peer can invalidate a local region, which ends the peer's access to it
    /// (remote invalidation).
    pub remote_invalidation: bool,
}

/// A number that identifies an operation of a queue pair in the [`Event`] that reports its end. The
/// caller chooses the number when it posts the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// A listener that accepts RDMA connections on one address. Dropping it ends the listening.
pub trait Listener: Send + fmt::Debug {
    /// Returns the next connection request without waiting. `None` if no request waits.
    ///
    /// # Errors
    /// The listener has failed and gets no more requests, except when the system only lacks
    /// resources.
    fn accept(&self) -> io::Result<Option<Box<dyn Request>>>;

    /// Returns a descriptor that is readable when [`accept`](Self::accept) may return a request.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Returns the address and port that the listener listens on.
    fn local_addr(&self) -> SocketAddr;
}

/// A connection request of a peer. Dropping it rejects the request.
pub trait Request: Send + fmt::Debug {
    /// Returns the IP address and port of the peer.
    fn peer_addr(&self) -> SocketAddr;

    /// Accepts the request and makes a queue pair of these attributes, which belongs to this thread
    /// from now on. The provider posts `receives` before it answers, so that the peer's first
    /// messages find a receive. The caller must not post anything else before [`Event::Connected`].
    ///
    /// # Errors
    /// The device cannot make a queue pair.
    fn accept(
        self: Box<Self>,
        attributes: &Attributes,
        receives: Vec<Slot>,
    ) -> io::Result<Box<dyn QueuePair>>;
}

/// One reliable RDMA connection. It belongs to one thread.
///
/// The operations of a queue pair start in the order of their posts. The provider may delay them
/// until [`flush`](Self::flush). Each operation returns its memory with exactly one [`Event`], also
/// if the connection ends first. A failed operation ends the connection. Dropping the queue pair
/// ends the connection too, and frees the memory of its operations when no device and no peer can
/// access the memory any more.
pub trait QueuePair: fmt::Debug {
    /// Returns the actual properties of the connection. Valid after [`Event::Connected`].
    fn limits(&self) -> Limits;

    /// Returns the IP address and port of the peer.
    fn peer_addr(&self) -> SocketAddr;

    /// Returns the IP address and port of this end of the connection.
    fn local_addr(&self) -> SocketAddr;

    /// Posts memory for one message of the peer. A message that finds no receive ends the
    /// connection. The peer can use the receive with the next [`flush`](Self::flush) at the latest.
    /// [`Event::Received`] or [`Event::Unused`] returns the slot.
    fn post_receive(&mut self, slot: Slot);

    /// Sends one message with the bytes of all pieces, at most [`Limits::pieces`]. `id` identifies
    /// the SEND in its event. `None` in `invalidate` sends an ordinary message. With `invalidate`,
    /// the key of a region of the peer, the peer's device ends this end's access to that region
    /// before the peer gets the message. [`Event::Sent`] returns the pieces.
    fn post_send(&mut self, id: WorkId, pieces: Vec<Piece>, invalidate: Option<u32>);

    /// Writes by RDMA the bytes of all pieces, one after the other, into the peer's regions
    /// `remote`, one after the other. `id` identifies the operation in its event. The lengths of
    /// pieces and regions need not match. The caller guarantees that the regions have space for all
    /// bytes. [`Event::Written`] returns the pieces.
    fn post_write(&mut self, id: WorkId, pieces: Vec<Piece>, remote: &[RemoteRegion]);

    /// Writes `length` bytes of a file, starting at `offset`, into the peer's regions `remote`,
    /// which have space for all of them. The call writes from the page cache, without a buffer,
    /// before it returns. Returns true if all bytes were written. Returns false if the provider
    /// does not support this, if the file ends, or if the data is not in the page cache. The
    /// regions may then hold any bytes, and the caller must read the data and post a write.
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

    /// Fills `range` of the sink by RDMA with the bytes of the peer's regions `remote`, one after
    /// the other. `id` identifies the operation in its event. The caller guarantees that the
    /// regions have at least this number of bytes. [`Event::Read`] returns the sink.
    fn post_read(&mut self, id: WorkId, sink: Sink, range: Range<usize>, remote: &[RemoteRegion]);

    /// Gives the peer RDMA access to local memory until [`Event::Revoked`] returns the memory. The
    /// returned region describes the memory for the peer, and may be in every message that is
    /// posted after this call.
    ///
    /// # Errors
    /// The device accepts no more regions. The error returns the memory.
    fn expose(&mut self, memory: Exposed) -> Result<RemoteRegion, (io::Error, Exposed)>;

    /// Ends the peer's access to the local region with this key. [`Event::Revoked`] reports the end
    /// and returns the memory. The call has no effect if the key is unknown or the peer has
    /// invalidated it meanwhile.
    fn revoke(&mut self, key: u32);

    /// Starts all posted operations. The caller calls this once after a batch of posts.
    fn flush(&mut self);

    /// Appends all new events to `events` in the order in which they happened, without waiting.
    /// `events` keeps its earlier content.
    fn poll(&mut self, events: &mut Vec<Event>);

    /// Prepares a wait for events and returns the condition to wait for. After the wait the caller
    /// calls [`poll`](Self::poll), which may find nothing. A `poll` during the wait does not remove
    /// a wake-up: the descriptor also reports later events.
    fn arm(&mut self) -> Wait;

    /// Returns whether an operation waits until the descriptor becomes writable. Unlike
    /// [`arm`](Self::arm), this prepares no wait.
    fn is_blocked(&self) -> bool {
        false
    }

    /// Returns the descriptor to wait for after [`arm`](Self::arm). It is the same for the whole
    /// life of the queue pair.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Ends the connection. All pending operations end with [`Failure::Flushed`], and the last
    /// event is [`Event::Disconnected`].
    fn disconnect(&mut self);
}

/// The condition for which the caller waits before it polls the queue pair again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: events are ready, and the caller polls at once.
    No,
    /// The descriptor of the queue pair is readable.
    Readable,
    /// The descriptor of the queue pair is readable or writable.
    ReadableOrWritable,
}

/// An event of a queue pair, which [`QueuePair::poll`] returns.
#[derive(Debug)]
pub enum Event {
    /// Both peers are ready. This is the first event, unless connecting failed.
    Connected,
    /// The connection has ended. This is the last event, except for operations that are posted
    /// later: these end with [`Failure::Flushed`] at once.
    Disconnected(Failure),
    /// A message of the peer is in the slot. The number is the length of the message in bytes, from
    /// the start of the slot. If the message invalidated a region, [`Event::Revoked`] precedes this
    /// event.
    Received(Slot, usize),
    /// A posted receive ended without a message, because the connection has ended.
    Unused(Slot),
    /// A SEND ended: its id, its pieces and its result.
    Sent(WorkId, Vec<Piece>, Result<(), Failure>),
    /// An RDMA WRITE ended: its id, its pieces and its result. After a success the peer has the
    /// bytes when it gets a message that is posted after the WRITE.
    Written(WorkId, Vec<Piece>, Result<(), Failure>),
    /// An RDMA READ ended: its id, its sink and its result. After a failure the sink may hold any
    /// bytes.
    Read(WorkId, Sink, Result<(), Failure>),
    /// The peer cannot access the local region with this key any more; the event returns the
    /// memory. When a connection ends, every exposed region has this event.
    Revoked(u32, Exposed),
}

/// Reason why an operation or a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This end has ended the connection.
    Disconnected,
    /// The peer has ended the connection or disappeared.
    PeerDisconnected,
    /// The peer rejects the connection, or no listener uses the address: the reason.
    Refused(String),
    /// The connection ended before the operation completed.
    Flushed,
    /// The operation violates the key, the bounds or the access rights of the peer's region.
    RemoteAccess,
    /// The peer had no receive posted for a message.
    ReceiverNotReady,
    /// A message was longer than the receive posted for it.
    TooLong,
    /// The peer violates the protocol of this provider: the reason.
    Protocol(String),
    /// The device reports an error: its description.
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
