//! Shares of the pool: which holder may take a buffer, and in which order holders wait for one.
//!
//! A holder is a connection, its group is a user. Both limits depend on the free memory, so that a
//! holder alone may use most of the pool, and several holders share it:
//!
//! - a holder may have a quarter of the free bytes: a fifth of the pool if it is alone, and never
//!   the last free bytes, so that a holder with small requests finds memory;
//! - a group may have seven times the free bytes: seven eighths of the pool if it is alone. For the
//!   first buffer of each holder it may have more, so that a new holder finds memory although
//!   others of its group took all that they may take. The rest is for other groups.
//!
//! Buffers go to waiting holders in this order: first the group with the fewest bytes, in it the
//! holder that would have the fewest bytes then. Each second of waiting counts as
//! [`BYTES_PER_SECOND`] bytes less, so that a large request does not wait forever for the sake of
//! small ones.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;
use std::time::Instant;

use slab::Slab;

/// A holder may have the free bytes of the pool divided by this.
const HOLDER_DIVISOR: usize = 4;
/// A group may have the free bytes of the pool times this.
const GROUP_FACTOR: usize = 7;
/// The same for the first buffer of a holder: one part in 32 of the pool is for other groups.
const GROUP_FACTOR_FIRST: usize = 31;
/// The first buffer of a holder needs no share if it is larger than the pool divided by this: a
/// small pool would never have it.
const SMALL_POOL: usize = 8;
/// Bytes that a waiting request gains over other requests each second. A request for the largest
/// buffer is before all new ones after 16 s, well within the time limit of known clients.
const BYTES_PER_SECOND: usize = 512 << 10;

/// Memory of the pool at the time of a decision, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Limit of the pool.
    pub(crate) limit: usize,
    /// Bytes that no holder has.
    pub(crate) free: usize,
}

/// Decision about a request for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// The holder may take the buffer.
    Take,
    /// The pool must first get buffers back. Requests behind this one wait, too.
    NoSpace,
    /// The holder has too much itself. Requests behind this one may go first.
    OverShare,
    /// The group of the holder has too much. Requests of other groups may go first.
    GroupOverShare,
}

/// Information about a user of a buffer pool that has no buffer and waits for one. A user, such as
/// a connection, takes buffers through its [`Holder`](crate::Holder). [`Pool::starved`] returns the
/// information, and its caller decides which buffers to take back.
///
/// [`Pool::starved`]: crate::Pool::starved
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starved {
    /// Number of the group that the waiting holder belongs to.
    pub group: u64,
    /// Whether the group of the holder has more than half of the pool, so that other groups do not
    /// cause the wait.
    pub is_group_over_share: bool,
}

/// The holders of a pool.
#[derive(Default)]
pub(crate) struct Shares {
    holders: Slab<HolderState>,
    /// Bytes by group.
    groups: BTreeMap<u64, usize>,
    /// Keys of holders that wait.
    waiting: Vec<usize>,
    /// Number of the last wait.
    last: u64,
}

#[derive(Default)]
struct HolderState {
    group: u64,
    bytes: usize,
    /// Waiting requests, the oldest first.
    waiting: VecDeque<Waiting>,
    /// The owner has dropped the holder. Only its buffers are left.
    is_dropped: bool,
}

struct Waiting {
    number: u64,
    bytes: usize,
    since: Instant,
    waker: Waker,
}

impl Shares {
    /// Adds a holder to group 0 and returns its key.
    pub(crate) fn add(&mut self) -> usize {
        self.holders.insert(HolderState::default())
    }

    /// Removes a holder. Its buffers still count until the pool has them back.
    pub(crate) fn remove(&mut self, holder: usize) {
        self.holders[holder].is_dropped = true;
        self.holders[holder].waiting.clear();
        self.waiting.retain(|key| *key != holder);
        self.forget(holder);
    }

    /// Moves a holder and its buffers to another group.
    pub(crate) fn set_group(&mut self, holder: usize, group: u64) {
        let state = &mut self.holders[holder];
        let (before, bytes) = (std::mem::replace(&mut state.group, group), state.bytes);
        if bytes > 0 {
            self.subtract(before, bytes);
            *self.groups.entry(group).or_default() += bytes;
        }
    }

    /// Bytes of the buffers of a holder.
    pub(crate) fn bytes_of(&self, holder: usize) -> usize {
        self.holders[holder].bytes
    }

    /// Counts a taken buffer.
    pub(crate) fn taken(&mut self, holder: usize, bytes: usize) {
        let state = &mut self.holders[holder];
        state.bytes += bytes;
        *self.groups.entry(state.group).or_default() += bytes;
    }

    /// Counts a returned buffer.
    pub(crate) fn returned(&mut self, holder: usize, bytes: usize) {
        let state = &mut self.holders[holder];
        state.bytes -= bytes;
        let group = state.group;
        self.subtract(group, bytes);
        self.forget(holder);
    }

    fn subtract(&mut self, group: u64, bytes: usize) {
        if let Some(sum) = self.groups.get_mut(&group) {
            *sum -= bytes;
            if *sum == 0 {
                self.groups.remove(&group);
            }
        }
    }

