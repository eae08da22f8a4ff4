//! A limit for password guesses: the more logins fail, the later the server checks the next one.
//!
//! Failed logins count for each pair of an account and a client address, for each client address
//! with any account, and for each account. The last count delays only clients of prefixes without
//! an earlier login to the account: other machines cannot lock a user out. An IPv6 network counts
//! like an address once several of its addresses have failed.
//!
//! A login waits before the server checks its password. A wait after the check would not limit
//! guesses: an attacker could take an answer that does not arrive at once for a failure. Names
//! without an account count like other names, so that delays do not show which accounts exist.

mod counters;
mod key;
mod known;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::upcase::upcased;

use crate::client_address::ClientAddress;
use counters::{Counter, Counters};
use key::{Key, NameHash, Source};
use known::KnownPrefixes;

pub(crate) use counters::Lockout;

/// Longest time that a login waits for its check. The server refuses later logins without a check.
/// Clients wait longer than this for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Number of addresses of an IPv6 network that must fail before logins of the network are delayed.
const NETWORK_ADDRESSES: usize = 3;

/// Whether and when the server checks the password of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// After this time.
    After(Duration),
    /// Not at all: too many other logins wait.
    TooMany,
    /// Not at all: the client is locked out.
    LockedOut,
}

/// The failed logins of the server.
#[derive(Debug)]
pub(crate) struct LoginAttempts {
    hasher: RandomState,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lockout: Lockout,
    counters: Counters,
    /// The prefixes from which the users of accounts have logged in.
    known: KnownPrefixes,
}

/// The keys of one login.
struct Keys {
    /// The account from the address of the client.
    pair: Key,
    /// All counters that count the login, `pair` included.
    all: Vec<Key>,
    /// Whether users have logged in to the account from the prefix of the client.
    is_known: bool,
}

impl LoginAttempts {
    /// No failed logins.
    pub(crate) fn new(lockout: Lockout) -> Self {
        Self {
            hasher: RandomState::new(),
            state: Mutex::new(State {
                lockout,
                counters: Counters::default(),
                known: KnownPrefixes::default(),
            }),
        }
    }

    /// Changes the lockout. Clients that are locked out stay so.
    pub(crate) fn set_lockout(&self, lockout: Lockout) {
        self.lock().lockout = lockout;
    }

    /// Decides when the server checks the password of a login. `name` is the user name as the
    /// client sent it. The login counts as a failure until its result is known, so that logins at
    /// the same time do not help an attacker.
    pub(crate) fn admit(&self, name: &str, client: ClientAddress, now: Instant) -> Admission {
        let name = self.hash(name);
        let mut state = self.lock();
        let keys = state.keys(name, client);
        if keys.all.iter().any(|key| state.is_locked(*key, now)) {
            return Admission::LockedOut;
        }
        let (start, delays) = state.schedule(&keys, now);
        let wait = start.duration_since(now);
        if wait > LONGEST_WAIT {
            return Admission::TooMany;
        }
        for (key, delay) in keys.all.iter().zip(delays) {
            let change = |counter: &mut Counter| {
                counter.add_failure(now);
                if !delay.is_zero() {
                    counter.next = counter.next.max(start + delay);
                }
            };
            state.counters.change(*key, now, change);
        }
        Admission::After(wait)
    }

    /// Notes that the password of an admitted login is wrong, or that its name has no account.
    pub(crate) fn note_failure(&self, name: &str, client: ClientAddress, now: Instant) {
        let name = self.hash(name);
        let mut state = self.lock();
        let lockout = state.lockout;
        for key in state.keys(name, client).all {
            let is_network = matches!(key.source, Source::Network(_));
            // Users of a shared address do not lock each other out.
            let may_lock = key.name.is_some();
            let change = |counter: &mut Counter| {
                if is_network {
                    counter.note_address(client, NETWORK_ADDRESSES);
                }
                let is_counted = !is_network || counter.addresses.len() >= NETWORK_ADDRESSES;
                if may_lock && is_counted {
                    counter.count_for(lockout, now);
                }
            };
            state.counters.change(key, now, change);
        }
    }

