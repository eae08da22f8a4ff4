//! Appends: each record is appended at most once.

use std::collections::BTreeMap;

use crate::check::contents::Span;
use crate::check::{Check, ensure};

/// Length of a record in bytes.
pub(super) const RECORD: usize = 16;

/// A record that a session appended.
#[derive(Clone, Copy, Debug)]
struct Record {
    span: Span,
    /// Whether the file must contain it; otherwise it may.
    is_certain: bool,
}

/// All appends to all files. A file is identified by a number.
#[derive(Debug, Default)]
pub(super) struct Appends {
    records: BTreeMap<(u64, u64), Record>,
}

impl Appends {
    /// Records an append with a known end. An append that certainly failed is not recorded.
    pub(super) fn note(&mut self, file: u64, number: u64, span: Span, is_certain: bool) {
        let record = Record { span, is_certain };
        self.records.insert((file, number), record);
    }

    /// Checks the content of a file. Returns the number of records that it certainly contains.
    pub(super) fn check(&self, file: u64, bytes: &[u8]) -> Check<usize> {
        let mut places = BTreeMap::new();
        for (place, record) in bytes.chunks(RECORD).enumerate() {
            let number = parse(record)
                .ok_or_else(|| format!("log {file}: {record:x?} at {place} is no record"))?;
            let before = places.insert(number, place);
            ensure(before.is_none(), || {
                format!("log {file}: record {number} was appended at {before:?} and at {place}")
            })?;
            ensure(self.records.contains_key(&(file, number)), || {
                format!("log {file}: record {number} at {place} exists, although its append failed")
            })?;
        }
        let range = (file, 0)..=(file, u64::MAX);
        let certain: Vec<_> = (self.records.range(range))
            .filter(|(_, record)| record.is_certain)
            .collect();
        for ((_, number), record) in &certain {
            let place = places.get(number);
            let place = place.ok_or_else(|| format!("log {file}: record {number} is missing"))?;
            // Records that were requested after its response follow it in the file.
            let overtaker = places.iter().find(|(other, at)| {
                let start = self.records[&(file, **other)].span.start;
                record.span.end.is_some_and(|end| start > end) && *at < place
            });
            ensure(overtaker.is_none(), || {
                format!("log {file}: record {number} at {place} comes behind {overtaker:?}")
            })?;
        }
        Ok(certain.len())
    }
}

/// Returns the bytes of a record.
pub(super) fn record(number: u64) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend((!number).to_le_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    let number = u64::from_le_bytes(*number);
    (rest == (!number).to_le_bytes()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appends() -> Appends {
        let mut appends = Appends::default();
        let span = |start, end| Span { start, end };
        appends.note(1, 1, span(1, Some(2)), true);
        appends.note(1, 2, span(3, Some(6)), true);
        appends.note(1, 3, span(4, None), false);
        appends
    }

    fn file(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().copied().flat_map(record).collect()
    }

    #[test]
    fn answered_records_exist_and_canceled_records_may() {
        for good in [&[1, 2][..], &[1, 2, 3], &[1, 3, 2]] {
            assert_eq!(appends().check(1, &file(good)), Ok(2), "{good:?}");
        }
    }

    #[test]
    fn what_is_missing_or_twice_or_strange_or_too_late_is_found() {
        for bad in [&[1][..], &[1, 2, 2], &[1, 2, 3, 3], &[1, 2, 4], &[2, 1]] {
            assert!(appends().check(1, &file(bad)).is_err(), "{bad:?}");
        }
        assert!(appends().check(1, &file(&[1, 2])[1..]).is_err());
    }
}
