//! CHANGE_NOTIFY: report changes in a directory. \[MS-SMB2\] 2.2.35, 2.2.36

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::layout::{begin, buffer_response};
use crate::open_enum::open_flags;

open_flags! {
    /// Flags of a CHANGE_NOTIFY request. \[MS-SMB2\] 2.2.35
    ChangeNotifyFlags(u16) {
        /// Report changes in all directories below the watched directory, not only in it.
        WATCH_TREE = 0x0001,
    }
}

open_flags! {
    /// The kinds of changes to report. \[MS-SMB2\] 2.2.35
    CompletionFilter(u32) {
        /// A file is created, deleted or renamed.
        FILE_NAME = 0x0000_0001,
        /// A directory is created, deleted or renamed.
        DIR_NAME = 0x0000_0002,
        /// DOS attributes change.
        ATTRIBUTES = 0x0000_0004,
        /// The length or the allocated space of a file changes.
        SIZE = 0x0000_0008,
        /// The last write time of a file changes.
        LAST_WRITE = 0x0000_0010,
        /// The last access time of a file changes.
        LAST_ACCESS = 0x0000_0020,
        /// The creation time of a file changes.
        CREATION = 0x0000_0040,
        /// Extended attributes of a file change.
        EA = 0x0000_0080,
        /// The security descriptor of a file changes.
        SECURITY = 0x0000_0100,
        /// A named stream of a file is created, deleted or renamed.
        STREAM_NAME = 0x0000_0200,
        /// The size of a named stream changes.
        STREAM_SIZE = 0x0000_0400,
        /// Data of a named stream change.
        STREAM_WRITE = 0x0000_0800,
    }
}

/// A CHANGE_NOTIFY request: the client asks for the next changes in an open directory. \[MS-SMB2\]
/// 2.2.35
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Flags of the request: whether the server watches the directory alone or the whole tree below
    /// it.
    pub flags: ChangeNotifyFlags,
    /// Maximum length in bytes of the list of changes in the CHANGE_NOTIFY response.
    pub output_buffer_length: u32,
    /// FileId of the watched directory, as the server returned it in the CREATE response.
    pub file_id: FileId,
    /// The kinds of changes that the server reports, such as renames or writes.
    pub completion_filter: CompletionFilter,
}

impl Request {
    /// Decodes a CHANGE_NOTIFY request from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "CHANGE_NOTIFY request")?;
        reader.structure_size("CHANGE_NOTIFY request", 32)?;
        let flags = ChangeNotifyFlags(reader.u16("Flags")?);
        let output_buffer_length = reader.u32("OutputBufferLength")?;
        let file_id = reader.file_id("FileId")?;
        let completion_filter = CompletionFilter(reader.u32("CompletionFilter")?);
        reader.skip("Reserved", 4)?;
        Ok(Self {
            flags,
            output_buffer_length,
            file_id,
            completion_filter,
        })
    }

    /// Appends the body of a CHANGE_NOTIFY request to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 32);
        message.put_u16(self.flags.0);
        message.put_u32(self.output_buffer_length);
        message.put_file_id(self.file_id);
        message.put_u32(self.completion_filter.0);
        message.put_u32(0);
    }
}

buffer_response! {
    /// A CHANGE_NOTIFY response. Its output buffer is a list of FILE_NOTIFY_INFORMATION, one for
    /// each reported change. \[MS-SMB2\] 2.2.36
    Response, "CHANGE_NOTIFY response"
}
