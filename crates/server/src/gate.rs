//! Limits for the number of connections, with and without a login.

use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use proto::server::hosts::HostRules;
use ring::{Either, either};
use tracing::{debug, warn};

use crate::client_address::{ClientAddress, ClientPrefix};
use crate::codes::{EndedConnection, Reason as _};
use crate::half_open::{HalfOpenLimits, HalfOpenTable, Revocation};
use crate::recent_map::RecentMap;

/// Most prefixes with an earlier login that the gate remembers.
const KNOWN_PREFIXES: usize = 16_384;
/// Closed connections between two log lines about them.
const CLOSED_PER_LOG_LINE: u64 = 100;

/// The key of the rules about addresses, as the reason of a refusal.
pub(crate) const HOSTS: &str = "security.hosts_deny";

/// Limits for the number of connections.
#[derive(Clone, Debug)]
pub(crate) struct GateLimits {
    /// Most connections.
    pub(crate) connections: usize,
    /// Most connections of one prefix.
    pub(crate) connections_per_prefix: usize,
    /// Limits for connections without a login.
    pub(crate) half_open: HalfOpenLimits,
    /// The addresses of the clients that may connect.
    pub(crate) hosts: Arc<HostRules>,
}

/// Counts the connections of all workers.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    /// No connection enters: memory is short.
    refuses_all: AtomicBool,
}

#[derive(Debug)]
struct State {
    limits: GateLimits,
    connections: usize,
    by_prefix: HashMap<ClientPrefix, usize>,
    half_open: HalfOpenTable,
    /// The prefixes from which users have logged in.
    known: RecentMap<ClientPrefix, ()>,
}

/// The permit of an accepted connection. The connection counts until the permit is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    prefix: ClientPrefix,
    /// Number of the connection among those without a login.
    number: u64,
    revocation: Arc<Revocation>,
    is_half_open: bool,
    has_sent_frame: Cell<bool>,
    /// Bytes that the connection needs apart from its frames.
    base_bytes: Cell<usize>,
    /// Bytes of its incomplete frame.
    frame_bytes: Cell<usize>,
}

