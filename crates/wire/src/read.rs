//! READ: read from a file or pipe. \[MS-SMB2\] 2.2.19, 2.2.20

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, fill_empty, u16_of};
use crate::open_enum::{open_enum, open_flags};

const REQUEST_LEN: usize = 48;
const RESPONSE_LEN: usize = 16;

/// Where the data stand in the responses that are made here: right after the fixed part.
pub const DATA_OFFSET: u8 = 80;

const _: () = assert!(DATA_OFFSET as usize == HEADER_LEN + RESPONSE_LEN);

open_flags! {
    /// Flags of the request. \[MS-SMB2\] 2.2.19
    ReadFlags(u8) {
        /// Past the server's cache. Dialects 3.0.2 and 3.1.1.
        UNBUFFERED = 0x01,
        /// The response may be compressed. Dialect 3.1.1.
        REQUEST_COMPRESSED = 0x02,
    }
}

open_enum! {
    /// How data of READ and WRITE go. \[MS-SMB2\] 2.2.19
    Channel(u32) {
        /// In the message.
        NONE = 0x0000_0000,
        /// By RDMA.
        RDMA_V1 = 0x0000_0001,
        /// By RDMA; the token is invalidated.
        RDMA_V1_INVALIDATE = 0x0000_0002,
        /// By RDMA, transformed.
        RDMA_TRANSFORM = 0x0000_0003,
    }
}

/// What to read. \[MS-SMB2\] 2.2.19
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Where the client would like the data in the response. Servers take no heed.
    pub padding: u8,
    /// Flags.
    pub flags: ReadFlags,
    /// Most bytes to read.
    pub length: u32,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// The open.
    pub file_id: FileId,
    /// Fewer bytes than this are no success.
    pub minimum_count: u32,
    /// How the data go.
    pub channel: Channel,
    /// Bytes that the client will read after this.
    pub remaining_bytes: u32,
    /// Where the data go by RDMA.
    pub channel_info: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "READ request")?;
        reader.structure_size("READ request", 49)?;
        let padding = reader.u8("Padding")?;
        let flags = ReadFlags(reader.u8("Flags")?);
        let length = reader.u32("Length")?;
        let offset = reader.u64("Offset")?;
        let file_id = reader.file_id("FileId")?;
        let minimum_count = reader.u32("MinimumCount")?;
        let channel = Channel(reader.u32("Channel")?);
        let remaining_bytes = reader.u32("RemainingBytes")?;
        let info = (
            reader.u16("ReadChannelInfoOffset")?,
            reader.u16("ReadChannelInfoLength")?,
        );
        let channel_info = channel_info(message, "ReadChannelInfo", channel, info)?;
        Ok(Self {
            padding,
            flags,
            length,
            offset,
            file_id,
            minimum_count,
            channel,
            remaining_bytes,
            channel_info,
        })
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        let has_info = !self.channel_info.is_empty();
        let info_offset = if has_info {
            HEADER_LEN + REQUEST_LEN
        } else {
            0
        };
        begin(message, 49);
        message.put_u8(self.padding);
        message.put_u8(self.flags.0);
        message.put_u32(self.length);
        message.put_u64(self.offset);
        message.put_file_id(self.file_id);
        message.put_u32(self.minimum_count);
        message.put_u32(self.channel.0);
        message.put_u32(self.remaining_bytes);
        message.put_u16(u16_of(info_offset));
        message.put_u16(u16_of(self.channel_info.len()));
        message.put(self.channel_info);
        fill_empty(message, REQUEST_LEN);
    }
}

/// What a READ or WRITE says of its channel, behind its fixed part. Without a channel the fields
/// mean nothing.
pub(crate) fn channel_info<'a>(
    message: &'a [u8],
    field: &'static str,
    channel: Channel,
    (offset, length): (u16, u16),
) -> Result<&'a [u8], DecodeError> {
    if channel == Channel::NONE {
        return Ok(&[]);
    }
    if length > 0 && usize::from(offset) < HEADER_LEN + REQUEST_LEN {
        let value = offset.into();
        return Err(DecodeError::Invalid { field, value });
    }
    slice_at(message, field, offset.into(), length.into())
}

open_flags! {
    /// Flags of the response. Dialect 3.1.1. \[MS-SMB2\] 2.2.20
    ResponseFlags(u32) {
        /// The data are preceded by an RDMA transform.
        RDMA_TRANSFORM = 0x0000_0001,
    }
}

/// What was read, without the data. \[MS-SMB2\] 2.2.20
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Where the data stand, from the start of the header.
    pub data_offset: u8,
    /// Bytes that went by RDMA.
    pub data_remaining: u32,
    /// Flags.
    pub flags: ResponseFlags,
}

impl Response {
    /// DataOffset and DataLength, from the first 80 bytes of a message: whether the data are there
    /// is not checked.
    pub fn extent(start: &[u8]) -> Result<(usize, u32), DecodeError> {
        let mut reader = Reader::body(start, "READ response")?;
        reader.structure_size("READ response", 17)?;
        let data_offset = reader.u8("DataOffset")?;
        reader.skip("Reserved", 1)?;
        Ok((data_offset.into(), reader.u32("DataLength")?))
    }

    /// Reads the body of a message: the fixed part, and the data.
    pub fn decode(message: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::body(message, "READ response")?;
        reader.structure_size("READ response", 17)?;
        let data_offset = reader.u8("DataOffset")?;
        reader.skip("Reserved", 1)?;
        let data_length = reader.u32("DataLength")?;
        let data_remaining = reader.u32("DataRemaining")?;
        let flags = ResponseFlags(reader.u32("Flags")?);
        let data = slice_at(message, "Data", data_offset.into(), data_length.into())?;
        let response = Self {
            data_offset,
            data_remaining,
            flags,
        };
        Ok((response, data))
    }

    /// Appends the 16 bytes of the fixed part to a message that holds its header. The data go
    /// right after, from another buffer, with DataOffset [`DATA_OFFSET`].
    ///
    /// A READ of no bytes that succeeds is these 80 bytes alone, as Samba sends it; the one byte
    /// that \[MS-SMB2\] 2.2.20 counts is left out.
    pub fn encode_head(&self, data_length: u32, message: &mut Vec<u8>) {
        begin(message, 17);
        message.put_u8(self.data_offset);
        message.put_u8(0);
        message.put_u32(data_length);
        message.put_u32(self.data_remaining);
        message.put_u32(self.flags.0);
    }
}
