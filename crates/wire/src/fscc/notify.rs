//! Changes in a directory, as in a CHANGE_NOTIFY response. \[MS-FSCC\] 2.7.1

use alloc::vec::Vec;

use super::chain::{Chain, ChainWriter};
use super::name::{put_name_len, read_name};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_enum;
use crate::text::Utf16;

/// Alignment of the entries in bytes.
const ALIGNMENT: usize = 4;

open_enum! {
    /// The kind of a change in a watched directory. \[MS-FSCC\] 2.7.1
    FileAction(u32) {
        /// A file or directory was created, or renamed into the directory.
        ADDED = 0x1,
        /// A file or directory was deleted, or renamed out of the directory.
        REMOVED = 0x2,
        /// Data or attributes of a file or directory changed.
        MODIFIED = 0x3,
        /// A file or directory was renamed; this entry has the old name. The entry with the new
        /// name follows.
        RENAMED_OLD_NAME = 0x4,
        /// A file or directory was renamed; this entry has the new name.
        RENAMED_NEW_NAME = 0x5,
        /// A named stream of a file was created.
        ADDED_STREAM = 0x6,
        /// A named stream of a file was deleted.
        REMOVED_STREAM = 0x7,
        /// Data of a named stream changed.
        MODIFIED_STREAM = 0x8,
        /// A file with an object identifier was deleted. Only the NTFS system directory for object
        /// identifiers reports it.
        REMOVED_BY_DELETE = 0x9,
        /// A created or renamed file did not receive its earlier object identifier, because another
        /// file uses that identifier.
        ID_NOT_TUNNELLED = 0xA,
        /// A renamed file did not receive its earlier object identifier, because it already has an
        /// identifier.
        TUNNELLED_ID_COLLISION = 0xB,
    }
}

/// A change of a file or directory in a watched directory, as a CHANGE_NOTIFY response reports it.
/// \[MS-FSCC\] 2.7.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileNotifyInformation<'a> {
    /// The kind of the change, such as added, removed or renamed.
    pub action: FileAction,
    /// Path of the changed file or directory, relative to the watched directory.
    pub name: Utf16<'a>,
}

impl<'a> FileNotifyInformation<'a> {
    /// Decodes an entry without its NextEntryOffset.
    fn decode(entry: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(entry);
        Ok(Self {
            action: FileAction(reader.u32("Action")?),
            name: read_name(&mut reader, "FileName")?,
        })
    }

    /// Appends the encoded entry without its NextEntryOffset.
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.action.0);
        put_name_len(out, self.name);
        out.put(self.name.0);
    }
}

/// An encoder of the list of changes in the output buffer of a CHANGE_NOTIFY response.
#[derive(Clone, Debug)]
pub struct NotifyWriter(ChainWriter);

impl NotifyWriter {
    /// Makes a writer of a list of changes with at most `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self(ChainWriter::new(Vec::new(), ALIGNMENT, max_len))
    }

    /// Appends a change to the list and returns true. Returns false, without a change of the list,
    /// if it would exceed its maximum length; the server then responds with STATUS_NOTIFY_ENUM_DIR.
    /// \[MS-SMB2\] 3.3.5.19
    pub fn push(&mut self, change: &FileNotifyInformation<'_>) -> bool {
        self.0.push(|out| change.encode(out))
    }

    /// Returns the encoded list of all appended changes; no bytes if it has none.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// Iterates over the list of changes in the output buffer of a CHANGE_NOTIFY response. A malformed
/// entry gives an error.
#[derive(Clone, Debug)]
pub struct NotifyEntries<'a>(Chain<'a>);

impl<'a> NotifyEntries<'a> {
    /// Makes the iterator over the encoded changes in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Chain::new(bytes, "FILE_NOTIFY_INFORMATION", ALIGNMENT))
    }
}

impl<'a> Iterator for NotifyEntries<'a> {
    type Item = Result<FileNotifyInformation<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.and_then(FileNotifyInformation::decode))
    }
}
