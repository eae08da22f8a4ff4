//! Information classes of fixed length about times, sizes, attributes and ids, and the one that
//! holds them all.

use alloc::vec::Vec;

use super::name::FileNameInformation;
use super::single::{
    FileAccessInformation, FileAlignmentInformation, FileEaInformation, FileInternalInformation,
    FileModeInformation, FilePositionInformation,
};
use crate::access::FileAttributes;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::time::FileTime;

/// Times and attributes. \[MS-FSCC\] 2.4.7
///
/// In a set, 0 leaves a time alone, [`FileTime::FREEZE`] and [`FileTime::THAW`] stop and restart
/// its updates, and attributes of 0 stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileBasicInformation {
    /// When the file was created.
    pub created: FileTime,
    /// When it was last read.
    pub accessed: FileTime,
    /// When its data last changed.
    pub written: FileTime,
    /// When its data or attributes last changed.
    pub changed: FileTime,
    /// DOS attributes.
    pub attributes: FileAttributes,
}

impl FileBasicInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 40;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let information = Self {
            created: FileTime(reader.u64("CreationTime")?),
            accessed: FileTime(reader.u64("LastAccessTime")?),
            written: FileTime(reader.u64("LastWriteTime")?),
            changed: FileTime(reader.u64("ChangeTime")?),
            attributes: FileAttributes(reader.u32("FileAttributes")?),
        };
        reader.skip("Reserved", 4)?;
        Ok(information)
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.0);
        out.put_u64(self.accessed.0);
        out.put_u64(self.written.0);
        out.put_u64(self.changed.0);
        out.put_u32(self.attributes.0);
        out.put_u32(0);
    }
}

/// Sizes, links, and what kind. \[MS-FSCC\] 2.4.47
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileStandardInformation {
    /// Bytes on disk.
    pub allocation_size: u64,
    /// Bytes in the file.
    pub end_of_file: u64,
    /// Names that the file has.
    pub number_of_links: u32,
    /// Whether it goes away with the last close.
    pub is_delete_pending: bool,
    /// Whether it is a directory.
    pub is_directory: bool,
}

impl FileStandardInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let information = Self {
            allocation_size: reader.u64("AllocationSize")?,
            end_of_file: reader.u64("EndOfFile")?,
            number_of_links: reader.u32("NumberOfLinks")?,
            is_delete_pending: reader.u8("DeletePending")? != 0,
            is_directory: reader.u8("Directory")? != 0,
        };
        reader.skip("Reserved", 2)?;
        Ok(information)
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.number_of_links);
        out.put_u8(u8::from(self.is_delete_pending));
        out.put_u8(u8::from(self.is_directory));
        out.put_u16(0);
    }
}

/// Nine classes in one. \[MS-FSCC\] 2.4.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileAllInformation<'a> {
    /// Times and attributes.
    pub basic: FileBasicInformation,
    /// Sizes, links, and what kind.
    pub standard: FileStandardInformation,
    /// The number of the file.
    pub internal: FileInternalInformation,
    /// The size of the extended attributes.
    pub ea: FileEaInformation,
    /// The access that the open has.
    pub access: FileAccessInformation,
    /// The position of the open.
    pub position: FilePositionInformation,
    /// How the open does its I/O.
    pub mode: FileModeInformation,
    /// The alignment that the device asks for.
    pub alignment: FileAlignmentInformation,
    /// The path from the root of the share, with a leading backslash.
    pub name: FileNameInformation<'a>,
}

