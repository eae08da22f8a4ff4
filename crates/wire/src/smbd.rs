//! SMB Direct: the messages in RDMA SENDs, and the buffer descriptors for RDMA READs and WRITEs.
//! \[MS-SMBD\] 2.2
//!
//! These messages have no SMB2 header: a message is the contents of one SEND. A message may be
//! longer than its structure; the rest is ignored, as in other implementations.

use alloc::vec::Vec;
use core::ops::Range;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::status::Status;

/// The only version of the protocol: 1.0. \[MS-SMBD\] 1.7
pub const VERSION_1: u16 = 0x0100;

/// Minimum value of MaxReceiveSize in bytes. \[MS-SMBD\] 3.1.5.6
pub const MIN_RECEIVE_SIZE: u32 = 128;

/// Minimum value of MaxFragmentedSize in bytes. \[MS-SMBD\] 3.1.5.6
pub const MIN_FRAGMENTED_SIZE: u32 = 131_072;

/// The client's first message. \[MS-SMBD\] 2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateRequest {
    /// The lowest version that the client supports.
    pub min_version: u16,
    /// The highest version that the client supports.
    pub max_version: u16,
    /// Number of Send Credits that the client requests.
    pub credits_requested: u16,
    /// Maximum length in bytes of a SEND that the client intends to post.
    pub preferred_send_size: u32,
    /// Maximum length in bytes of a SEND that the client can receive.
    pub max_receive_size: u32,
    /// Maximum length in bytes of a fragmented message that the client can reassemble.
    pub max_fragmented_size: u32,
}

impl NegotiateRequest {
    /// Length of the encoded message in bytes.
    pub const LEN: usize = 20;

    /// Decodes a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "SMB Direct negotiate request";
        let mut reader = Reader::new(fixed(message, structure, Self::LEN)?);
        let min_version = reader.u16("MinVersion")?;
        let max_version = reader.u16("MaxVersion")?;
        reader.skip("Reserved", 2)?;
        Ok(Self {
            min_version,
            max_version,
            credits_requested: reader.u16("CreditsRequested")?,
            preferred_send_size: reader.u32("PreferredSendSize")?,
            max_receive_size: reader.u32("MaxReceiveSize")?,
            max_fragmented_size: reader.u32("MaxFragmentedSize")?,
        })
    }

    /// Appends the encoded message.
    pub fn encode(&self, message: &mut Vec<u8>) {
        message.put_u16(self.min_version);
        message.put_u16(self.max_version);
        message.put_u16(0);
        message.put_u16(self.credits_requested);
        message.put_u32(self.preferred_send_size);
        message.put_u32(self.max_receive_size);
        message.put_u32(self.max_fragmented_size);
    }
}

/// The server's response to a [`NegotiateRequest`]. \[MS-SMBD\] 2.2.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateResponse {
    /// The lowest version that the server supports.
    pub min_version: u16,
    /// The highest version that the server supports.
    pub max_version: u16,
    /// The version of the connection.
    pub negotiated_version: u16,
    /// Number of Send Credits that the server requests.
    pub credits_requested: u16,
    /// Number of Send Credits that the server grants.
    pub credits_granted: u16,
    /// Whether the server accepts the connection.
    pub status: Status,
    /// Maximum length in bytes of an RDMA READ or WRITE by the server.
    pub max_read_write_size: u32,
    /// Maximum length in bytes of a SEND that the server posts.
    pub preferred_send_size: u32,
    /// Maximum length in bytes of a SEND that the server can receive.
    pub max_receive_size: u32,
    /// Maximum length in bytes of a fragmented message that the server can reassemble.
    pub max_fragmented_size: u32,
}

impl NegotiateResponse {
    /// Length of the encoded message in bytes.
    pub const LEN: usize = 32;

    /// Decodes a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "SMB Direct negotiate response";
        let mut reader = Reader::new(fixed(message, structure, Self::LEN)?);
        let min_version = reader.u16("MinVersion")?;
        let max_version = reader.u16("MaxVersion")?;
        let negotiated_version = reader.u16("NegotiatedVersion")?;
        reader.skip("Reserved", 2)?;
        Ok(Self {
            min_version,
            max_version,
            negotiated_version,
            credits_requested: reader.u16("CreditsRequested")?,
            credits_granted: reader.u16("CreditsGranted")?,
            status: Status(reader.u32("Status")?),
            max_read_write_size: reader.u32("MaxReadWriteSize")?,
            preferred_send_size: reader.u32("PreferredSendSize")?,
            max_receive_size: reader.u32("MaxReceiveSize")?,
            max_fragmented_size: reader.u32("MaxFragmentedSize")?,
        })
    }

    /// Appends the encoded message.
    pub fn encode(&self, message: &mut Vec<u8>) {
        message.put_u16(self.min_version);
        message.put_u16(self.max_version);
        message.put_u16(self.negotiated_version);
        message.put_u16(0);
        message.put_u16(self.credits_requested);
        message.put_u16(self.credits_granted);
        message.put_u32(self.status.0);
        message.put_u32(self.max_read_write_size);
        message.put_u32(self.preferred_send_size);
        message.put_u32(self.max_receive_size);
        message.put_u32(self.max_fragmented_size);
    }
}

open_flags! {
    /// Flags of a data transfer. \[MS-SMBD\] 2.2.3
    TransferFlags(u16) {
        /// The receiver must respond immediately: a keep-alive.
        RESPONSE_REQUESTED = 0x0001,
    }
}

