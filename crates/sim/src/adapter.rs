//! Memory that a client registers, and the server's RDMA access to it; and the transports, one of
//! which supports RDMA.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proto::carrier::{Carrier, RdmaLimits};
use proto::client::Direction;
use wire::smbd::BufferDescriptorV1;

use crate::check::{Check, ensure};
use crate::choices::Choices;

/// The limits of SMB Direct here. A message is shorter than a transfer.
pub(crate) const RDMA: Carrier = Carrier::smb_direct(RdmaLimits {
    max_read_write: 1 << 20,
    max_descriptors: 4,
    max_send: 128 << 10,
    max_receive: 128 << 10,
});

/// The transports: every scenario runs over each of them. Channels over [`Carrier::NBT`] share a
/// session with no other transport: their frames are shorter, and a client takes a server with
/// lower limits on one channel for another server. \[MS-SMB2\] 3.2.5.2
pub const TRANSPORTS: [(&str, Carrier); 4] = [
    ("tcp", Carrier::TCP),
    ("nbt", Carrier::NBT),
    ("quic", Carrier::QUIC),
    ("smbdirect", RDMA),
];

/// All transports.
pub(crate) fn carriers() -> Vec<Carrier> {
    TRANSPORTS.map(|(_, carrier)| carrier).to_vec()
}

/// Transports over which one session may have several channels.
pub(crate) fn mixable() -> Vec<Carrier> {
    let mut carriers = carriers();
    carriers.retain(|carrier| carrier.large_frames);
    carriers
}

/// Address of the first segment of memory. Each segment has an address far from the others.
const BASE: u64 = 0x7F00_0000_0000;

/// Bytes that the client registered under a key.
#[derive(Debug)]
struct Exposed {
    bytes: Vec<u8>,
    direction: Direction,
}

/// The client's end of the RDMA of a connection.
#[derive(Debug, Default)]
pub(crate) struct Adapter {
    exposed: BTreeMap<u32, Exposed>,
    /// Keys that the server invalidated and that the client has not processed yet.
    revoked: BTreeMap<u32, Vec<u8>>,
    /// Keys of requests that the client canceled: the server may still use them.
    given_up: BTreeSet<u32>,
    /// Invalid keys for which the server is not to blame: an access breaks the connection.
    pretended: BTreeSet<u32>,
    /// Keys in lists that the server must reject: an access is a fault of the server.
    forbidden: BTreeSet<u32>,
    last: u32,
    /// Whether unknown keys are valid, for a client without registrations. Some of them are
    /// invalid.
    is_open: bool,
    /// Whether the connection is broken: every access fails.
    is_over: bool,
    /// Frames that the server sent, and frames that the client received.
    sent: u64,
    heard: u64,
    /// Keys that frames invalidate, by the number of the frame.
    invalidations: VecDeque<(u64, u32)>,
}

impl Adapter {
    /// An adapter for a client that consists of bytes only: the server may access any key.
    pub(crate) fn open() -> Self {
        Self {
            is_open: true,
            ..Self::default()
        }
    }

    /// Registers memory with these bytes, in one segment or several.
    pub(crate) fn expose(
        &mut self,
        direction: Direction,
        bytes: &[u8],
        choices: &mut Choices,
    ) -> Vec<BufferDescriptorV1> {
        let mut pieces = Vec::new();
        let mut left = bytes;
        while !left.is_empty() {
            let is_last = pieces.len() == 3 || choices.per_mille(700);
            let len = if is_last {
                left.len()
            } else {
                1 + choices.index(left.len())
            };
            let (now, later) = left.split_at(len);
            left = later;
            self.last += 1;
            let exposed = Exposed {
                bytes: now.to_vec(),
                direction,
            };
            self.exposed.insert(self.last, exposed);
            pieces.push(BufferDescriptorV1 {
                offset: address(self.last),
                token: self.last,
                length: u32::try_from(len).expect("a request has 32 bits of length"),
            });
        }
        pieces
    }

