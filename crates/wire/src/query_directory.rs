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
    /// Flags of a QUERY_DIRECTORY request: the position in the listing, and the number of entries.
    /// \[MS-SMB2\] 2.2.33
    QueryDirectoryFlags(u8) {
        /// Restart the listing from the first entry.
        RESTART_SCANS = 0x01,
        /// Return only one entry.
        RETURN_SINGLE_ENTRY = 0x02,
        /// Continue the listing from the entry with the FileIndex of the request.
        INDEX_SPECIFIED = 0x04,
        /// Restart the listing from the first entry, with a new search pattern.
        REOPEN = 0x10,
    }
}

/// A QUERY_DIRECTORY request: the client lists an open directory. \[MS-SMB2\] 2.2.33
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Information class that defines the format of the entries, the number of a
    /// [`FileInfoClass`](crate::fscc::FileInfoClass). \[MS-FSCC\] 2.4
    pub file_information_class: u8,
    /// Flags of the request: where the listing continues, and whether it returns only one entry.
    pub flags: QueryDirectoryFlags,
    /// FileIndex of the entry to continue from; valid only with the flag INDEX_SPECIFIED.
    pub file_index: u32,
    /// FileId of the directory to list, as the server returned it in the CREATE response.
    pub file_id: FileId,
    /// Search pattern for the names of entries, with the wildcards `*` and `?`.
    pub pattern: Utf16<'a>,
    /// Maximum length in bytes of the list of entries in the QUERY_DIRECTORY response.
    pub output_buffer_length: u32,
}

impl<'a> Request<'a> {
    /// Decodes a QUERY_DIRECTORY request from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize, a length or an offset is not valid.
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

    /// Appends the body of a QUERY_DIRECTORY request to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length, or a field is too long for
    /// its length field.
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
    /// A QUERY_DIRECTORY response. Its output buffer is a list of directory entries in the
    /// requested information class. \[MS-SMB2\] 2.2.34
    Response, "QUERY_DIRECTORY response"
}
