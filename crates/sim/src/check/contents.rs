//! File contents: a register for each cell of each file, checked at the end of a run.
//!
//! Every write fills whole cells with a unique stamp, so that a cell identifies its write. A read
//! may return a write that was in progress at the time, or the last one before it. A write with an
//! unknown outcome may become visible at any time after its start, or never. A copy is a write of
//! the stamps that a read of its source may return.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::check::{Check, ensure};

/// Length of a cell in bytes: clients read and write whole cells.
pub(crate) const CELL: usize = 512;
/// Maximum number of cells of a file.
pub(crate) const CELLS: u32 = 400;

/// The content of a cell. 0 is a hole, or past the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Stamp(pub(crate) u64);

impl Stamp {
    /// Returns the stamp with this number of a user.
    pub(crate) fn of(user: usize, number: u64) -> Self {
        Self((user as u64 + 1) << 48 | number)
    }

    /// Returns the user that wrote the stamp.
    pub(crate) fn user(self) -> Option<usize> {
        ((self.0 >> 48) as usize).checked_sub(1)
    }

    /// Returns cells filled with the stamp.
    pub(crate) fn fill(self, cells: u32) -> Vec<u8> {
        self.0.to_le_bytes().repeat(cells as usize * CELL / 8)
    }

    /// Returns the stamp of a cell; `None` if the cell is torn.
    pub(crate) fn read(cell: &[u8]) -> Option<Self> {
        let first: [u8; 8] = *cell.first_chunk()?;
        let is_whole = cell.chunks(8).all(|chunk| *chunk == first[..chunk.len()]);
        is_whole.then_some(Self(u64::from_le_bytes(first)))
    }
}

/// A span of ticks of the world: each frame that a client sends or receives has a separate tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Tick at which the client sent the request.
    pub(crate) start: u64,
    /// Tick at which the client received the answer; `None` while the request may still have an
    /// effect.
    pub(crate) end: Option<u64>,
}

/// A file, by its number on the disk; `None` for a name of an unknown file.
pub(crate) type Key = Option<u64>;

/// The data that a write puts into its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    /// The same stamp in each cell.
    Stamp(Stamp),
    /// The content of the same number of cells of a file, from this cell on.
    Cells(u64, u32),
}

#[derive(Debug)]
struct Write {
    cells: Range<u32>,
    filling: Filling,
    span: Span,
    is_certain: bool,
    /// The connection with which the write was lost.
    connection: u64,
}

#[derive(Debug)]
struct Read {
    key: u64,
    cell: u32,
    stamp: Stamp,
    span: Span,
}

/// All writes and reads of a run.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    writes: BTreeMap<Key, Vec<Write>>,
    reads: Vec<Read>,
}

impl Contents {
    /// Records an answered write. If it is uncertain, it may have had its effect or not.
    pub(crate) fn wrote(
        &mut self,
        key: Key,
        (cells, filling): (Range<u32>, Filling),
        span: Span,
        is_certain: bool,
    ) {
        let write = Write {
            cells,
            filling,
            span,
            is_certain: is_certain && key.is_some(),
            connection: 0,
        };
        self.writes.entry(key).or_default().push(write);
    }

    /// Records a write without an answer: its connection has ended.
    pub(crate) fn lost(
        &mut self,
        key: Key,
        (cells, filling): (Range<u32>, Filling),
        start: u64,
        connection: u64,
    ) {
        let write = Write {
            cells,
            filling,
            span: Span { start, end: None },
            is_certain: false,
            connection,
        };
        self.writes.entry(key).or_default().push(write);
    }

    /// All requests of a connection have had their effect.
    pub(crate) fn settle(&mut self, connection: u64, now: u64) {
        let lost = self.writes.values_mut().flatten();
        for write in lost.filter(|write| write.connection == connection) {
            write.span.end.get_or_insert(now);
        }
    }

    /// Records an answered read.
    pub(crate) fn read(&mut self, key: u64, cell: u32, stamp: Stamp, span: Span) {
        let read = Read {
            key,
            cell,
            stamp,
            span,
        };
        self.reads.push(read);
    }

    /// Checks that every read returned a possible value. Returns the number of reads.
    pub(crate) fn check(&self) -> Check<usize> {
        for read in &self.reads {
            ensure(self.explains(read, &mut Vec::new()), || {
                let Read {
                    key,
                    cell,
                    stamp,
                    span,
                } = read;
                let writes = [Some(*key), None]
                    .into_iter()
                    .filter_map(|key| self.writes.get(&key));
                let writes = writes.flatten().filter(|write| write.cells.contains(cell));
                format!(
                    "file {key:#x}, cell {cell}: read {stamp:x?} at {span:?}, \
                     a stale value of {:x?}",
                    writes.collect::<Vec<_>>()
                )
            })?;
        }
        Ok(self.reads.len())
    }