    /// Removes the registration and returns the bytes.
    pub(crate) fn withdraw(&mut self, keys: &[u32], is_revoked: bool) -> Check<Vec<u8>> {
        let was_revoked = keys.iter().all(|key| self.revoked.contains_key(key));
        ensure(was_revoked == is_revoked, || {
            format!("invalidation of {keys:?}: {is_revoked}")
        })?;
        let mut bytes = Vec::new();
        for key in keys {
            let exposed = self.exposed.remove(key).map(|exposed| exposed.bytes);
            let piece = exposed.or_else(|| self.revoked.remove(key));
            bytes.extend(piece.ok_or_else(|| format!("key {key} is not registered"))?);
        }
        Ok(bytes)
    }

    /// The client canceled the request: later accesses of the server to its keys are not a fault.
    pub(crate) fn give_up(&mut self, keys: &[u32]) {
        self.given_up.extend(keys);
    }

    /// Makes one segment invalid: an unknown key, an address beyond the memory, or memory for the
    /// other direction.
    pub(crate) fn pretend(&mut self, pieces: &mut [BufferDescriptorV1], choices: &mut Choices) {
        let index = choices.index(pieces.len());
        let piece = &mut pieces[index];
        let key = piece.token;
        self.pretended.insert(key);
        let exposed = self.exposed.get_mut(&key).expect("it was just registered");
        match choices.below(5) {
            0 => drop(self.exposed.remove(&key)),
            1 => piece.offset += 1 + choices.below(1 << 20),
            2 => piece.offset -= 1 + choices.below(1 << 20),
            3 => exposed.bytes.truncate(exposed.bytes.len() - 1),
            _ => {
                exposed.direction = match exposed.direction {
                    Direction::Read => Direction::Write,
                    Direction::Write => Direction::Read,
                }
            }
        }
    }

    /// The server must not access these keys.
    pub(crate) fn forbid(&mut self, keys: &[u32]) {
        self.forbidden.extend(keys);
    }

    /// The client received the answer to a request with registered memory. Returns the bytes. From
    /// now on the server must not access the memory.
    pub(crate) fn settle(&mut self, keys: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for key in keys {
            let exposed = self.exposed.remove(key).map(|exposed| exposed.bytes);
            let piece = exposed.or_else(|| self.revoked.remove(key));
            bytes.extend(piece.unwrap_or_default());
            self.pretended.remove(key);
        }
        bytes
    }

    /// Breaks the connection.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns whether the connection is broken.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the registered keys.
    pub(crate) fn named(&self) -> usize {
        self.exposed.len()
    }

    /// RDMA WRITE. Returns whether the connection still works.
    pub(crate) fn write(&mut self, to: &[BufferDescriptorV1], mut bytes: &[u8]) -> Check<bool> {
        if self.is_open {
            assert!(bytes.len() as u64 <= BufferDescriptorV1::total(to));
            return Ok(self.lives_with(to));
        }
        for piece in to {
            let Some(place) = self.reach(piece, Direction::Read)? else {
                return Ok(false);
            };
            let (now, later) = bytes.split_at(bytes.len().min(place.len()));
            place[..now.len()].copy_from_slice(now);
            bytes = later;
        }
        ensure(bytes.is_empty(), || "more bytes than memory".into())?;
        Ok(true)
    }

