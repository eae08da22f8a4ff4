//! Memory of a client that the server reads and writes by RDMA.

use std::collections::BTreeMap;

use proto::carrier::{Carrier, RdmaLimits};
use wire::smbd::BufferDescriptorV1;

/// An SMB Direct transport with small limits, so that tests reach them.
pub(crate) const RDMA: Carrier = Carrier::smb_direct(RdmaLimits {
    max_read_write: 1 << 20,
    max_descriptors: 8,
    max_send: 128 << 10,
    max_receive: 128 << 10,
});

/// The exposed memory of clients.
#[derive(Default)]
pub(crate) struct Memory {
    exposed: BTreeMap<u32, Vec<u8>>,
    /// Content of revoked memory at the time of its revocation.
    revoked: BTreeMap<u32, Vec<u8>>,
    last: u32,
}

/// Base address of each memory region at the client's adapter.
const BASE: u64 = 0x7000_0000_0000;

impl Memory {
    /// Exposes bytes.
    pub(crate) fn expose(&mut self, bytes: &[u8]) -> BufferDescriptorV1 {
        self.last += 1;
        self.exposed.insert(self.last, bytes.to_vec());
        BufferDescriptorV1 {
            offset: BASE,
            token: self.last,
            length: bytes.len() as u32,
        }
    }

    /// Revokes a key.
    pub(crate) fn revoke(&mut self, key: u32) {
        let bytes = self.exposed.remove(&key).expect("it was exposed");
        self.revoked.insert(key, bytes);
    }

    /// Content of revoked memory.
    pub(crate) fn left_in(&self, key: u32) -> &[u8] {
        &self.revoked[&key]
    }

    /// Content of exposed memory.
    pub(crate) fn of(&self, key: u32) -> Option<&[u8]> {
        self.exposed.get(&key).map(Vec::as_slice)
    }

    /// RDMA WRITE.
    pub(super) fn put(&mut self, pieces: &[BufferDescriptorV1], mut bytes: &[u8]) -> Option<()> {
        for piece in pieces {
            let (now, later) = bytes.split_at(bytes.len().min(piece.length as usize));
            self.range(piece)?[..now.len()].copy_from_slice(now);
            bytes = later;
        }
        assert!(bytes.is_empty(), "no more is asked for than there is room");
        Some(())
    }

    /// RDMA READ.
    pub(super) fn get(&mut self, pieces: &[BufferDescriptorV1]) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend_from_slice(self.range(piece)?);
        }
        Some(bytes)
    }

    fn range(&mut self, piece: &BufferDescriptorV1) -> Option<&mut [u8]> {
        let exposed = self.exposed.get_mut(&piece.token)?;
        let start = usize::try_from(piece.offset.checked_sub(BASE)?).ok()?;
        let end = start.checked_add(piece.length as usize)?;
        exposed.get_mut(start..end)
    }
}