    /// `through` lists the copies that moved the stamp to the cell of the read: no copy twice.
    fn explains<'a>(&'a self, read: &Read, through: &mut Vec<&'a Write>) -> bool {
        let keys = [Some(read.key), None];
        let lists = keys.iter().filter_map(|key| self.writes.get(key));
        let writes: Vec<&Write> = lists
            .flatten()
            .filter(|write| write.cells.contains(&read.cell))
            .collect();
        let read_end = read.span.end.unwrap_or(u64::MAX);
        // Whether a later write completed before the read began.
        let is_over = |end: Option<u64>| {
            writes.iter().any(|later| {
                later.is_certain
                    && end.is_some_and(|end| later.span.start > end)
                    && later.span.end.is_some_and(|end| end < read.span.start)
            })
        };
        let was_never_written = read.stamp == Stamp::default() && !is_over(Some(0));
        was_never_written
            || (writes.iter())
                .filter(|write| write.span.start <= read_end && !is_over(write.span.end))
                .any(|write| self.may_put(write, read, through))
    }

    /// Returns whether a write may have produced the value of the read.
    fn may_put<'a>(&'a self, write: &'a Write, read: &Read, through: &mut Vec<&'a Write>) -> bool {
        let (key, first) = match write.filling {
            Filling::Stamp(stamp) => return stamp == read.stamp,
            Filling::Cells(key, first) => (key, first),
        };
        if through.iter().any(|known| core::ptr::eq(*known, write)) {
            return false;
        }
        let source = Read {
            key,
            cell: first + (read.cell - write.cells.start),
            stamp: read.stamp,
            span: write.span,
        };
        through.push(write);
        let explains = self.explains(&source, through);
        through.pop();
        explains
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span {
            start,
            end: Some(end),
        }
    }

    fn contents(reads: &[(u64, Span)]) -> Contents {
        let mut contents = Contents::default();
        let stamp = |number| Filling::Stamp(Stamp(number));
        contents.wrote(Some(1), (0..2, stamp(7)), span(1, 2), true);
        contents.wrote(Some(1), (0..1, stamp(8)), span(5, 8), true);
        contents.wrote(Some(1), (0..1, stamp(9)), span(10, 11), false);
        for (stamp, span) in reads {
            contents.read(1, 0, Stamp(*stamp), *span);
        }
        contents
    }

    #[test]
    fn a_read_sees_the_last_write_or_one_in_progress() {
        let good = [
            (0, span(1, 2)),
            (7, span(3, 4)),
            (7, span(6, 7)),
            (8, span(6, 7)),
            (8, span(12, 13)),
            (9, span(12, 13)),
        ];
        assert_eq!(contents(&good).check(), Ok(good.len()));
    }

    #[test]
    fn a_stale_read_is_found() {
        for bad in [
            (0, span(3, 4)),
            (7, span(9, 9)),
            (9, span(8, 9)),
            (5, span(3, 4)),
        ] {
            assert!(contents(&[bad]).check().is_err(), "{bad:?}");
        }
    }

    /// Cell 0 of file 1 is 7, then 8. A copy moves it to cell 5 of file 2, another copy back to
    /// cell 0.
    fn copies(reads: &[(u64, u32, u64, Span)]) -> Contents {
        let mut contents = Contents::default();
        let stamp = |number| Filling::Stamp(Stamp(number));
        contents.wrote(Some(1), (0..1, stamp(7)), span(1, 2), true);
        contents.wrote(Some(2), (5..6, Filling::Cells(1, 0)), span(5, 8), true);
        contents.wrote(Some(1), (0..1, stamp(8)), span(7, 9), true);
        contents.wrote(Some(1), (0..1, Filling::Cells(2, 5)), span(20, 21), true);
        for (key, cell, stamp, span) in reads {
            contents.read(*key, *cell, Stamp(*stamp), *span);
        }
        contents
    }

    #[test]
    fn a_copy_brings_what_was_there_meanwhile() {
        let good = [
            (2, 5, 0, span(3, 4)),
            (2, 5, 7, span(10, 11)),
            (2, 5, 8, span(10, 11)),
            (1, 0, 8, span(12, 13)),
            (1, 0, 7, span(22, 23)),
            (1, 0, 8, span(22, 23)),
        ];
        assert_eq!(copies(&good).check(), Ok(good.len()));
    }

    #[test]
    fn a_copy_of_what_was_never_there_is_found() {
        for bad in [
            (2, 5, 7, span(3, 4)),
            (2, 5, 0, span(10, 11)),
            (2, 5, 9, span(10, 11)),
            (2, 4, 7, span(10, 11)),
            (1, 0, 7, span(12, 13)),
            (1, 0, 0, span(22, 23)),
        ] {
            assert!(copies(&[bad]).check().is_err(), "{bad:?}");
        }
    }
}
