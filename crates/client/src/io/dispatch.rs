//! The choice of a channel for each request.
//!
//! A request takes the channel with the fewest bytes in flight: bulk data spread over all channels,
//! and a small request finds an idle one. If a transport is preferred, channels of other transports
//! are spares. When a channel is lost, its pending requests move to another one as far as the
//! protocol allows. When the last channel is lost, all requests fail.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use net::Transport;
use proto::client::replay;
use proto::client::{Fate, Request, RequestId, Session, Step};

use crate::error::Cause;
use crate::fork::Bound;
use crate::io::call::{Call, Memory, Pending, Requester, call};
use crate::io::slot::lock;

/// Reason of failed requests after the caller closed the session.
const CLOSED: &str = "the session was closed";
/// Reason of failed requests in a child process.
const FORKED: &str = "the process forked";

/// Default count of requests in flight for one operation.
pub(crate) const DEPTH: usize = 16;
/// The same over QUIC: with requests of 1 MiB, the length of its flow control window.
const DEPTH_QUIC: usize = 32;

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
}

#[derive(Default)]
struct Channels {
    list: Vec<Arc<ChannelHandle>>,
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

    /// The session; `None` before the login.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.inner.session.get()
    }

    /// Prefers a transport: channels of others become spares.
    pub(crate) fn prefer(&self, transport: Transport) {
        let _ = self.inner.preferred.set(transport);
    }

    /// Adds a channel; the first one sets the session. Returns `false` if the session is closing.
    pub(crate) fn joined(&self, channel: Arc<ChannelHandle>, session: &Arc<Session>) -> bool {
        let _ = self.inner.session.set(Arc::clone(session));
        let mut channels = lock(&self.inner.channels);
        if channels.is_closing || channels.ended.is_some() {
            return false;
        }
        channels.list.push(channel);
        true
    }

    /// Removes a channel. Returns whether a new channel in its place is useful.
    pub(crate) fn left(&self, key: ChannelKey, reason: &str) -> bool {
        let mut channels = lock(&self.inner.channels);
        let before = channels.list.len();
        channels.list.retain(|channel| channel.key != key);
        let was_there = channels.list.len() < before;
        if was_there && channels.list.is_empty() {
            channels.ended.get_or_insert_with(|| reason.into());
        }
        was_there && !channels.is_closing && !channels.list.is_empty()
    }

    /// Whether the session has a channel and can use another one.
    pub(crate) fn wants_another(&self) -> bool {
        let channels = lock(&self.inner.channels);
        !channels.is_closing && !channels.list.is_empty()
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

    /// Starts a request.
    pub(crate) fn start(self: &Arc<Self>, request: Request, memory: Memory) -> Pending {
        let requester = Arc::clone(self) as Arc<dyn Requester>;
        let (call, pending) = call(&requester, request, memory);
        match self.inner.check() {
            Ok(()) if self.is_closing() => call.fail(Cause::Lost(CLOSED.into())),
            Ok(()) => self.submit(call),
            Err(cause) => call.fail(cause),
        }
        pending
    }

    fn submit(&self, mut call: Box<Call>) {
        loop {
            let channel = match self.choose(call.cost) {
                Ok(channel) => channel,
                Err(cause) => return call.fail(cause),
            };
            match channel.mailbox.send(ChannelMessage::Call(call)) {
                Ok(()) => return,
                Err(ChannelMessage::Call(back)) => {
                    self.left(channel.key, "the client was closed");
                    call = back;
                }
                Err(_) => unreachable!("a mailbox gives back the message that it refuses"),
            }
        }
    }

    fn choose(&self, cost: u64) -> Result<Arc<ChannelHandle>, Cause> {
        let channels = lock(&self.inner.channels);
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
    }
}

impl Requester for Dispatch {
    fn is_here(&self) -> bool {
        self.inner.is_here()
    }

    fn request(self: Arc<Self>, request: Request, memory: Memory) -> Pending {
        Self::start(&self, request, memory)
    }

    fn cancel(&self, id: RequestId) {
        for channel in self.channels() {
            // A thread that has ended has nothing to cancel.
            let _ = channel.mailbox.send(ChannelMessage::Cancel(id));
        }
    }

    fn lost(&self, mut call: Box<Call>, fate: Fate, reason: &Arc<str>) {
        let request = call.request.as_mut().expect("a lost call has its request");
        let session = self.session();
        if session.is_some_and(|session| replay::resend(request, fate, session)) {
            self.submit(call);
        } else {
            call.fail(Cause::Lost(Arc::clone(reason)));
        }
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
