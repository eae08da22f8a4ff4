//! The context that asks for a lease.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::open_flags;

open_flags! {
    /// What a lease lets a client cache. \[MS-SMB2\] 2.2.13.2.8
    LeaseState(u32) {
        /// Reads.
        READ_CACHING = 0x0000_0001,
        /// The open itself.
        HANDLE_CACHING = 0x0000_0002,
        /// Writes.
        WRITE_CACHING = 0x0000_0004,
    }
}

open_flags! {
    /// Flags of a lease. \[MS-SMB2\] 2.2.13.2.10, 2.2.14.2.10
    LeaseFlags(u32) {
        /// In a response: the lease is being broken.
        BREAK_IN_PROGRESS = 0x0000_0002,
        /// The parent's key is set.
        PARENT_LEASE_KEY_SET = 0x0000_0004,
    }
}

/// What a lease of version 2 has more. \[MS-SMB2\] 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseV2 {
    /// The lease on the directory. Counts where PARENT_LEASE_KEY_SET is set.
    pub parent_lease_key: Guid,
    /// The number of the state.
    pub epoch: u16,
}

/// RqLs, request and response: version 1 of 32 bytes, version 2 of 52.
/// \[MS-SMB2\] 2.2.13.2.8, 2.2.13.2.10, 2.2.14.2.10, 2.2.14.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The client's name for the lease.
    pub lease_key: Guid,
    /// What is asked or granted.
    pub lease_state: LeaseState,
    /// Flags.
    pub lease_flags: LeaseFlags,
    /// What version 2 has more.
    pub v2: Option<LeaseV2>,
}

impl Lease {
    /// Bytes of version 1.
    pub const V1_LEN: usize = 32;
    /// Bytes of version 2.
    pub const V2_LEN: usize = 52;

    /// Reads the data of a context.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        let is_v2 = data.len() == Self::V2_LEN;
        if !is_v2 {
            check_length(data, "RqLs", Self::V1_LEN)?;
        }
        let mut reader = Reader::new(data);
        let lease_key = reader.guid("LeaseKey")?;
        let lease_state = LeaseState(reader.u32("LeaseState")?);
        let lease_flags = LeaseFlags(reader.u32("LeaseFlags")?);
        reader.skip("LeaseDuration", 8)?;
        let v2 = if is_v2 {
            Some(LeaseV2 {
                parent_lease_key: reader.guid("ParentLeaseKey")?,
                epoch: reader.u16("Epoch")?,
            })
        } else {
            None
        };
        Ok(Self {
            lease_key,
            lease_state,
            lease_flags,
            v2,
        })
    }

    /// The data of a context.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = Vec::new();
        data.put(&self.lease_key.0);
        data.put_u32(self.lease_state.0);
        data.put_u32(self.lease_flags.0);
        data.put_u64(0);
        if let Some(LeaseV2 {
            parent_lease_key,
            epoch,
        }) = self.v2
        {
            data.put(&parent_lease_key.0);
            data.put_u16(epoch);
            data.put_u16(0);
        }
        data
    }
}
