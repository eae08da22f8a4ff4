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
    /// Flags of a QUERY_DIRECTORY request: the start of the listing. \[MS-SMB2\] 2.2.33
    QueryDirectoryFlags(u8) {
        /// Restart the listing from its beginning.
        RESTART_SCANS = 0x01,
        /// Return one entry only.
        RETURN_SINGLE_ENTRY = 0x02,
        /// Continue the listing from FileIndex.
        INDEX_SPECIFIED = 0x04,
        /// Restart the listing with a new search pattern.
        REOPEN = 0x10,
    }
}

/// A QUERY_DIRECTORY request. \[MS-SMB2\] 2.2.33
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// FileInfoClass of the entries. \[MS-FSCC\] 2.4
    pub file_information_class: u8,
    /// Flags of the request.
    pub flags: QueryDirectoryFlags,
    /// FileIndex of the entry to continue from; valid with INDEX_SPECIFIED.
    pub file_index: u32,
    /// FileId of the open directory.
    pub file_id: FileId,
    /// Search pattern for names, with wildcards.
    pub pattern: Utf16<'a>,
    /// Maximum length of the response's buffer in bytes.
    pub output_buffer_length: u32,
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`, which starts with its 64-byte SMB2 header.
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

    /// Appends the encoded body to `message`, which so far holds its SMB2 header only.
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
    /// Entries of the directory, in the requested class. \[MS-SMB2\] 2.2.34
    Response, "QUERY_DIRECTORY response"
}
