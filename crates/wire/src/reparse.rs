//! Reparse points: data of a file that a client interprets, such as the target of a symbolic link.
//! \[MS-FSCC\] 2.1.2

use alloc::string::String;
use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::layout::u16_of;
use crate::open_enum::open_enum;
use crate::posix::PosixFileType;
use crate::text::utf16;
use crate::{Guid, Utf16};

/// Maximum length of a reparse point in bytes, with its header.
/// MAXIMUM_REPARSE_DATA_BUFFER_SIZE, \[MS-FSCC\] 2.1.2.2
pub const REPARSE_MAX: usize = 16 << 10;

/// Length of the header in bytes: tag, length and reserved bytes.
const HEADER_LEN: usize = 8;
/// The bit of a tag that says that Microsoft defined it. Other tags come with a GUID.
const MICROSOFT: u32 = 0x8000_0000;
/// The flag of a symbolic link with a relative target. \[MS-FSCC\] 2.1.2.4
const RELATIVE: u32 = 1;
/// Version of the data of a symbolic link of WSL. \[MS-FSCC\] 2.1.2.7
const LX_VERSION: u32 = 2;

open_enum! {
    /// The tag of a reparse point: the kind of its data. \[MS-FSCC\] 2.1.2.1
    ReparseTag(u32) {
        /// No reparse point.
        NONE = 0,
        /// A directory on another volume or at another path of the server.
        MOUNT_POINT = 0xA000_0003,
        /// A symbolic link of Windows.
        SYMLINK = 0xA000_000C,
        /// A file of the Windows server for NFS: a symbolic link or a special file.
        NFS = 0x8000_0014,
        /// A symbolic link of the Windows subsystem for Linux.
        LX_SYMLINK = 0xA000_001D,
        /// A socket of the Windows subsystem for Linux.
        AF_UNIX = 0x8000_0023,
        /// A FIFO of the Windows subsystem for Linux.
        LX_FIFO = 0x8000_0024,
        /// A character device of the Windows subsystem for Linux.
        LX_CHR = 0x8000_0025,
        /// A block device of the Windows subsystem for Linux.
        LX_BLK = 0x8000_0026,
        /// A file with deduplicated data.
        DEDUP = 0x8000_0013,
    }
}

impl ReparseTag {
    /// Returns whether the reparse point is a symbolic link, of Windows or of the Windows subsystem
    /// for Linux. A reparse point with the tag NFS may be one too.
    pub fn is_symlink(self) -> bool {
        matches!(self, Self::SYMLINK | Self::LX_SYMLINK)
    }
}

/// A reparse point: its tag, and data in the format of the tag. REPARSE_DATA_BUFFER and
/// REPARSE_GUID_DATA_BUFFER, \[MS-FSCC\] 2.1.2.2, 2.1.2.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReparsePoint<'a> {
    /// The tag, which defines the format of the data.
    pub tag: ReparseTag,
    /// The owner of a tag that Microsoft does not define; zeros for the others.
    pub guid: Guid,
    /// The data, not decoded.
    pub data: &'a [u8],
}

impl<'a> ReparsePoint<'a> {
    /// Decodes a reparse point: the input of FSCTL_SET_REPARSE_POINT or the output of
    /// FSCTL_GET_REPARSE_POINT.
    ///
    /// # Errors Fails when the bytes are truncated, longer than they say or than [`REPARSE_MAX`],
    /// and for the tags 0, 1 and 2, which are reserved.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let tag = reader.u32("ReparseTag")?;
        if tag <= 2 {
            let (field, value) = ("ReparseTag", tag.into());
            return Err(DecodeError::Invalid { field, value });
        }
        let length = reader.u16("ReparseDataLength")?;
        reader.skip("Reserved", 2)?;
        let guid = match tag & MICROSOFT {
            0 => reader.guid("ReparseGuid")?,
            _ => Guid::default(),
        };
        let data = reader.bytes("DataBuffer", length.into())?;
        if reader.left() > 0 || bytes.len() > REPARSE_MAX {
            let (field, value) = ("ReparseDataLength", length.into());
            return Err(DecodeError::Invalid { field, value });
        }
        let tag = ReparseTag(tag);
        Ok(Self { tag, guid, data })
    }

    /// Returns the type of the Unix file that the reparse point stands for: a link, a FIFO, a
    /// socket or a device. `None` for another tag and for data that are not valid.
    pub fn posix_type(&self) -> Option<PosixFileType> {
        match self.tag {
            ReparseTag::SYMLINK | ReparseTag::LX_SYMLINK => Some(PosixFileType::SYMLINK),
            ReparseTag::AF_UNIX => Some(PosixFileType::SOCKET),
            ReparseTag::LX_FIFO => Some(PosixFileType::FIFO),
            ReparseTag::LX_CHR => Some(PosixFileType::CHARACTER_DEVICE),
            ReparseTag::LX_BLK => Some(PosixFileType::BLOCK_DEVICE),
            ReparseTag::NFS => Some(match NfsFile::decode(self.data).ok()? {
                NfsFile::Symlink(_) => PosixFileType::SYMLINK,
                NfsFile::Fifo => PosixFileType::FIFO,
                NfsFile::Socket => PosixFileType::SOCKET,
                NfsFile::CharacterDevice { .. } => PosixFileType::CHARACTER_DEVICE,
                NfsFile::BlockDevice { .. } => PosixFileType::BLOCK_DEVICE,
            }),
            _ => None,
        }
    }

    /// Encodes the reparse point. Panics for data of 64 KiB or more.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + self.data.len());
        bytes.put_u32(self.tag.0);
        bytes.put_u16(u16_of(self.data.len()));
        bytes.put_u16(0);
        if self.tag.0 & MICROSOFT == 0 {
            bytes.put(&self.guid.0);
        }
        bytes.put(self.data);
        bytes
    }
}

