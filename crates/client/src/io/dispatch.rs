//! The choice of a channel for each request.
//!
//! A request takes the channel with the fewest bytes in flight: bulk data spread over all channels,
//! and a small request finds an idle one. If a transport is preferred, channels of other transports
//! are spares. When a channel is lost, its pending requests move to another one as far as the
//! protocol allows. When the last channel is lost, requests wait while the client resumes the
//! session: it logs in again and reclaims its opens ([`resume`](super::resume)). If that fails, all
//! requests fail.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use net::Transport;
use proto::client::replay;
use proto::client::{Fate, LeaseBreak, Request, RequestId, Session, Step};
use wire::Guid;

use crate::error::Cause;
use crate::fork::Bound;
use crate::io::call::{Call, Memory, Pending, Requester, call};
use crate::io::leases::{Breaking, LeaseState, LeaseTable};
use crate::io::opens::{Objects, OpenState, OpenTable};
use crate::io::slot::lock;
use crate::io::tree::TreeState;

/// Reason of failed requests after the caller closed the session.
const CLOSED: &str = "the session was closed";
/// Reason of failed requests in a child process.
const FORKED: &str = "the process forked";

/// Default count of requests in flight for one operation.
pub(crate) const DEPTH: usize = 16;
/// The same over QUIC: with requests of 1 MiB, the length of its flow control window.
const DEPTH_QUIC: usize = 32;

/// Largest count of requests that wait while the client resumes a session.
const PARKED_MAX: usize = 1 << 16;

/// Number of a channel, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ChannelKey(pub(crate) u64);

impl ChannelKey {
    /// Allocates a number.
    pub(crate) fn fresh() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// A message to a channel on its I/O thread.
pub(crate) enum ChannelMessage {
    /// Send a request.
    Call(Box<Call>),
    /// Cancel a request whose caller does not wait for the response any more.
    Cancel(RequestId),
    /// End the channel once its pending requests are done.
    Close,
}

/// Carries messages to one channel.
pub(crate) trait ChannelMailbox: Send + Sync {
    /// Sends a message.
    ///
    /// # Errors
    /// The message, where the thread of the channel has ended.
    fn send(&self, message: ChannelMessage) -> Result<(), ChannelMessage>;
}

/// The TCP connections that a session uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    /// Count of connections; at least one.
    pub(crate) count: usize,
    /// Credits of the connection with the fewest.
    pub(crate) credits: u32,
    /// Whether all connections are within this machine.
    pub(crate) are_local: bool,
}

impl Links {
    /// The values that suit both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count.max(other.count),
            credits: self.credits.min(other.credits),
            are_local: self.are_local && other.are_local,
        }
    }
}

/// The view of a channel from other threads.
pub(crate) struct ChannelHandle {
    pub(crate) key: ChannelKey,
    mailbox: Box<dyn ChannelMailbox>,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) transport: Transport,
    /// Bytes in flight, plus the base cost of each request.
    load: AtomicU64,
    /// Credits that the channel holds.
    pub(crate) credits: AtomicU32,
    /// Count of bytes sent.
    pub(crate) sent: AtomicU64,
    /// Count of bytes received.
    pub(crate) received: AtomicU64,
}

