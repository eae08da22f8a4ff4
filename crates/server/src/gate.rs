//! Who may connect: how many in all, and how many that have not logged in yet.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GateLimits {
    /// In all.
    pub(crate) connections: usize,
    /// That have not logged in yet.
    pub(crate) half_open: usize,
    /// That have not logged in yet, of one address.
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

/// A connection that was let in; it is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<Gate>,
    address: IpAddr,
    is_half_open: bool,
}

impl Gate {
    /// A gate that nobody has passed yet.
    pub(crate) fn new(limits: GateLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            counts: Mutex::default(),
        })
    }

    /// Whether so many have not logged in yet, in all or of one address, that a newcomer should
    /// show first that its address is its own: a quarter of what may be.
    pub(crate) fn is_crowded(&self, address: IpAddr) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let here = counts.by_address.get(&address).copied().unwrap_or(0);
        counts.half_open >= self.limits.half_open / 4
            || here >= self.limits.half_open_per_address / 4
    }

    /// Lets a connection in, or names the limit that keeps it out.
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
        let here = self
            .by_address
            .get_mut(&address)
            .expect("counted when it entered");
        *here -= 1;
        if *here == 0 {
            self.by_address.remove(&address);
        }
    }
}

impl Permit {
    /// The connection has logged in.
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
    fn a_crowd_is_seen_before_the_gate_shuts() {
        let gate = Gate::new(GateLimits {
            connections: 100,
            half_open: 16,
            half_open_per_address: 8,
        });
        let [one, two] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        assert!(!gate.is_crowded(one));
        let permits: Vec<Permit> = (0..2).map(|_| gate.enter(one).expect("room")).collect();
        assert!(gate.is_crowded(one) && !gate.is_crowded(two));
        let more: Vec<Permit> = (0..2).map(|_| gate.enter(two).expect("room")).collect();
        assert!(gate.is_crowded(IpAddr::from([10, 0, 0, 3])));
        drop((permits, more));
        assert!(!gate.is_crowded(one));
    }

    #[test]
    fn each_limit_keeps_out_and_lets_in_again() {
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