    fn forget(&mut self, holder: usize) {
        if self.holders[holder].is_dropped && self.holders[holder].bytes == 0 {
            self.holders.remove(holder);
        }
    }

    /// Returns true if a holder may take a buffer at once: its shares allow that, and no holder
    /// waits. If holders wait, the request has to wait for its turn, too.
    pub(crate) fn may_take(&self, holder: usize, bytes: usize, memory: Memory) -> bool {
        self.waiting.is_empty() && self.decide(holder, bytes, memory) == Decision::Take
    }

    /// Adds a request to the waiting ones and returns its number.
    pub(crate) fn wait(
        &mut self,
        holder: usize,
        bytes: usize,
        since: Instant,
        waker: &Waker,
    ) -> u64 {
        self.last += 1;
        let state = &mut self.holders[holder];
        if state.waiting.is_empty() {
            self.waiting.push(holder);
        }
        state.waiting.push_back(Waiting {
            number: self.last,
            bytes,
            since,
            waker: waker.clone(),
        });
        self.last
    }

    /// Updates the waker of a waiting request.
    pub(crate) fn update(&mut self, holder: usize, number: u64, waker: &Waker) {
        let mut waiting = self.holders[holder].waiting.iter_mut();
        if let Some(waiting) = waiting.find(|waiting| waiting.number == number) {
            waiting.waker.clone_from(waker);
        }
    }

    /// Removes a waiting request.
    pub(crate) fn withdraw(&mut self, holder: usize, number: u64) {
        let Some(state) = self.holders.get_mut(holder) else {
            return;
        };
        state.waiting.retain(|waiting| waiting.number != number);
        if state.waiting.is_empty() {
            self.waiting.retain(|key| *key != holder);
        }
    }

    /// Returns true if it is the turn of this request.
    pub(crate) fn is_next(&self, holder: usize, number: u64, memory: Memory) -> bool {
        self.next(memory) == Some((holder, number))
    }

    /// The waker of the request that is next.
    pub(crate) fn next_waker(&self, memory: Memory) -> Option<Waker> {
        let (holder, _) = self.next(memory)?;
        let first = self.holders[holder].waiting.front();
        first.map(|waiting| waiting.waker.clone())
    }

    /// The first request in the order that its shares allow. `None` if a request that has no space
    /// is before it.
    fn next(&self, memory: Memory) -> Option<(usize, u64)> {
        if self.waiting.is_empty() {
            return None;
        }
        let now = Instant::now();
        let mut order: Vec<_> = (self.waiting.iter())
            .filter_map(|key| Some((self.rank(*key, now)?, *key)))
            .collect();
        order.sort_unstable();
        for ((_, _, number), holder) in order {
            let first = self.holders[holder].waiting.front()?;
            match self.decide(holder, first.bytes, memory) {
                Decision::Take => return Some((holder, number)),
                Decision::NoSpace => return None,
                Decision::OverShare | Decision::GroupOverShare => {}
            }
        }
        None
    }

    /// Rank of the oldest request of a holder; the lowest is first.
    fn rank(&self, holder: usize, now: Instant) -> Option<(usize, usize, u64)> {
        let state = &self.holders[holder];
        let first = state.waiting.front()?;
        let waited = now.saturating_duration_since(first.since).as_millis();
        let waited = usize::try_from(waited).unwrap_or(usize::MAX);
        let gained = waited.saturating_mul(BYTES_PER_SECOND) / 1000;
        let bytes = (state.bytes + first.bytes).saturating_sub(gained);
        Some((self.group_bytes(state.group), bytes, first.number))
    }

    fn group_bytes(&self, group: u64) -> usize {
        self.groups.get(&group).copied().unwrap_or(0)
    }

    fn decide(&self, holder: usize, bytes: usize, memory: Memory) -> Decision {
        let Memory { limit, free } = memory;
        let state = &self.holders[holder];
        let is_pool_small = bytes > limit / SMALL_POOL;
        let group_bytes = self.group_bytes(state.group);
        if bytes > free {
            return match state.bytes {
                0 => Decision::NoSpace,
                _ => Decision::OverShare,
            };
        }
        if state.bytes == 0 && is_pool_small {
            return Decision::Take;
        }
        let factor = match state.bytes {
            0 => GROUP_FACTOR_FIRST,
            _ => GROUP_FACTOR,
        };
        if group_bytes + bytes > factor * (free - bytes) && group_bytes > 0 {
            return Decision::GroupOverShare;
        }
        match state.bytes + bytes > free / HOLDER_DIVISOR {
            false => Decision::Take,
            true if state.bytes == 0 => Decision::NoSpace,
            true => Decision::OverShare,
        }
    }

    /// A holder without a buffer that waits for one, the first in the order.
    pub(crate) fn starved(&self, memory: Memory) -> Option<Starved> {
        let now = Instant::now();
        let starved = self
            .waiting
            .iter()
            .filter(|key| self.holders[**key].bytes == 0);
        let first = starved.min_by_key(|key| self.rank(**key, now))?;
        let group = self.holders[*first].group;
        Some(Starved {
            group,
            is_group_over_share: self.group_bytes(group) > memory.limit / 2,
        })
    }
}

#[cfg(test)]
mod tests;
