//! FSCTL_DUPLICATE_EXTENTS_TO_FILE, and its extended form.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::open_enum::open_flags;

/// StructureSize of the extended form, which does not count all of it.
const EX_STRUCTURE_SIZE: u64 = 0x30;

open_flags! {
    /// Flags of FSCTL_DUPLICATE_EXTENTS_TO_FILE_EX. \[MS-FSCC\] 2.3.9
    DuplicateExtentsFlags(u32) {
        /// The target receives the data that the source had at one moment.
        SOURCE_ATOMIC = 0x0000_0001,
    }
}

/// Input of FSCTL_DUPLICATE_EXTENTS_TO_FILE (SMB2_DUPLICATE_EXTENTS_DATA) and of its extended form:
/// a range of a file that the target file of the request will share. \[MS-FSCC\] 2.3.7.2, 2.3.9.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateExtents {
    /// The open of the source file.
    pub source: FileId,
    /// Offset of the range in the source file in bytes; a signed integer on the wire.
    pub source_offset: u64,
    /// Offset of the range in the target file in bytes; a signed integer on the wire.
    pub target_offset: u64,
    /// Length of the range in bytes; a signed integer on the wire.
    pub byte_count: u64,
    /// Flags of the extended form; none in the other one.
    pub flags: DuplicateExtentsFlags,
}

impl DuplicateExtents {
    /// Decodes the input buffer of FSCTL_DUPLICATE_EXTENTS_TO_FILE. Fails when `input` has less
    /// than 40 bytes.
    pub fn decode(input: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(input))
    }

    /// Decodes the input buffer of FSCTL_DUPLICATE_EXTENTS_TO_FILE_EX. Fails when `input` has less
    /// than 56 bytes, or StructureSize is wrong.
    pub fn decode_ex(input: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input);
        match reader.u64("StructureSize")? {
            EX_STRUCTURE_SIZE => {}
            value => {
                let field = "StructureSize";
                return Err(DecodeError::Invalid { field, value });
            }
        }
        let mut range = Self::read(&mut reader)?;
        range.flags = DuplicateExtentsFlags(reader.u32("Flags")?);
        reader.skip("Reserved", 4)?;
        Ok(range)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            source: reader.file_id("SourceFileID")?,
            source_offset: reader.u64("SourceFileOffset")?,
            target_offset: reader.u64("TargetFileOffset")?,
            byte_count: reader.u64("ByteCount")?,
            flags: DuplicateExtentsFlags::NONE,
        })
    }

    /// Encodes the input buffer of FSCTL_DUPLICATE_EXTENTS_TO_FILE, which has no flags.
    pub fn encode(&self) -> Vec<u8> {
        let mut input = Vec::new();
        self.put(&mut input);
        input
    }

    /// Encodes the input buffer of FSCTL_DUPLICATE_EXTENTS_TO_FILE_EX.
    pub fn encode_ex(&self) -> Vec<u8> {
        let mut input = Vec::new();
        input.put_u64(EX_STRUCTURE_SIZE);
        self.put(&mut input);
        input.put_u32(self.flags.0);
        input.put_u32(0);
        input
    }

    fn put(&self, input: &mut Vec<u8>) {
        input.put_file_id(self.source);
        input.put_u64(self.source_offset);
        input.put_u64(self.target_offset);
        input.put_u64(self.byte_count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_survive_a_round_trip() {
        let range = DuplicateExtents {
            source: FileId {
                persistent: 1,
                volatile: 2,
            },
            source_offset: 3,
            target_offset: 4,
            byte_count: 5,
            flags: DuplicateExtentsFlags::NONE,
        };
        let input = range.encode();
        assert_eq!((input.len(), input[16], input[32]), (40, 3, 5));
        assert_eq!(DuplicateExtents::decode(&input), Ok(range));
        assert!(DuplicateExtents::decode(&input[1..]).is_err());
        let atomic = DuplicateExtents {
            flags: DuplicateExtentsFlags::SOURCE_ATOMIC,
            ..range
        };
        let mut input = atomic.encode_ex();
        assert_eq!((input.len(), input[0], input[48]), (56, 0x30, 1));
        assert_eq!(DuplicateExtents::decode_ex(&input), Ok(atomic));
        assert!(DuplicateExtents::decode_ex(&input[..55]).is_err());
        input[0] = 0x38;
        assert!(DuplicateExtents::decode_ex(&input).is_err());
    }
}
