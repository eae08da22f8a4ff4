//! Options of transfers, and ranges of files.

use std::ops::Range;

/// Options of one download, upload or copy. The defaults suit most transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferOptions {
    /// Length of one READ or WRITE of the transfer in bytes. 0 stands for
    /// [`Options::io_size`](crate::Options::io_size); if that is 0 too, transfers over TCP choose a
    /// length.
    pub io_size: usize,
    /// Count of READs or WRITEs of the transfer in flight. 0 stands for
    /// [`Options::depth`](crate::Options::depth); if that is 0 too, transfers over TCP choose a
    /// count.
    pub depth: usize,
    /// Largest distance in bytes between the start of the first and the end of the last READ or
    /// WRITE in flight; 0 for no limit. If the transfer fails, bytes before the last transferred
    /// byte can be missing, but only within this distance.
    pub span: u64,
}

/// Each method sets the field of its name.
impl TransferOptions {
    /// Makes the default options: the client selects length and count of the READs and WRITEs, and
    /// the span has no limit.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            io_size: 0,
            depth: 0,
            span: 0,
        }
    }

    /// Sets the [length of one READ or WRITE](field@Self::io_size) in bytes; 0 stands for the
    /// default.
    #[must_use]
    pub const fn io_size(mut self, io_size: usize) -> Self {
        self.io_size = io_size;
        self
    }

    /// Sets the [count of READs or WRITEs in flight](field@Self::depth); 0 stands for the default.
    #[must_use]
    pub const fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the largest distance in bytes between the start of the first and the end of the last
    /// READ or WRITE in flight; 0 for no limit. See the field [`span`](field@Self::span).
    #[must_use]
    pub const fn span(mut self, span: u64) -> Self {
        self.span = span;
        self
    }
}

/// The ranges of a file that a transfer covers, as offsets in bytes and in ascending order. A
/// single `Range<u64>` and a `Vec` of ranges convert to this type.
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