impl<'a> FileAllInformation<'a> {
    /// Bytes before the characters of the name.
    pub const FIXED_LEN: usize = 100;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let reader = &mut Reader::new(bytes);
        Ok(Self {
            basic: FileBasicInformation::read(reader)?,
            standard: FileStandardInformation::read(reader)?,
            internal: FileInternalInformation::read(reader)?,
            ea: FileEaInformation::read(reader)?,
            access: FileAccessInformation::read(reader)?,
            position: FilePositionInformation::read(reader)?,
            mode: FileModeInformation::read(reader)?,
            alignment: FileAlignmentInformation::read(reader)?,
            name: FileNameInformation::read(reader)?,
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.basic.encode(out);
        self.standard.encode(out);
        self.internal.encode(out);
        self.ea.encode(out);
        self.access.encode(out);
        self.position.encode(out);
        self.mode.encode(out);
        self.alignment.encode(out);
        self.name.encode(out);
    }
}

/// How the file is compressed. \[MS-FSCC\] 2.4.9
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileCompressionInformation {
    /// Bytes after compression.
    pub compressed_size: u64,
    /// 0 for none, 2 for LZNT1.
    pub format: u16,
    /// Bytes of a compression unit, as a power of two.
    pub unit_shift: u8,
    /// Bytes of a chunk, as a power of two.
    pub chunk_shift: u8,
    /// Bytes of a cluster, as a power of two.
    pub cluster_shift: u8,
}

impl FileCompressionInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let information = Self {
            compressed_size: reader.u64("CompressedFileSize")?,
            format: reader.u16("CompressionFormat")?,
            unit_shift: reader.u8("CompressionUnitShift")?,
            chunk_shift: reader.u8("ChunkShift")?,
            cluster_shift: reader.u8("ClusterShift")?,
        };
        reader.skip("Reserved", 3)?;
        Ok(information)
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.compressed_size);
        out.put_u16(self.format);
        out.put_u8(self.unit_shift);
        out.put_u8(self.chunk_shift);
        out.put_u8(self.cluster_shift);
        out.put(&[0; 3]);
    }
}

/// What a client asks for after an open. \[MS-FSCC\] 2.4.34
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileNetworkOpenInformation {
    /// When the file was created.
    pub created: FileTime,
    /// When it was last read.
    pub accessed: FileTime,
    /// When its data last changed.
    pub written: FileTime,
    /// When its data or attributes last changed.
    pub changed: FileTime,
    /// Bytes on disk.
    pub allocation_size: u64,
    /// Bytes in the file.
    pub end_of_file: u64,
    /// DOS attributes.
    pub attributes: FileAttributes,
}

impl FileNetworkOpenInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 56;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let information = Self {
            created: FileTime(reader.u64("CreationTime")?),
            accessed: FileTime(reader.u64("LastAccessTime")?),
            written: FileTime(reader.u64("LastWriteTime")?),
            changed: FileTime(reader.u64("ChangeTime")?),
            allocation_size: reader.u64("AllocationSize")?,
            end_of_file: reader.u64("EndOfFile")?,
            attributes: FileAttributes(reader.u32("FileAttributes")?),
        };
        reader.skip("Reserved", 4)?;
        Ok(information)
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.0);
        out.put_u64(self.accessed.0);
        out.put_u64(self.written.0);
        out.put_u64(self.changed.0);
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.attributes.0);
        out.put_u32(0);
    }
}

/// Attributes, and the tag where the file is a reparse point. \[MS-FSCC\] 2.4.6
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileAttributeTagInformation {
    /// DOS attributes.
    pub attributes: FileAttributes,
    /// What kind of reparse point; 0 for none. \[MS-FSCC\] 2.1.2.1
    pub reparse_tag: u32,
}

impl FileAttributeTagInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            attributes: FileAttributes(reader.u32("FileAttributes")?),
            reparse_tag: reader.u32("ReparseTag")?,
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.attributes.0);
        out.put_u32(self.reparse_tag);
    }
}

/// What no other file on any volume has. \[MS-FSCC\] 2.4.26
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileIdInformation {
    /// The serial number of the volume.
    pub volume_serial_number: u64,
    /// The 128-bit id of the file.
    pub file_id: u128,
}

impl FileIdInformation {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// Reads the structure at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            volume_serial_number: reader.u64("VolumeSerialNumber")?,
            file_id: u128::from_le_bytes(reader.array("FileId")?),
        })
    }

    /// Appends the structure.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.volume_serial_number);
        out.put(&self.file_id.to_le_bytes());
    }
}
