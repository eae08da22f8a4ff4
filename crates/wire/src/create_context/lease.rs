//! The create context that requests a lease.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::open_flags;

open_flags! {
    /// The caching that a lease grants to a client. \[MS-SMB2\] 2.2.13.2.8
    LeaseState(u32) {
        /// Read caching.
        READ_CACHING = 0x0000_0001,
        /// Handle caching: the client may delay the CLOSE.
        HANDLE_CACHING = 0x0000_0002,
        /// Write caching.
        WRITE_CACHING = 0x0000_0004,
    }
}

open_flags! {
    /// Flags of a lease. \[MS-SMB2\] 2.2.13.2.10, 2.2.14.2.10
    LeaseFlags(u32) {
        /// Response only: a break of the lease is in progress.
        BREAK_IN_PROGRESS = 0x0000_0002,
        /// `parent_lease_key` is valid.
        PARENT_LEASE_KEY_SET = 0x0000_0004,
    }
}

/// The additional fields of a version 2 lease. \[MS-SMB2\] 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseV2 {
    /// Key of the lease on the parent directory; valid when PARENT_LEASE_KEY_SET is set.
    pub parent_lease_key: Guid,
    /// Epoch: the number of state changes of the lease.
    pub epoch: u16,
}

/// Data of LEASE (RqLs) in a request and a response: version 1 has 32 bytes, version 2 has 52.
/// \[MS-SMB2\] 2.2.13.2.8, 2.2.13.2.10, 2.2.14.2.10, 2.2.14.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// LeaseKey: the client's identifier of the lease.
    pub lease_key: Guid,
    /// The requested or granted caching.
    pub lease_state: LeaseState,
    /// Flags of the lease.
    pub lease_flags: LeaseFlags,
    /// The fields of version 2; `None` in version 1.
    pub v2: Option<LeaseV2>,
}

impl Lease {
    /// Length of version 1 in bytes.
    pub const V1_LEN: usize = 32;
    /// Length of version 2 in bytes.
    pub const V2_LEN: usize = 52;

    /// Decodes the data of the context.
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

    /// Encodes the data of the context.
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
