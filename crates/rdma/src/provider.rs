//! The trait: who listens and connects, and what a connected queue pair does.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::operand::{Exposed, Piece, Remote, Sink};
use crate::slots::Slot;

/// Somebody who makes connections over RDMA. Shared by all threads.
pub trait Provider: Send + Sync + fmt::Debug {
    /// The name in a configuration and in the log.
    fn name(&self) -> &'static str;

    /// The addresses of this host that RDMA connections can be made to.
    ///
    /// # Errors
    /// The devices cannot be listed.
    fn addresses(&self) -> io::Result<Vec<(IpAddr, Network)>>;

    /// For which of `addresses` somebody who wants to listen on them all needs a listener each.
    fn to_listen(&self, addresses: &[IpAddr]) -> Vec<IpAddr>;

    /// Listens on an address; port 0 lets the provider choose.
    ///
    /// # Errors
    /// The address is taken, or cannot be listened on.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Listener>>;

    /// Begins to connect. Receives may be posted at once; everything else waits until
    /// [`Event::Connected`]. A failure from here on is [`Event::Disconnected`].
    ///
    /// # Errors
    /// Nothing can be reached at that address.
    fn connect(
        &self,
        address: SocketAddr,
        attributes: &Attributes,
    ) -> io::Result<Box<dyn QueuePair>>;
}

/// What a device speaks to the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// RDMA over TCP: SMB Direct has a port of its own there, 5445. \[MS-SMBD\] 2.1
    Iwarp,
    /// InfiniBand, or RDMA over Converged Ethernet: port 445. \[MS-SMBD\] 2.1
    InfiniBand,
    /// None: both ends are on this machine.
    Emulated,
}

/// What a queue pair is made for. A device may have less of everything: see [`Limits`].
#[derive(Clone, Debug)]
pub struct Attributes {
    /// Receives that are posted at one time.
    pub receives: u32,
    /// SENDs and one-sided operations under way at one time; more wait in the provider.
    pub sends: u32,
    /// Pieces of one SEND.
    pub pieces: u32,
    /// RDMA READs under way at one time, of ours and of the peer's.
    pub reads: u32,
    /// Completions that may be gathered before the processor is told of them, and for how long;
    /// where the device can. `None`: told at once.
    pub moderation: Option<(u16, Duration)>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            // Credits that Windows and Linux ask for.
            receives: 255,
            sends: 512,
            pieces: 4,
            // What most devices have.
            reads: 16,
            moderation: None,
        }
    }
}

/// What a connected queue pair can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Receives that may be posted at one time.
    pub receives: u32,
    /// SENDs and one-sided operations under way at one time; more wait in the provider.
    pub sends: u32,
    /// Pieces of one SEND. RDMA WRITEs have no limit: the provider makes several of one.
    pub pieces: u32,
    /// Bytes of one SEND.
    pub message_bytes: usize,
    /// RDMA READs of ours under way at one time; more wait.
    pub reads: u32,
    /// Regions that may be exposed at one time.
    pub exposed: u32,
    /// Whether the peer may end the exposure of a region of ours with a SEND.
    pub remote_invalidation: bool,
}

/// What an operation is called by whoever posted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub u64);

/// Takes connections in.
pub trait Listener: Send + fmt::Debug {
    /// The next peer that wants to connect, without waiting; `None` if there is none now.
    ///
    /// # Errors
    /// Nobody will come any more, unless the system has run out of something.
    fn accept(&self) -> io::Result<Option<Box<dyn Request>>>;

    /// Readable when `accept` may have something.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Where it listens.
    fn local_addr(&self) -> SocketAddr;
}

/// A peer that wants to connect. Dropping it refuses.
pub trait Request: Send + fmt::Debug {
    /// The address of the peer.
    fn peer_addr(&self) -> SocketAddr;

    /// Makes the queue pair, which belongs to this thread from here on. `receives` are posted
    /// before the peer is told: what it sends first finds room. Nothing else may be posted until
    /// [`Event::Connected`].
    ///
    /// # Errors
    /// The device cannot make a queue pair.
    fn accept(
        self: Box<Self>,
        attributes: &Attributes,
        receives: Vec<Slot>,
    ) -> io::Result<Box<dyn QueuePair>>;
}

/// One reliable connection of messages. It belongs to one thread.
///
/// Operations of one queue pair start in the order in which they are posted, and may be gathered
/// until [`flush`](Self::flush). What they own comes back with an [`Event`], each exactly once,
/// also where the connection ends first. An operation that fails ends the connection. Dropping
/// the queue pair ends it, too, and what operations owned is freed once nobody can reach it.
pub trait QueuePair: fmt::Debug {
    /// What it can do. Known from [`Event::Connected`] on.
    fn limits(&self) -> Limits;

    /// The address of the peer.
    fn peer_addr(&self) -> SocketAddr;

    /// The address of this side.
    fn local_addr(&self) -> SocketAddr;

    /// Gives memory for one message of the peer. A message that finds none ends the connection.
    /// The peer learns of it with the next [`flush`](Self::flush) at the latest.
    fn post_receive(&mut self, slot: Slot);

