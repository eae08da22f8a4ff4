//! Lists of entries that start with NextEntryOffset: the distance in bytes to the next entry, 0 in
//! the last one. \[MS-FSCC\] 2.4, 2.7.1

use alloc::vec::Vec;

use crate::cursor::Put;
use crate::error::DecodeError;

/// Length of NextEntryOffset in bytes.
const OFFSET_LEN: usize = 4;

/// An encoder of a list of entries. Each entry starts with NextEntryOffset, the distance to the
/// next entry in bytes, and is aligned; the last one has no padding.
#[derive(Clone, Debug)]
pub struct ChainWriter {
    bytes: Vec<u8>,
    /// Index in `bytes` of the start of the list; the alignment is relative to it.
    start: usize,
    /// Index in `bytes` of the start of the last entry.
    last: Option<usize>,
    alignment: usize,
    max_len: usize,
}

impl ChainWriter {
    /// Makes a writer that appends a list of at most `max_len` bytes to `bytes`. Each entry starts
    /// at a multiple of `alignment` bytes from the start of the list.
    pub fn new(bytes: Vec<u8>, alignment: usize, max_len: usize) -> Self {
        let start = bytes.len();
        Self {
            bytes,
            start,
            last: None,
            alignment,
            max_len,
        }
    }

    /// Appends an entry to the list and returns true. `encode` appends the bytes of the entry after
    /// NextEntryOffset. Returns false, without a change, if the list would exceed its maximum
    /// length.
    pub fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.bytes.len();
        let length = (before - self.start).next_multiple_of(self.alignment);
        self.bytes.resize(self.start + length, 0);
        let entry = self.bytes.len();
        self.bytes.put_u32(0);
        encode(&mut self.bytes);
        if self.len() > self.max_len || !self.link(entry) {
            self.bytes.truncate(before);
            return false;
        }
        self.last = Some(entry);
        true
    }

    /// Sets NextEntryOffset of the last entry to the entry at index `entry`.
    fn link(&mut self, entry: usize) -> bool {
        let Some(last) = self.last else {
            return true;
        };
        let Ok(offset) = u32::try_from(entry - last) else {
            return false;
        };
        self.bytes[last..last + OFFSET_LEN].copy_from_slice(&offset.to_le_bytes());
        true
    }

    /// Returns the length of the list so far, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Returns true if the list has no entries so far.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Returns the bytes passed to [`ChainWriter::new`], followed by the encoded list.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Iterates over an encoded list of entries. Each entry starts with NextEntryOffset, the distance
/// to the next entry in bytes; an item is an entry without that field. A wrong offset gives an
/// error, which ends the iteration. Offsets only lead forward, so the iteration ends for any input.
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    /// The bytes from the next entry on; `None` after the last entry.
    rest: Option<&'a [u8]>,
    field: &'static str,
    alignment: usize,
}

impl<'a> Chain<'a> {
    /// Makes the iterator over the entries in `bytes`; empty `bytes` are an empty list. A
    /// NextEntryOffset must be a multiple of `alignment` bytes. Errors report `field` as the name
    /// of the list.
    pub fn new(bytes: &'a [u8], field: &'static str, alignment: usize) -> Self {
        Self {
            rest: (!bytes.is_empty()).then_some(bytes),
            field,
            alignment,
        }
    }

    /// Splits the entry at the start of `rest` from the entries after it.
    fn split(&self, rest: &'a [u8]) -> Result<(&'a [u8], Option<&'a [u8]>), DecodeError> {
        let Some((offset, entry)) = rest.split_first_chunk::<OFFSET_LEN>() else {
            return Err(DecodeError::Truncated {
                field: self.field,
                needed: OFFSET_LEN,
                left: rest.len(),
            });
        };
        let offset = u32::from_le_bytes(*offset);
        if offset == 0 {
            return Ok((entry, None));
        }
        let next = usize::try_from(offset).unwrap_or(usize::MAX);
        let is_entry = next > OFFSET_LEN && next.is_multiple_of(self.alignment);
        if !is_entry || next >= rest.len() {
            return Err(DecodeError::Invalid {
                field: self.field,
                value: u64::from(offset),
            });
        }
        Ok((&entry[..next - OFFSET_LEN], Some(&rest[next..])))
    }
}

impl<'a> Iterator for Chain<'a> {
    type Item = Result<&'a [u8], DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        Some(self.split(rest).map(|(entry, after)| {
            self.rest = after;
            entry
        }))
    }
}
