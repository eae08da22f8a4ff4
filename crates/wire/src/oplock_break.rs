//! OPLOCK_BREAK: break an oplock or a lease, or acknowledge the break. \[MS-SMB2\] 2.2.23 to 2.2.25

use alloc::vec::Vec;

use crate::access::OplockLevel;
use crate::create_context::LeaseState;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::{FileId, Guid};
use crate::layout::begin;
use crate::open_enum::open_flags;

/// StructureSize of the notification, acknowledgment and response of an oplock break.
const OPLOCK_SIZE: u16 = 24;
/// StructureSize of the notification of a lease break.
const LEASE_NOTIFICATION_SIZE: u16 = 44;
/// StructureSize of the acknowledgment and response of a lease break.
const LEASE_SIZE: u16 = 36;

/// The body that three OPLOCK_BREAK messages about an oplock share: the server's notification, the
/// client's acknowledgment, and the server's response. \[MS-SMB2\] 2.2.23.1, 2.2.24.1, 2.2.25.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OplockBreak {
    /// The level of the oplock after the break, which the server reduces.
    pub oplock_level: OplockLevel,
    /// FileId of the open that holds the oplock.
    pub file_id: FileId,
}

impl OplockBreak {
    fn decode_rest(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let oplock_level = OplockLevel(reader.u8("OplockLevel")?);
        reader.skip("Reserved", 5)?;
        Ok(Self {
            oplock_level,
            file_id: reader.file_id("FileId")?,
        })
    }

    fn encode(&self, message: &mut Vec<u8>) {
        begin(message, OPLOCK_SIZE);
        message.put_u8(self.oplock_level.0);
        message.put(&[0; 5]);
        message.put_file_id(self.file_id);
    }
}

open_flags! {
    /// Flags of the server's notification of a lease break. \[MS-SMB2\] 2.2.23.2
    LeaseBreakFlags(u32) {
        /// The client must acknowledge the break.
        ACK_REQUIRED = 0x0000_0001,
    }
}

/// The server's notification of a lease break: the client loses caching rights (read, handle or
/// write). \[MS-SMB2\] 2.2.23.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreakNotification {
    /// Number of state changes of the lease, including this one; 0 for a lease of version 1.
    pub new_epoch: u16,
    /// Flags of the notification: whether the client must acknowledge the break.
    pub flags: LeaseBreakFlags,
    /// LeaseKey: the client's identifier of the lease.
    pub lease_key: Guid,
    /// The caching rights of the lease before the break.
    pub current_lease_state: LeaseState,
    /// The caching rights of the lease after the break.
    pub new_lease_state: LeaseState,
}

impl LeaseBreakNotification {
    fn decode_rest(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let new_epoch = reader.u16("NewEpoch")?;
        let flags = LeaseBreakFlags(reader.u32("Flags")?);
        let lease_key = reader.guid("LeaseKey")?;
        let current_lease_state = LeaseState(reader.u32("CurrentLeaseState")?);
        let new_lease_state = LeaseState(reader.u32("NewLeaseState")?);
        reader.skip("BreakReason", 12)?;
        Ok(Self {
            new_epoch,
            flags,
            lease_key,
            current_lease_state,
            new_lease_state,
        })
    }

    fn encode(&self, message: &mut Vec<u8>) {
        begin(message, LEASE_NOTIFICATION_SIZE);
        message.put_u16(self.new_epoch);
        message.put_u32(self.flags.0);
        message.put(&self.lease_key.0);
        message.put_u32(self.current_lease_state.0);
        message.put_u32(self.new_lease_state.0);
        // BreakReason, AccessMaskHint and ShareMaskHint are reserved.
        message.put(&[0; 12]);
    }
}

/// The body that two OPLOCK_BREAK messages about a lease share: the client's acknowledgment and the
/// server's response. \[MS-SMB2\] 2.2.24.2, 2.2.25.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    /// LeaseKey: the client's identifier of the lease.
    pub lease_key: Guid,
    /// The caching rights of the lease after the break.
    pub lease_state: LeaseState,
}

