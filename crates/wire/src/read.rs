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

/// Offset in bytes of the data in a READ response that this crate encodes: directly after the
/// header and the fixed part.
pub const DATA_OFFSET: u8 = 80;

const _: () = assert!(DATA_OFFSET as usize == HEADER_LEN + RESPONSE_LEN);

open_flags! {
    /// Flags of a READ request. \[MS-SMB2\] 2.2.19
    ReadFlags(u8) {
        /// Bypass the cache of the server. Dialects 3.0.2 and 3.1.1.
        UNBUFFERED = 0x01,
        /// The server may compress the response. Dialect 3.1.1.
        REQUEST_COMPRESSED = 0x02,
    }
}

open_enum! {
    /// The way in which the data of a READ or WRITE are transferred. \[MS-SMB2\] 2.2.19
    Channel(u32) {
        /// The SMB2 message carries the data.
        NONE = 0x0000_0000,
        /// RDMA transfers the data, to or from the client's memory.
        RDMA_V1 = 0x0000_0001,
        /// RDMA transfers the data, and the server's response invalidates the client's steering
        /// tag.
        RDMA_V1_INVALIDATE = 0x0000_0002,
        /// RDMA transfers the data after a transform, such as encryption.
        RDMA_TRANSFORM = 0x0000_0003,
    }
}

/// A READ request: the client reads from an open file or pipe. \[MS-SMB2\] 2.2.19
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Preferred offset of the data in the response, from the start of its SMB2 header in bytes.
    /// Servers ignore it.
    pub padding: u8,
    /// Flags of the request: whether the server bypasses its cache, and whether it may compress the
    /// response.
    pub flags: ReadFlags,
    /// Maximum number of bytes that the READ returns.
    pub length: u32,
    /// Offset of the first byte to read, in bytes from the start of the file. Ignored for a pipe.
    pub offset: u64,
    /// FileId of the file or pipe to read, as the server returned it in the CREATE response.
    pub file_id: FileId,
    /// Minimum number of bytes that the READ returns. The server fails the request if it has fewer
    /// bytes.
    pub minimum_count: u32,
    /// Whether the response carries the data, or the server writes them to the client's memory by
    /// RDMA.
    pub channel: Channel,
    /// Number of bytes that the client intends to read after this request, as a hint; usually 0.
    pub remaining_bytes: u32,
    /// Encoded buffer descriptors of the client's memory for RDMA; empty without RDMA.
    pub channel_info: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes a READ request from `message`, which starts with its 64-byte SMB2 header. Fails when
    /// `message` is too short, or its StructureSize, a length or an offset is not valid.
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

    /// Appends the body of a READ request to `message`, which must hold exactly its 64-byte SMB2
    /// header. Panics when `message` has another length, or a field is too long for its length
    /// field.
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

/// The channel info of a READ or WRITE, which follows the fixed part. Without a channel, its offset
/// and length have no meaning.
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
    /// Flags of a READ response. Dialect 3.1.1 only. \[MS-SMB2\] 2.2.20
    ResponseFlags(u32) {
        /// An RDMA transform precedes the data.
        RDMA_TRANSFORM = 0x0000_0001,
    }
}

/// The fixed part of a READ response: all fields except the data. \[MS-SMB2\] 2.2.20
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// Offset in bytes of the data of the READ from the start of the SMB2 header.
    pub data_offset: u8,
    /// Number of bytes that the server transferred by RDMA; 0 without RDMA.
    pub data_remaining: u32,
    /// Flags of the response: whether an RDMA transform precedes the data.
    pub flags: ResponseFlags,
}

impl Response {
    /// Returns DataOffset and DataLength of a READ response: the position of the data from the
    /// start of the SMB2 header, and their length, in bytes. `start` must have at least the first
    /// 80 bytes of the message. The caller must check that the message contains the data.
    ///
    /// # Errors
    /// Fails when `start` is too short or the StructureSize is wrong.
    pub fn extent(start: &[u8]) -> Result<(usize, u32), DecodeError> {
        let mut reader = Reader::body(start, "READ response")?;
        reader.structure_size("READ response", 17)?;
        let data_offset = reader.u8("DataOffset")?;
        reader.skip("Reserved", 1)?;
        Ok((data_offset.into(), reader.u32("DataLength")?))
    }

    /// Decodes a whole READ response, with its 64-byte SMB2 header. Returns the fixed part and the
    /// data.
    ///
    /// # Errors
    /// Fails when `message` is too short, its StructureSize is wrong, or the data are outside of
    /// it.
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

    /// Appends the 16 bytes of the fixed part to `message`, which must hold exactly its 64-byte
    /// SMB2 header. The caller sends the `data_length` bytes of data directly after it, from
    /// another buffer; `data_offset` must then be [`DATA_OFFSET`].
    ///
    /// A successful READ of no bytes has these 80 bytes alone, as in Samba, without the one byte
    /// that \[MS-SMB2\] 2.2.20 requires.
    ///
    /// # Panics
    /// Panics when `message` is not 64 bytes long.
    pub fn encode_head(&self, data_length: u32, message: &mut Vec<u8>) {
        begin(message, 17);
        message.put_u8(self.data_offset);
        message.put_u8(0);
        message.put_u32(data_length);
        message.put_u32(self.data_remaining);
        message.put_u32(self.flags.0);
    }
}
