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

/// A SET_INFO request. \[MS-SMB2\] 2.2.39
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The object of the change.
    pub info_type: InfoType,
    /// FileInfoClass or FsInfoClass of the buffer. \[MS-FSCC\] 2.4, 2.5
    pub file_info_class: u8,
    /// SecurityInformation: the parts of the security descriptor to set.
    pub additional_information: u32,
    /// FileId of the open.
    pub file_id: FileId,
    /// The new values, in the class.
    pub buffer: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`, which starts with its 64-byte SMB2 header.
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

    /// Appends the encoded body to `message`, which so far holds its SMB2 header only.
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

/// A SET_INFO response; its body has two bytes. \[MS-SMB2\] 2.2.40
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Response;

impl Response {
    /// Decodes the body of `message`, which starts with its 64-byte SMB2 header.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "SET_INFO response")?;
        reader.structure_size("SET_INFO response", 2)?;
        Ok(Self)
    }

    /// Appends the encoded body to `message`, which so far holds its SMB2 header only.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 2);
    }
}
