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
    /// The kind of a change. \[MS-FSCC\] 2.7.1
    FileAction(u32) {
        /// The file was created.
        ADDED = 0x1,
        /// The file was deleted.
        REMOVED = 0x2,
        /// Data or attributes of the file changed.
        MODIFIED = 0x3,
        /// The file was renamed; this is the old name. The entry with the new name follows.
        RENAMED_OLD_NAME = 0x4,
        /// The file was renamed; this is the new name.
        RENAMED_NEW_NAME = 0x5,
        /// A stream was created.
        ADDED_STREAM = 0x6,
        /// A stream was deleted.
        REMOVED_STREAM = 0x7,
        /// A stream was modified.
        MODIFIED_STREAM = 0x8,
        /// The object identifier was removed.
        REMOVED_BY_DELETE = 0x9,
        /// The object identifier was lost when the file moved.
        ID_NOT_TUNNELLED = 0xA,
        /// Another file already uses the object identifier.
        TUNNELLED_ID_COLLISION = 0xB,
    }
}

/// A change in a directory. \[MS-FSCC\] 2.7.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileNotifyInformation<'a> {
    /// Kind of the change.
    pub action: FileAction,
    /// Path relative to the watched directory.
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

/// Encodes a list of changes.
#[derive(Clone, Debug)]
pub struct NotifyWriter(ChainWriter);

impl NotifyWriter {
    /// A writer of a list of at most `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self(ChainWriter::new(Vec::new(), ALIGNMENT, max_len))
    }

    /// Appends a change. Returns false when it does not fit; the response is then
    /// STATUS_NOTIFY_ENUM_DIR. \[MS-SMB2\] 3.3.5.19
    pub fn push(&mut self, change: &FileNotifyInformation<'_>) -> bool {
        self.0.push(|out| change.encode(out))
    }

    /// The encoded list.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// Iterates over a list of changes.
#[derive(Clone, Debug)]
pub struct NotifyEntries<'a>(Chain<'a>);

impl<'a> NotifyEntries<'a> {
    /// The changes in `bytes`.
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
