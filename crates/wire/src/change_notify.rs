//! CHANGE_NOTIFY: wait for a change in a directory. \[MS-SMB2\] 2.2.35, 2.2.36

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::FileId;
use crate::layout::{begin, buffer_response};
use crate::open_enum::open_flags;

open_flags! {
    /// Flags of the request. \[MS-SMB2\] 2.2.35
    ChangeNotifyFlags(u16) {
        /// Everything beneath, too.
        WATCH_TREE = 0x0001,
    }
}

open_flags! {
    /// Which changes count. \[MS-SMB2\] 2.2.35
    CompletionFilter(u32) {
        /// A file appears, goes or is renamed.
        FILE_NAME = 0x0000_0001,
        /// A directory appears, goes or is renamed.
        DIR_NAME = 0x0000_0002,
        /// Attributes change.
        ATTRIBUTES = 0x0000_0004,
        /// The size changes.
        SIZE = 0x0000_0008,
        /// The last write time changes.
        LAST_WRITE = 0x0000_0010,
        /// The last access time changes.
        LAST_ACCESS = 0x0000_0020,
        /// The creation time changes.
        CREATION = 0x0000_0040,
        /// Extended attributes change.
        EA = 0x0000_0080,
        /// The security descriptor changes.
        SECURITY = 0x0000_0100,
        /// A stream appears, goes or is renamed.
        STREAM_NAME = 0x0000_0200,
        /// The size of a stream changes.
        STREAM_SIZE = 0x0000_0400,
        /// A stream is written.
        STREAM_WRITE = 0x0000_0800,
    }
}

/// What to wait for. \[MS-SMB2\] 2.2.35
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether everything beneath counts.
    pub flags: ChangeNotifyFlags,
    /// Most bytes of the answer.
    pub output_buffer_length: u32,
    /// The directory.
    pub file_id: FileId,
    /// Which changes count.
    pub completion_filter: CompletionFilter,
}

impl Request {
    /// Reads the body of a message.
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

    /// Appends the body to a message that holds its header.
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
    /// The changes: FILE_NOTIFY_INFORMATION. \[MS-SMB2\] 2.2.36
    Response, "CHANGE_NOTIFY response"
}
