//! The connections without a login: their limits, and the choice of the connection that ends when
//! places or memory are short.
//!
//! A newcomer takes the place of a connection of the most crowded prefix. So a client that opens
//! many connections loses its own first, and a client that has only one keeps it. Prefixes with an
//! earlier login have reserved places.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::client_address::{ClientAddress, ClientPrefix};

/// One of this many places is reserved for prefixes with an earlier login.
const RESERVED_PART: usize = 16;
/// Random early drop starts when fewer than one of this many places are free.
const EARLY_PART: usize = 4;
/// A connection that has sent no frame for this time after its start counts as silent. Clients send
/// their first frame at once.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// Limits for connections without a login.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfOpenLimits {
    /// Most connections.
    pub(crate) total: usize,
    /// Most connections of one prefix.
    pub(crate) per_prefix: usize,
    /// Most bytes of memory of all connections.
    pub(crate) memory: usize,
}

/// Wakes the task of a connection that must end because another one needs its place.
#[derive(Debug, Default)]
pub(crate) struct Revocation {
    state: Mutex<(bool, Option<Waker>)>,
}

impl Revocation {
    fn revoke(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Waits until the connection must end. Only one task may wait.
    pub(crate) async fn revoked(&self) {
        poll_fn(|context| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// The connections without a login.
#[derive(Debug)]
pub(crate) struct HalfOpenTable {
    limits: HalfOpenLimits,
    /// Number of the last connection. Numbers increase with time.
    last: u64,
    count: usize,
    /// Number of the connections of prefixes with an earlier login.
    known_count: usize,
    /// Bytes of memory of all connections.
    memory: usize,
    /// Number of connections that ended for another one.
    revoked: u64,
    prefixes: BTreeMap<ClientPrefix, Prefix>,
    /// The prefixes without an earlier login. The most crowded is last.
    unknown: BTreeSet<Crowd>,
    /// The prefixes with an earlier login. The most crowded is last.
    known: BTreeSet<Crowd>,
    random: Random,
}

/// Sort key of a prefix: the number of its connections, then the age of its oldest connection.
type Crowd = (usize, Reverse<u64>, ClientPrefix);

/// The connections of one prefix.
#[derive(Debug, Default)]
struct Prefix {
    is_known: bool,
    memory: usize,
    /// By number, so by age.
    entries: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    client: ClientAddress,
    since: Instant,
    has_sent_frame: bool,
    memory: usize,
    revocation: Arc<Revocation>,
}

impl Prefix {
    fn crowd(&self, prefix: ClientPrefix) -> Crowd {
        let oldest = self.entries.keys().next().copied().unwrap_or(u64::MAX);
        (self.entries.len(), Reverse(oldest), prefix)
    }

    /// The connection that ends first: the oldest silent one, else the oldest.
    fn first_victim(&self, is_meant: impl Fn(&Entry) -> bool) -> Option<u64> {
        let meant = self.entries.iter().filter(|(_, entry)| is_meant(entry));
        let first = meant.min_by_key(|(number, entry)| (entry.has_sent_frame, **number));
        first.map(|(number, _)| *number)
    }
}

impl HalfOpenTable {
    /// An empty table. `seed` is random.
    pub(crate) fn new(limits: HalfOpenLimits, seed: u64) -> Self {
        Self {
            limits,
            last: 0,
            count: 0,
            known_count: 0,
            memory: 0,
            revoked: 0,
            prefixes: BTreeMap::new(),
            unknown: BTreeSet::new(),
            known: BTreeSet::new(),
            random: Random(seed),
        }
    }

    /// Changes the limits. Present connections stay.
    pub(crate) fn set_limits(&mut self, limits: HalfOpenLimits) {
        self.limits = limits;
    }

    /// Number of connections that ended for another one.
    pub(crate) fn revoked(&self) -> u64 {
        self.revoked
    }

    /// Returns true if the connections reach a quarter of a limit, that of memory included.
    pub(crate) fn is_crowded(&self, prefix: ClientPrefix) -> bool {
        let here = self.prefixes.get(&prefix).map_or(0, |p| p.entries.len());
        self.count >= self.limits.total / 4
            || here >= self.limits.per_prefix / 4
            || self.memory > self.limits.memory / 4
    }

    /// Returns true if the connections use half of the memory limit.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.memory >= self.limits.memory / 2
    }

    /// Adds a connection, and returns its number. `is_known` means that its prefix has an earlier
    /// login. Other connections may end for it. The error is the key of the reached limit.
    pub(crate) fn insert(
        &mut self,
        client: ClientAddress,
        is_known: bool,
        now: Instant,
    ) -> Result<(u64, Arc<Revocation>), &'static str> {
        let prefix = client.prefix();
        self.make_place_in_prefix(client, prefix)?;
        let reserved = self.limits.total / RESERVED_PART;
        self.drop_early(self.limits.total - reserved, now);
        while self.is_full(is_known, reserved) {
            let victim = self.most_crowded(is_known).ok_or("limits.half_open")?;
            self.revoke_first(victim, |_| true);
        }
        self.last += 1;
        let (number, revocation) = (self.last, Arc::<Revocation>::default());
        let entry = Entry {
            client,
            since: now,
            has_sent_frame: false,
            memory: 0,
            revocation: Arc::clone(&revocation),
        };
        self.change(prefix, |here| {
            here.is_known |= is_known;
            here.entries.insert(number, entry);
        });
        self.count += 1;
        Ok((number, revocation))
    }

    /// Returns true if a connection needs the place of another one. Only prefixes with an earlier
    /// login use the reserved places.
    fn is_full(&self, is_known: bool, reserved: usize) -> bool {
        let unknown = self.count - self.known_count;
        self.count >= self.limits.total || !is_known && unknown >= self.limits.total - reserved
    }

    /// Removes a connection that has ended or logged in. Connections that ended for another one are
    /// already removed.
    pub(crate) fn remove(&mut self, prefix: ClientPrefix, number: u64) -> bool {
        let mut removed = None;
        self.change(prefix, |here| {
            removed = here.entries.remove(&number);
            here.memory -= removed.as_ref().map_or(0, |entry| entry.memory);
        });
        let Some(entry) = removed else { return false };
        self.count -= 1;
        self.memory -= entry.memory;
        true
    }

    /// Notes that a prefix has a login now.
    pub(crate) fn set_known(&mut self, prefix: ClientPrefix) {
        self.change(prefix, |here| here.is_known = true);
    }

    /// Notes that a connection has sent a frame.
    pub(crate) fn note_frame(&mut self, prefix: ClientPrefix, number: u64) {
        let here = self.prefixes.get_mut(&prefix);
        if let Some(entry) = here.and_then(|here| here.entries.get_mut(&number)) {
            entry.has_sent_frame = true;
        }
    }

    /// Sets the memory of a connection in bytes. If the limit of all connections is reached, other
    /// connections end for a new one, or for one of a prefix that uses less than theirs. Returns
    /// false if none can end: the caller ends this connection.
    pub(crate) fn set_memory(&mut self, prefix: ClientPrefix, number: u64, bytes: usize) -> bool {
        let Some(before) = self.memory_of(prefix, number) else {
            return false;
        };
        if bytes > self.limits.memory {
            return false;
        }
        while self.memory - before + bytes > self.limits.memory {
            let own = self.prefixes[&prefix].memory - before + bytes;
            match self.largest() {
                Some((largest, victim, used))
                    if (largest, victim) != (prefix, number) && (before == 0 || used >= own) =>
                {
                    self.revoke(largest, victim);
                }
                _ => return false,
            }
        }
        self.memory = self.memory - before + bytes;
        self.change(prefix, |here| {
            here.memory = here.memory - before + bytes;
            let entry = here.entries.get_mut(&number).expect("found above");
            entry.memory = bytes;
        });
        true
    }

    fn memory_of(&self, prefix: ClientPrefix, number: u64) -> Option<usize> {
        let entry = self.prefixes.get(&prefix)?.entries.get(&number)?;
        Some(entry.memory)
    }

    /// The connection with the most memory, of the prefix with the most memory, and the bytes of
    /// that prefix.
    fn largest(&self) -> Option<(ClientPrefix, u64, usize)> {
        let (prefix, here) = self.prefixes.iter().max_by_key(|(_, here)| here.memory)?;
        let largest = |(number, entry): &(&u64, &Entry)| (entry.memory, Reverse(**number));
        let (number, _) = here.entries.iter().max_by_key(largest)?;
        Some((*prefix, *number, here.memory))
    }

    /// Makes a place among the connections of one prefix. A machine of an IPv6 network takes the
    /// place of another one that has at least two connections more.
    fn make_place_in_prefix(
        &mut self,
        client: ClientAddress,
        prefix: ClientPrefix,
    ) -> Result<(), &'static str> {
        let Some(here) = self.prefixes.get(&prefix) else {
            return (self.limits.per_prefix > 0)
                .then_some(())
                .ok_or("limits.half_open_per_address");
        };
        if here.entries.len() < self.limits.per_prefix {
            return Ok(());
        }
        let mut machines: BTreeMap<ClientAddress, usize> = BTreeMap::new();
        for entry in here.entries.values() {
            *machines.entry(entry.client).or_default() += 1;
        }
        let own = machines.get(&client).copied().unwrap_or(0);
        match machines.into_iter().max_by_key(|(_, count)| *count) {
            Some((machine, most)) if most > own + 1 => {
                self.revoke_first(prefix, |entry| entry.client == machine);
                Ok(())
            }
            _ => Err("limits.half_open_per_address"),
        }
    }

    /// Random early drop: when few places are free, a silent connection of the most crowded prefix
    /// ends, with a probability that grows from 0 to 1 as the places fill up.
    fn drop_early(&mut self, limit: usize, now: Instant) {
        let free = limit / EARLY_PART;
        let over = self.count.saturating_sub(limit - free);
        if over == 0 || self.random.below(free) >= over {
            return;
        }
        if let Some((_, _, prefix)) = self.unknown.last().copied() {
            self.revoke_first(prefix, |entry| {
                let age = now.saturating_duration_since(entry.since);
                !entry.has_sent_frame && age >= SILENT_AFTER
            });
        }
    }

    /// The prefix that gives a place to a newcomer. Prefixes with an earlier login give theirs
    /// last, and only to each other.
    fn most_crowded(&self, is_for_known: bool) -> Option<ClientPrefix> {
        let known = self.known.last().filter(|_| is_for_known);
        let (_, _, prefix) = self.unknown.last().or(known)?;
        Some(*prefix)
    }

    /// Ends the first connection of a prefix that `is_meant`, if there is one.
    fn revoke_first(&mut self, prefix: ClientPrefix, is_meant: impl Fn(&Entry) -> bool) {
        let here = self.prefixes.get(&prefix);
        if let Some(number) = here.and_then(|here| here.first_victim(is_meant)) {
            self.revoke(prefix, number);
        }
    }

    fn revoke(&mut self, prefix: ClientPrefix, number: u64) {
        let here = self.prefixes.get(&prefix);
        let entry = here.and_then(|here| here.entries.get(&number));
        let revocation = entry.map(|entry| Arc::clone(&entry.revocation));
        if self.remove(prefix, number) {
            self.revoked += 1;
            revocation.expect("removed now").revoke();
        }
    }

    /// Changes the connections of a prefix, and keeps the order of the prefixes.
    fn change(&mut self, prefix: ClientPrefix, change: impl FnOnce(&mut Prefix)) {
        let mut here = self.prefixes.remove(&prefix).unwrap_or_default();
        let crowd = here.crowd(prefix);
        self.crowds(here.is_known).remove(&crowd);
        if here.is_known {
            self.known_count -= here.entries.len();
        }
        change(&mut here);
        if here.is_known {
            self.known_count += here.entries.len();
        }
        if !here.entries.is_empty() {
            let crowd = here.crowd(prefix);
            self.crowds(here.is_known).insert(crowd);
            self.prefixes.insert(prefix, here);
        }
    }

    fn crowds(&mut self, is_known: bool) -> &mut BTreeSet<Crowd> {
        match is_known {
            true => &mut self.known,
            false => &mut self.unknown,
        }
    }
}

/// SplitMix64, for choices that an attacker must not predict exactly but that keep no secret.
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// A number below `limit`; 0 if that is 0.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let product = u128::from(mixed) * limit as u128;
        usize::try_from(product >> 64).expect("less than the limit")
    }
}

#[cfg(test)]
mod tests;
