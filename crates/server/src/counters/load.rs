//! The load of a worker at one time, which the worker itself measures.

use crypto::{Cipher, SigningAlgorithm};
use net::Transport;
use proto::server::Load;
use wire::dialect::Dialect;

/// The negotiated values of a connection: one set of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionKind {
    pub(crate) transport: Transport,
    /// `None` before the negotiation.
    pub(crate) dialect: Option<Dialect>,
    /// `None` before the negotiation, and without encryption.
    pub(crate) cipher: Option<Cipher>,
    /// `None` before the negotiation.
    pub(crate) signing: Option<SigningAlgorithm>,
}

/// The load of a worker, or the sum of several.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkerLoad {
    /// Numbers of connections. The kinds are few: the list is short.
    pub(crate) connections: Vec<(ConnectionKind, u64)>,
    /// Number of received frames without a final response.
    pub(crate) requests: u64,
    /// Number of credits that clients hold.
    pub(crate) credits: u64,
    /// Number of file operations that wait for a thread or run on one.
    pub(crate) jobs: u64,
    /// Number of messages in the mailbox of the worker.
    pub(crate) messages: u64,
    /// Number of buffers of the pool in use.
    pub(crate) buffers: u64,
    /// Bytes of memory of the pool.
    pub(crate) pool_bytes: u64,
}

impl WorkerLoad {
    /// Adds a connection.
    pub(crate) fn add_connection(&mut self, transport: Transport, load: &Load) {
        let Load {
            dialect,
            cipher,
            signing,
            requests,
            credits,
        } = *load;
        let kind = ConnectionKind {
            transport,
            dialect,
            cipher,
            signing,
        };
        self.add_kind(kind, 1);
        self.requests += requests as u64;
        self.credits += credits;
    }

    /// Adds the load of another worker.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            connections,
            requests,
            credits,
            jobs,
            messages,
            buffers,
            pool_bytes,
        } = other;
        for (kind, count) in connections {
            self.add_kind(*kind, *count);
        }
        self.requests += requests;
        self.credits += credits;
        self.jobs += jobs;
        self.messages += messages;
        self.buffers += buffers;
        self.pool_bytes += pool_bytes;
    }

    fn add_kind(&mut self, kind: ConnectionKind, count: u64) {
        let mut known = self.connections.iter_mut();
        match known.find(|(known, _)| *known == kind) {
            Some((_, sum)) => *sum += count,
            None => self.connections.push((kind, count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_the_same_kind_count_together() {
        let load = Load {
            dialect: Some(Dialect::SMB_3_1_1),
            cipher: None,
            signing: None,
            requests: 1,
            credits: 10,
        };
        let mut worker = WorkerLoad::default();
        worker.add_connection(Transport::Tcp, &load);
        worker.add_connection(Transport::Quic, &load);
        worker.add_connection(Transport::Tcp, &load);
        let mut sum = WorkerLoad::default();
        sum.add(&worker);
        sum.add(&worker);
        let counts: Vec<_> = sum
            .connections
            .iter()
            .map(|(kind, count)| (kind.transport, *count))
            .collect();
        assert_eq!(counts, [(Transport::Tcp, 4), (Transport::Quic, 2)]);
        assert_eq!((sum.requests, sum.credits), (6, 60));
    }
}
