//! Splits one-sided operations into requests for a device: each request has one range of the peer's
//! memory, and several local pieces.

use super::ffi::Sge;
use crate::operand::RemoteRegion;

/// Largest request in bytes. Every device accepts more; the length field of a request, also of a
/// piece, has 32 bits.
const REQUEST_BYTES: u32 = 16 << 20;

/// One request of an RDMA READ or WRITE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OneSided {
    /// Local pieces, one after the other.
    pub(super) local: Vec<Local>,
    /// The peer's memory, with as many bytes as `local`.
    pub(super) remote: RemoteRegion,
}

/// A local piece. A slice longer than 32 bits is split before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Local {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) key: u32,
}

impl From<Local> for Sge {
    fn from(local: Local) -> Self {
        Self {
            addr: local.address,
            length: local.length,
            lkey: local.key,
        }
    }
}

/// Maps the bytes of `local`, one piece after the other, to those of `remote`, with at most
/// `pieces` local pieces per request. `remote` has at least as many bytes.
pub(super) fn one_sided(local: &[Local], remote: &[RemoteRegion], pieces: usize) -> Vec<OneSided> {
    let mut local = Cursor::new(local);
    let mut requests = Vec::new();
    for remote in remote {
        let mut done = 0;
        while done < remote.length && !local.is_at_end() {
            let wanted = (remote.length - done).min(REQUEST_BYTES);
            let taken = local.take(wanted, pieces);
            let length = taken.iter().map(|piece| piece.length).sum();
            requests.push(OneSided {
                local: taken,
                remote: RemoteRegion {
                    address: remote.address.wrapping_add(u64::from(done)),
                    key: remote.key,
                    length,
                },
            });
            done += length;
        }
    }
    assert!(local.is_at_end(), "the peer's regions hold all bytes");
    requests
}

/// A position in a list of pieces.
struct Cursor<'a> {
    pieces: &'a [Local],
    /// Finished bytes of the first piece.
    done: u32,
}

impl<'a> Cursor<'a> {
    fn new(pieces: &'a [Local]) -> Self {
        Self { pieces, done: 0 }.skip_empty()
    }

    fn skip_empty(mut self) -> Self {
        while let [first, rest @ ..] = self.pieces
            && first.length == self.done
        {
            (self.pieces, self.done) = (rest, 0);
        }
        self
    }

    fn is_at_end(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Takes the next bytes: `wanted` of them, or all bytes of `count` pieces.
    fn take(&mut self, wanted: u32, count: usize) -> Vec<Local> {
        let mut taken = Vec::with_capacity(count.min(self.pieces.len()));
        let mut left = wanted;
        while left > 0 && taken.len() < count {
            let Some(first) = self.pieces.first() else {
                break;
            };
            let length = left.min(first.length - self.done);
            taken.push(Local {
                address: first.address + u64::from(self.done),
                length,
                key: first.key,
            });
            left -= length;
            let (pieces, done) = (self.pieces, self.done + length);
            *self = Self { pieces, done }.skip_empty();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(address: u64, length: u32) -> Local {
        Local {
            address,
            length,
            key: 7,
        }
    }

    fn remote(address: u64, length: u32) -> RemoteRegion {
        RemoteRegion {
            address,
            key: 9,
            length,
        }
    }

    #[test]
    fn one_piece_goes_into_one_region_in_one_request() {
        let requests = one_sided(&[local(100, 50)], &[remote(1000, 80)], 4);
        let expected = OneSided {
            local: vec![local(100, 50)],
            remote: remote(1000, 50),
        };
        assert_eq!(requests, [expected]);
    }

    #[test]
    fn regions_and_pieces_are_cut_where_either_ends() {
        let ours = [local(0, 10), local(100, 0), local(200, 10)];
        let requests = one_sided(
            &ours,
            &[remote(1000, 4), remote(2000, 0), remote(3000, 16)],
            4,
        );
        let expected = [
            OneSided {
                local: vec![local(0, 4)],
                remote: remote(1000, 4),
            },
            OneSided {
                local: vec![local(4, 6), local(200, 10)],
                remote: remote(3000, 16),
            },
        ];
        assert_eq!(requests, expected);
    }

    #[test]
    fn a_request_has_no_more_pieces_than_the_device_takes() {
        let ours = [local(0, 1), local(10, 1), local(20, 1)];
        let requests = one_sided(&ours, &[remote(1000, 3)], 2);
        let expected = [
            OneSided {
                local: vec![local(0, 1), local(10, 1)],
                remote: remote(1000, 2),
            },
            OneSided {
                local: vec![local(20, 1)],
                remote: remote(1002, 1),
            },
        ];
        assert_eq!(requests, expected);
    }

    #[test]
    fn a_request_has_no_more_bytes_than_every_device_takes() {
        let bytes = REQUEST_BYTES + 1;
        let requests = one_sided(&[local(0, bytes)], &[remote(0, u32::MAX)], 4);
        let lengths: Vec<_> = requests.iter().map(|one| one.remote.length).collect();
        assert_eq!(lengths, [REQUEST_BYTES, 1]);
        assert_eq!(requests[1].remote.address, u64::from(REQUEST_BYTES));
    }

    #[test]
    fn no_bytes_are_no_request() {
        assert!(one_sided(&[], &[remote(0, 10)], 4).is_empty());
        assert!(one_sided(&[local(0, 0)], &[], 4).is_empty());
    }
}
