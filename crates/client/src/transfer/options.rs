//! What a transfer moves, and how.

use std::ops::Range;

/// How a file is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferOptions {
    /// Bytes of a piece; 0 is the client's, and over TCP as many as suit, where neither says.
    pub io_size: usize,
    /// Pieces in flight; 0 is the client's, and over TCP as many as suit, where neither says.
    pub depth: usize,
    /// Bytes of the file among which the pieces in flight are; 0 is no limit. However a transfer
    /// ends: of what comes before the last byte that arrived, all but so many have arrived.
    pub span: u64,
}

/// What of a file is moved: a range, or several in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(pub(crate) Vec<Range<u64>>);

impl From<Range<u64>> for Ranges {
    fn from(range: Range<u64>) -> Self {
        Self(std::iter::once(range).collect())
    }
}

impl From<Vec<Range<u64>>> for Ranges {
    fn from(ranges: Vec<Range<u64>>) -> Self {
        Self(ranges)
    }
}

impl Ranges {
    /// Bytes of them.
    pub(crate) fn total(&self) -> u64 {
        let lengths = self
            .0
            .iter()
            .map(|range| range.end.saturating_sub(range.start));
        lengths.fold(0, u64::saturating_add)
    }
}
