//! Limits for the number of connections, with and without a login.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Limits for the number of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateLimits {
    /// Most connections.
    pub(crate) connections: usize,
    /// Most connections without a login.
    pub(crate) half_open: usize,
    /// Most connections without a login from one address.
    pub(crate) half_open_per_address: usize,
}

/// Counts the connections of all workers.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: GateLimits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    connections: usize,
    half_open: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The permit of an accepted connection. The connection counts until the permit is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    address: IpAddr,
    is_half_open: bool,
}

impl Gate {
    /// A gate without connections.
    pub(crate) fn new(limits: GateLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            counts: Mutex::default(),
        })
    }

    /// Returns true if the connections without a login reach a quarter of a limit. A QUIC client
    /// must then prove its address before it is accepted.
    pub(crate) fn is_crowded(&self, address: IpAddr) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let here = counts.by_address.get(&address).copied().unwrap_or(0);
        counts.half_open >= self.limits.half_open / 4
            || here >= self.limits.half_open_per_address / 4
    }

    /// Counts a connection. The error is the key of the limit that is reached.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Result<Permit, &'static str> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.connections >= self.limits.connections {
            return Err("limits.connections");
        }
        if counts.half_open >= self.limits.half_open {
            return Err("limits.half_open");
        }
        let here = counts.by_address.get(&address).copied().unwrap_or(0);
        if here >= self.limits.half_open_per_address {
            return Err("limits.half_open_per_address");
        }
        counts.connections += 1;
        counts.half_open += 1;
        counts.by_address.insert(address, here + 1);
        Ok(Permit {
            gate: Arc::clone(self),
            address,
            is_half_open: true,
        })
    }
}

impl Counts {
    fn leave_half_open(&mut self, address: IpAddr) {
        self.half_open -= 1;
        let here = self.by_address.get_mut(&address).expect("counted by enter");
        *here -= 1;
        if *here == 0 {
            self.by_address.remove(&address);
        }
    }
}

impl Permit {
    /// Counts the connection as logged in.
    pub(crate) fn log_in(&mut self) {
        if std::mem::take(&mut self.is_half_open) {
            let mut counts = self
                .gate
                .counts
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            counts.leave_half_open(self.address);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.log_in();
        let mut counts = self
            .gate
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.connections -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_detected_before_the_limit() {
        let gate = Gate::new(GateLimits {
            connections: 100,
            half_open: 16,
            half_open_per_address: 8,
        });
        let [one, two] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        assert!(!gate.is_crowded(one));
        let permits: Vec<Permit> = (0..2)
            .map(|_| gate.enter(one).expect("below the limit"))
            .collect();
        assert!(gate.is_crowded(one) && !gate.is_crowded(two));
        let more: Vec<Permit> = (0..2)
            .map(|_| gate.enter(two).expect("below the limit"))
            .collect();
        assert!(gate.is_crowded(IpAddr::from([10, 0, 0, 3])));
        drop((permits, more));
        assert!(!gate.is_crowded(one));
    }

    #[test]
    fn each_limit_refuses_connections_and_accepts_them_again() {
        let limits = GateLimits {
            connections: 3,
            half_open: 2,
            half_open_per_address: 1,
        };
        let gate = Gate::new(limits);
        let [one, two, three] = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 0, 3]].map(IpAddr::from);
        assert!(gate.is_crowded(one), "small limits are crowded at once");
        let mut first = gate.enter(one).expect("the first");
        assert_eq!(
            gate.enter(one).expect_err("full"),
            "limits.half_open_per_address"
        );
        let second = gate.enter(two).expect("the second");
        assert_eq!(gate.enter(three).expect_err("full"), "limits.half_open");
        first.log_in();
        let third = gate.enter(one).expect("the third");
        drop(second);
        let fourth = gate.enter(two).expect("the fourth");
        assert_eq!(gate.enter(three).expect_err("full"), "limits.connections");
        drop((first, third, fourth));
        assert_eq!(gate.counts.lock().expect("no panic").connections, 0);
        assert!(gate.counts.lock().expect("no panic").by_address.is_empty());
    }
}
