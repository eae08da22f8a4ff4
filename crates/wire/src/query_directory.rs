//! QUERY_DIRECTORY: list a directory. \[MS-SMB2\] 2.2.33, 2.2.34

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, buffer_response, fill_empty, u16_of};
use crate::open_enum::open_flags;
use crate::text::Utf16;

const REQUEST_LEN: usize = 32;

open_flags! {
    /// How to go on. \[MS-SMB2\] 2.2.33
    QueryDirectoryFlags(u8) {
        /// From the start.
        RESTART_SCANS = 0x01,
        /// One entry.
        RETURN_SINGLE_ENTRY = 0x02,
        /// From FileIndex.
        INDEX_SPECIFIED = 0x04,
        /// From the start, with a new pattern.
        REOPEN = 0x10,
    }
}

/// What to list. \[MS-SMB2\] 2.2.33
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The form of the entries. \[MS-FSCC\] 2.4
    pub file_information_class: u8,
    /// How to go on.
    pub flags: QueryDirectoryFlags,
    /// Where to go on.
    pub file_index: u32,
    /// The directory.
    pub file_id: FileId,
    /// Names that are asked for.
    pub pattern: Utf16<'a>,
    /// Most bytes of the answer.
    pub output_buffer_length: u32,
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "QUERY_DIRECTORY request")?;
        reader.structure_size("QUERY_DIRECTORY request", 33)?;
        let file_information_class = reader.u8("FileInformationClass")?;
        let flags = QueryDirectoryFlags(reader.u8("Flags")?);
        let file_index = reader.u32("FileIndex")?;
        let file_id = reader.file_id("FileId")?;
        let name_offset = reader.u16("FileNameOffset")?;
        let name_length = reader.u16("FileNameLength")?;
        let output_buffer_length = reader.u32("OutputBufferLength")?;
        let pattern = slice_at(message, "FileName", name_offset.into(), name_length.into())?;
        Ok(Self {
            file_information_class,
            flags,
            file_index,
            file_id,
            pattern: Utf16(pattern),
            output_buffer_length,
        })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 33);
        message.put_u8(self.file_information_class);
        message.put_u8(self.flags.0);
        message.put_u32(self.file_index);
        message.put_file_id(self.file_id);
        message.put_u16(u16_of(HEADER_LEN + REQUEST_LEN));
        message.put_u16(u16_of(self.pattern.len()));
        message.put_u32(self.output_buffer_length);
        message.put(self.pattern.0);
        fill_empty(message, REQUEST_LEN);
    }
}

buffer_response! {
    /// Entries of the directory. \[MS-SMB2\] 2.2.34
    Response, "QUERY_DIRECTORY response"
}
