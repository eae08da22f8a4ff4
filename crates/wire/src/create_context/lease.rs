//! The create context that requests a lease.

use alloc::vec::Vec;

use super::check_length;
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::open_enum::open_flags;

open_flags! {
    /// The caching of a file or directory that a lease allows to a client. \[MS-SMB2\] 2.2.13.2.8
    LeaseState(u32) {
        /// Read caching: the client may cache data that it read.
        READ_CACHING = 0x0000_0001,
        /// Handle caching: the client may delay the CLOSE and reuse the open.
        HANDLE_CACHING = 0x0000_0002,
        /// Write caching: the client may delay writes and byte-range locks.
        WRITE_CACHING = 0x0000_0004,
    }
}

open_flags! {
    /// Flags in the create context of a lease. \[MS-SMB2\] 2.2.13.2.10, 2.2.14.2.10
    LeaseFlags(u32) {
        /// Only in a response: a break of the lease is in progress.
        BREAK_IN_PROGRESS = 0x0000_0002,
        /// The field `parent_lease_key` is valid. Only in a lease of version 2.
        PARENT_LEASE_KEY_SET = 0x0000_0004,
    }
}

/// The fields that version 2 of the lease create context (RqLs) has in addition to those of version
/// 1. \[MS-SMB2\] 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseV2 {
    /// Key of the client's lease on the parent directory; valid only if `lease_flags` of the lease
    /// has PARENT_LEASE_KEY_SET.
    pub parent_lease_key: Guid,
    /// Number of state changes of the lease, modulo 65,536. A client uses it to put breaks and
    /// responses into order.
    pub epoch: u16,
}

/// Data of a LEASE (RqLs) create context in a request and a response: a permission to cache a file.
/// 32 bytes in version 1, 52 in version 2. \[MS-SMB2\] 2.2.13.2.8, 2.2.13.2.10, 2.2.14.2.10,
/// 2.2.14.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// LeaseKey: the identifier of the lease, chosen by the client and unique for a file.
    pub lease_key: Guid,
    /// Request: the caching that the client requests (read, handle, write). Response: the caching
    /// that the server grants.
    pub lease_state: LeaseState,
    /// Flags of the lease: whether a lease break is in progress, and whether the key of the parent
    /// lease is valid.
    pub lease_flags: LeaseFlags,
    /// The fields of version 2; `None` in version 1.
    pub v2: Option<LeaseV2>,
}

impl Lease {
    /// Length in bytes of the data of a lease create context of version 1.
    pub const V1_LEN: usize = 32;
    /// Length in bytes of the data of a lease create context of version 2.
    pub const V2_LEN: usize = 52;

    /// Decodes the data of a LEASE (RqLs) create context; the length selects the version. Fails
    /// unless `data` has 32 or 52 bytes.
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

    /// Encodes the data of a LEASE (RqLs) create context: 52 bytes when `v2` is `Some`, else 32.
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
