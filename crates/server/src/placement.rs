//! Which worker serves a new connection.
//!
//! The kernel spreads connections over the listeners of the workers by a hash of their addresses.
//! Four channels of one client may then share one worker and one core. So the accepting worker
//! chooses the worker with the fewest connections of the same client, and among those the one with
//! the fewest connections in total.
//!
//! With `tcp.placement = "incoming-cpu"` each worker is bound to a processor. Among the workers
//! with the fewest connections of the client, the one on the processor that receives the packets is
//! first: the data that the kernel has touched are still in the cache of that processor. A network
//! card with one queue interrupts one processor only, so a worker with many more connections than
//! the least busy one is not preferred.

use std::collections::HashMap;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use socket2::SockRef;
use tracing::warn;

/// A near worker is preferred while it has at most this many connections more than the least busy
/// worker.
const NEAR_EXCESS_MAX: usize = 4;

/// Counts the connections of each worker.
#[derive(Debug)]
pub(crate) struct Placement {
    counts: Mutex<Counts>,
    /// Processors, assigned to the workers in turn. Empty if workers are not bound.
    cpus: Vec<usize>,
}

#[derive(Debug)]
struct Counts {
    /// Connections of each worker.
    total: Vec<usize>,
    /// Connections of each worker by client. The gate limits the number of connections, and so the
    /// size of this table.
    by_client: HashMap<IpAddr, Vec<usize>>,
}

/// The slot of a connection on its worker. The connection counts until the slot is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    placement: Arc<Placement>,
    client: IpAddr,
    /// Index of the worker.
    pub(crate) worker: usize,
}

impl Placement {
    /// Placement for this number of workers, none of which has connections.
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Self::on(workers, Vec::new())
    }

    /// The same. Each worker is bound to one of the processors that this process may use.
    pub(crate) fn near_packets(workers: usize) -> Arc<Self> {
        let cpus = match sched_getaffinity(None) {
            Ok(set) => (0..CpuSet::MAX_CPU)
                .filter(|cpu| set.is_set(*cpu))
                .collect(),
            Err(error) => {
                warn!(%error, "cannot list the processors: workers are not bound to them");
                Vec::new()
            }
        };
        Self::on(workers, cpus)
    }

    fn on(workers: usize, cpus: Vec<usize>) -> Arc<Self> {
        Arc::new(Self {
            cpus,
            counts: Mutex::new(Counts {
                total: vec![0; workers],
                by_client: HashMap::new(),
            }),
        })
    }

    /// Binds the calling thread to the processor of its worker.
    pub(crate) fn bind_worker(&self, worker: usize) {
        if self.cpus.is_empty() {
            return;
        }
        let mut set = CpuSet::new();
        set.set(self.cpus[worker % self.cpus.len()]);
        if let Err(error) = sched_setaffinity(None, &set) {
            warn!(%error, worker, "cannot bind the worker to its processor");
        }
    }

    /// The worker that is bound to the processor that receives the packets of the connection.
    pub(crate) fn near(&self, socket: &TcpStream) -> Option<usize> {
        if self.cpus.is_empty() {
            return None;
        }
        let cpu = SockRef::from(socket).cpu_affinity().ok()?;
        self.cpus.iter().position(|bound| *bound == cpu)
    }

    /// Chooses a worker for a connection of `client` and counts the connection. Between equal
    /// workers it chooses the `asking` one.
    pub(crate) fn take(
        self: &Arc<Self>,
        client: IpAddr,
        asking: usize,
        near: Option<usize>,
    ) -> Slot {
        let mut counts = self.lock();
        let Counts { total, by_client } = &mut *counts;
        let here = by_client
            .entry(client)
            .or_insert_with(|| vec![0; total.len()]);
        let least = total.iter().min().copied().unwrap_or_default();
        let near = near.filter(|near| {
            total
                .get(*near)
                .is_some_and(|at| *at <= least + NEAR_EXCESS_MAX)
        });
        let worker = (0..total.len())
            .min_by_key(|worker| {
                let is_far = near.is_some_and(|near| near != *worker);
                (here[*worker], is_far, total[*worker], *worker != asking)
            })
            .expect("there is a worker");
        here[worker] += 1;
        total[worker] += 1;
        Slot {
            placement: Arc::clone(self),
            client,
            worker,
        }
    }

    /// The number of connections of each worker.
    pub(crate) fn connections(&self) -> Vec<usize> {
        self.lock().total.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.placement.lock();
        counts.total[self.worker] -= 1;
        let here = counts.by_client.get_mut(&self.client);
        let here = here.expect("counted by take");
        here[self.worker] -= 1;
        if here.iter().all(|count| *count == 0) {
            counts.by_client.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn the_connections_of_one_client_spread_over_all_workers() {
        let placement = Placement::new(4);
        // One listener accepts all of them.
        let slots: Vec<Slot> = (0..8).map(|_| placement.take(ONE, 2, None)).collect();
        let workers: Vec<usize> = slots.iter().map(|slot| slot.worker).collect();
        assert_eq!(workers, [2, 0, 1, 3, 2, 0, 1, 3]);
        drop(slots);
        assert!(placement.lock().by_client.is_empty());
        assert_eq!(placement.lock().total, [0; 4]);
    }

    #[test]
    fn a_near_worker_is_chosen_while_it_is_not_much_busier() {
        let placement = Placement::new(2);
        let others = (0..8).map(|n| IpAddr::from([10, 0, 1, n]));
        let slots: Vec<Slot> = others
            .map(|client| placement.take(client, 0, Some(1)))
            .collect();
        let workers: Vec<usize> = slots.iter().map(|slot| slot.worker).collect();
        assert_eq!(workers, [1, 1, 1, 1, 1, 0, 1, 0]);
        // The channels of one client spread all the same.
        let first = placement.take(ONE, 0, Some(1));
        let second = placement.take(ONE, 0, Some(1));
        assert_ne!(first.worker, second.worker);
        assert_eq!(placement.take(TWO, 0, Some(7)).worker, 0, "no such worker");
    }

    #[test]
    fn a_client_is_spread_even_if_others_are_not() {
        let placement = Placement::new(2);
        let mut others: Vec<Slot> = (0..6).map(|_| placement.take(ONE, 0, None)).collect();
        // The remaining connections are all on one worker.
        others.retain(|slot| slot.worker == 0);
        let first = placement.take(TWO, 0, None);
        let second = placement.take(TWO, 0, None);
        assert_eq!((first.worker, second.worker), (1, 0));
        let third = placement.take(TWO, 0, None);
        assert_eq!(third.worker, 1, "it has fewer in total");
    }
}