impl LeaseBreak {
    fn decode_rest(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.skip("Reserved", 2)?;
        reader.skip("Flags", 4)?;
        let lease_key = reader.guid("LeaseKey")?;
        let lease_state = LeaseState(reader.u32("LeaseState")?);
        reader.skip("LeaseDuration", 8)?;
        Ok(Self {
            lease_key,
            lease_state,
        })
    }

    fn encode(&self, message: &mut Vec<u8>) {
        begin(message, LEASE_SIZE);
        message.put_u16(0);
        message.put_u32(0);
        message.put(&self.lease_key.0);
        message.put_u32(self.lease_state.0);
        message.put_u64(0);
    }
}

/// The server's OPLOCK_BREAK notification, of the break of an oplock or a lease. StructureSize
/// distinguishes the two on the wire. \[MS-SMB2\] 2.2.23
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// The server breaks an oplock.
    Oplock(OplockBreak),
    /// The server breaks a lease.
    Lease(LeaseBreakNotification),
}

impl Notification {
    /// Decodes an OPLOCK_BREAK notification from `message`, which starts with its 64-byte SMB2
    /// header. Fails when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "OPLOCK_BREAK notification";
        let mut reader = Reader::body(message, structure)?;
        match reader.u16(structure)? {
            OPLOCK_SIZE => OplockBreak::decode_rest(&mut reader).map(Self::Oplock),
            LEASE_NOTIFICATION_SIZE => {
                LeaseBreakNotification::decode_rest(&mut reader).map(Self::Lease)
            }
            found => Err(DecodeError::StructureSize { structure, found }),
        }
    }

    /// Appends the body of an OPLOCK_BREAK notification to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(message),
            Self::Lease(lease) => lease.encode(message),
        }
    }
}

/// The client's OPLOCK_BREAK acknowledgment, of the break of an oplock or a lease. StructureSize
/// distinguishes the two on the wire. \[MS-SMB2\] 2.2.24
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The client acknowledges the break of an oplock.
    Oplock(OplockBreak),
    /// The client acknowledges the break of a lease.
    Lease(LeaseBreak),
}

impl Request {
    /// Decodes an OPLOCK_BREAK acknowledgment from `message`, which starts with its 64-byte SMB2
    /// header. Fails when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "OPLOCK_BREAK acknowledgement";
        let mut reader = Reader::body(message, structure)?;
        match reader.u16(structure)? {
            OPLOCK_SIZE => OplockBreak::decode_rest(&mut reader).map(Self::Oplock),
            LEASE_SIZE => LeaseBreak::decode_rest(&mut reader).map(Self::Lease),
            found => Err(DecodeError::StructureSize { structure, found }),
        }
    }

    /// Appends the body of an OPLOCK_BREAK acknowledgment to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(message),
            Self::Lease(lease) => lease.encode(message),
        }
    }
}

/// The server's OPLOCK_BREAK response to an acknowledgment, for an oplock or a lease. StructureSize
/// distinguishes the two on the wire. \[MS-SMB2\] 2.2.25
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// The server accepts the acknowledgment of an oplock break.
    Oplock(OplockBreak),
    /// The server accepts the acknowledgment of a lease break.
    Lease(LeaseBreak),
}

impl Response {
    /// Decodes an OPLOCK_BREAK response from `message`, which starts with its 64-byte SMB2 header.
    /// Fails when `message` is too short, or its StructureSize is wrong.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "OPLOCK_BREAK response";
        let mut reader = Reader::body(message, structure)?;
        match reader.u16(structure)? {
            OPLOCK_SIZE => OplockBreak::decode_rest(&mut reader).map(Self::Oplock),
            LEASE_SIZE => LeaseBreak::decode_rest(&mut reader).map(Self::Lease),
            found => Err(DecodeError::StructureSize { structure, found }),
        }
    }

    /// Appends the body of an OPLOCK_BREAK response to `message`, which must hold exactly its
    /// 64-byte SMB2 header. Panics when `message` has another length.
    pub fn encode(&self, message: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(message),
            Self::Lease(lease) => lease.encode(message),
        }
    }
}
