//! SET_INFO: change what QUERY_INFO tells. \[MS-SMB2\] 2.2.39, 2.2.40

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, fill_empty, u16_of, u32_of};
use crate::query_info::InfoType;

const REQUEST_LEN: usize = 32;

/// What to change. \[MS-SMB2\] 2.2.39
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of thing.
    pub info_type: InfoType,
    /// The form of the buffer. \[MS-FSCC\] 2.4, 2.5
    pub file_info_class: u8,
    /// SecurityInformation.
    pub additional_information: u32,
    /// The open.
    pub file_id: FileId,
    /// The new values.
    pub buffer: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
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

    /// Appends the body to a message that holds its header.
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

/// It is changed. A body of two bytes. \[MS-SMB2\] 2.2.40
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Response;

impl Response {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "SET_INFO response")?;
        reader.structure_size("SET_INFO response", 2)?;
        Ok(Self)
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 2);
    }
}
