//! Which worker serves a new connection.
//!
//! The kernel spreads connections over the listeners of the workers by a hash of their addresses:
//! four channels of one client may well meet at one worker and use one core. So whoever accepts a
//! connection hands it to the worker that serves the fewest of the same client, and among those to
//! the one that serves the fewest in all.
//!
//! Where it is asked for, those come second to the worker on whose processor the packets of the
//! connection arrive: then what the kernel's half touched is in the cache of that processor still.
//! For that workers are bound to processors. A network card with one queue has all packets arrive
//! at one of them, so that worker is chosen only while it has little more to do than others.

use std::collections::HashMap;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use socket2::SockRef;
use tracing::warn;

/// How many connections more than the least busy one a worker may have that gets another for being
/// near.
const LEAN: usize = 4;

/// Counts the connections of each worker.
#[derive(Debug)]
pub(crate) struct Placement {
    counts: Mutex<Counts>,
    /// The processors of the workers, in turn; none where they are not bound.
    cpus: Vec<usize>,
}

#[derive(Debug)]
struct Counts {
    total: Vec<usize>,
    /// As many as there are connections at most: the gate bounds them.
    by_client: HashMap<IpAddr, Vec<usize>>,
}

/// A connection's place at a worker; it is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    placement: Arc<Placement>,
    client: IpAddr,
    /// The worker.
    pub(crate) worker: usize,
}

impl Placement {
    /// For so many workers, none of which serves anybody.
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Self::on(workers, Vec::new())
    }

    /// The same with each worker bound to one of the processors that this process may use.
    pub(crate) fn near_packets(workers: usize) -> Arc<Self> {
        let cpus = match sched_getaffinity(None) {
            Ok(set) => (0..CpuSet::MAX_CPU)
                .filter(|cpu| set.is_set(*cpu))
                .collect(),
            Err(error) => {
                warn!(%error, "the processors are not known: workers are not bound");
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

    /// Binds the calling thread, which is that of a worker, to its processor.
    pub(crate) fn bind_worker(&self, worker: usize) {
        if self.cpus.is_empty() {
            return;
        }
        let mut set = CpuSet::new();
        set.set(self.cpus[worker % self.cpus.len()]);
        if let Err(error) = sched_setaffinity(None, &set) {
            warn!(%error, worker, "the worker is not bound to its processor");
        }
    }

    /// The worker on whose processor the packets of a connection arrive.
    pub(crate) fn near(&self, socket: &TcpStream) -> Option<usize> {
        if self.cpus.is_empty() {
            return None;
        }
        let cpu = SockRef::from(socket).cpu_affinity().ok()?;
        self.cpus.iter().position(|bound| *bound == cpu)
    }

    /// Finds a worker: that one where it is near and has little more to do than others, else the
    /// one with the least; between equals the one that asks.
    pub(crate) fn take(
        self: &Arc<Self>,
        client: IpAddr,
        asking: usize,
        near: Option<usize>,
    ) -> Seat {
        let mut counts = self.lock();
        let Counts { total, by_client } = &mut *counts;
        let here = by_client
            .entry(client)
            .or_insert_with(|| vec![0; total.len()]);
        let least = total.iter().min().copied().unwrap_or_default();
        let near = near.filter(|near| total.get(*near).is_some_and(|at| *at <= least + LEAN));
        let worker = (0..total.len())
            .min_by_key(|worker| {
                let is_far = near.is_some_and(|near| near != *worker);
                (here[*worker], is_far, total[*worker], *worker != asking)
            })
            .expect("there is a worker");
        here[worker] += 1;
        total[worker] += 1;
        Seat {
            placement: Arc::clone(self),
            client,
            worker,
        }
    }

    /// The connections of each worker.
    pub(crate) fn connections(&self) -> Vec<usize> {
        self.lock().total.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.placement.lock();
        counts.total[self.worker] -= 1;
        let here = counts.by_client.get_mut(&self.client);
        let here = here.expect("counted when it came");
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
        // All of them come to one listener.
        let seats: Vec<Seat> = (0..8).map(|_| placement.take(ONE, 2, None)).collect();
        let workers: Vec<usize> = seats.iter().map(|seat| seat.worker).collect();
        assert_eq!(workers, [2, 0, 1, 3, 2, 0, 1, 3]);
        drop(seats);
        assert!(placement.lock().by_client.is_empty());
        assert_eq!(placement.lock().total, [0; 4]);
    }

    #[test]
    fn who_is_near_is_chosen_while_it_is_not_much_busier() {
        let placement = Placement::new(2);
        let others = (0..8).map(|n| IpAddr::from([10, 0, 1, n]));
        let seats: Vec<Seat> = others
            .map(|client| placement.take(client, 0, Some(1)))
            .collect();
        let workers: Vec<usize> = seats.iter().map(|seat| seat.worker).collect();
        assert_eq!(workers, [1, 1, 1, 1, 1, 0, 1, 0]);
        // The channels of one client spread all the same.
        let first = placement.take(ONE, 0, Some(1));
        let second = placement.take(ONE, 0, Some(1));
        assert_ne!(first.worker, second.worker);
        assert_eq!(placement.take(TWO, 0, Some(7)).worker, 0, "nobody is there");
    }

    #[test]
    fn a_client_is_spread_even_where_others_are_not() {
        let placement = Placement::new(2);
        let mut others: Vec<Seat> = (0..6).map(|_| placement.take(ONE, 0, None)).collect();
        // The idle ones are all at one worker.
        others.retain(|seat| seat.worker == 0);
        let first = placement.take(TWO, 0, None);
        let second = placement.take(TWO, 0, None);
        assert_eq!((first.worker, second.worker), (1, 0));
        let third = placement.take(TWO, 0, None);
        assert_eq!(third.worker, 1, "where fewer are in all");
    }
}
