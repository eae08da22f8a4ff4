//! Changes in a directory, as CHANGE_NOTIFY tells them. \[MS-FSCC\] 2.7.1

use alloc::vec::Vec;

use super::chain::{Chain, ChainWriter};
use super::name::{put_name_len, read_name};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_enum;
use crate::text::Utf16;

/// Where each entry of the list begins.
const ALIGNMENT: usize = 4;

open_enum! {
    /// What happened to a name. \[MS-FSCC\] 2.7.1
    FileAction(u32) {
        /// It is new.
        ADDED = 0x1,
        /// It is gone.
        REMOVED = 0x2,
        /// Data or attributes changed.
        MODIFIED = 0x3,
        /// It was renamed; the new name follows.
        RENAMED_OLD_NAME = 0x4,
        /// The new name.
        RENAMED_NEW_NAME = 0x5,
        /// A stream is new.
        ADDED_STREAM = 0x6,
        /// A stream is gone.
        REMOVED_STREAM = 0x7,
        /// A stream changed.
        MODIFIED_STREAM = 0x8,
        /// The object id was taken away.
        REMOVED_BY_DELETE = 0x9,
        /// The object id could not be kept in a move.
        ID_NOT_TUNNELLED = 0xA,
        /// The object id is in use by another file.
        TUNNELLED_ID_COLLISION = 0xB,
    }
}

/// A change in a directory. \[MS-FSCC\] 2.7.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileNotifyInformation<'a> {
    /// What happened.
    pub action: FileAction,
    /// The path from the directory that is watched.
    pub name: Utf16<'a>,
}

impl<'a> FileNotifyInformation<'a> {
    /// Reads what follows NextEntryOffset.
    fn decode(entry: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(entry);
        Ok(Self {
            action: FileAction(reader.u32("Action")?),
            name: read_name(&mut reader, "FileName")?,
        })
    }

    /// Appends what follows NextEntryOffset.
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.action.0);
        put_name_len(out, self.name);
        out.put(self.name.0);
    }
}

/// Writes a list of changes.
#[derive(Clone, Debug)]
pub struct NotifyWriter(ChainWriter);

impl NotifyWriter {
    /// A list of at most `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self(ChainWriter::new(Vec::new(), ALIGNMENT, max_len))
    }

    /// Appends a change. Where it does not fit, false: the answer is then
    /// STATUS_NOTIFY_ENUM_DIR. \[MS-SMB2\] 3.3.5.19
    pub fn push(&mut self, change: &FileNotifyInformation<'_>) -> bool {
        self.0.push(|out| change.encode(out))
    }

    /// The list.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// Reads a list of changes.
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
