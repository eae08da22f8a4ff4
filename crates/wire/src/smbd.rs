//! SMB Direct: how SMB messages travel in the SENDs of RDMA, and how memory is named for its
//! READs and WRITEs. \[MS-SMBD\] 2.2
//!
//! There are no SMB2 headers here: a message is what one SEND carried, from its first byte. A
//! longer message than its structure is not refused, as nobody does.

use alloc::vec::Vec;
use core::ops::Range;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::open_enum::open_flags;
use crate::status::Status;

/// The only version there is: 1.0. \[MS-SMBD\] 1.7
pub const VERSION_1: u16 = 0x0100;

/// The shortest MaxReceiveSize, in bytes. \[MS-SMBD\] 3.1.5.6
pub const MIN_RECEIVE_SIZE: u32 = 128;

/// The shortest MaxFragmentedSize, in bytes. \[MS-SMBD\] 3.1.5.6
pub const MIN_FRAGMENTED_SIZE: u32 = 131_072;

/// What a client says first. \[MS-SMBD\] 2.2.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateRequest {
    /// The lowest version that it speaks.
    pub min_version: u16,
    /// The highest one.
    pub max_version: u16,
    /// How many SENDs it would like to be allowed.
    pub credits_requested: u16,
    /// Bytes that it would like to put into one SEND.
    pub preferred_send_size: u32,
    /// Bytes of the longest SEND that it takes.
    pub max_receive_size: u32,
    /// Bytes of the longest message that it puts together from fragments.
    pub max_fragmented_size: u32,
}

impl NegotiateRequest {
    /// Bytes.
    pub const LEN: usize = 20;

    /// Reads a message.
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

    /// Appends the message.
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

/// What the server answers. \[MS-SMBD\] 2.2.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateResponse {
    /// The lowest version that it speaks.
    pub min_version: u16,
    /// The highest one.
    pub max_version: u16,
    /// The one that is spoken from now on.
    pub negotiated_version: u16,
    /// How many SENDs it would like to be allowed.
    pub credits_requested: u16,
    /// How many SENDs it allows.
    pub credits_granted: u16,
    /// Whether there is a connection.
    pub status: Status,
    /// Bytes of the longest RDMA READ or WRITE that it does.
    pub max_read_write_size: u32,
    /// Bytes of the longest SEND that it does.
    pub preferred_send_size: u32,
    /// Bytes of the longest SEND that it takes.
    pub max_receive_size: u32,
    /// Bytes of the longest message that it puts together from fragments.
    pub max_fragmented_size: u32,
}

impl NegotiateResponse {
    /// Bytes.
    pub const LEN: usize = 32;

    /// Reads a message.
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

    /// Appends the message.
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
    /// What a data transfer asks for. \[MS-SMBD\] 2.2.3
    TransferFlags(u16) {
        /// An answer at once: the sender wants to know whether we live.
        RESPONSE_REQUESTED = 0x0001,
    }
}

/// What stands in front of the data of every SEND after the negotiation. \[MS-SMBD\] 2.2.3
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataTransfer {
    /// How many SENDs the sender would like to be allowed, with those that it is allowed already.
    pub credits_requested: u16,
    /// How many more SENDs it allows.
    pub credits_granted: u16,
    /// What it asks for.
    pub flags: TransferFlags,
    /// Bytes of the message that follow in other SENDs.
    pub remaining_data_length: u32,
    /// Where the data are, in bytes from the start of the SEND; 0 without data.
    pub data_offset: u32,
    /// Bytes of data.
    pub data_length: u32,
}

impl DataTransfer {
    /// Bytes of the header.
    pub const LEN: usize = 20;
    /// Where senders put data: the first multiple of 8 behind the header.
    pub const DATA_OFFSET: u32 = 24;

    /// Reads the header of a message and checks that its data are inside.
    ///
    /// Data that overlap the header are refused as well, though \[MS-SMBD\] 3.1.5.8 does not ask
    /// for it: nobody sends such. Without data any aligned offset within the message will do, as
    /// Windows and Linux take it.
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

    /// Where the data are in a message that [`DataTransfer::decode`] has read.
    pub fn data(&self) -> Range<usize> {
        let start = self.data_offset as usize;
        start..start + self.data_length as usize
    }

    /// Appends the header; data follow at [`DataTransfer::data_offset`], behind zeros.
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

/// Memory of the peer: what the channel info of READ and WRITE is made of.
/// \[MS-SMBD\] 2.2.3.1, \[MS-SMB2\] 2.2.19, 2.2.21
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferDescriptorV1 {
    /// Where it begins: an address as the peer's adapter counts it.
    pub offset: u64,
    /// By which right: the key of the registration, which a SEND may invalidate.
    pub token: u32,
    /// Bytes.
    pub length: u32,
}

impl BufferDescriptorV1 {
    /// Bytes of one.
    pub const LEN: usize = 16;

    /// Reads a list, which has to end where a descriptor does.
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

    /// Appends it.
    pub fn encode(&self, list: &mut Vec<u8>) {
        list.put_u64(self.offset);
        list.put_u32(self.token);
        list.put_u32(self.length);
    }

    /// Bytes of all of them together.
    pub fn total(list: &[Self]) -> u64 {
        list.iter().map(|piece| u64::from(piece.length)).sum()
    }
}

/// The first `needed` bytes of a message.
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