    /// Notes that an admitted login was refused, but not because of its name or password.
    pub(crate) fn note_other(&self, name: &str, client: ClientAddress, now: Instant) {
        let name = self.hash(name);
        let mut state = self.lock();
        for key in state.keys(name, client).all {
            state
                .counters
                .change(key, now, |counter| counter.remove_failure(now));
        }
    }

    /// Notes that the client of an admitted login has proved the identity of a user.
    pub(crate) fn note_success(&self, name: &str, client: ClientAddress, now: Instant) {
        let name = self.hash(name);
        let mut state = self.lock();
        let keys = state.keys(name, client);
        for key in keys.all {
            state
                .counters
                .change(key, now, |counter| counter.remove_failure(now));
        }
        state.counters.remove(keys.pair);
        state.known.insert(name, client.prefix());
    }

    /// Hashes a name in upper case and without a domain, because the server ignores both.
    fn hash(&self, name: &str) -> NameHash {
        let name = name.rsplit_once('@').map_or(name, |(name, _)| name);
        NameHash(self.hasher.hash_one(upcased(name)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keys(&self, name: NameHash, client: ClientAddress) -> Keys {
        let prefix = client.prefix();
        let is_known = self.known.contains(name, prefix);
        let key = |name, source| Key { name, source };
        let address = Source::Address(client);
        let pair = key(Some(name), address);
        let mut all = vec![pair, key(None, address)];
        if prefix.is_network() {
            let network = Source::Network(prefix);
            all.extend([key(Some(name), network), key(None, network)]);
        }
        if !is_known {
            all.push(key(Some(name), Source::Any));
        }
        Keys {
            pair,
            all,
            is_known,
        }
    }

    /// The time at which the password of a login is checked, and the delay after it of each key.
    fn schedule(&self, keys: &Keys, now: Instant) -> (Instant, Vec<Duration>) {
        let delays = keys.all.iter().map(|key| self.delay(*key, keys, now));
        let mut delays: Vec<Duration> = delays.collect();
        let mut start = now;
        for (key, delay) in keys.all.iter().zip(&delays) {
            match key.source {
                // Clients do not wait for each other: many machines that guess cannot lock out
                // a user with a new address.
                Source::Any => start = start.max(now + *delay),
                _ if delay.is_zero() => {}
                _ => start = start.max(self.next(*key).unwrap_or(now)),
            }
        }
        // Such a client has one login at a time.
        let unknown = keys.all.iter().position(|key| key.source == Source::Any);
        if let Some(delay) = unknown
            .map(|index| delays[index])
            .filter(|delay| !delay.is_zero())
        {
            start = start.max(self.next(keys.pair).unwrap_or(now));
            delays[0] = delays[0].max(delay);
        }
        (start, delays)
    }

    /// The delay of a counter; zero while it does not delay this login.
    fn delay(&self, key: Key, keys: &Keys, now: Instant) -> Duration {
        let Some(counter) = self.counters.get(key) else {
            return Duration::ZERO;
        };
        let is_network = matches!(key.source, Source::Network(_));
        if is_network && counter.addresses.len() < NETWORK_ADDRESSES {
            return Duration::ZERO;
        }
        // A user without failures does not wait for other users of the address.
        let pair = self.counters.get(keys.pair);
        let has_failed = pair.is_some_and(|pair| pair.failures(now) > 0);
        if key.name.is_none() && keys.is_known && !has_failed {
            return Duration::ZERO;
        }
        key.delay(counter.failures(now))
    }

    fn next(&self, key: Key) -> Option<Instant> {
        Some(self.counters.get(key)?.next)
    }

    fn is_locked(&self, key: Key, now: Instant) -> bool {
        let counter = self.counters.get(key);
        counter.is_some_and(|counter| counter.is_locked(now))
    }
}

#[cfg(test)]
mod tests;
