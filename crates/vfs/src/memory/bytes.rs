//! The data of a sparse file in memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// Length of a page in bytes.
pub(crate) const PAGE: u64 = 4096;

/// The data of a file. A page that was never written reads as zeros and uses no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    len: u64,
    pages: BTreeMap<u64, Vec<u8>>,
}

impl Bytes {
    /// Length of the file in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Length of the allocated pages in bytes.
    pub(crate) fn allocated(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Number of bytes that a write would allocate.
    pub(crate) fn cost(&self, offset: u64, count: usize) -> u64 {
        let pages = pages(offset, count as u64).filter(|page| !self.pages.contains_key(page));
        pages.count() as u64 * PAGE
    }

    /// Truncates or extends the file.
    pub(crate) fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pages.split_off(&len.div_ceil(PAGE));
            if let Some(last) = self.pages.get_mut(&(len / PAGE)) {
                last[(len % PAGE) as usize..].fill(0);
            }
        }
        self.len = len;
    }

    /// Reads at an offset in bytes, up to the end of the file. Returns the number of bytes read.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let count = self.len.saturating_sub(offset).min(into.len() as u64);
        let into = &mut into[..count as usize];
        into.fill(0);
        for page in pages(offset, count) {
            let Some(bytes) = self.pages.get(&page) else {
                continue;
            };
            let (within, at) = overlap(page, offset, count);
            into[at].copy_from_slice(&bytes[within]);
        }
        count as usize
    }

    /// Writes at an offset in bytes, and extends the file if necessary.
    pub(crate) fn write(&mut self, offset: u64, from: &[u8]) {
        let count = from.len() as u64;
        for page in pages(offset, count) {
            let bytes = self
                .pages
                .entry(page)
                .or_insert_with(|| vec![0; PAGE as usize]);
            let (within, at) = overlap(page, offset, count);
            bytes[within].copy_from_slice(&from[at]);
        }
        if count > 0 {
            self.len = self.len.max(offset + count);
        }
    }

    /// Fills a range with zeros and frees its whole pages.
    pub(crate) fn zero(&mut self, range: Range<u64>) {
        let (start, count) = (range.start, range.end.saturating_sub(range.start));
        for page in pages(start, count) {
            let (within, _) = overlap(page, start, count);
            if within.len() as u64 == PAGE {
                self.pages.remove(&page);
            } else if let Some(bytes) = self.pages.get_mut(&page) {
                bytes[within].fill(0);
            }
        }
    }

    /// The allocated ranges in ascending order. Adjacent ranges are merged.
    pub(crate) fn ranges(&self, within: Range<u64>, limit: usize) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let end = within.end.min(self.len);
        let touched = within.start / PAGE..end.div_ceil(PAGE).max(within.start / PAGE);
        for (page, _) in self.pages.range(touched) {
            let piece = (page * PAGE).max(within.start)..((page + 1) * PAGE).min(end);
            let is_full = ranges.len() == limit;
            match ranges.last_mut().filter(|last| last.end == piece.start) {
                Some(last) => last.end = piece.end,
                None if is_full => break,
                None => ranges.push(piece),
            }
        }
        ranges
    }
}

/// The numbers of the pages that overlap a range.
fn pages(offset: u64, count: u64) -> Range<u64> {
    match count {
        0 => 0..0,
        _ => offset / PAGE..(offset + count).div_ceil(PAGE),
    }
}

/// The overlap of a range and a page: relative to the page, and relative to the range.
fn overlap(page: u64, offset: u64, count: u64) -> (Range<usize>, Range<usize>) {
    let start = offset.max(page * PAGE);
    let end = (offset + count).min((page + 1) * PAGE);
    let from = |base: u64| (start - base) as usize..(end - base) as usize;
    (from(page * PAGE), from(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hole_is_zero_and_free() {
        let mut bytes = Bytes::default();
        bytes.write(1 << 40, b"x");
        assert_eq!(bytes.len(), (1 << 40) + 1);
        assert_eq!(bytes.allocated(), PAGE);
        let mut into = [7; 3];
        assert_eq!(bytes.read(5, &mut into), 3);
        assert_eq!(into, [0; 3]);
    }

    #[test]
    fn truncated_bytes_do_not_return() {
        let mut bytes = Bytes::default();
        bytes.write(0, &[9; 5000]);
        bytes.set_len(10);
        bytes.set_len(5000);
        let mut into = [7; 5000];
        assert_eq!(bytes.read(0, &mut into), 5000);
        assert_eq!(into[..10], [9; 10]);
        assert!(into[10..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn zeros_take_no_memory_where_they_fill_a_page() {
        let mut bytes = Bytes::default();
        bytes.write(0, &[9; 4 * PAGE as usize]);
        bytes.zero(10..3 * PAGE);
        assert_eq!(bytes.len(), 4 * PAGE);
        let all = |limit| bytes.ranges(0..u64::MAX, limit);
        assert_eq!(all(9), [0..PAGE, 3 * PAGE..4 * PAGE]);
        assert_eq!(all(1), all(9)[..1]);
        assert_eq!(
            bytes.ranges(5..3 * PAGE + 1, 9),
            [5..PAGE, 3 * PAGE..3 * PAGE + 1]
        );
        assert_eq!(bytes.ranges(PAGE..3 * PAGE, 9), []);
        assert_eq!(bytes.ranges(5 * PAGE..6 * PAGE, 9), []);
        let mut into = [7; 12];
        assert_eq!(bytes.read(0, &mut into), 12);
        assert_eq!(into, [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0]);
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_vector(
            steps in prop::collection::vec((0_u64..20_000, 0_usize..9_000, any::<u8>()), 0..20),
        ) {
            let mut bytes = Bytes::default();
            let mut model: Vec<u8> = Vec::new();
            for (offset, count, fill) in steps {
                if fill % 4 == 0 {
                    bytes.set_len(offset);
                    model.resize(offset as usize, 0);
                    continue;
                }
                if fill % 4 == 1 {
                    let end = (offset + count as u64).min(bytes.len());
                    bytes.zero(offset..end);
                    let hole = model.get_mut(offset as usize..end as usize);
                    hole.unwrap_or_default().fill(0);
                    continue;
                }
                bytes.write(offset, &vec![fill; count]);
                if count > 0 {
                    model.resize(model.len().max(offset as usize + count), 0);
                    model[offset as usize..][..count].fill(fill);
                }
            }
            let mut all = vec![1; model.len() + 1];
            let read = bytes.read(0, &mut all);
            prop_assert_eq!(&all[..read], &model[..]);
        }
    }
}