    /// RDMA READ. Returns `None` if the connection is broken.
    pub(crate) fn read(&mut self, from: &[BufferDescriptorV1]) -> Check<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        if self.is_open {
            let total = BufferDescriptorV1::total(from);
            bytes.resize(usize::try_from(total).expect("a WRITE has a limit"), 7);
            return Ok(self.lives_with(from).then_some(bytes));
        }
        for piece in from {
            let Some(place) = self.reach(piece, Direction::Write)? else {
                return Ok(None);
            };
            bytes.extend_from_slice(place);
        }
        Ok(Some(bytes))
    }

    /// Decides whether the connection survives an access to an unknown key: one in four is invalid.
    fn lives_with(&mut self, pieces: &[BufferDescriptorV1]) -> bool {
        self.is_over |= pieces.iter().any(|piece| piece.token % 4 == 3);
        !self.is_over
    }

    /// Returns the memory of a segment. Fails if the server accesses memory that the client never
    /// registered or that belongs to an answered request.
    fn reach(
        &mut self,
        piece: &BufferDescriptorV1,
        direction: Direction,
    ) -> Check<Option<&mut [u8]>> {
        if self.is_over || self.given_up.contains(&piece.token) {
            self.is_over = true;
            return Ok(None);
        }
        let (start, length) = (piece.offset.checked_sub(address(piece.token)), piece.length);
        let start = start.and_then(|start| usize::try_from(start).ok());
        let end = start.and_then(|start| start.checked_add(length as usize));
        let range = start.zip(end).map(|(start, end)| start..end);
        let exposed = self.exposed.get_mut(&piece.token);
        let exposed = exposed.filter(|exposed| exposed.direction == direction);
        let is_allowed = !self.forbidden.contains(&piece.token);
        let place = exposed.zip(range).filter(|_| is_allowed);
        match place.and_then(|(exposed, range)| exposed.bytes.get_mut(range)) {
            Some(place) => Ok(Some(place)),
            None if self.pretended.contains(&piece.token) => {
                self.is_over = true;
                Ok(None)
            }
            None => Err(format!(
                "the server accesses {piece:?}, which is not registered so"
            )),
        }
    }

    /// The server sends a frame, with or without a key to invalidate.
    pub(crate) fn sends(&mut self, invalidate: Option<u32>) {
        if let Some(key) = invalidate {
            self.invalidations.push_back((self.sent, key));
        }
        self.sent += 1;
    }

    /// The client receives the next frame. Returns the key that it invalidates.
    pub(crate) fn hears(&mut self) -> Check<Option<u32>> {
        let number = self.heard;
        self.heard += 1;
        let next = self
            .invalidations
            .front()
            .filter(|(frame, _)| *frame == number);
        let Some(&(_, key)) = next else {
            return Ok(None);
        };
        self.invalidations.pop_front();
        match self.exposed.remove(&key) {
            Some(exposed) => {
                self.revoked.insert(key, exposed.bytes);
            }
            None => {
                let is_known = self.given_up.contains(&key) || self.pretended.contains(&key);
                ensure(is_known, || {
                    format!("the server invalidates key {key}, which is not registered")
                })?;
            }
        }
        Ok(Some(key))
    }
}

fn address(key: u32) -> u64 {
    BASE + (u64::from(key) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: [u8; 600] = [0xEE; 600];

    fn named(direction: Direction) -> (Adapter, Vec<BufferDescriptorV1>, Vec<u32>) {
        let mut adapter = Adapter::default();
        let pieces = adapter.expose(direction, &FILL, &mut Choices::from_seed(3));
        let keys = pieces.iter().map(|piece| piece.token).collect();
        (adapter, pieces, keys)
    }

    #[test]
    fn what_is_named_is_filled_from_its_start() {
        let (mut adapter, pieces, keys) = named(Direction::Read);
        assert_eq!(adapter.write(&pieces, &[1; 500]), Ok(true));
        let bytes = adapter.settle(&keys);
        assert_eq!(
            (&bytes[..500], &bytes[500..]),
            (&[1; 500][..], &FILL[500..])
        );
    }

    #[test]
    fn accesses_to_unregistered_memory_are_found() {
        let (mut adapter, pieces, keys) = named(Direction::Read);
        assert!(adapter.read(&pieces).is_err(), "the other direction");
        let mut beyond = pieces.clone();
        beyond[0].length += 1;
        assert!(adapter.write(&beyond, &[1; 600]).is_err(), "beyond its end");
        adapter.forbid(&keys);
        assert!(adapter.write(&pieces, &[1; 600]).is_err(), "forbidden");
        let (mut adapter, pieces, keys) = named(Direction::Write);
        adapter.settle(&keys);
        assert!(adapter.read(&pieces).is_err(), "after the answer");
    }

    #[test]
    fn a_lie_breaks_the_connection_and_moves_nothing() {
        for seed in 0..50 {
            let (mut adapter, mut pieces, _) = named(Direction::Write);
            adapter.pretend(&mut pieces, &mut Choices::from_seed(seed));
            assert_eq!(adapter.read(&pieces), Ok(None), "seed {seed}");
            assert!(adapter.is_over());
        }
    }
}
