//! Options of transfers, and ranges of files.

use std::ops::Range;

/// Options of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferOptions {
    /// Length of a piece in bytes. 0 stands for [`Options::io_size`](crate::Options::io_size); if
    /// that is 0 too, transfers over TCP choose a length.
    pub io_size: usize,
    /// Count of pieces in flight. 0 stands for [`Options::depth`](crate::Options::depth); if that
    /// is 0 too, transfers over TCP choose a count.
    pub depth: usize,
    /// Largest distance in bytes between the start of the first and the end of the last piece in
    /// flight; 0 for no limit. When a transfer ends early, at most this many bytes before the last
    /// transferred byte are missing.
    pub span: u64,
}

/// Each method sets the field of its name.
impl TransferOptions {
    /// The default options.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            io_size: 0,
            depth: 0,
            span: 0,
        }
    }

    /// Sets [`TransferOptions::io_size`](field@Self::io_size).
    #[must_use]
    pub const fn io_size(mut self, io_size: usize) -> Self {
        self.io_size = io_size;
        self
    }

    /// Sets [`TransferOptions::depth`](field@Self::depth).
    #[must_use]
    pub const fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets [`TransferOptions::span`](field@Self::span).
    #[must_use]
    pub const fn span(mut self, span: u64) -> Self {
        self.span = span;
        self
    }
}

/// Ranges of a file in ascending order.
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
    /// Sum of the lengths in bytes.
    pub(crate) fn total(&self) -> u64 {
        let lengths = self
            .0
            .iter()
            .map(|range| range.end.saturating_sub(range.start));
        lengths.fold(0, u64::saturating_add)
    }
}
