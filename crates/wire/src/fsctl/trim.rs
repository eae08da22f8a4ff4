//! FSCTL_FILE_LEVEL_TRIM: ranges of a file that storage need not keep.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;

/// A range of a file with data that the client no longer needs. \[MS-FSCC\] 2.3.13.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimRange {
    /// Offset of the range in bytes.
    pub offset: u64,
    /// Length of the range in bytes.
    pub length: u64,
}

/// Input of FSCTL_FILE_LEVEL_TRIM. \[MS-FSCC\] 2.3.13
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLevelTrim {
    /// Distinguishes owners of byte-range locks for a local caller; SMB clients set 0.
    pub key: u32,
    /// The ranges, in the order of processing.
    pub ranges: Vec<TrimRange>,
}

impl FileLevelTrim {
    /// Length of the input before the ranges in bytes.
    const FIXED_LEN: usize = 8;
    /// Length of a range in bytes.
    const RANGE_LEN: usize = 16;

    /// Decodes the input buffer of the request. Fails when `input` is shorter than the ranges that
    /// it announces. Later bytes are ignored.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        let key = reader.u32("Key")?;
        let count = reader.u32("NumRanges")? as usize;
        let bytes = reader.bytes("Ranges", count.saturating_mul(Self::RANGE_LEN))?;
        let ranges = bytes.chunks_exact(Self::RANGE_LEN).map(decode_range);
        Ok(Self {
            key,
            ranges: ranges.collect::<Result<_, _>>()?,
        })
    }

    /// Encodes the input buffer of the request.
    pub fn encode(&self) -> Vec<u8> {
        let len = Self::FIXED_LEN + self.ranges.len() * Self::RANGE_LEN;
        let mut input = Vec::with_capacity(len);
        input.put_u32(self.key);
        input.put_u32(u32::try_from(self.ranges.len()).expect("fewer than 2^32 ranges"));
        for TrimRange { offset, length } in &self.ranges {
            input.put_u64(*offset);
            input.put_u64(*length);
        }
        input
    }
}

fn decode_range(bytes: &[u8]) -> Result<TrimRange, DecodeError> {
    let mut reader = Reader::new(bytes);
    Ok(TrimRange {
        offset: reader.u64("Offset")?,
        length: reader.u64("Length")?,
    })
}

/// Output of FSCTL_FILE_LEVEL_TRIM. \[MS-FSCC\] 2.3.14
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLevelTrimOutput {
    /// Number of processed ranges. The server did not process the ranges after them.
    pub processed: u32,
}

impl FileLevelTrimOutput {
    /// Length of the output in bytes.
    pub const LEN: usize = 4;

    /// Decodes the output buffer of the response. Fails when `output` has less than 4 bytes.
    pub fn decode(output: &[u8]) -> Result<Self, DecodeError> {
        let processed = Reader::new(output).u32("NumRangesProcessed")?;
        Ok(Self { processed })
    }

    /// Encodes the output buffer of the response.
    pub fn encode(&self) -> Vec<u8> {
        self.processed.to_le_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_has_the_ranges_that_it_announces() {
        let range = |offset| TrimRange { offset, length: 7 };
        let trim = FileLevelTrim {
            key: 3,
            ranges: [1, u64::MAX].map(range).to_vec(),
        };
        let input = trim.encode();
        assert_eq!(input.len(), 40);
        assert_eq!(FileLevelTrim::decode(&input), Ok(trim));
        for len in 0..input.len() {
            assert!(FileLevelTrim::decode(&input[..len]).is_err(), "{len}");
        }
        let mut many = input;
        many[4..8].fill(0xFF);
        assert!(FileLevelTrim::decode(&many).is_err());
        let output = FileLevelTrimOutput { processed: 5 };
        assert_eq!(FileLevelTrimOutput::decode(&output.encode()), Ok(output));
    }
}