impl ChannelHandle {
    pub(crate) fn new(
        key: ChannelKey,
        mailbox: Box<dyn ChannelMailbox>,
        peer: SocketAddr,
        local: SocketAddr,
        transport: Transport,
    ) -> Self {
        Self {
            key,
            mailbox,
            peer,
            local,
            transport,
            load: AtomicU64::new(0),
            credits: AtomicU32::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    /// Whether both ends are on this machine.
    pub(crate) fn is_local(&self) -> bool {
        is_one_machine(self.peer.ip(), self.local.ip())
    }

    /// The values of one connection; `None` for another transport than TCP.
    fn link(&self) -> Option<Links> {
        (self.transport == Transport::Tcp).then(|| Links {
            count: 1,
            credits: self.credits.load(Ordering::Relaxed),
            are_local: self.is_local(),
        })
    }

    /// Subtracts the cost of a request that is done.
    pub(crate) fn relieve(&self, cost: u64) {
        self.load.fetch_sub(cost, Ordering::Relaxed);
    }
}

/// Whether both ends of a connection are on one machine: the addresses are equal, or the peer is a
/// loopback address.
fn is_one_machine(peer: IpAddr, local: IpAddr) -> bool {
    peer == local || peer.to_canonical().is_loopback()
}

/// The consequence of the end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// None: the session is closing or lost.
    Nothing,
    /// A new channel in place of the old one is useful.
    Replace,
    /// The channel was the last one, and the client resumes the session.
    Resume,
}

/// The channels of a session.
pub(crate) struct Dispatch {
    inner: Bound<Inner>,
}

#[derive(Default)]
struct Inner {
    session: OnceLock<Arc<Session>>,
    /// Preferred transport; channels of others are spares.
    preferred: OnceLock<Transport>,
    channels: Mutex<Channels>,
    /// Count of lost sessions that were resumed.
    generation: AtomicU64,
    opens: Mutex<OpenTable>,
    leases: Mutex<LeaseTable>,
}

#[derive(Default)]
struct Channels {
    list: Vec<Arc<ChannelHandle>>,
    /// The session of the channels: the first one, or the last one that replaced a lost one.
    session: Option<Arc<Session>>,
    /// The addresses and transports that have carried the session.
    ways: Vec<(SocketAddr, Transport)>,
    /// The requests that wait while the client resumes the session; `None` at other times.
    #[expect(clippy::vec_box, reason = "a mailbox takes and returns boxed calls")]
    parked: Option<Vec<Box<Call>>>,
    /// Reason of the loss of the last channel.
    ended: Option<Arc<str>>,
    /// Whether the session is closing.
    is_closing: bool,
}

impl Dispatch {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Bound::new(Inner::default()),
        })
    }

    /// Whether this is the process that connected.
    pub(crate) fn is_here(&self) -> bool {
        self.inner.is_here()
    }

    /// The first session; `None` before the login. A session that replaced it has the same
    /// negotiated parameters and the same protection.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.inner.session.get()
    }

    /// The session of the channels; `None` before the login.
    pub(crate) fn current_session(&self) -> Option<Arc<Session>> {
        lock(&self.inner.channels).session.clone()
    }

    /// Prefers a transport: channels of others become spares.
    pub(crate) fn prefer(&self, transport: Transport) {
        let _ = self.inner.preferred.set(transport);
    }

    /// Adds a channel; the first one sets the session. Returns `false` if the session is closing,
    /// or the channel carries another one.
    pub(crate) fn joined(&self, channel: Arc<ChannelHandle>, session: &Arc<Session>) -> bool {
        let _ = self.inner.session.set(Arc::clone(session));
        let mut channels = lock(&self.inner.channels);
        if channels.is_closing || channels.ended.is_some() {
            return false;
        }
        let current = channels.session.get_or_insert_with(|| Arc::clone(session));
        if !Arc::ptr_eq(current, session) {
            if channels.parked.is_none() || !channels.list.is_empty() {
                return false;
            }
            channels.session = Some(Arc::clone(session));
            self.inner.generation.fetch_add(1, Ordering::Relaxed);
        }
        let way = (channel.peer, channel.transport);
        if !channels.ways.contains(&way) {
            channels.ways.push(way);
        }
        channels.list.push(channel);
        true
    }

    /// Removes a channel. `may_resume`: whether the session may be resumed if this was the last
    /// channel. `has_requests`: whether requests of the channel wait for another one.
    pub(crate) fn left(
        &self,
        key: ChannelKey,
        reason: &str,
        may_resume: bool,
        has_requests: bool,
    ) -> Left {
        let mut channels = lock(&self.inner.channels);
        let before = channels.list.len();
        channels.list.retain(|channel| channel.key != key);
        if channels.list.len() == before {
            return Left::Nothing;
        }
        if channels.is_closing {
            if channels.list.is_empty() {
                channels.ended.get_or_insert_with(|| reason.into());
            }
            return Left::Nothing;
        }
        if !channels.list.is_empty() {
            return Left::Replace;
        }
        if channels.parked.is_some() {
            // The login in place of the lost session is tried again.
            return Left::Nothing;
        }
        if may_resume && (has_requests || lock(&self.inner.opens).has_reclaimable()) {
            channels.parked = Some(Vec::new());
            return Left::Resume;
        }
        channels.ended.get_or_insert_with(|| reason.into());
        Left::Nothing
    }

    /// Whether the session has a channel, or will have one, and can use another one.
    pub(crate) fn wants_another(&self) -> bool {
        let channels = lock(&self.inner.channels);
        !channels.is_closing && (!channels.list.is_empty() || channels.parked.is_some())
    }

    /// Whether the client resumes the session now.
    pub(crate) fn is_resuming(&self) -> bool {
        self.read(|channels| channels.parked.is_some())
    }

    /// Ends a resumption that succeeded, and sends the requests that waited for it. Returns `false`
    /// if the session has no channel again.
    pub(crate) fn resumed(&self) -> bool {
        let mut channels = lock(&self.inner.channels);
        if channels.list.is_empty() {
            return false;
        }
        let parked = channels.parked.take();
        drop(channels);
        for call in parked.into_iter().flatten() {
            self.submit(call);
        }
        true
    }

    /// Ends a resumption that failed for this reason, and so the session: the requests that waited
    /// fail.
    pub(crate) fn not_resumed(&self, reason: &str) {
        let reason: Arc<str> = reason.into();
        let mut channels = lock(&self.inner.channels);
        let parked = channels.parked.take();
        if parked.is_some() {
            channels.ended.get_or_insert_with(|| Arc::clone(&reason));
        }
        let rest = channels.list.clone();
        drop(channels);
        for channel in rest {
            let _ = channel.mailbox.send(ChannelMessage::Close);
        }
        for call in parked.into_iter().flatten() {
            call.fail(Cause::Lost(Arc::clone(&reason)));
        }
    }

    /// The addresses and transports that have carried the session.
    pub(crate) fn ways(&self) -> Vec<(SocketAddr, Transport)> {
        self.read(|channels| channels.ways.clone())
    }

    /// The tree connects and opens.
    pub(crate) fn opens<T>(&self, of: impl FnOnce(&mut OpenTable) -> T) -> T {
        of(&mut lock(&self.inner.opens))
    }

    /// The lease for an open of a path; see [`LeaseTable::lease_for`].
    pub(crate) fn lease_for(
        &self,
        tree: &Arc<TreeState>,
        path: &str,
        fresh: Guid,
        is_own: bool,
    ) -> Arc<LeaseState> {
        lock(&self.inner.leases).lease_for(tree, path, fresh, is_own)
    }

    /// The lease of this session on a path; see [`LeaseTable::known_lease`].
    pub(crate) fn known_lease(&self, tree: &Arc<TreeState>, path: &str) -> Option<Arc<LeaseState>> {
        lock(&self.inner.leases).known_lease(tree, path)
    }

    /// The key of the lease on the directory of a path, if this session holds one.
    pub(crate) fn parent_lease(&self, tree: &Arc<TreeState>, path: &str) -> Option<Guid> {
        lock(&self.inner.leases).parent_lease(tree, path)
    }

    /// Applies a break of a lease.
    pub(crate) fn break_lease(&self, notification: &LeaseBreak) -> Breaking {
        lock(&self.inner.leases).break_lease(notification)
    }

    /// Acknowledges a break of a lease on any channel. \[MS-SMB2\] 3.2.5.19.2
    pub(crate) fn acknowledge(
        self: &Arc<Self>,
        lease: Option<&Arc<LeaseState>>,
        notification: &LeaseBreak,
    ) {
        let tree = match lease {
            Some(lease) => Some(Arc::clone(&lease.tree)),
            // The open is closed. The server checks that the tree is one of the session.
            None => self.opens(|table| table.trees().into_iter().next()),
        };
        let Some(tree) = tree else { return };
        let step = Step::AcknowledgeLease {
            key: notification.key,
            state: notification.state,
        };
        let mut request = Request::new(tree.id().ok(), vec![step]);
        request.encrypt = tree.encrypt;
        let objects = Objects {
            tree: Some(tree),
            ..Objects::default()
        };
        drop(self.start_on(request, Memory::None, objects));
    }

    /// A file or directory at the path `from` of a share has the path `to` now.
    pub(crate) fn renamed(&self, tree: &Arc<TreeState>, from: &str, to: &str) {
        for open in self.opens(|table| table.opens()) {
            let is_there = open.tree.name == tree.name;
            let before = open.path();
            if is_there
                && open.rename(from, to)
                && let Some(lease) = &open.lease
            {
                lock(&self.inner.leases).rename(lease, &before, &open.path());
            }
        }
    }

    /// Adds an open.
    pub(crate) fn add_open(&self, open: &Arc<OpenState>) {
        lock(&self.inner.opens).add_open(open);
    }

    /// Reads the channels. A child process has none, and takes no lock of its parent.
    fn read<T>(&self, of: impl FnOnce(&Channels) -> T) -> T {
        match self.is_here() {
            true => of(&lock(&self.inner.channels)),
            false => of(&Channels {
                ended: Some(FORKED.into()),
                ..Channels::default()
            }),
        }
    }

    /// The open channels.
    pub(crate) fn channels(&self) -> Vec<Arc<ChannelHandle>> {
        self.read(|channels| channels.list.clone())
    }

    /// Whether the last channel was lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.read(|channels| channels.ended.is_some())
    }

    /// Whether the session is closing: servers disconnect on a request after LOGOFF.
    pub(crate) fn is_closing(&self) -> bool {
        self.read(|channels| channels.is_closing)
    }

    /// Starts a request outside of a share.
    pub(crate) fn start(self: &Arc<Self>, request: Request, memory: Memory) -> Pending {
        self.start_on(request, memory, Objects::default())
    }

    /// Starts a request that is part of a login in place of a lost session. It does not wait for
    /// the end of that, and is not sent again.
    pub(crate) fn start_resuming(self: &Arc<Self>, request: Request) -> Pending {
        let requester = Arc::clone(self) as Arc<dyn Requester>;
        let (mut call, pending) = call(&requester, request, Memory::None, Objects::default());
        call.is_resuming = true;
        self.submit(call);
        pending
    }

    /// Starts a request that refers to a tree connect and an open.
    pub(crate) fn start_on(
        self: &Arc<Self>,
        request: Request,
        memory: Memory,
        objects: Objects,
    ) -> Pending {
        let requester = Arc::clone(self) as Arc<dyn Requester>;
        let (call, pending) = call(&requester, request, memory, objects);
        match self.inner.check() {
            Ok(()) if self.is_closing() => call.fail(Cause::Lost(CLOSED.into())),
            Ok(()) => self.submit(call),
            Err(cause) => call.fail(cause),
        }
        pending
    }

    fn submit(&self, mut call: Box<Call>) {
        loop {
            let mut channels = lock(&self.inner.channels);
            if let Some(parked) = channels.parked.as_mut().filter(|_| !call.is_resuming) {
                if parked.len() < PARKED_MAX {
                    parked.push(call);
                    return;
                }
                drop(channels);
                return call.fail(Cause::Lost("too many requests wait for the server".into()));
            }
            let cost = call.cost;
            let chosen = self.choose(&channels, cost);
            let generation = self.generation();
            drop(channels);
            let channel = match chosen {
                Ok(channel) => channel,
                Err(cause) => return call.fail(cause),
            };
            if generation > 0 && !call.is_resuming {
                match call.in_session(generation) {
                    Some(current) => call = current,
                    None => return channel.relieve(cost),
                }
            }
            match channel.mailbox.send(ChannelMessage::Call(call)) {
                Ok(()) => return,
                Err(ChannelMessage::Call(back)) => {
                    self.left(channel.key, "the client was closed", false, true);
                    call = back;
                }
                Err(_) => unreachable!("a mailbox gives back the message that it refuses"),
            }
        }
    }

    fn choose(&self, channels: &Channels, cost: u64) -> Result<Arc<ChannelHandle>, Cause> {
        let load = |channel: &&Arc<ChannelHandle>| {
            (self.is_spare(channel), channel.load.load(Ordering::Relaxed))
        };
        let Some(channel) = channels.list.iter().min_by_key(load) else {
            let reason = channels.ended.clone();
            return Err(Cause::Lost(
                reason.unwrap_or_else(|| "not connected".into()),
            ));
        };
        channel.load.fetch_add(cost, Ordering::Relaxed);
        Ok(Arc::clone(channel))
    }

    /// Whether a channel is a spare for those of the preferred transport.
    fn is_spare(&self, channel: &ChannelHandle) -> bool {
        let preferred = self.inner.preferred.get();
        preferred.is_some_and(|transport| *transport != channel.transport)
    }

    /// The channels that are not spares.
    fn used<'a>(&self, channels: &'a Channels) -> impl Iterator<Item = &'a Arc<ChannelHandle>> {
        let channels = channels.list.iter();
        channels.filter(|channel| !self.is_spare(channel))
    }

    /// Default count of requests in flight for one operation.
    pub(crate) fn depth(&self) -> usize {
        let is_quic = |channel: &Arc<ChannelHandle>| channel.transport == Transport::Quic;
        match self.read(|channels| self.used(channels).any(is_quic)) {
            true => DEPTH_QUIC,
            false => DEPTH,
        }
    }

    /// The used channels, if all of them are TCP connections.
    pub(crate) fn links(&self) -> Option<Links> {
        self.read(|channels| {
            let mut used = self.used(channels);
            let mut links = used.next()?.link()?;
            for channel in used {
                let count = links.count + 1;
                links = Links {
                    count,
                    ..links.and(channel.link()?)
                };
            }
            Some(links)
        })
    }

    /// Bytes in flight on the used channels.
    pub(crate) fn load(&self) -> u64 {
        let load = |channel: &Arc<ChannelHandle>| channel.load.load(Ordering::Relaxed);
        self.read(|channels| self.used(channels).map(load).sum())
    }

    /// Whether the used channels carry frames of 1 MiB and more.
    pub(crate) fn takes_long_frames(&self) -> bool {
        let is_one = |channel: &Arc<ChannelHandle>| {
            matches!(channel.transport, Transport::Tcp | Transport::Quic)
        };
        self.read(|channels| self.used(channels).all(is_one))
    }

    /// Whether the used channels send ranges of files.
    pub(crate) fn sends_files(&self) -> bool {
        let is_one = |channel: &Arc<ChannelHandle>| channel.transport.sends_files();
        self.read(|channels| self.used(channels).all(is_one))
    }

    /// Logs off without waiting for the response. No request follows, because servers disconnect on
    /// it.
    pub(crate) fn log_off(self: &Arc<Self>) {
        if self.is_here() {
            drop(self.start(Request::new(None, vec![Step::Logoff]), Memory::None));
            lock(&self.inner.channels).is_closing = true;
            if self.is_resuming() {
                self.not_resumed(CLOSED);
            }
        }
    }

    /// Ends all channels after their pending requests.
    pub(crate) fn close(&self) {
        if !self.is_here() {
            return;
        }
        let mut channels = lock(&self.inner.channels);
        channels.is_closing = true;
        for channel in &channels.list {
            let _ = channel.mailbox.send(ChannelMessage::Close);
        }
        drop(channels);
        if self.is_resuming() {
            self.not_resumed(CLOSED);
        }
    }
}

