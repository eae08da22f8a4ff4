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

/// Version 1.0 of the SMB Direct protocol, the only one. \[MS-SMBD\] 1.7
pub const VERSION_1: u16 = 0x0100;

/// Minimum value of MaxReceiveSize in an SMB Direct negotiation, in bytes. \[MS-SMBD\] 3.1.5.6
pub const MIN_RECEIVE_SIZE: u32 = 128;

/// Minimum value of MaxFragmentedSize in an SMB Direct negotiation, in bytes. \[MS-SMBD\] 3.1.5.6
pub const MIN_FRAGMENTED_SIZE: u32 = 131_072;

/// The client's first message on an SMB Direct connection, the negotiate request: it offers
/// versions, credits and sizes. \[MS-SMBD\] 2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateRequest {
    /// The lowest version of SMB Direct that the client supports.
    pub min_version: u16,
    /// The highest version of SMB Direct that the client supports.
    pub max_version: u16,
    /// Number of Send Credits that the client requests of the server. Each credit allows one RDMA
    /// SEND.
    pub credits_requested: u16,
    /// Maximum length in bytes of an RDMA SEND that the client intends to post.
    pub preferred_send_size: u32,
    /// Maximum length in bytes of an RDMA SEND that the client can receive.
    pub max_receive_size: u32,
    /// Maximum length in bytes of an SMB2 message in several SENDs that the client can reassemble.
    pub max_fragmented_size: u32,
}

impl NegotiateRequest {
    /// Length of the encoded message in bytes.
    pub const LEN: usize = 20;

    /// Decodes the negotiate request from the contents of an RDMA SEND. Fails when `message` has
    /// less than [`Self::LEN`] bytes; later bytes are ignored.
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

    /// Appends the encoded negotiate request of [`Self::LEN`] bytes to `message`.
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

/// The server's response to the negotiate request of an SMB Direct connection: the selected
/// version, credits and sizes. \[MS-SMBD\] 2.2.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateResponse {
    /// The lowest version of SMB Direct that the server supports.
    pub min_version: u16,
    /// The highest version of SMB Direct that the server supports.
    pub max_version: u16,
    /// The version of SMB Direct that the connection uses.
    pub negotiated_version: u16,
    /// Number of Send Credits that the server requests of the client. Each credit allows one RDMA
    /// SEND.
    pub credits_requested: u16,
    /// Number of Send Credits that the server grants to the client. Each credit allows one RDMA
    /// SEND.
    pub credits_granted: u16,
    /// SUCCESS if the server accepts the connection; otherwise the reason of the refusal.
    pub status: Status,
    /// Maximum length in bytes of one RDMA READ or WRITE that the server performs.
    pub max_read_write_size: u32,
    /// Maximum length in bytes of an RDMA SEND that the server posts.
    pub preferred_send_size: u32,
    /// Maximum length in bytes of an RDMA SEND that the server can receive.
    pub max_receive_size: u32,
    /// Maximum length in bytes of an SMB2 message in several SENDs that the server can reassemble.
    pub max_fragmented_size: u32,
}

impl NegotiateResponse {
    /// Length of the encoded message in bytes.
    pub const LEN: usize = 32;

    /// Decodes the negotiate response from the contents of an RDMA SEND. Fails when `message` has
    /// less than [`Self::LEN`] bytes; later bytes are ignored.
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

    /// Appends the encoded negotiate response of [`Self::LEN`] bytes to `message`.
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
    /// Flags of an SMB Direct data transfer. \[MS-SMBD\] 2.2.3
    TransferFlags(u16) {
        /// The receiver must respond with a message immediately. A sender uses the flag as a
        /// keep-alive.
        RESPONSE_REQUESTED = 0x0001,
    }
}

/// The header of every RDMA SEND of SMB Direct after the negotiation. Data may follow: an SMB2
/// message, or a part of one. \[MS-SMBD\] 2.2.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataTransfer {
    /// Number of Send Credits that the sender wants to have in all, including its present ones.
    /// Each credit allows one SEND.
    pub credits_requested: u16,
    /// Number of further Send Credits that the sender grants to the receiver. Each credit allows
    /// one SEND.
    pub credits_granted: u16,
    /// Flags of the SEND: whether the receiver must respond immediately, as to a keep-alive
    /// message.
    pub flags: TransferFlags,
    /// Number of bytes of the SMB2 message that follow in further SENDs; 0 in the last SEND of a
    /// message.
    pub remaining_data_length: u32,
    /// Offset of the data in bytes from the start of the SEND; 0 without data.
    pub data_offset: u32,
    /// Length of the data in this SEND in bytes.
    pub data_length: u32,
}

impl DataTransfer {
    /// Length of the encoded header in bytes.
    pub const LEN: usize = 20;
    /// Offset of the data in bytes from the start of the SEND, as all senders choose it: the first
    /// multiple of 8 after the header.
    pub const DATA_OFFSET: u32 = 24;

    /// Decodes the SMB Direct header at the start of an RDMA SEND, and checks that `message`
    /// contains the data that the header states.
    ///
    /// # Errors
    /// Fails when `message` is too short, or the data are not aligned to 8 bytes, outside
    /// `message`, or overlap the header. \[MS-SMBD\] 3.1.5.8 does not require the last check, but
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

    /// Returns the byte range of the data in the SEND from which [`DataTransfer::decode`] has
    /// decoded this header.
    pub fn data(&self) -> Range<usize> {
        let start = self.data_offset as usize;
        start..start + self.data_length as usize
    }

    /// Appends the encoded header of [`Self::LEN`] bytes to `message`. If data follow, the caller
    /// appends zeros up to [`DataTransfer::data_offset`], then the data.
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

/// A memory buffer of the client, which the server reads or writes by RDMA. A READ or WRITE request
/// has a list of them as channel info. \[MS-SMBD\] 2.2.3.1, \[MS-SMB2\] 2.2.19, 2.2.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferDescriptorV1 {
    /// Address of the buffer in the client's memory, as its RDMA adapter numbers it.
    pub offset: u64,
    /// Steering tag of the registered buffer: the key that authorizes RDMA access. A SEND of the
    /// server can invalidate it.
    pub token: u32,
    /// Length of the buffer in bytes.
    pub length: u32,
}

impl BufferDescriptorV1 {
    /// Length of an encoded buffer descriptor in bytes.
    pub const LEN: usize = 16;

    /// Decodes `list`, the encoded descriptors in the channel info of a READ or WRITE. Fails when
    /// its length is not a multiple of [`Self::LEN`].
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

    /// Appends the encoded descriptor of [`Self::LEN`] bytes to `list`.
    pub fn encode(&self, list: &mut Vec<u8>) {
        list.put_u64(self.offset);
        list.put_u32(self.token);
        list.put_u32(self.length);
    }

    /// Returns the total length in bytes of the buffers that `list` describes.
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
