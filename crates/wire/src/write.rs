//! WRITE: write to a file or pipe. \[MS-SMB2\] 2.2.21, 2.2.22

use alloc::vec::Vec;
use core::ops::Range;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;
use crate::ids::FileId;
use crate::layout::{begin, fill_empty, u16_of, u32_of};
use crate::open_enum::open_flags;
use crate::read::{Channel, channel_info};

const REQUEST_LEN: usize = 48;

/// Bytes of header and fixed part: where the data stand in the requests that are made here.
pub const HEAD_LEN: usize = HEADER_LEN + REQUEST_LEN;

open_flags! {
    /// Flags of the request. \[MS-SMB2\] 2.2.21
    WriteFlags(u32) {
        /// On stable storage before the answer. Dialects 2.1 and later.
        WRITE_THROUGH = 0x0000_0001,
        /// Past the server's cache. Dialects 3.0.2 and 3.1.1.
        WRITE_UNBUFFERED = 0x0000_0002,
    }
}

/// What to write. \[MS-SMB2\] 2.2.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// The open.
    pub file_id: FileId,
    /// How the data go.
    pub channel: Channel,
    /// Bytes that go by RDMA; else bytes that the client will write after this.
    pub remaining_bytes: u32,
    /// Where the data come from by RDMA.
    pub channel_info: &'a [u8],
    /// Flags.
    pub flags: WriteFlags,
    /// Where the data stand, from the start of the header. Encoding sets its own.
    pub data_offset: u32,
    /// The data.
    pub data: &'a [u8],
}

/// The fixed part of a WRITE, before its data are there. \[MS-SMB2\] 2.2.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Where the data will stand, from the start of the header.
    pub data_offset: u16,
    /// Bytes of data.
    pub length: u32,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// The open.
    pub file_id: FileId,
    /// How the data go.
    pub channel: Channel,
    /// Bytes that go by RDMA; else bytes that the client will write after this.
    pub remaining_bytes: u32,
    /// Where the channel info stands, from the start of the header.
    pub channel_info_offset: u16,
    /// Bytes of channel info.
    pub channel_info_length: u16,
    /// Flags.
    pub flags: WriteFlags,
}

impl Head {
    /// Reads the fixed part; what it says of offsets and lengths is not checked.
    pub fn decode(start: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(start, "WRITE request")?;
        reader.structure_size("WRITE request", 49)?;
        Ok(Self {
            data_offset: reader.u16("DataOffset")?,
            length: reader.u32("Length")?,
            offset: reader.u64("Offset")?,
            file_id: reader.file_id("FileId")?,
            channel: Channel(reader.u32("Channel")?),
            remaining_bytes: reader.u32("RemainingBytes")?,
            channel_info_offset: reader.u16("WriteChannelInfoOffset")?,
            channel_info_length: reader.u16("WriteChannelInfoLength")?,
            flags: WriteFlags(reader.u32("Flags")?),
        })
    }
}

/// Appends the body of a request whose data follow the message's head, `length` bytes that the
/// encoder never sees: [`HEAD_LEN`] bytes in all with the header.
pub fn encode_head(
    file_id: FileId,
    offset: u64,
    length: u32,
    flags: WriteFlags,
    message: &mut Vec<u8>,
) {
    begin(message, 49);
    message.put_u16(u16_of(HEAD_LEN));
    message.put_u32(length);
    message.put_u64(offset);
    message.put_file_id(file_id);
    message.put_u32(Channel::NONE.0);
    message.put_u32(0);
    message.put_u32(0);
    message.put_u32(flags.0);
}

impl<'a> Request<'a> {
    /// Reads the body of a message.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let head = Head::decode(message)?;
        let data_offset = u64::from(head.data_offset);
        let info = (head.channel_info_offset, head.channel_info_length);
        Ok(Self {
            offset: head.offset,
            file_id: head.file_id,
            channel: head.channel,
            remaining_bytes: head.remaining_bytes,
            channel_info: channel_info(message, "WriteChannelInfo", head.channel, info)?,
            flags: head.flags,
            data_offset: head.data_offset.into(),
            data: slice_at(message, "Data", data_offset, head.length.into())?,
        })
    }

    /// Where the data stand within the message.
    pub fn data_range(&self) -> Range<usize> {
        let start = self.data_offset as usize;
        start..start + self.data.len()
    }

    /// Appends the body to a message that holds its header: the fixed part, the data or the
    /// channel info. Where the data go by RDMA there is no DataOffset. \[MS-SMB2\] 3.2.4.7
    pub fn encode(&self, message: &mut Vec<u8>) {
        let info_len = self.channel_info.len();
        let info_offset = if info_len > 0 { HEAD_LEN } else { 0 };
        let is_elsewhere = info_len > 0 && self.data.is_empty();
        let data_offset = if is_elsewhere { 0 } else { HEAD_LEN + info_len };
        begin(message, 49);
        message.put_u16(u16_of(data_offset));
        message.put_u32(u32_of(self.data.len()));
        message.put_u64(self.offset);
        message.put_file_id(self.file_id);
        message.put_u32(self.channel.0);
        message.put_u32(self.remaining_bytes);
        message.put_u16(u16_of(info_offset));
        message.put_u16(u16_of(info_len));
        message.put_u32(self.flags.0);
        message.put(self.channel_info);
        message.put(self.data);
        fill_empty(message, REQUEST_LEN);
    }
}

/// How much was written. \[MS-SMB2\] 2.2.22
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Bytes written.
    pub count: u32,
}

impl Response {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "WRITE response")?;
        reader.structure_size("WRITE response", 17)?;
        reader.skip("Reserved", 2)?;
        let count = reader.u32("Count")?;
        reader.skip("Remaining", 8)?;
        Ok(Self { count })
    }

    /// Appends the body to a message that holds its header. Windows sends 80 bytes in all, not
    /// the one more that StructureSize counts.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 17);
        message.put_u16(0);
        message.put_u32(self.count);
        message.put_u64(0);
    }
}