/// The data of a symbolic link of Windows. \[MS-FSCC\] 2.1.2.4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symlink<'a> {
    /// The target: components joined by `\`.
    pub substitute_name: Utf16<'a>,
    /// The target in a form for display.
    pub print_name: Utf16<'a>,
    /// Whether the target is relative to the directory of the link.
    pub is_relative: bool,
}

impl<'a> Symlink<'a> {
    /// Decodes the data of a reparse point with the tag SYMLINK. Fails when they are truncated or a
    /// name is outside them.
    pub fn decode(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let mut place = |offset, length| Ok((reader.u16(offset)?, reader.u16(length)?));
        let substitute = place("SubstituteNameOffset", "SubstituteNameLength")?;
        let print = place("PrintNameOffset", "PrintNameLength")?;
        let flags = reader.u32("Flags")?;
        let names = reader.rest();
        let name = |field, (offset, length): (u16, u16)| {
            slice_at(names, field, offset.into(), length.into()).map(Utf16)
        };
        Ok(Self {
            substitute_name: name("SubstituteName", substitute)?,
            print_name: name("PrintName", print)?,
            is_relative: flags & RELATIVE != 0,
        })
    }

    /// Encodes the data of a reparse point with the tag SYMLINK. Panics when a name is longer than
    /// 64 KiB.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put_u16(0);
        data.put_u16(u16_of(self.substitute_name.len()));
        data.put_u16(u16_of(self.substitute_name.len()));
        data.put_u16(u16_of(self.print_name.len()));
        data.put_u32(u32::from(self.is_relative) * RELATIVE);
        data.put(self.substitute_name.0);
        data.put(self.print_name.0);
        data
    }
}

/// Encodes the reparse point of a symbolic link of Unix: `target` is its target, components joined
/// by `/`. Panics when the target is longer than 32 KiB.
pub fn encode_unix_symlink(target: &str) -> Vec<u8> {
    let name = utf16(&target.replace('/', "\\"));
    let data = Symlink {
        substitute_name: Utf16(&name),
        print_name: Utf16(&name),
        is_relative: !target.starts_with('/'),
    };
    let reparse = ReparsePoint {
        tag: ReparseTag::SYMLINK,
        guid: Guid::default(),
        data: &data.encode(),
    };
    reparse.encode()
}

/// The data of a file of the Windows server for NFS: a symbolic link or a special file of Unix.
/// \[MS-FSCC\] 2.1.2.6
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NfsFile {
    /// A symbolic link with this target: components joined by `/`.
    Symlink(String),
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
    },
}

/// The types of files in the data of the tag NFS. \[MS-FSCC\] 2.1.2.6
const NFS_LNK: u64 = 0x014B_4E4C;
const NFS_CHR: u64 = 0x0052_4843;
const NFS_BLK: u64 = 0x004B_4C42;
const NFS_FIFO: u64 = 0x4F46_4946;
const NFS_SOCK: u64 = 0x4B43_4F53;

impl NfsFile {
    /// Decodes the data of a reparse point with the tag NFS. Fails for an unknown type, truncated
    /// data, and a target that is not valid UTF-16.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(data);
        let kind = reader.u64("Type")?;
        let invalid = |field, value| DecodeError::Invalid { field, value };
        match kind {
            NFS_LNK => {
                let target = Utf16(reader.rest()).decode();
                let target = target.ok_or(invalid("DataBuffer", 0))?;
                Ok(Self::Symlink(target))
            }
            NFS_FIFO => Ok(Self::Fifo),
            NFS_SOCK => Ok(Self::Socket),
            NFS_CHR | NFS_BLK => {
                let (major, minor) = (reader.u32("Major")?, reader.u32("Minor")?);
                Ok(match kind {
                    NFS_CHR => Self::CharacterDevice { major, minor },
                    _ => Self::BlockDevice { major, minor },
                })
            }
            kind => Err(invalid("Type", kind)),
        }
    }

    /// Encodes the reparse point of the file. Panics when the target of a link is longer than
    /// 32 KiB.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        match self {
            Self::Symlink(target) => {
                data.put_u64(NFS_LNK);
                data.put(&utf16(target));
            }
            Self::Fifo => data.put_u64(NFS_FIFO),
            Self::Socket => data.put_u64(NFS_SOCK),
            Self::CharacterDevice { major, minor } => {
                data.put_u64(NFS_CHR);
                data.put_u32(*major);
                data.put_u32(*minor);
            }
            Self::BlockDevice { major, minor } => {
                data.put_u64(NFS_BLK);
                data.put_u32(*major);
                data.put_u32(*minor);
            }
        }
        let reparse = ReparsePoint {
            tag: ReparseTag::NFS,
            guid: Guid::default(),
            data: &data,
        };
        reparse.encode()
    }
}

