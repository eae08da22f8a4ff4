//! Payloads of the tests and of the example.

use std::rc::Rc;

use ring::Part;
use smbeam_rdma::Piece;

/// All of some bytes.
pub(crate) fn piece(bytes: &[u8]) -> Piece {
    Piece::Shared(Rc::new(Part::Bytes(bytes.to_vec())), 0..bytes.len())
}

/// Bytes that differ from their neighbours.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|index| ((index + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}
