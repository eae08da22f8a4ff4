//! The open streams of a file.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{StreamRecord, push};
use crate::file::StreamId;

/// The open streams of a file, by their numbers. Nearly every open file has exactly one, for which
/// a `BTreeMap` would allocate a node with space for eleven.
#[derive(Debug, Default)]
pub(super) struct Streams {
    /// In the order of the numbers.
    records: Vec<(StreamId, Box<StreamRecord>)>,
}

impl Streams {
    /// Returns the record of a stream.
    pub(super) fn get(&self, stream: StreamId) -> Option<&StreamRecord> {
        let index = self.position(stream).ok()?;
        Some(&self.records[index].1)
    }

    /// Returns the record of a stream, to change it.
    pub(super) fn get_mut(&mut self, stream: StreamId) -> Option<&mut StreamRecord> {
        let index = self.position(stream).ok()?;
        Some(&mut self.records[index].1)
    }

    /// Returns the record of a stream, a new one if it has none.
    pub(super) fn entry(&mut self, stream: StreamId) -> &mut StreamRecord {
        let index = self.position(stream).unwrap_or_else(|index| {
            push(&mut self.records, (stream, Box::default()));
            self.records[index..].rotate_right(1);
            index
        });
        &mut self.records[index].1
    }

    /// Removes the record of a stream.
    pub(super) fn remove(&mut self, stream: StreamId) {
        if let Ok(index) = self.position(stream) {
            self.records.remove(index);
        }
    }

    /// Removes all records.
    pub(super) fn clear(&mut self) {
        self.records.clear();
    }

    /// Returns all streams with their records.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StreamId, &StreamRecord)> {
        let records = self.records.iter();
        records.map(|(stream, record)| (*stream, &**record))
    }

    /// Returns all records.
    pub(super) fn values(&self) -> impl Iterator<Item = &StreamRecord> {
        self.records.iter().map(|(_, record)| &**record)
    }

    /// Returns all records, to change them.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut StreamRecord> {
        self.iter_mut().map(|(_, record)| record)
    }

    /// Returns all streams with their records, to change them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamId, &mut StreamRecord)> {
        let records = self.records.iter_mut();
        records.map(|(stream, record)| (*stream, &mut **record))
    }

    fn position(&self, stream: StreamId) -> Result<usize, usize> {
        self.records.binary_search_by_key(&stream, |(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_in_the_order_of_their_numbers() {
        let mut streams = Streams::default();
        for number in [5, 1, 9, 3, 5, 0] {
            streams.entry(StreamId(number));
        }
        let ids: Vec<u64> = streams.iter_mut().map(|(id, _)| id.0).collect();
        assert_eq!(ids, [0, 1, 3, 5, 9]);
        streams.remove(StreamId(3));
        streams.remove(StreamId(4));
        assert!(streams.get(StreamId(3)).is_none());
        assert!(streams.get_mut(StreamId(5)).is_some());
        assert_eq!(streams.values().count(), 4);
    }
}
