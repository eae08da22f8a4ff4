//! The SMB3 POSIX extensions of dialect 3.1.1, as Samba and the Linux kernel implement them: the
//! create context of a response, two information classes of files and one of volumes. "SMB3 POSIX
//! Protocol Extensions".

use alloc::vec::Vec;

use crate::access::FileAttributes;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_enum;
use crate::security::Sid;
use crate::time::FileTime;

open_enum! {
    /// Type of a Unix file in the SMB3 POSIX extensions, in bits 12 to 14 of a [`PosixMode`].
    PosixFileType(u32) {
        /// A regular file.
        FILE = 0,
        /// A directory.
        DIRECTORY = 1,
        /// A symbolic link.
        SYMLINK = 2,
        /// A character device.
        CHARACTER_DEVICE = 3,
        /// A block device.
        BLOCK_DEVICE = 4,
        /// A named pipe of Unix (FIFO).
        FIFO = 5,
        /// A Unix domain socket.
        SOCKET = 6,
    }
}

/// Permissions and type of a Unix file in the SMB3 POSIX extensions. Bits 0 to 11 are those of
/// chmod(2), bits 12 to 14 are a [`PosixFileType`], which differs from that in `st_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PosixMode(pub u32);

/// The permission bits.
const PERMISSIONS: u32 = 0o7777;
/// Position of the type in a [`PosixMode`].
const TYPE_SHIFT: u32 = 12;
/// Mask of the type: three bits.
const TYPE_MASK: u32 = 0x7;
/// Mask of the type in `st_mode`.
const UNIX_TYPE: u32 = 0o170_000;
/// The value of each type in `st_mode`.
const UNIX_TYPES: [(u32, PosixFileType); 7] = [
    (0o100_000, PosixFileType::FILE),
    (0o040_000, PosixFileType::DIRECTORY),
    (0o120_000, PosixFileType::SYMLINK),
    (0o020_000, PosixFileType::CHARACTER_DEVICE),
    (0o060_000, PosixFileType::BLOCK_DEVICE),
    (0o010_000, PosixFileType::FIFO),
    (0o140_000, PosixFileType::SOCKET),
];

impl PosixMode {
    /// Makes a mode of the SMB3 POSIX extensions from a `st_mode` of stat(2). A file type that the
    /// extensions do not have becomes FILE.
    pub fn from_unix(mode: u32) -> Self {
        let file_type = UNIX_TYPES
            .iter()
            .find(|(unix, _)| *unix == mode & UNIX_TYPE)
            .map_or(PosixFileType::FILE, |(_, file_type)| *file_type);
        Self(mode & PERMISSIONS | file_type.0 << TYPE_SHIFT)
    }

    /// Makes a mode from a type and the permission bits of chmod(2). Higher bits of `permissions`
    /// are ignored.
    pub const fn new(file_type: PosixFileType, permissions: u32) -> Self {
        Self(permissions & PERMISSIONS | (file_type.0 & TYPE_MASK) << TYPE_SHIFT)
    }

    /// Converts the mode to a `st_mode` of stat(2); `None` for a file type that Unix does not have.
    pub fn to_unix(self) -> Option<u32> {
        let file_type = self.file_type();
        UNIX_TYPES
            .iter()
            .find(|(_, known)| *known == file_type)
            .map(|(unix, _)| self.permissions() | unix)
    }

    /// Returns the permission bits: `st_mode & 07777`.
    pub const fn permissions(self) -> u32 {
        self.0 & PERMISSIONS
    }

    /// Returns the type of the file: regular file, directory, symbolic link or special file.
    pub const fn file_type(self) -> PosixFileType {
        PosixFileType(self.0 >> TYPE_SHIFT & TYPE_MASK)
    }
}

/// Unix attributes of a file: the data of the POSIX create context in a CREATE response, with
/// decoded SIDs. The POSIX information classes end with the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PosixCreateResponse {
    /// Number of hard links of the file.
    pub number_of_links: u32,
    /// Reparse tag, which is the type of the file's reparse point; 0 for a file without one.
    pub reparse_tag: u32,
    /// Permission bits and type of the file.
    pub mode: PosixMode,
    /// SID of the user that owns the file.
    pub owner: Sid,
    /// SID of the group that owns the file.
    pub group: Sid,
}

impl PosixCreateResponse {
    /// Length in bytes of the encoded structure before the SIDs.
    pub const FIXED_LEN: usize = 12;

    /// Decodes the data of a POSIX create context in a response, with both SIDs. Fails when `bytes`
    /// is truncated or a SID is malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number_of_links: reader.u32("HardLinks")?,
            reparse_tag: reader.u32("ReparseTag")?,
            mode: PosixMode(reader.u32("Mode")?),
            owner: Sid::read(reader)?,
            group: Sid::read(reader)?,
        })
    }

    /// Appends the encoded data of a POSIX create context in a response to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.number_of_links);
        out.put_u32(self.reparse_tag);
        out.put_u32(self.mode.0);
        self.owner.encode(out);
        self.group.encode(out);
    }
}

/// The fields that a directory entry of class 100 (SMB3 POSIX extensions) has in addition to the
/// fields of other classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PosixAttributes {
    /// Device number of the file system that the file is on (`st_dev`).
    pub device: u32,
    /// Link count, reparse tag, mode, owner and group of the file.
    pub create: PosixCreateResponse,
}