    /// Sends a message of all pieces, of [`Limits::pieces`] at most. With `invalidate`, a region
    /// of the peer's is out of our reach before the peer sees the message.
    fn post_send(&mut self, id: WorkId, pieces: Vec<Piece>, invalidate: Option<u32>);

    /// Writes the bytes of all pieces one after the other into the peer's regions one after the
    /// other, whatever the lengths of each. The regions have as many bytes or more: a shortage is
    /// for whoever posts to find.
    fn post_write(&mut self, id: WorkId, pieces: Vec<Piece>, remote: &[Remote]);

    /// Writes `length` bytes of a file, from `offset` on, into the peer's regions, which have as
    /// many bytes or more: from where the page cache has them, without a buffer of ours, and before
    /// this returns. Whether it did: not where the provider does no such thing, the file ends or
    /// the disk would have to be waited for. Then the regions have any bytes, and who wants the
    /// data there reads them and posts them.
    ///
    /// A device reads memory that was made known to it, and that is no file's: a registration of a
    /// mapping keeps its pages whatever becomes of the file, and one that is paged on demand ends
    /// the connection where the file is cut.
    fn write_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        remote: &[Remote],
    ) -> bool {
        let _ = (file, offset, length, remote);
        false
    }

    /// Fills `range` of the sink with the bytes of the peer's regions one after the other, which
    /// have as many bytes or more.
    fn post_read(&mut self, id: WorkId, sink: Sink, range: Range<usize>, remote: &[Remote]);

    /// Lets the peer reach memory of ours, until [`Event::Revoked`] brings it back. What is
    /// returned is for the peer; it is good for every message that is posted after this.
    ///
    /// # Errors
    /// The device takes no more; the memory is given back.
    fn expose(&mut self, memory: Exposed) -> Result<Remote, (io::Error, Exposed)>;

    /// Ends the peer's reach; [`Event::Revoked`] says when. For a key that is unknown, or that the
    /// peer has ended itself meanwhile, nothing happens.
    fn revoke(&mut self, key: u32);

    /// Starts what was gathered. Called once after a batch of posts.
    fn flush(&mut self);

    /// Adds what has happened to `events`, and does not wait.
    fn poll(&mut self, events: &mut Vec<Event>);

    /// What to wait for before the next [`poll`](Self::poll); it may be that something is there.
    /// Who polls meanwhile takes nothing away from who waits: the descriptor tells of what comes
    /// after that, too.
    fn arm(&mut self) -> Wait;

    /// Whether something waits for the descriptor to be writable. Asked without arming.
    fn is_blocked(&self) -> bool {
        false
    }

    /// What [`arm`](Self::arm) speaks of. It stays the same.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Ends the connection, and everything under way with [`Failure::Flushed`]. The last event is
    /// [`Event::Disconnected`].
    fn disconnect(&mut self);
}

/// When a queue pair is to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Now: something is there.
    No,
    /// When the descriptor is readable.
    Readable,
    /// When the descriptor is readable or writable.
    ReadableOrWritable,
}

/// What has happened to a queue pair.
#[derive(Debug)]
pub enum Event {
    /// Both ends are ready. The first event but where there is no connection.
    Connected,
    /// There is no connection any more. Nothing comes after this, but for what is posted later:
    /// it ends with [`Failure::Flushed`] at once.
    Disconnected(Failure),
    /// A message of the peer, of so many bytes at the start of the slot. Where it ended the
    /// exposure of a region, [`Event::Revoked`] came before.
    Received(Slot, usize),
    /// A receive ended without a message.
    Unused(Slot),
    /// A SEND ended.
    Sent(WorkId, Vec<Piece>, Result<(), Failure>),
    /// An RDMA WRITE ended. Good: the peer finds the bytes when a message that is posted after
    /// the WRITE arrives.
    Written(WorkId, Vec<Piece>, Result<(), Failure>),
    /// An RDMA READ ended.
    Read(WorkId, Sink, Result<(), Failure>),
    /// The region of this key is out of the peer's reach. Also comes for every region when the
    /// connection ends.
    Revoked(u32, Exposed),
}

/// Why an operation or a connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This side has ended the connection.
    Disconnected,
    /// The peer has ended the connection, or is gone.
    PeerDisconnected,
    /// The peer refuses to connect, or nobody listens.
    Refused(String),
    /// The connection ended while this operation was under way.
    Flushed,
    /// The peer's memory is not ours to read or write: key, bounds or rights.
    RemoteAccess,
    /// The peer had no receive posted.
    ReceiverNotReady,
    /// A message was longer than the receive that it met.
    TooLong,
    /// The peer is no peer of this provider, or breaks its rules.
    Protocol(String),
    /// The device says so.
    Device(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => f.write_str("disconnected"),
            Self::PeerDisconnected => f.write_str("the peer has disconnected"),
            Self::Refused(why) => write!(f, "connection refused: {why}"),
            Self::Flushed => f.write_str("the connection ended first"),
            Self::RemoteAccess => f.write_str("the peer's memory may not be accessed so"),
            Self::ReceiverNotReady => f.write_str("the peer has no receive posted"),
            Self::TooLong => f.write_str("a message is longer than its receive"),
            Self::Protocol(what) => write!(f, "the peer breaks the rules: {what}"),
            Self::Device(what) => write!(f, "the device fails: {what}"),
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
