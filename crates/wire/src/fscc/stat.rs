//! Information classes that answer stat(2) of a program for Linux on Windows: STAT, STAT_LX and
//! CASE_SENSITIVE. \[MS-FSCC\] 2.4
//!
//! The layouts are those of FILE_STAT_INFORMATION, FILE_STAT_LX_INFORMATION and
//! FILE_CASE_SENSITIVE_INFORMATION in ntifs.h of the Windows Driver Kit.

use alloc::vec::Vec;

use crate::access::{AccessMask, FileAttributes};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::time::FileTime;

/// Identifier, times, sizes and attributes of a file: the information class STAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileStatInformation {
    /// 64-bit identifier of the file, unique on its volume.
    pub file_id: u64,
    /// Time of the creation of the file.
    pub created: FileTime,
    /// Time of the last read of the file.
    pub accessed: FileTime,
    /// Time of the last write to the file.
    pub written: FileTime,
    /// Time of the last change of data or attributes.
    pub changed: FileTime,
    /// Space allocated to the file, in bytes.
    pub allocation_size: u64,
    /// Length of the file in bytes.
    pub end_of_file: u64,
    /// DOS attributes of the file.
    pub attributes: FileAttributes,
    /// Reparse tag of the file; 0 for none.
    pub reparse_tag: u32,
    /// Number of hard links (names) of the file.
    pub number_of_links: u32,
    /// The access rights that the server granted to the open.
    pub effective_access: AccessMask,
}

impl FileStatInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 72;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            file_id: reader.u64("FileId")?,
            created: FileTime(reader.u64("CreationTime")?),
            accessed: FileTime(reader.u64("LastAccessTime")?),
            written: FileTime(reader.u64("LastWriteTime")?),
            changed: FileTime(reader.u64("ChangeTime")?),
            allocation_size: reader.u64("AllocationSize")?,
            end_of_file: reader.u64("EndOfFile")?,
            attributes: FileAttributes(reader.u32("FileAttributes")?),
            reparse_tag: reader.u32("ReparseTag")?,
            number_of_links: reader.u32("NumberOfLinks")?,
            effective_access: AccessMask(reader.u32("EffectiveAccess")?),
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.file_id);
        out.put_u64(self.created.0);
        out.put_u64(self.accessed.0);
        out.put_u64(self.written.0);
        out.put_u64(self.changed.0);
        out.put_u64(self.allocation_size);
        out.put_u64(self.end_of_file);
        out.put_u32(self.attributes.0);
        out.put_u32(self.reparse_tag);
        out.put_u32(self.number_of_links);
        out.put_u32(self.effective_access.0);
    }
}

open_flags! {
    /// The valid fields of [`FileStatLxInformation`], and a property of a directory.
    LxFlags(u32) {
        /// The user ID is valid.
        HAS_UID = 0x0000_0001,
        /// The group ID is valid.
        HAS_GID = 0x0000_0002,
        /// The mode is valid.
        HAS_MODE = 0x0000_0004,
        /// The device numbers are valid.
        HAS_DEVICE_ID = 0x0000_0008,
        /// Names in the directory are compared with regard to case.
        CASE_SENSITIVE_DIRECTORY = 0x0000_0010,
    }
}

/// The data of STAT, and Unix owner and mode of a file: the information class STAT_LX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileStatLxInformation {
    /// The data of the class STAT.
    pub stat: FileStatInformation,
    /// The fields that are valid.
    pub flags: LxFlags,
    /// User ID of the Unix owner.
    pub uid: u32,
    /// Group ID of the Unix group.
    pub gid: u32,
    /// Unix type and permissions (st_mode).
    pub mode: u32,
    /// Major number of a device file.
    pub device_major: u32,
    /// Minor number of a device file.
    pub device_minor: u32,
}

impl FileStatLxInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = FileStatInformation::LEN + 24;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            stat: FileStatInformation::read(&mut reader)?,
            flags: LxFlags(reader.u32("LxFlags")?),
            uid: reader.u32("LxUid")?,
            gid: reader.u32("LxGid")?,
            mode: reader.u32("LxMode")?,
            device_major: reader.u32("LxDeviceIdMajor")?,
            device_minor: reader.u32("LxDeviceIdMinor")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.stat.encode(out);
        out.put_u32(self.flags.0);
        out.put_u32(self.uid);
        out.put_u32(self.gid);
        out.put_u32(self.mode);
        out.put_u32(self.device_major);
        out.put_u32(self.device_minor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_structures_survive_a_round_trip() {
        let mut bytes = Vec::new();
        for number in 0..u8::try_from(FileStatLxInformation::LEN).expect("a short structure") {
            bytes.push(number);
        }
        let lx = FileStatLxInformation::decode(&bytes).expect("the structure");
        assert_eq!(lx.stat.end_of_file.to_le_bytes(), bytes[48..56]);
        assert_eq!(lx.stat.effective_access.0.to_le_bytes(), bytes[68..72]);
        assert_eq!(lx.mode.to_le_bytes(), bytes[84..88]);
        let mut again = Vec::new();
        lx.encode(&mut again);
        assert_eq!(again, bytes);
        let mut stat = Vec::new();
        lx.stat.encode(&mut stat);
        assert_eq!(stat, bytes[..FileStatInformation::LEN]);
        assert!(FileStatLxInformation::decode(&bytes[1..]).is_err());
    }
}
