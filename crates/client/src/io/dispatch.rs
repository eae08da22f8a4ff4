//! Which channel a request takes.
//!
//! The one with the least bytes under way: bulk data spreads over all channels, and a small
//! request finds one that is free. Where a transport is preferred, channels of others are spares.
//! When a channel is lost, what it had not finished goes to
//! another one as far as the protocol allows; when the last is lost, everything fails.

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

/// Why nothing is done for a session that its owner has closed.
const CLOSED: &str = "the session was closed";
/// Why it is lost in a child of the process that connected.
const FORKED: &str = "the process forked";

/// Requests in flight of an operation, unless somebody says how many.
pub(crate) const DEPTH: usize = 16;
/// The same over QUIC: with requests of a MiB as much as its windows let through.
const DEPTH_QUIC: usize = 32;

/// A channel of a session, by its number in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ChannelKey(pub(crate) u64);

impl ChannelKey {
    /// One that no other channel has.
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

/// Connections of TCP that are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    /// How many there are; at least one.
    pub(crate) count: usize,
    /// Credits of the one that has the fewest.
    pub(crate) credits: u32,
    /// Whether all of them are within this machine.
    pub(crate) are_local: bool,
}

impl Links {
    /// What suits both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count.max(other.count),
            credits: self.credits.min(other.credits),
            are_local: self.are_local && other.are_local,
        }
    }
}

/// What other threads know of a channel.
pub(crate) struct ChannelHandle {
    pub(crate) key: ChannelKey,
    mailbox: Box<dyn ChannelMailbox>,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) transport: Transport,
    /// Bytes under way, with what a request costs anyway.
    load: AtomicU64,
    /// Credits that the server has granted and that were not spent for good.
    pub(crate) credits: AtomicU32,
    /// Bytes sent.
    pub(crate) sent: AtomicU64,
    /// Bytes received.
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

    /// What it is to a transfer, if it is of TCP.
    fn link(&self) -> Option<Links> {
        (self.transport == Transport::Tcp).then(|| Links {
            count: 1,
            credits: self.credits.load(Ordering::Relaxed),
            are_local: self.is_local(),
        })
    }

    /// A request is done.
    pub(crate) fn relieve(&self, cost: u64) {
        self.load.fetch_sub(cost, Ordering::Relaxed);
    }
}

/// Whether two ends of a connection are on one machine: it talks to an address of its own, or to
/// another one of loopback.
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
    /// The transport whose channels are used as long as there is one.
    preferred: OnceLock<Transport>,
    channels: Mutex<Channels>,
}

#[derive(Default)]
struct Channels {
    list: Vec<Arc<ChannelHandle>>,
    /// Why there are none any more.
    ended: Option<Arc<str>>,
    /// Nothing new is to be opened.
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

    /// The session, once somebody is logged in.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.inner.session.get()
    }

    /// From now on channels of other transports are there for when the last of this one is lost.
    pub(crate) fn prefer(&self, transport: Transport) {
        let _ = self.inner.preferred.set(transport);
    }

    /// A channel is there. The first one brings the session. `false`: it is not wanted any more.
    pub(crate) fn joined(&self, channel: Arc<ChannelHandle>, session: &Arc<Session>) -> bool {
        let _ = self.inner.session.set(Arc::clone(session));
        let mut channels = lock(&self.inner.channels);
        if channels.is_closing || channels.ended.is_some() {
            return false;
        }
        channels.list.push(channel);
        true
    }

    /// A channel is gone. Tells whether it is worth another one.
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

    /// Whether the session lives, so that one more channel can be of use to it.
    pub(crate) fn wants_another(&self) -> bool {
        let channels = lock(&self.inner.channels);
        !channels.is_closing && !channels.list.is_empty()
    }

    /// Looks at the channels. A child has none, and touches no lock of its parent's.
    fn seen<T>(&self, of: impl FnOnce(&Channels) -> T) -> T {
        match self.is_here() {
            true => of(&lock(&self.inner.channels)),
            false => of(&Channels {
                ended: Some(FORKED.into()),
                ..Channels::default()
            }),
        }
    }

    /// The channels there are.
    pub(crate) fn channels(&self) -> Vec<Arc<ChannelHandle>> {
        self.seen(|channels| channels.list.clone())
    }

    /// Whether there was a channel, and is none any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.seen(|channels| channels.ended.is_some())
    }

    /// Whether the session was closed: servers hang up on what comes after LOGOFF.
    fn is_closing(&self) -> bool {
        self.seen(|channels| channels.is_closing)
    }

    /// Sends a request on its way.
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

    /// Whether a channel waits for those of a preferred transport to be lost.
    fn is_spare(&self, channel: &ChannelHandle) -> bool {
        let preferred = self.inner.preferred.get();
        preferred.is_some_and(|transport| *transport != channel.transport)
    }

    /// The channels that are no spares.
    fn used<'a>(&self, channels: &'a Channels) -> impl Iterator<Item = &'a Arc<ChannelHandle>> {
        let channels = channels.list.iter();
        channels.filter(|channel| !self.is_spare(channel))
    }

    /// Requests in flight of an operation for which nobody says how many.
    pub(crate) fn depth(&self) -> usize {
        let is_quic = |channel: &Arc<ChannelHandle>| channel.transport == Transport::Quic;
        match self.seen(|channels| self.used(channels).any(is_quic)) {
            true => DEPTH_QUIC,
            false => DEPTH,
        }
    }

    /// The channels that are used, where all are of TCP.
    pub(crate) fn links(&self) -> Option<Links> {
        self.seen(|channels| {
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

    /// Bytes under way on the channels that are used.
    pub(crate) fn load(&self) -> u64 {
        let load = |channel: &Arc<ChannelHandle>| channel.load.load(Ordering::Relaxed);
        self.seen(|channels| self.used(channels).map(load).sum())
    }

    /// Whether an answer may be a frame of a MiB and more on the channels that are used.
    pub(crate) fn takes_long_frames(&self) -> bool {
        let is_one = |channel: &Arc<ChannelHandle>| {
            matches!(channel.transport, Transport::Tcp | Transport::Quic)
        };
        self.seen(|channels| self.used(channels).all(is_one))
    }

    /// Whether what is written is best given as parts of files: the channels that are used send
    /// those.
    pub(crate) fn sends_files(&self) -> bool {
        let is_one = |channel: &Arc<ChannelHandle>| channel.transport.sends_files();
        self.seen(|channels| self.used(channels).all(is_one))
    }

    /// Logs off; nobody waits for the answer. Nothing is sent behind that: servers hang up on it.
    pub(crate) fn log_off(self: &Arc<Self>) {
        if self.is_here() {
            drop(self.start(Request::new(None, vec![Step::Logoff]), Memory::None));
            lock(&self.inner.channels).is_closing = true;
        }
    }

    /// Ends all channels, once what is under way is done.
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
        let request = call.request.as_mut().expect("given back with the channel");
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
        // Nobody is told anything.
        dispatch.takes_long_frames();
        dispatch.sends_files();
        dispatch.close();
        dispatch.cancel(RequestId(1));
        dispatch.log_off();
        let request = Request::new(None, vec![Step::Echo]);
        drop(dispatch.start(request, Memory::None));
    }
}