impl Requester for Dispatch {
    fn is_here(&self) -> bool {
        self.inner.is_here()
    }

    fn request(self: Arc<Self>, request: Request, memory: Memory) -> Pending {
        Self::start(&self, request, memory)
    }

    fn generation(&self) -> u64 {
        self.inner.generation.load(Ordering::Relaxed)
    }

    fn cancel(&self, id: RequestId) {
        if self.is_resuming() {
            self.unpark(id);
        }
        for channel in self.channels() {
            // A thread that has ended has nothing to cancel.
            let _ = channel.mailbox.send(ChannelMessage::Cancel(id));
        }
    }

    fn lost(&self, mut call: Box<Call>, fate: Fate, reason: &Arc<str>) {
        let is_over = self.is_over(call.generation);
        let is_resuming = call.is_resuming;
        let request = call.request.as_mut().expect("a lost call has its request");
        let may_be_sent = match self.session() {
            Some(_) if is_resuming => false,
            Some(_) if is_over => replay::resume(request, fate),
            Some(session) => replay::resend(request, fate, session),
            None => false,
        };
        call.was_repeated |= fate == Fate::Sent;
        match may_be_sent {
            true => self.submit(call),
            false => call.fail(Cause::Lost(Arc::clone(reason))),
        }
    }
}

