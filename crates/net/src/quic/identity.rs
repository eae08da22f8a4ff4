//! Connection ids: random, except for the index of the connection's worker.
//!
//! The first two bytes, modulo the number of workers, are the index of the worker. The kernel reads
//! them (`ring::steer`) and passes each datagram to that worker. An observer learns the number of
//! workers, and cannot link two connection ids.

use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// Length of a connection id in bytes.
const LENGTH: usize = 8;
/// Longest connection id in bytes. RFC 9000 17.2
const LENGTH_MAX: usize = 20;

/// Makes the connection ids of one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) worker: u16,
    /// At least 1, and more than `worker`.
    pub(crate) workers: u16,
}

impl ConnectionIdGenerator for Identity {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; LENGTH];
        getrandom::fill(&mut bytes).expect("the kernel has random bytes");
        let random = u16::from_be_bytes([bytes[0], bytes[1]]);
        // The last, incomplete run of numbers is not used.
        let runs = u16::MAX / self.workers;
        let number = (random % runs) * self.workers + self.worker;
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The connection id that a client chose for its first packets, if `datagram` starts with such a
/// packet. RFC 9000 17.2.2
pub(crate) fn first_identifier(datagram: &[u8]) -> Option<ConnectionId> {
    /// Long header, fixed bit or not, type Initial.
    const IS_INITIAL: (u8, u8) = (0xB0, 0x80);
    const VERSION_1: [u8; 4] = [0, 0, 0, 1];
    let (first, rest) = datagram.split_first()?;
    let (version, rest) = rest.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first()?;
    let is_initial = first & IS_INITIAL.0 == IS_INITIAL.1 && *version == VERSION_1;
    let length = usize::from(*length);
    if !is_initial || length > LENGTH_MAX {
        return None;
    }
    rest.get(..length).map(ConnectionId::new)
}

/// Returns true if `datagram` starts with a Handshake packet: only a client that has received a
/// response can send one. RFC 9000 8.1, 17.2.4
pub(crate) fn is_handshake(datagram: &[u8]) -> bool {
    /// Long header, type Handshake.
    const IS_HANDSHAKE: (u8, u8) = (0xB0, 0xA0);
    let first = datagram.first();
    first.is_some_and(|first| first & IS_HANDSHAKE.0 == IS_HANDSHAKE.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_leads_to_its_worker() {
        for workers in [1, 2, 3, 7, 64, 1024] {
            for worker in [0, workers / 2, workers - 1] {
                let mut identity = Identity { worker, workers };
                for _ in 0..50 {
                    let id = identity.generate_cid();
                    assert_eq!(id.len(), LENGTH);
                    assert_eq!(u16::from_be_bytes([id[0], id[1]]) % workers, worker);
                }
            }
        }
    }

    #[test]
    fn only_first_packets_have_a_first_identifier() {
        let initial = [0xC3, 0, 0, 0, 1, 3, 7, 8, 9, 0, 0, 0];
        assert_eq!(first_identifier(&initial).as_deref(), Some(&[7, 8, 9][..]));
        for end in 0..9 {
            assert_eq!(first_identifier(&initial[..end]), None);
        }
        let handshake = [0xE3, 0, 0, 0, 1, 3, 7, 8, 9, 0, 0, 0];
        let short = [0x43, 0, 0, 0, 1, 3, 7, 8, 9, 0, 0, 0];
        let other = [0xC3, 0, 0, 0, 2, 3, 7, 8, 9, 0, 0, 0];
        let long = [0xC3, 0, 0, 0, 1, 21, 7, 8, 9, 0, 0, 0];
        for bytes in [handshake, short, other, long] {
            assert_eq!(first_identifier(&bytes), None);
        }
        assert!(is_handshake(&handshake));
        assert!(!is_handshake(&initial) && !is_handshake(&short) && !is_handshake(&[]));
    }
}
