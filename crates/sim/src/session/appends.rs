//! Appends happen once at most: records in a file to which is only appended.

use std::collections::BTreeMap;

use crate::check::contents::Span;
use crate::check::{Check, ensure};

/// Bytes of a record.
pub(super) const RECORD: usize = 16;

/// A record that was asked to be appended.
#[derive(Clone, Copy, Debug)]
struct Record {
    span: Span,
    /// Whether it must be there; else it may.
    is_certain: bool,
}

/// All appends to all files. A file is known by a number.
#[derive(Debug, Default)]
pub(super) struct Appends {
    records: BTreeMap<(u64, u64), Record>,
}

impl Appends {
    /// An append whose end is known. One that certainly was not done is not told.
    pub(super) fn note(&mut self, file: u64, number: u64, span: Span, is_certain: bool) {
        let record = Record { span, is_certain };
        self.records.insert((file, number), record);
    }

    /// Whether a file holds what it must, and nothing else. How many records are certain.
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
                format!("log {file}: record {number} at {place} is said not to be there")
            })?;
        }
        let range = (file, 0)..=(file, u64::MAX);
        let certain: Vec<_> = (self.records.range(range))
            .filter(|(_, record)| record.is_certain)
            .collect();
        for ((_, number), record) in &certain {
            let place = places.get(number);
            let place = place.ok_or_else(|| format!("log {file}: record {number} is not there"))?;
            // Whatever was asked for after its answer comes behind it.
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

/// The bytes of a record.
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
    fn what_was_answered_is_there_and_what_was_given_up_may_be() {
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
