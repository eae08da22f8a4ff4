//! Ranges of sparse files.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// Input of FSCTL_SET_ZERO_DATA: the range of a file that the server fills with zeros. \[MS-FSCC\]
/// 2.3.71
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroData {
    /// Offset in bytes of the first byte of the range.
    pub file_offset: u64,
    /// Offset in bytes of the first byte after the range.
    pub beyond_final_zero: u64,
}

impl ZeroData {
    /// Decodes the input buffer of an IOCTL request with FSCTL_SET_ZERO_DATA. Fails when `input`
    /// has less than 16 bytes.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        Ok(Self {
            file_offset: reader.u64("FileOffset")?,
            beyond_final_zero: reader.u64("BeyondFinalZero")?,
        })
    }

    /// Encodes the input buffer of an IOCTL request with FSCTL_SET_ZERO_DATA.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u64(self.file_offset);
        input.put_u64(self.beyond_final_zero);
        input
    }
}

/// A range of a file in FSCTL_QUERY_ALLOCATED_RANGES. The input of the control code has one, the
/// range to search; the output has the allocated ranges in it. \[MS-FSCC\] 2.3.51, 2.3.52
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatedRange {
    /// Offset in bytes of the start of the range from the start of the file.
    pub file_offset: u64,
    /// Length of the range in bytes.
    pub length: u64,
}

impl AllocatedRange {
    /// Length of an encoded range in bytes.
    pub const LEN: usize = 16;

    /// Decodes the input buffer of an IOCTL request with FSCTL_QUERY_ALLOCATED_RANGES. Fails when
    /// `input` has less than 16 bytes.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        Ok(Self {
            file_offset: reader.u64("FileOffset")?,
            length: reader.u64("Length")?,
        })
    }

    /// Appends the encoded range to `buffer`: the input, or one range of the output.
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        buffer.put_u64(self.file_offset);
        buffer.put_u64(self.length);
    }

    /// Decodes `output`, the output buffer of an IOCTL response with FSCTL_QUERY_ALLOCATED_RANGES.
    /// Returns its ranges in the order of the buffer. Up to 15 bytes after the last whole range of
    /// 16 bytes are ignored, so the function succeeds for every input. An empty buffer results in
    /// no ranges.
    ///
    /// # Errors
    /// None: the result is always `Ok`.
    pub fn decode_list(output: &[u8]) -> Result<Vec<Self>, DecodeError> {
        output.chunks_exact(Self::LEN).map(Self::decode).collect()
    }
}
