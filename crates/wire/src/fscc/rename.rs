//! Information classes for renames and hard links, in the form that SMB2 uses, with a 64-bit
//! RootDirectory.

use alloc::vec::Vec;

use super::name::{put_name_len, read_name};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::text::Utf16;

/// The information class RENAME of SET_INFO: the client renames the open file. \[MS-FSCC\] 2.4.42.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileRenameInformation<'a> {
    /// Whether the rename replaces an existing file with the new name.
    pub is_replacing: bool,
    /// Reserved: handle of a directory that the name is relative to; always 0 on the network.
    pub root_directory: u64,
    /// The new path from the root of the share. Some clients add a leading backslash; smbclient
    /// does so for a hard link.
    pub name: Utf16<'a>,
}

/// The information class LINK of SET_INFO: the client creates a hard link to the open file.
/// \[MS-FSCC\] 2.4.28.2
pub type FileLinkInformation<'a> = FileRenameInformation<'a>;

impl<'a> FileRenameInformation<'a> {
    /// Length in bytes of the encoded structure before the name. Windows refuses a shorter buffer.
    /// \[MS-FSA\] 2.1.5.15.12
    pub const LEN: usize = 20;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let is_replacing = reader.u8("ReplaceIfExists")? != 0;
        reader.skip("Reserved", 7)?;
        Ok(Self {
            is_replacing,
            root_directory: reader.u64("RootDirectory")?,
            name: read_name(&mut reader, "FileName")?,
        })
    }

    /// Appends the encoded structure to `out`, padded to the minimum of 24 bytes in the
    /// specification.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u8(u8::from(self.is_replacing));
        out.put(&[0; 7]);
        put_target(out, start, self.root_directory, self.name);
    }
}

open_flags! {
    /// Flags of a rename by the information class RENAME_EX. \[MS-FSCC\] 2.4.43
    RenameFlags(u32) {
        /// Replace an existing file that has the new name.
        REPLACE_IF_EXISTS = 0x0000_0001,
        /// Replace an existing file with the new name even while it is open.
        POSIX_SEMANTICS = 0x0000_0002,
        /// The renamed file does not inherit from the new directory whether its data stay on local
        /// storage.
        SUPPRESS_PIN_STATE_INHERITANCE = 0x0000_0004,
        /// The renamed file does not inherit the storage reserve of the new directory.
        SUPPRESS_STORAGE_RESERVE_INHERITANCE = 0x0000_0008,
        /// Resize storage reserves so that the available space of the volume does not increase.
        NO_INCREASE_AVAILABLE_SPACE = 0x0000_0010,
        /// Resize storage reserves so that the available space of the volume does not decrease.
        NO_DECREASE_AVAILABLE_SPACE = 0x0000_0020,
        /// Replace an existing file with the new name even if it is read-only.
        IGNORE_READONLY_ATTRIBUTE = 0x0000_0040,
    }
}

/// The information class RENAME_EX of SET_INFO: the client renames the open file, with flags.
/// \[MS-FSCC\] 2.4.43
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileRenameInformationEx<'a> {
    /// Flags of the rename: whether and how it replaces an existing file with the new name.
    pub flags: RenameFlags,
    /// Reserved: handle of a directory that the name is relative to; always 0 on the network.
    pub root_directory: u64,
    /// The new path from the root of the share, without a leading backslash.
    pub name: Utf16<'a>,
}

/// The information class LINK_EX of SET_INFO: the client creates a hard link to the open file, with
/// the flags of RENAME_EX. \[MS-FSCC\] 2.4.28
pub type FileLinkInformationEx<'a> = FileRenameInformationEx<'a>;

impl<'a> FileRenameInformationEx<'a> {
    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let flags = RenameFlags(reader.u32("Flags")?);
        reader.skip("Reserved", 4)?;
        Ok(Self {
            flags,
            root_directory: reader.u64("RootDirectory")?,
            name: read_name(&mut reader, "FileName")?,
        })
    }

    /// Appends the encoded structure to `out`, padded to the minimum of 24 bytes in the
    /// specification.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(self.flags.0);
        out.put_u32(0);
        put_target(out, start, self.root_directory, self.name);
    }
}

/// Appends RootDirectory and name to a structure that starts at index `start`.
fn put_target(out: &mut Vec<u8>, start: usize, root_directory: u64, name: Utf16<'_>) {
    out.put_u64(root_directory);
    put_name_len(out, name);
    out.put(name.0);
    out.resize(out.len().max(start + 24), 0);
}
