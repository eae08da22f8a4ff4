//! Which worker serves a new connection.
//!
//! The kernel spreads connections over the listeners of the workers by a hash of their addresses:
//! four channels of one client may well meet at one worker and use one core. So whoever accepts a
//! connection hands it to the worker that serves the fewest of the same client, and among those to
//! the one that serves the fewest in all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the connections of each worker.
#[derive(Debug)]
pub(crate) struct Placement {
    counts: Mutex<Counts>,
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
        Arc::new(Self {
            counts: Mutex::new(Counts {
                total: vec![0; workers],
                by_client: HashMap::new(),
            }),
        })
    }

    /// Finds a worker; between equals the one that asks.
    pub(crate) fn take(self: &Arc<Self>, client: IpAddr, asking: usize) -> Seat {
        let mut counts = self.lock();
        let Counts { total, by_client } = &mut *counts;
        let here = by_client
            .entry(client)
            .or_insert_with(|| vec![0; total.len()]);
        let worker = (0..total.len())
            .min_by_key(|worker| (here[*worker], total[*worker], *worker != asking))
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
        let seats: Vec<Seat> = (0..8).map(|_| placement.take(ONE, 2)).collect();
        let workers: Vec<usize> = seats.iter().map(|seat| seat.worker).collect();
        assert_eq!(workers, [2, 0, 1, 3, 2, 0, 1, 3]);
        drop(seats);
        assert!(placement.lock().by_client.is_empty());
        assert_eq!(placement.lock().total, [0; 4]);
    }

    #[test]
    fn a_client_is_spread_even_where_others_are_not() {
        let placement = Placement::new(2);
        let mut others: Vec<Seat> = (0..6).map(|_| placement.take(ONE, 0)).collect();
        // The idle ones are all at one worker.
        others.retain(|seat| seat.worker == 0);
        let first = placement.take(TWO, 0);
        let second = placement.take(TWO, 0);
        assert_eq!((first.worker, second.worker), (1, 0));
        let third = placement.take(TWO, 0);
        assert_eq!(third.worker, 1, "where fewer are in all");
    }
}
