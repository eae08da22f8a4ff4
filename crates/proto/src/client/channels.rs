//! The channels of a session as those see them who share it: which one takes the next request,
//! and what becomes of the requests of one that is lost.
//!
//! Channels live on different threads. What they share is a number for each: bytes on their way.
//! Nobody waits for anybody.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::effect::Fate;
use super::encode;
use super::replay::{Plan, plan};
use super::request::Request;
use super::session::Session;

/// Channels of one session at most. Windows takes 32; more than cores and interfaces help nobody.
pub const CHANNELS_MAX: usize = 32;

/// How often a request is sent again before it is given up on: channels that it breaks, one after
/// the other, are not worth more of them.
pub const RESENDS_MAX: u8 = 4;

/// What a request costs besides its data: so that small ones are spread as well.
const REQUEST_COST: u64 = 512;

/// A channel, by its place among those of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u8);

/// What becomes of a request whose channel was lost.
#[derive(Debug)]
pub enum Verdict {
    /// Send it on this channel.
    Send(ChannelId, Request),
    /// Nobody can say whether it was done, or it was sent again too often.
    GiveUp(Request),
    /// No channel is left.
    Over(Request),
}

/// The channels of a session.
pub struct Dispatch {
    session: Arc<Session>,
    slots: [Slot; CHANNELS_MAX],
}

#[derive(Default)]
struct Slot {
    is_taken: AtomicBool,
    /// Whether requests may go there.
    is_open: AtomicBool,
    /// Bytes on their way, and what their requests cost.
    load: AtomicU64,
}

impl Dispatch {
    /// Those of a session, none so far.
    pub fn new(session: Arc<Session>) -> Self {
        Self {
            session,
            slots: core::array::from_fn(|_| Slot::default()),
        }
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Adds a channel that is [`Effect::Ready`](super::Effect::Ready). `None`: there are enough.
    pub fn join(&self) -> Option<ChannelId> {
        let index = (self.slots.iter()).position(|slot| {
            let (was, is) = (false, true);
            let taken = &slot.is_taken;
            (taken.compare_exchange(was, is, Ordering::AcqRel, Ordering::Acquire)).is_ok()
        })?;
        let slot = &self.slots[index];
        slot.load.store(0, Ordering::Relaxed);
        slot.is_open.store(true, Ordering::Release);
        Some(ChannelId(index as u8))
    }

    /// Channels that requests may take.
    pub fn len(&self) -> usize {
        let slots = self.slots.iter();
        slots
            .filter(|slot| slot.is_open.load(Ordering::Acquire))
            .count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The channel that a request is to take: the one with the fewest bytes on their way. It
    /// counts there until [`Dispatch::done`].
    pub fn pick(&self, request: &Request) -> Option<ChannelId> {
        let open = (self.slots.iter().enumerate())
            .filter(|(_, slot)| slot.is_open.load(Ordering::Acquire));
        let (index, slot) = open.min_by_key(|(_, slot)| slot.load.load(Ordering::Relaxed))?;
        slot.load.fetch_add(cost(request), Ordering::Relaxed);
        Some(ChannelId(index as u8))
    }

    /// Takes note that a request, of which [`cost`] was taken when it was picked for a channel,
    /// is answered.
    pub fn done(&self, channel: ChannelId, cost: u64) {
        let load = &self.slots[usize::from(channel.0)].load;
        // A channel that was lost starts at nothing again, whoever still counts.
        let sub = |load: u64| Some(load.saturating_sub(cost));
        let _ = load.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sub);
    }

    /// Closes a channel that ended; to be called before [`Dispatch::lost`] for its requests. Its
    /// place may be taken again once [`Dispatch::leave`] was called.
    pub fn close(&self, channel: ChannelId) {
        let slot = &self.slots[usize::from(channel.0)];
        if slot.is_open.swap(false, Ordering::AcqRel) {
            self.session.channel_lost();
        }
    }

    /// Gives up the place of a channel that is closed and whose requests are all dealt with.
    pub fn leave(&self, channel: ChannelId) {
        let slot = &self.slots[usize::from(channel.0)];
        assert!(!slot.is_open.load(Ordering::Acquire), "it was closed first");
        slot.is_taken.store(false, Ordering::Release);
    }

    /// What becomes of a request that [`Effect::Lost`](super::Effect::Lost) gave back.
    pub fn lost(&self, mut request: Request, fate: Fate) -> Verdict {
        let plan = plan(&request, fate, self.session.negotiated.dialect);
        if plan == Plan::GiveUp || request.resent >= RESENDS_MAX {
            return Verdict::GiveUp(request);
        }
        let Some(channel) = self.pick(&request) else {
            return Verdict::Over(request);
        };
        request.resent += 1;
        // Once a replay, always one: the first may still come.
        request.is_replay |= plan == Plan::Replay;
        Verdict::Send(channel, request)
    }
}

/// What a request adds to the load of its channel.
pub fn cost(request: &Request) -> u64 {
    let steps = request.steps.iter();
    let bytes = steps.map(|step| u64::from(encode::sent(step)) + u64::from(encode::asked(step)));
    REQUEST_COST + bytes.sum::<u64>()
}

impl core::fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Dispatch({:?}, {} channels)", self.session, self.len())
    }
}
