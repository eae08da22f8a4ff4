//! Set: another name, or one more. The form that SMB2 uses, with a 64-bit root.

use alloc::vec::Vec;

use super::name::{put_name_len, read_name};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::text::Utf16;

/// Set: another name. \[MS-FSCC\] 2.4.42.2
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileRenameInformation<'a> {
    /// Whether a file that has the name gives way.
    pub is_replacing: bool,
    /// Always 0 over the network.
    pub root_directory: u64,
    /// The path from the root of the share. Some clients lead it with a backslash: smbclient
    /// does in a link.
    pub name: Utf16<'a>,
}

/// Set: one more name. \[MS-FSCC\] 2.4.28.2
pub type FileLinkInformation<'a> = FileRenameInformation<'a>;

impl<'a> FileRenameInformation<'a> {
    /// Bytes before the name, and the least that Windows takes. \[MS-FSA\] 2.1.5.15.12
    pub const LEN: usize = 20;

    /// Reads the structure at the start of `bytes`.
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

    /// Appends the structure, padded to the 24 bytes that the specification asks for at least.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u8(u8::from(self.is_replacing));
        out.put(&[0; 7]);
        put_target(out, start, self.root_directory, self.name);
    }
}

open_flags! {
    /// How to rename. \[MS-FSCC\] 2.4.43
    RenameFlags(u32) {
        /// A file that has the name gives way.
        REPLACE_IF_EXISTS = 0x0000_0001,
        /// Even while it is open.
        POSIX_SEMANTICS = 0x0000_0002,
        /// Opens do not lose the pin of their storage reserve.
        SUPPRESS_PIN_STATE_INHERITANCE = 0x0000_0004,
        /// The file leaves its storage reserve.
        SUPPRESS_STORAGE_RESERVE_INHERITANCE = 0x0000_0008,
        /// The new place may grow by it.
        NO_INCREASE_AVAILABLE_SPACE = 0x0000_0010,
        /// The old place may shrink by it.
        NO_DECREASE_AVAILABLE_SPACE = 0x0000_0020,
        /// A read-only file gives way too.
        IGNORE_READONLY_ATTRIBUTE = 0x0000_0040,
    }
}

/// Set: another name, with flags. \[MS-FSCC\] 2.4.43
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileRenameInformationEx<'a> {
    /// How to rename.
    pub flags: RenameFlags,
    /// Always 0 over the network.
    pub root_directory: u64,
    /// The path from the root of the share; no leading backslash.
    pub name: Utf16<'a>,
}

impl<'a> FileRenameInformationEx<'a> {
    /// Reads the structure at the start of `bytes`.
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

    /// Appends the structure, padded to the 24 bytes that the specification asks for at least.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(self.flags.0);
        out.put_u32(0);
        put_target(out, start, self.root_directory, self.name);
    }
}

/// Appends root and name to a structure that began at `start`.
fn put_target(out: &mut Vec<u8>, start: usize, root_directory: u64, name: Utf16<'_>) {
    out.put_u64(root_directory);
    put_name_len(out, name);
    out.put(name.0);
    out.resize(out.len().max(start + 24), 0);
}
