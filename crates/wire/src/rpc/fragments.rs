//! Bytes become fragments: a writer may send one in pieces, or several at once.

use alloc::vec::Vec;

use super::pdu::Header;
use crate::error::DecodeError;

/// What has come through a pipe and is not taken yet.
#[derive(Clone, Debug)]
pub struct Fragments {
    bytes: Vec<u8>,
    /// Where what is not taken begins.
    start: usize,
    max_fragment: u16,
}

impl Fragments {
    /// Takes no fragment that is longer.
    pub fn new(max_fragment: u16) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            max_fragment,
        }
    }

    /// Adds what has come. Take what is whole, with [`Self::take`], before more is added: then no
    /// more than a fragment is kept.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes of a fragment that is not whole.
    pub fn pending(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Takes the next fragment, once it is whole. After an error nothing makes sense any more.
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
