//! Data of files in memory.

use proto::file::{FileKind, LocalOpen, Outcome};
use wire::Status;
use wire::access::AccessMask;

use super::State;
use super::bytes::PAGE;
use super::tree::NodeId;
use crate::rights;

/// Maximum length of a file in bytes: that of ext4 with blocks of 4 KiB.
const MAX_FILE: u64 = 1 << 44;

impl State {
    /// The file of an open that has at least one of the rights.
    pub(super) fn data_of(&self, file: LocalOpen, rights: AccessMask) -> Result<NodeId, Status> {
        let open = self.open_of(file)?;
        if self.tree.node(open.node).kind() != FileKind::File {
            return Err(Status::INVALID_DEVICE_REQUEST);
        }
        if !open.access.intersects(rights) {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(open.node)
    }

    pub(super) fn read(
        &mut self,
        file: LocalOpen,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, Status> {
        let id = self.data_of(file, rights::READ_DATA)?;
        let limit = self.faults.short_read.unwrap_or(usize::MAX).min(into.len());
        Ok(self.bytes_mut(id).read(offset, &mut into[..limit]))
    }

    pub(super) fn write(
        &mut self,
        file: LocalOpen,
        offset: Option<u64>,
        from: &[u8],
    ) -> Result<usize, Status> {
        let id = self.data_of(file, rights::WRITE_DATA)?;
        let offset = offset.unwrap_or(self.bytes_mut(id).len());
        let end = offset
            .checked_add(from.len() as u64)
            .ok_or(Status::INVALID_PARAMETER)?;
        if end > MAX_FILE {
            return Err(Status::DISK_FULL);
        }
        let cost = self.bytes_mut(id).cost(offset, from.len());
        self.take(cost)?;
        self.bytes_mut(id).write(offset, from);
        self.tree.touch(id);
        Ok(from.len())
    }

    pub(super) fn set_end_of_file(
        &mut self,
        file: LocalOpen,
        length: u64,
    ) -> Result<Outcome, Status> {
        let id = self.data_of(file, rights::WRITE_DATA)?;
        if length > MAX_FILE {
            return Err(Status::DISK_FULL);
        }
        self.bytes_mut(id).set_len(length);
        self.tree.touch(id);
        Ok(Outcome::Done)
    }

    pub(super) fn set_allocation(
        &mut self,
        file: LocalOpen,
        length: u64,
    ) -> Result<Outcome, Status> {
        let id = self.data_of(file, rights::WRITE_DATA)?;
        self.reserve(id, length)?;
        if length < self.bytes_mut(id).len() {
            self.bytes_mut(id).set_len(length);
            self.tree.touch(id);
        }
        Ok(Outcome::Done)
    }

    /// Reserves space for a file, or frees the reserved space above a length.
    pub(super) fn reserve(&mut self, id: NodeId, length: u64) -> Result<(), Status> {
        if length > MAX_FILE {
            return Err(Status::DISK_FULL);
        }
        let has = self.tree.metadata(id, "").allocation;
        self.take(length.saturating_sub(has).div_ceil(PAGE) * PAGE)?;
        self.tree.node_mut(id).reserved = length;
        Ok(())
    }

    /// Checks that `bytes` more bytes may be allocated.
    fn take(&self, bytes: u64) -> Result<(), Status> {
        let space = self.faults.space.unwrap_or(u64::MAX);
        // Without a limit, no sum is necessary.
        if bytes > 0 && space != u64::MAX && self.tree.used().saturating_add(bytes) > space {
            return Err(Status::DISK_FULL);
        }
        Ok(())
    }
}
