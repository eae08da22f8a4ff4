//! SET_INFO: change a file, a file system, a security descriptor or quotas. \[MS-SMB2\] 2.2.39,
//! 2.2.40

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, fill_empty, u16_of, u32_of};
use crate::query_info::InfoType;

const REQUEST_LEN: usize = 32;

/// A SET_INFO request: the client changes a file, a file system, a security descriptor or quotas.
/// \[MS-SMB2\] 2.2.39
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of information that the client changes: about a file, a file system, security or
    /// quotas.
    pub info_type: InfoType,
    /// Information class that defines the format of `buffer`: the number of a FileInfoClass or, for
    /// a file system, an FsInfoClass; 0 for a security descriptor. \[MS-FSCC\] 2.4, 2.5
    pub file_info_class: u8,
    /// For a security descriptor, the parts that the client sets, as
    /// [`SecurityInformation`](crate::query_info::SecurityInformation); otherwise 0.
    pub additional_information: u32,
    /// FileId of the open that the change is about, as the server returned it in the CREATE
    /// response.
    pub file_id: FileId,
    /// The new values, in the format of the information class.
    pub buffer: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes a SET_INFO request from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "SET_INFO request")?;
        reader.structure_size("SET_INFO request", 33)?;
        let info_type = InfoType(reader.u8("InfoType")?);
        let file_info_class = reader.u8("FileInfoClass")?;
        let length = reader.u32("BufferLength")?;
        let offset = reader.u16("BufferOffset")?;
        reader.skip("Reserved", 2)?;
        let additional_information = reader.u32("AdditionalInformation")?;
        let file_id = reader.file_id("FileId")?;
        Ok(Self {
            info_type,
            file_info_class,
            additional_information,
            file_id,
            buffer: slice_at(message, "Buffer", offset.into(), length.into())?,
        })
    }

    /// Appends the body of a SET_INFO request to `message`, which must hold exactly its 64-byte
    /// SMB2 header. Panics when `message` has another length, or a field is too long for its length
    /// field.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 33);
        message.put_u8(self.info_type.0);
        message.put_u8(self.file_info_class);
        message.put_u32(u32_of(self.buffer.len()));
        message.put_u16(u16_of(HEADER_LEN + REQUEST_LEN));
        message.put_u16(0);
        message.put_u32(self.additional_information);
        message.put_file_id(self.file_id);
        message.put(self.buffer);
        fill_empty(message, REQUEST_LEN);
    }
}

/// A SET_INFO response: the server has applied the change. Its body has two bytes. \[MS-SMB2\]
/// 2.2.40
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Response;

impl Response {
    /// Decodes a SET_INFO response from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "SET_INFO response")?;
        reader.structure_size("SET_INFO response", 2)?;
        Ok(Self)
    }

    /// Appends the body of a SET_INFO response to `message`, which must hold exactly its 64-byte
    /// SMB2 header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 2);
    }
}