/// FILE_POSIX_INFO: times, sizes and Unix attributes of a file. It is the file information class
/// 100 of the SMB3 POSIX extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FilePosixInformation {
    /// Time of the creation of the file (CreationTime).
    pub created: FileTime,
    /// Time of the last read of the file (LastAccessTime).
    pub accessed: FileTime,
    /// Time of the last write to the file (LastWriteTime).
    pub written: FileTime,
    /// Time of the last change of data or attributes (ChangeTime).
    pub changed: FileTime,
    /// Length of the file in bytes (EndOfFile).
    pub end_of_file: u64,
    /// Space allocated to the file, in bytes (AllocationSize).
    pub allocation_size: u64,
    /// DOS attributes of the file, such as read-only or hidden.
    pub attributes: FileAttributes,
    /// Inode number of the file.
    pub inode: u64,
    /// Device, link count, reparse tag, mode, owner and group of the file.
    pub posix: PosixAttributes,
}

impl FilePosixInformation {
    /// Length in bytes of the encoded structure before the SIDs.
    pub const FIXED_LEN: usize = 80;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            created: FileTime(reader.u64("CreationTime")?),
            accessed: FileTime(reader.u64("LastAccessTime")?),
            written: FileTime(reader.u64("LastWriteTime")?),
            changed: FileTime(reader.u64("ChangeTime")?),
            end_of_file: reader.u64("EndOfFile")?,
            allocation_size: reader.u64("AllocationSize")?,
            attributes: FileAttributes(reader.u32("FileAttributes")?),
            inode: reader.u64("Inode")?,
            posix: PosixAttributes {
                device: read_device(reader)?,
                create: PosixCreateResponse::read(reader)?,
            },
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.created.0);
        out.put_u64(self.accessed.0);
        out.put_u64(self.written.0);
        out.put_u64(self.changed.0);
        out.put_u64(self.end_of_file);
        out.put_u64(self.allocation_size);
        out.put_u32(self.attributes.0);
        out.put_u64(self.inode);
        out.put_u32(self.posix.device);
        out.put_u32(0);
        self.posix.create.encode(out);
    }
}

/// Reads the device number and the zeros after it.
fn read_device(reader: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let device = reader.u32("DeviceId")?;
    reader.skip("Reserved", 4)?;
    Ok(device)
}

/// FS_POSIX_INFO: the data of statvfs(3) for a volume. It is the file system information class 100
/// of the SMB3 POSIX extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FsPosixInformation {
    /// Preferred length of a read or write in bytes.
    pub optimal_transfer_size: u32,
    /// Length of a block in bytes. Fields with a number of blocks use this unit.
    pub block_size: u32,
    /// Total number of blocks of the file system.
    pub total_blocks: u64,
    /// Number of free blocks of the file system, including those reserved for the superuser.
    pub blocks_available: u64,
    /// Number of free blocks that the user may use.
    pub user_blocks_available: u64,
    /// Total number of inodes of the file system.
    pub total_file_nodes: u64,
    /// Number of free inodes of the file system: further files that it can store.
    pub free_file_nodes: u64,
    /// Identifier of the file system.
    pub file_system_identifier: u64,
}

impl FsPosixInformation {
    /// Length of the encoded structure in bytes.
    pub const LEN: usize = 56;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            optimal_transfer_size: reader.u32("OptimalTransferSize")?,
            block_size: reader.u32("BlockSize")?,
            total_blocks: reader.u64("TotalBlocks")?,
            blocks_available: reader.u64("BlocksAvail")?,
            user_blocks_available: reader.u64("UserBlocksAvail")?,
            total_file_nodes: reader.u64("TotalFileNodes")?,
            free_file_nodes: reader.u64("FreeFileNodes")?,
            file_system_identifier: reader.u64("FileSysIdentifier")?,
        })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.optimal_transfer_size);
        out.put_u32(self.block_size);
        out.put_u64(self.total_blocks);
        out.put_u64(self.blocks_available);
        out.put_u64(self.user_blocks_available);
        out.put_u64(self.total_file_nodes);
        out.put_u64(self.free_file_nodes);
        out.put_u64(self.file_system_identifier);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_carry_every_type() {
        for (unix_type, file_type) in UNIX_TYPES {
            let mode = PosixMode::from_unix(unix_type | 0o4755);
            assert_eq!(mode.file_type(), file_type);
            assert_eq!(mode.permissions(), 0o4755);
            assert_eq!(mode.to_unix(), Some(unix_type | 0o4755));
        }
        assert_eq!(PosixMode::from_unix(0o644), PosixMode(0o644));
        assert_eq!(PosixMode(7 << TYPE_SHIFT).to_unix(), None);
    }

    /// Sent by Samba 4.25.1 to cifs.ko of Linux 7.2, for a directory of group root.
    const CONTEXT: &[u8] = b"\x04\0\0\0\0\0\0\0\xFF\x11\0\0\
        \x01\x05\0\0\0\0\0\x05\x15\0\0\0\
        \x3F\x07\x21\x88\xA2\xE7\xD3\xBE\x35\x51\xA5\x81\xF5\x01\0\0\
        \x01\x02\0\0\0\0\0\x16\x02\0\0\0\0\0\0\0";

    #[test]
    fn a_create_context_both_ways() {
        let context = PosixCreateResponse::decode(CONTEXT).expect("a context");
        assert_eq!(context.number_of_links, 4);
        assert_eq!(context.mode.to_unix(), Some(0o040_777));
        assert_eq!(context.owner.sub_authorities().last(), Some(&501));
        assert_eq!(context.group, Sid::unix_group(0));
        let mut written = Vec::new();
        context.encode(&mut written);
        assert_eq!(written, CONTEXT);
        for end in 0..CONTEXT.len() {
            assert!(
                PosixCreateResponse::decode(&CONTEXT[..end]).is_err(),
                "{end} bytes"
            );
        }
    }
}
