//! Holes in files.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// SET_ZERO_DATA, input. \[MS-FSCC\] 2.3.71
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroData {
    /// The first byte of the hole.
    pub file_offset: u64,
    /// The first byte after the hole.
    pub beyond_final_zero: u64,
}

impl ZeroData {
    /// Reads the input.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        Ok(Self {
            file_offset: reader.u64("FileOffset")?,
            beyond_final_zero: reader.u64("BeyondFinalZero")?,
        })
    }

    /// The input.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u64(self.file_offset);
        input.put_u64(self.beyond_final_zero);
        input
    }
}

/// A range of QUERY_ALLOCATED_RANGES: one in the input, any number in the output.
/// \[MS-FSCC\] 2.3.51, 2.3.52
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedRange {
    /// Bytes from the start of the file.
    pub file_offset: u64,
    /// Bytes.
    pub length: u64,
}

impl AllocatedRange {
    /// Bytes of a range.
    pub const LEN: usize = 16;

    /// Reads the input.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        Ok(Self {
            file_offset: reader.u64("FileOffset")?,
            length: reader.u64("Length")?,
        })
    }

    /// The input, or one range of the output.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.put_u64(self.file_offset);
        buffer.put_u64(self.length);
    }

    /// Reads the output; bytes after the last whole range are passed over.
    pub fn decode_list(output: &[u8]) -> Result<Vec<Self>, DecodeError> {
        output.chunks_exact(Self::LEN).map(Self::decode).collect()
    }
}
