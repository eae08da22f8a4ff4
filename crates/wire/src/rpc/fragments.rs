//! Reassembly of fragments from a byte stream: one write to a pipe may have a part of a fragment,
//! or several fragments.

use alloc::vec::Vec;

use super::pdu::Header;
use crate::error::DecodeError;

/// A buffer that splits the bytes received on a pipe into RPC fragments. One write to a pipe may
/// have a part of a fragment, or several fragments.
#[derive(Clone, Debug)]
pub struct Fragments {
    bytes: Vec<u8>,
    /// Index of the first byte that `take` has not returned.
    start: usize,
    max_fragment: u16,
}

impl Fragments {
    /// Makes an empty buffer that accepts fragments of at most `max_fragment` bytes.
    pub fn new(max_fragment: u16) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            max_fragment,
        }
    }

    /// Appends bytes that the pipe received. The caller must call [`Self::take`] until it returns
    /// `None` before it appends more, so that the buffer holds at most one incomplete fragment.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the number of received bytes that [`Self::take`] has not returned yet.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Removes the next complete fragment from the buffer and returns it; `None` while the next
    /// fragment is incomplete.
    ///
    /// # Errors
    /// Fails when the header of the fragment is not valid, or the fragment exceeds the maximum
    /// length. The buffer is then not usable anymore.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, DecodeError> {
        let left = &self.bytes[self.start..];
        if left.len() < Header::LEN {
            return Ok(None);
        }
        let header = Header::decode(left)?;
        if header.frag_length > self.max_fragment {
            return Err(DecodeError::Invalid {
                field: "frag_length",
                value: header.frag_length.into(),
            });
        }
        let length = usize::from(header.frag_length);
        let fragment = left.get(..length).map(<[u8]>::to_vec);
        if fragment.is_some() {
            self.start += length;
        }
        Ok(fragment)
    }
}