/// Returns the target of the symbolic link that a reparse point is, with `/` between components;
/// `None` if it is no symbolic link or its data are not valid.
pub fn symlink_target(reparse: &ReparsePoint<'_>) -> Option<String> {
    match reparse.tag {
        ReparseTag::SYMLINK => {
            let link = Symlink::decode(reparse.data).ok()?;
            Some(link.substitute_name.decode()?.replace('\\', "/"))
        }
        ReparseTag::NFS => match NfsFile::decode(reparse.data).ok()? {
            NfsFile::Symlink(target) => Some(target),
            _ => None,
        },
        ReparseTag::LX_SYMLINK => {
            let mut reader = Reader::new(reparse.data);
            let version = reader.u32("Version").ok()?;
            let target = core::str::from_utf8(reader.rest()).ok()?;
            (version == LX_VERSION).then(|| String::from(target))
        }
        _ => None,
    }
}

/// Encodes the reparse point of a symbolic link of the Windows subsystem for Linux. Panics when the
/// target is longer than 64 KiB.
pub fn encode_lx_symlink(target: &str) -> Vec<u8> {
    let mut data = Vec::new();
    data.put_u32(LX_VERSION);
    data.put(target.as_bytes());
    let reparse = ReparsePoint {
        tag: ReparseTag::LX_SYMLINK,
        guid: Guid::default(),
        data: &data,
    };
    reparse.encode()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_unix_survives_in_each_format() {
        let target = "../a b/\u{FC}";
        let nfs = NfsFile::Symlink(String::from(target)).encode();
        for bytes in [encode_unix_symlink(target), nfs, encode_lx_symlink(target)] {
            let reparse = ReparsePoint::decode(&bytes).expect("a valid reparse point");
            assert_eq!(symlink_target(&reparse).as_deref(), Some(target));
            assert_eq!(reparse.posix_type(), Some(PosixFileType::SYMLINK));
            assert_eq!(reparse.encode(), bytes);
        }
        let bytes = encode_unix_symlink("/etc");
        let reparse = ReparsePoint::decode(&bytes).expect("a valid reparse point");
        let link = Symlink::decode(reparse.data).expect("a valid link");
        assert!(!link.is_relative);
        assert_eq!(Symlink::encode(&link), reparse.data);
    }

    #[test]
    fn special_files_survive() {
        let (major, minor) = (8, 0x1_0001);
        for (file, file_type) in [
            (NfsFile::Fifo, PosixFileType::FIFO),
            (NfsFile::Socket, PosixFileType::SOCKET),
            (
                NfsFile::CharacterDevice { major, minor },
                PosixFileType::CHARACTER_DEVICE,
            ),
            (
                NfsFile::BlockDevice { major, minor },
                PosixFileType::BLOCK_DEVICE,
            ),
        ] {
            let bytes = file.encode();
            let reparse = ReparsePoint::decode(&bytes).expect("a valid reparse point");
            assert_eq!(reparse.tag, ReparseTag::NFS);
            assert_eq!(reparse.posix_type(), Some(file_type));
            assert_eq!(NfsFile::decode(reparse.data), Ok(file));
            assert_eq!(symlink_target(&reparse), None);
        }
    }

    #[test]
    fn a_tag_of_others_has_a_guid() {
        let guid = Guid([7; 16]);
        let reparse = ReparsePoint {
            tag: ReparseTag(0x0000_1234),
            guid,
            data: b"data",
        };
        let bytes = reparse.encode();
        assert_eq!(bytes.len(), 8 + 16 + 4);
        assert_eq!(ReparsePoint::decode(&bytes), Ok(reparse));
    }

    #[test]
    fn wrong_lengths_and_reserved_tags_are_refused() {
        let bytes = encode_unix_symlink("target");
        for length in 0..bytes.len() {
            assert!(ReparsePoint::decode(&bytes[..length]).is_err(), "{length}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(ReparsePoint::decode(&longer).is_err());
        assert!(ReparsePoint::decode(&[2, 0, 0, 0, 0, 0, 0, 0]).is_err());
        let most = REPARSE_MAX - HEADER_LEN;
        let reparse = |length: usize| {
            let data = alloc::vec![0; length];
            let (tag, guid) = (ReparseTag::NFS, Guid::default());
            let bytes = ReparsePoint {
                tag,
                guid,
                data: &data,
            }
            .encode();
            ReparsePoint::decode(&bytes).is_ok()
        };
        assert!(reparse(most) && !reparse(most + 1));
        assert!(Symlink::decode(&[0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
    }
}
