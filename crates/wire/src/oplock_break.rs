//! OPLOCK_BREAK: break an oplock or a lease, or acknowledge that. \[MS-SMB2\] 2.2.23 to 2.2.25

use alloc::vec::Vec;

use crate::access::OplockLevel;
use crate::create_context::LeaseState;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::{FileId, Guid};
use crate::layout::begin;
use crate::open_enum::open_flags;

/// StructureSize of everything about an oplock.
const OPLOCK_SIZE: u16 = 24;
/// StructureSize of the notification about a lease.
const LEASE_NOTIFICATION_SIZE: u16 = 44;
/// StructureSize of acknowledgement and response about a lease.
const LEASE_SIZE: u16 = 36;

/// An oplock and its level: notification, acknowledgement and response have one form.
/// \[MS-SMB2\] 2.2.23.1, 2.2.24.1, 2.2.25.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OplockBreak {
    /// What the client may cache from now on.
    pub oplock_level: OplockLevel,
    /// The open.
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
    /// Flags of the notification. \[MS-SMB2\] 2.2.23.2
    LeaseBreakFlags(u32) {
        /// The client must acknowledge.
        ACK_REQUIRED = 0x0000_0001,
    }
}

/// The server wants to break a lease. \[MS-SMB2\] 2.2.23.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreakNotification {
    /// The number of the new state; 0 for leases of version 1.
    pub new_epoch: u16,
    /// Whether to acknowledge.
    pub flags: LeaseBreakFlags,
    /// The lease.
    pub lease_key: Guid,
    /// What the client may cache now.
    pub current_lease_state: LeaseState,
    /// What it may cache from now on.
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

/// A lease and its state: acknowledgement and response have one form.
/// \[MS-SMB2\] 2.2.24.2, 2.2.25.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    /// The lease.
    pub lease_key: Guid,
    /// What the client caches from now on.
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

/// What the server says unasked, by its StructureSize. \[MS-SMB2\] 2.2.23
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// An oplock is to be broken.
    Oplock(OplockBreak),
    /// A lease is to be broken.
    Lease(LeaseBreakNotification),
}

impl Notification {
    /// Reads the body of a message.
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

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(message),
            Self::Lease(lease) => lease.encode(message),
        }
    }
}

/// The client's acknowledgement, by its StructureSize. \[MS-SMB2\] 2.2.24
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Of an oplock break.
    Oplock(OplockBreak),
    /// Of a lease break.
    Lease(LeaseBreak),
}

impl Request {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "OPLOCK_BREAK acknowledgement";
        let mut reader = Reader::body(message, structure)?;
        match reader.u16(structure)? {
            OPLOCK_SIZE => OplockBreak::decode_rest(&mut reader).map(Self::Oplock),
            LEASE_SIZE => LeaseBreak::decode_rest(&mut reader).map(Self::Lease),
            found => Err(DecodeError::StructureSize { structure, found }),
        }
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(message),
            Self::Lease(lease) => lease.encode(message),
        }
    }
}

/// The server's answer to an acknowledgement, by its StructureSize. \[MS-SMB2\] 2.2.25
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// About an oplock.
    Oplock(OplockBreak),
    /// About a lease.
    Lease(LeaseBreak),
}

impl Response {
    /// Reads the body of a message.
    pub fn decode(message: &[u8]) -> Result<Self, DecodeError> {
        let structure = "OPLOCK_BREAK response";
        let mut reader = Reader::body(message, structure)?;
        match reader.u16(structure)? {
            OPLOCK_SIZE => OplockBreak::decode_rest(&mut reader).map(Self::Oplock),
            LEASE_SIZE => LeaseBreak::decode_rest(&mut reader).map(Self::Lease),
            found => Err(DecodeError::StructureSize { structure, found }),
        }
    }

    /// Appends the body to a message that holds its header.
    pub fn encode(&self, message: &mut Vec<u8>) {
        match self {
            Self::Oplock(oplock) => oplock.encode(message),
            Self::Lease(lease) => lease.encode(message),
        }
    }
}
