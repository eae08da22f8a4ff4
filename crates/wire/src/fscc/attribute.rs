//! Information classes of fixed length for times, sizes, attributes and identifiers, and
//! FileAllInformation, which contains them.

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

/// Times and DOS attributes of a file: the information class BASIC. \[MS-FSCC\] 2.4.7
///
/// In SET_INFO, a time of 0 leaves the time unchanged, [`FileTime::FREEZE`] and [`FileTime::THAW`]
/// stop and restart its updates, and attributes of 0 leave the attributes unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileBasicInformation {
    /// Time of the creation of the file (CreationTime).
    pub created: FileTime,
    /// Time of the last read of the file (LastAccessTime).
    pub accessed: FileTime,
    /// Time of the last write to the file (LastWriteTime).
    pub written: FileTime,
    /// Time of the last change of data or attributes (ChangeTime).
    pub changed: FileTime,
    /// DOS attributes of the file, such as read-only or hidden.
    pub attributes: FileAttributes,
}

impl FileBasicInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 40;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
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

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.0);
        out.put_u64(self.accessed.0);
        out.put_u64(self.written.0);
        out.put_u64(self.changed.0);
        out.put_u32(self.attributes.0);
        out.put_u32(0);
    }
}

/// Sizes, link count and type of a file: the information class STANDARD. \[MS-FSCC\] 2.4.47
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileStandardInformation {
    /// Space allocated to the file, in bytes (AllocationSize).
    pub allocation_size: u64,
    /// Length of the file in bytes (EndOfFile).
    pub end_of_file: u64,
    /// Number of hard links (names) of the file, without a link that waits for its deletion.
    pub number_of_links: u32,
    /// Whether the file system deletes the file when its last open closes.
    pub is_delete_pending: bool,
    /// Whether the file is a directory.
    pub is_directory: bool,
}

impl FileStandardInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 24;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
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

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.number_of_links);
        out.put_u8(u8::from(self.is_delete_pending));
        out.put_u8(u8::from(self.is_directory));
        out.put_u16(0);
    }
}

/// The information class ALL: nine other classes of a file in one structure, with times, sizes,
/// identifier, rights and path. \[MS-FSCC\] 2.4.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileAllInformation<'a> {
    /// Times and DOS attributes of the file.
    pub basic: FileBasicInformation,
    /// Sizes, link count and type of the file.
    pub standard: FileStandardInformation,
    /// The information class INTERNAL: identifier of the file, unique on its volume.
    pub internal: FileInternalInformation,
    /// The information class EA: length of the extended attributes of the file in bytes.
    pub ea: FileEaInformation,
    /// The information class ACCESS: access rights that the server granted to the open.
    pub access: FileAccessInformation,
    /// The information class POSITION: a byte offset that the open stores for the client.
    pub position: FilePositionInformation,
    /// The information class MODE: I/O mode of the open, such as write-through.
    pub mode: FileModeInformation,
    /// The information class ALIGNMENT: buffer alignment that the device requires.
    pub alignment: FileAlignmentInformation,
    /// The information class NAME: path from the root of the share, with a leading backslash.
    pub name: FileNameInformation<'a>,
}

impl<'a> FileAllInformation<'a> {
    /// Length in bytes of the encoded structure without the characters of the name at its end.
    pub const FIXED_LEN: usize = 100;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
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

    /// Appends the encoded structure to `out`.
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

/// Compression state of a file: the information class COMPRESSION. \[MS-FSCC\] 2.4.9
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileCompressionInformation {
    /// Length of the compressed file on the disk in bytes.
    pub compressed_size: u64,
    /// Compression format: 0 for none, 2 for LZNT1.
    pub format: u16,
    /// Binary logarithm of the length in bytes of a compression unit, the part of a file that is
    /// compressed at a time.
    pub unit_shift: u8,
    /// Binary logarithm of the length of a compressed chunk in bytes.
    pub chunk_shift: u8,
    /// Binary logarithm of the length in bytes of a cluster (allocation unit) of the volume.
    pub cluster_shift: u8,
}

impl FileCompressionInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 16;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
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

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.compressed_size);
        out.put_u16(self.format);
        out.put_u8(self.unit_shift);
        out.put_u8(self.chunk_shift);
        out.put_u8(self.cluster_shift);
        out.put(&[0; 3]);
    }
}

/// Times, sizes and attributes of a file in one query: the information class NETWORK_OPEN.
/// \[MS-FSCC\] 2.4.34
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileNetworkOpenInformation {
    /// Time of the creation of the file (CreationTime).
    pub created: FileTime,
    /// Time of the last read of the file (LastAccessTime).
    pub accessed: FileTime,
    /// Time of the last write to the file (LastWriteTime).
    pub written: FileTime,
    /// Time of the last change of data or attributes (ChangeTime).
    pub changed: FileTime,
    /// Space allocated to the file, in bytes (AllocationSize).
    pub allocation_size: u64,
    /// Length of the file in bytes (EndOfFile).
    pub end_of_file: u64,
    /// DOS attributes of the file, such as read-only or hidden.
    pub attributes: FileAttributes,
}

impl FileNetworkOpenInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 56;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
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

    /// Appends the encoded structure to `out`.
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

/// Attributes and reparse tag of a file: the information class ATTRIBUTE_TAG. \[MS-FSCC\] 2.4.6
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileAttributeTagInformation {
    /// DOS attributes of the file, such as read-only or hidden.
    pub attributes: FileAttributes,
    /// Reparse tag, which is the type of the file's reparse point; 0 for a file without one.
    /// \[MS-FSCC\] 2.1.2.1
    pub reparse_tag: u32,
}

impl FileAttributeTagInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 8;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            attributes: FileAttributes(reader.u32("FileAttributes")?),
            reparse_tag: reader.u32("ReparseTag")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.attributes.0);
        out.put_u32(self.reparse_tag);
    }
}

/// The identifier of a file, unique across volumes: the information class ID. \[MS-FSCC\] 2.4.26
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileIdInformation {
    /// Serial number of the volume.
    pub volume_serial_number: u64,
    /// 128-bit identifier of the file, unique on its volume.
    pub file_id: u128,
}

impl FileIdInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 24;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            volume_serial_number: reader.u64("VolumeSerialNumber")?,
            file_id: u128::from_le_bytes(reader.array("FileId")?),
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.volume_serial_number);
        out.put(&self.file_id.to_le_bytes());
    }
}