/// The header of every SEND after the negotiation. \[MS-SMBD\] 2.2.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataTransfer {
    /// Number of Send Credits that the sender wants to have, including its present ones.
    pub credits_requested: u16,
    /// Number of further Send Credits that the sender grants.
    pub credits_granted: u16,
    /// Flags of the transfer.
    pub flags: TransferFlags,
    /// Number of bytes of the message that follow in further SENDs.
    pub remaining_data_length: u32,
    /// Offset of the data in bytes from the start of the SEND; 0 without data.
    pub data_offset: u32,
    /// Length of the data in bytes.
    pub data_length: u32,
}

impl DataTransfer {
    /// Length of the header in bytes.
    pub const LEN: usize = 20;
    /// Offset of the data in bytes, as all senders choose it: the first multiple of 8 after the
    /// header.
    pub const DATA_OFFSET: u32 = 24;

    /// Decodes the header of a message and checks that the message contains the data.
    ///
    /// It also refuses data that overlap the header. \[MS-SMBD\] 3.1.5.8 does not require that, but
    /// no known peer sends such data. Without data, any aligned offset within the message is valid,
    /// as in Windows and Linux.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "SMB Direct data transfer";
        let mut reader = Reader::new(fixed(message, structure, Self::LEN)?);
        let credits_requested = reader.u16("CreditsRequested")?;
        let credits_granted = reader.u16("CreditsGranted")?;
        let flags = TransferFlags(reader.u16("Flags")?);
        reader.skip("Reserved", 2)?;
        let found = Self {
            credits_requested,
            credits_granted,
            flags,
            remaining_data_length: reader.u32("RemainingDataLength")?,
            data_offset: reader.u32("DataOffset")?,
            data_length: reader.u32("DataLength")?,
        };
        found.check_bounds(message)?;
        Ok(found)
    }

    fn check_bounds(&self, message: &[u8]) -> Result<(), DecodeError> {
        let (offset, length) = (u64::from(self.data_offset), u64::from(self.data_length));
        let is_aligned = offset.is_multiple_of(8);
        let is_behind_header = length == 0 || offset >= Self::LEN as u64;
        if !is_aligned || !is_behind_header {
            let field = "DataOffset";
            return Err(DecodeError::Invalid {
                field,
                value: offset,
            });
        }
        if length == 0 && offset > message.len() as u64 {
            let field = "Buffer";
            return Err(DecodeError::OutOfBounds {
                field,
                offset,
                length,
            });
        }
        slice_at(message, "Buffer", offset, length).map(|_| ())
    }

    /// Position of the data in a message that [`DataTransfer::decode`] has accepted.
    pub fn data(&self) -> Range<usize> {
        let start = self.data_offset as usize;
        start..start + self.data_length as usize
    }

    /// Appends the encoded header of [`Self::LEN`] bytes. For data, the caller appends zeros up to
    /// [`DataTransfer::data_offset`], then the data.
    pub fn encode(&self, message: &mut Vec<u8>) {
        message.put_u16(self.credits_requested);
        message.put_u16(self.credits_granted);
        message.put_u16(self.flags.0);
        message.put_u16(0);
        message.put_u32(self.remaining_data_length);
        message.put_u32(self.data_offset);
        message.put_u32(self.data_length);
    }
}

/// A buffer of the peer for RDMA. The channel info of READ and WRITE is a list of them. \[MS-SMBD\]
/// 2.2.3.1, \[MS-SMB2\] 2.2.19, 2.2.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferDescriptorV1 {
    /// Address of the buffer, valid for the peer's adapter.
    pub offset: u64,
    /// Steering tag of the registration, which a SEND can invalidate.
    pub token: u32,
    /// Length of the buffer in bytes.
    pub length: u32,
}

impl BufferDescriptorV1 {
    /// Length of an encoded descriptor in bytes.
    pub const LEN: usize = 16;

    /// Decodes a list. Fails when its length is not a multiple of [`Self::LEN`].
    pub fn decode_list(list: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let (pieces, rest) = list.as_chunks::<{ Self::LEN }>();
        if !rest.is_empty() {
            return Err(DecodeError::Truncated {
                field: "SMB_DIRECT_BUFFER_DESCRIPTOR_V1",
                needed: Self::LEN,
                left: rest.len(),
            });
        }
        pieces.iter().map(Self::decode).collect()
    }

    fn decode(piece: &[u8; Self::LEN]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(piece);
        Ok(Self {
            offset: reader.u64("Offset")?,
            token: reader.u32("Token")?,
            length: reader.u32("Length")?,
        })
    }

    /// Appends the encoded descriptor.
    pub fn encode(&self, list: &mut Vec<u8>) {
        list.put_u64(self.offset);
        list.put_u32(self.token);
        list.put_u32(self.length);
    }

    /// Total length of the buffers in bytes.
    pub fn total(list: &[Self]) -> u64 {
        list.iter().map(|piece| u64::from(piece.length)).sum()
    }
}

/// The first `needed` bytes of a message. Fails when it is shorter.
fn fixed<'a>(
    message: &'a [u8],
    field: &'static str,
    needed: usize,
) -> Result<&'a [u8], DecodeError> {
    message.get(..needed).ok_or(DecodeError::Truncated {
        field,
        needed,
        left: message.len(),
    })
}
