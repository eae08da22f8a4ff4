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

/// Length in bytes of the SMB2 header and the fixed part of a WRITE request, which is the offset of
/// the data in a request without channel info.
pub const HEAD_LEN: usize = HEADER_LEN + REQUEST_LEN;

open_flags! {
    /// Flags of a WRITE request. \[MS-SMB2\] 2.2.21
    WriteFlags(u32) {
        /// Write the data to stable storage before the response. Dialects 2.1 and later.
        WRITE_THROUGH = 0x0000_0001,
        /// Bypass the cache of the server. Dialects 3.0.2 and 3.1.1.
        WRITE_UNBUFFERED = 0x0000_0002,
    }
}

/// A WRITE request: the client writes to an open file or pipe. \[MS-SMB2\] 2.2.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Offset of the first byte to write, in bytes from the start of the file. Ignored for a pipe.
    pub offset: u64,
    /// FileId of the file or pipe to write, as the server returned it in the CREATE response.
    pub file_id: FileId,
    /// Whether the request carries the data, or the server reads them from the client's memory by
    /// RDMA.
    pub channel: Channel,
    /// With RDMA, number of bytes that RDMA transfers. Without RDMA, number of bytes that the
    /// client intends to write after this request.
    pub remaining_bytes: u32,
    /// Encoded buffer descriptors of the client's memory for RDMA; empty without RDMA.
    pub channel_info: &'a [u8],
    /// Flags of the request: whether the data must reach stable storage, and whether the server
    /// bypasses its cache.
    pub flags: WriteFlags,
    /// Offset in bytes of the data of the WRITE from the start of the SMB2 header. `encode` ignores
    /// it.
    pub data_offset: u32,
    /// The data to write to the file; empty if the server fetches them by RDMA.
    pub data: &'a [u8],
}

/// The fixed part of a WRITE request: all fields except the data. A receiver decodes it before the
/// data arrive. \[MS-SMB2\] 2.2.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Offset in bytes of the data of the WRITE from the start of the SMB2 header.
    pub data_offset: u16,
    /// Length of the data of the WRITE in bytes; 0 if RDMA transfers them.
    pub length: u32,
    /// Offset of the first byte to write, in bytes from the start of the file. Ignored for a pipe.
    pub offset: u64,
    /// FileId of the file or pipe to write, as the server returned it in the CREATE response.
    pub file_id: FileId,
    /// Whether the request carries the data, or the server reads them from the client's memory by
    /// RDMA.
    pub channel: Channel,
    /// With RDMA, number of bytes that RDMA transfers. Without RDMA, number of bytes that the
    /// client intends to write after this request.
    pub remaining_bytes: u32,
    /// Offset in bytes of the RDMA buffer descriptors from the start of the SMB2 header; 0 without
    /// RDMA.
    pub channel_info_offset: u16,
    /// Length of the RDMA buffer descriptors in bytes; 0 without RDMA.
    pub channel_info_length: u16,
    /// Flags of the request: whether the data must reach stable storage, and whether the server
    /// bypasses its cache.
    pub flags: WriteFlags,
}

impl Head {
    /// Decodes the fixed part from `start`, which must have at least the first 112 bytes of the
    /// message. The caller must check the offsets and lengths in the result.
    ///
    /// # Errors
    /// Fails when `start` is too short or the StructureSize is wrong.
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

/// Appends the body of a WRITE request without its data to `message`, which must hold exactly its
/// 64-byte SMB2 header. The result has [`HEAD_LEN`] bytes, and the caller sends `length` bytes of
/// data directly after it. `offset` is the position in the file in bytes.
///
/// # Panics
/// Panics when `message` is not 64 bytes long.
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
    /// Decodes a WRITE request from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize, a length or an offset is not valid.
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

    /// Returns the byte range of the data in the message that [`Request::decode`] has decoded.
    pub fn data_range(&self) -> Range<usize> {
        let start = self.data_offset as usize;
        start..start + self.data.len()
    }

    /// Appends the body of the WRITE request to `message`, which must consist of the 64-byte SMB2
    /// header: the fixed part, then the channel info (the RDMA descriptors, if any), then the data.
    /// A request with channel info and without data has the DataOffset 0. \[MS-SMB2\] 3.2.4.7
    ///
    /// # Panics
    /// `message` is not exactly 64 bytes long, or the channel info or the data do not fit into
    /// their length fields.
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

/// A WRITE response: the server has written the data. \[MS-SMB2\] 2.2.22
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Number of bytes that the server has written to the file.
    pub count: u32,
}

impl Response {
    /// Decodes a WRITE response from `message`, which starts with its 64-byte SMB2 header. Fails
    /// when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::body(message, "WRITE response")?;
        reader.structure_size("WRITE response", 17)?;
        reader.skip("Reserved", 2)?;
        let count = reader.u32("Count")?;
        reader.skip("Remaining", 8)?;
        Ok(Self { count })
    }

    /// Appends the body of a WRITE response to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length. The message has 80 bytes as in Windows,
    /// without the extra byte that StructureSize counts.
    pub fn encode(&self, message: &mut Vec<u8>) {
        begin(message, 17);
        message.put_u16(0);
        message.put_u32(self.count);
        message.put_u64(0);
    }
}