impl Gate {
    /// A gate without connections.
    pub(crate) fn new(limits: GateLimits) -> Arc<Self> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).expect("the kernel has random bytes");
        Arc::new(Self {
            refuses_all: AtomicBool::new(false),
            state: Mutex::new(State {
                half_open: HalfOpenTable::new(limits.half_open, u64::from_ne_bytes(seed)),
                limits,
                connections: 0,
                by_prefix: HashMap::new(),
                known: RecentMap::new(KNOWN_PREFIXES),
            }),
        })
    }

    /// Changes the limits. Present connections stay.
    pub(crate) fn set_limits(&self, limits: GateLimits) {
        let mut state = self.lock();
        state.half_open.set_limits(limits.half_open);
        state.limits = limits;
    }

    /// Returns true if the connections without a login reach a quarter of a limit. A QUIC client
    /// must then prove its address before it is accepted.
    pub(crate) fn is_crowded(&self, client: ClientAddress) -> bool {
        self.lock().half_open.is_crowded(client.prefix())
    }

    /// Returns true if the connections without a login use half of their memory.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.lock().half_open.is_memory_short()
    }

    /// Sets whether every new connection is refused, because the memory of the process is short.
    pub(crate) fn refuse_all(&self, refuses_all: bool) {
        self.refuses_all.store(refuses_all, Ordering::Relaxed);
    }

    /// Counts a connection that needs this memory before its login, in bytes. Another connection
    /// may end for it. The error is the key of the limit that is reached.
    pub(crate) fn enter(
        self: &Arc<Self>,
        client: ClientAddress,
        bytes: usize,
    ) -> Result<Permit, &'static str> {
        if self.refuses_all.load(Ordering::Relaxed) {
            return Err("limits.memory_max_mb");
        }
        let prefix = client.prefix();
        let mut state = self.lock();
        if !state.limits.hosts.admit(Some(client.ip())) {
            return Err(HOSTS);
        }
        let of_prefix = state.by_prefix.get(&prefix).copied().unwrap_or(0);
        if of_prefix >= state.limits.connections_per_prefix {
            return Err("limits.connections_per_address");
        }
        if state.connections >= state.limits.connections {
            return Err("limits.connections");
        }
        let is_known = state.known.get(&prefix).is_some();
        let before = state.half_open.revoked();
        let (number, revocation) = state.half_open.insert(client, is_known, Instant::now())?;
        state.connections += 1;
        state.by_prefix.insert(prefix, of_prefix + 1);
        let ended = before..state.half_open.revoked();
        drop(state);
        log_revoked(ended, prefix);
        let permit = Permit {
            gate: Arc::clone(self),
            prefix,
            number,
            revocation,
            is_half_open: true,
            has_sent_frame: Cell::new(false),
            base_bytes: Cell::new(0),
            frame_bytes: Cell::new(0),
        };
        match permit.set_base_bytes(bytes) {
            true => Ok(permit),
            false => Err("limits.half_open_memory_mb"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs that connections ended for another one. Only some have a log line.
fn log_revoked(ended: std::ops::Range<u64>, newcomer: ClientPrefix) {
    if let Some(ended) = ended
        .into_iter()
        .find(|ended| ended.is_multiple_of(CLOSED_PER_LOG_LINE))
    {
        let ended = ended + 1;
        let code = EndedConnection::Replaced.code();
        warn!(
            %newcomer,
            ended, code, "connections without a login closed: others need their places"
        );
    }
}

impl Permit {
    /// Waits for `future`. Returns `None` if another connection needs the place first; the log
    /// then has a line about `peer`.
    pub(crate) async fn unless_revoked<F: Future>(
        &self,
        peer: SocketAddr,
        future: F,
    ) -> Option<F::Output> {
        match either(pin!(future), pin!(self.revocation.revoked())).await {
            Either::First(output) => Some(output),
            Either::Second(()) => {
                let code = EndedConnection::Replaced.code();
                debug!(%peer, code, "disconnecting: another connection needs the place");
                None
            }
        }
    }

    /// Counts the connection as logged in. `is_named` means that the client has proved the
    /// identity of a user.
    pub(crate) fn log_in(&mut self, is_named: bool) {
        let mut state = self.gate.lock();
        if std::mem::take(&mut self.is_half_open) {
            state.half_open.remove(self.prefix, self.number);
        }
        if is_named {
            state.known.use_or_insert_with(&self.prefix, || ());
            state.half_open.set_known(self.prefix);
        }
    }

    /// Notes that the client has sent a frame.
    pub(crate) fn note_frame(&self) {
        if self.is_half_open && !self.has_sent_frame.replace(true) {
            let mut state = self.gate.lock();
            state.half_open.note_frame(self.prefix, self.number);
        }
    }

    /// Sets the memory that the connection needs before its login apart from frames, in bytes.
    /// Returns false if the limit is reached: the caller ends the connection.
    pub(crate) fn set_base_bytes(&self, bytes: usize) -> bool {
        self.base_bytes.set(bytes);
        self.set_memory()
    }

    /// Sets the memory of the incomplete frame of the connection, in bytes. Returns false if the
    /// limit is reached: the caller ends the connection.
    pub(crate) fn set_frame_bytes(&self, bytes: usize) -> bool {
        if !self.is_half_open || self.frame_bytes.replace(bytes) == bytes {
            return true;
        }
        self.set_memory()
    }

    fn set_memory(&self) -> bool {
        let bytes = self.base_bytes.get() + self.frame_bytes.get();
        let mut state = self.gate.lock();
        let before = state.half_open.revoked();
        let has_space = state.half_open.set_memory(self.prefix, self.number, bytes);
        let ended = before..state.half_open.revoked();
        drop(state);
        log_revoked(ended, self.prefix);
        has_space
    }

    /// Returns the signal that the connection must end, because another one needs its place. It
    /// is never raised after the login.
    pub(crate) fn revocation(&self) -> Arc<Revocation> {
        Arc::clone(&self.revocation)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        if self.is_half_open {
            state.half_open.remove(self.prefix, self.number);
        }
        state.connections -= 1;
        if let Entry::Occupied(mut of_prefix) = state.by_prefix.entry(self.prefix) {
            *of_prefix.get_mut() -= 1;
            if *of_prefix.get() == 0 {
                of_prefix.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_address::client;

    fn gate(connections: usize, total: usize, per_prefix: usize) -> Arc<Gate> {
        let memory = 1 << 20;
        Gate::new(GateLimits {
            connections,
            connections_per_prefix: connections - 1,
            half_open: HalfOpenLimits {
                total,
                per_prefix,
                memory,
            },
            hosts: Arc::default(),
        })
    }

    #[test]
    fn a_crowd_is_detected_before_the_limit() {
        let gate = gate(100, 16, 8);
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(client);
        assert!(!gate.is_crowded(one));
        let permits: Vec<Permit> = (0..2)
            .map(|_| gate.enter(one, 0).expect("below the limit"))
            .collect();
        assert!(gate.is_crowded(one) && !gate.is_crowded(two));
        let more: Vec<Permit> = (0..2)
            .map(|_| gate.enter(two, 0).expect("below the limit"))
            .collect();
        assert!(gate.is_crowded(client("10.0.0.3")));
        drop((permits, more));
        assert!(!gate.is_crowded(one));
        let large = gate.enter(one, 300 << 10).expect("below the limit");
        assert!(gate.is_crowded(two), "over a quarter of the memory");
        drop(large);
    }

    #[test]
    fn each_limit_refuses_connections_and_accepts_them_again() {
        let gate = gate(3, 16, 1);
        let [one, two, three] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(client);
        let mut first = gate.enter(one, 0).expect("the first");
        let limit = "limits.half_open_per_address";
        assert_eq!(gate.enter(one, 0).expect_err("full"), limit);
        let second = gate.enter(two, 0).expect("the second");
        first.log_in(true);
        let third = gate.enter(one, 0).expect("the third");
        drop(second);
        let fourth = gate.enter(two, 0).expect("the fourth");
        assert_eq!(
            gate.enter(three, 0).expect_err("full"),
            "limits.connections"
        );
        drop((first, third, fourth));
        let memory = "limits.half_open_memory_mb";
        assert_eq!(gate.enter(one, 2 << 20).expect_err("too much"), memory);
        let permit = gate.enter(one, 1 << 19).expect("within the limit");
        assert!(gate.is_memory_short());
        assert!(!permit.set_frame_bytes(1 << 20));
        drop(permit);
        assert_eq!(gate.lock().connections, 0);
        assert!(!gate.is_memory_short());
    }

    #[test]
    fn addresses_are_refused_until_the_rules_change() {
        let gate = gate(4, 16, 16);
        let [one, two] = ["192.0.2.1", "198.51.100.1"].map(client);
        let mut limits = gate.lock().limits.clone();
        limits.hosts = Arc::new(HostRules {
            allow: Vec::new(),
            deny: vec!["192.0.2.0/24".parse().expect("a network")],
        });
        let before = gate.enter(one, 0).expect("no rule");
        gate.set_limits(limits.clone());
        assert_eq!(gate.enter(one, 0).expect_err("denied"), HOSTS);
        drop(gate.enter(two, 0).expect("another network"));
        drop(before);
        limits.hosts = Arc::default();
        gate.set_limits(limits);
        drop(gate.enter(one, 0).expect("no rule"));
    }

    #[test]
    fn a_prefix_and_a_shortage_of_memory_have_limits_after_the_login() {
        let gate = gate(4, 16, 16);
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(client);
        let mut permits: Vec<Permit> = (0..3)
            .map(|_| gate.enter(one, 0).expect("below the limit"))
            .collect();
        permits.iter_mut().for_each(|permit| permit.log_in(true));
        let refused = gate.enter(one, 0).expect_err("the fourth of its prefix");
        assert_eq!(refused, "limits.connections_per_address");
        drop(gate.enter(two, 0).expect("another prefix"));
        gate.refuse_all(true);
        let refused = gate.enter(two, 0).expect_err("no memory");
        assert_eq!(refused, "limits.memory_max_mb");
        gate.refuse_all(false);
        drop(permits);
        drop(gate.enter(one, 0).expect("none is left"));
        assert!(gate.lock().by_prefix.is_empty());
    }

    #[test]
    fn only_a_proven_identity_makes_a_prefix_known() {
        let gate = gate(100, 16, 16);
        let [one, two, three] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(client);
        let mut permit = gate.enter(one, 0).expect("a place");
        permit.log_in(false);
        drop(permit);
        let mut permit = gate.enter(two, 0).expect("a place");
        permit.log_in(true);
        drop(permit);
        let crowd: Vec<Permit> = (0..15)
            .map(|_| gate.enter(three, 0).expect("a place"))
            .collect();
        let ended = gate.lock().half_open.revoked();
        let _known = gate.enter(two, 0).expect("a reserved place");
        assert_eq!(gate.lock().half_open.revoked(), ended);
        let _unknown = gate.enter(one, 0).expect("the place of another");
        assert_eq!(gate.lock().half_open.revoked(), ended + 1);
        drop(crowd);
    }
}