impl Dispatch {
    /// Whether the session number `generation` has lost all its channels.
    fn is_over(&self, generation: u64) -> bool {
        self.read(|channels| channels.parked.is_some()) || generation != self.generation()
    }

    /// Drops a request that waits, because its caller does not wait any more.
    fn unpark(&self, id: RequestId) {
        let mut channels = lock(&self.inner.channels);
        let Some(parked) = &mut channels.parked else {
            return;
        };
        let found = parked.iter().position(|call| call.id == id);
        let call = found.map(|index| parked.swap_remove(index));
        drop(channels);
        // Dropped outside of the lock: it may own memory.
        drop(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_knows_its_own_addresses() {
        let is_one = |peer: &str, local: &str| {
            let parsed = |text: &str| text.parse().expect("an address");
            is_one_machine(parsed(peer), parsed(local))
        };
        assert!(is_one("192.0.2.1", "192.0.2.1"));
        assert!(is_one("127.0.0.2", "127.0.0.1"));
        assert!(is_one("::ffff:127.0.0.2", "::ffff:127.0.0.1"));
        assert!(!is_one("192.0.2.1", "192.0.2.2"));
    }

    #[test]
    fn a_child_finds_no_channels_and_takes_no_lock() {
        let dispatch = Arc::new(Dispatch {
            inner: Bound::inherited(Inner::default()),
        });
        // As a thread of the parent had it when the process forked.
        let _held = lock(&dispatch.inner.channels);
        assert!(dispatch.is_lost() && dispatch.channels().is_empty());
        assert!(dispatch.links().is_none());
        assert_eq!(dispatch.load(), 0);
        assert_eq!(dispatch.depth(), DEPTH);
        // None of these sends a message.
        dispatch.takes_long_frames();
        dispatch.sends_files();
        dispatch.close();
        dispatch.cancel(RequestId(1));
        dispatch.log_off();
        let request = Request::new(None, vec![Step::Echo]);
        drop(dispatch.start(request, Memory::None));
    }
}
