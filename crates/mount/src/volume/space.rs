//! Allocated space: holes, allocation, and copies on the server.

use std::sync::Arc;

use fuser::{Errno, FileHandle};
use rustix::fs::FallocateFlags;
use smbeam_client::{File, transfer};

use super::{Answer, Volume};
use crate::errno::errno;
use crate::opens::OpenFile;

/// Largest copy of one request in bytes, so that a program can be interrupted between two.
const COPY_MAX: u64 = 64 << 20;

/// What to find behind an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    Data,
    Hole,
}

impl Volume {
    /// Allocates, clears or removes a part of a file. fallocate(2)
    pub(crate) async fn allocate(
        &self,
        handle: FileHandle,
        (offset, len): (u64, u64),
        mode: i32,
    ) -> Answer<()> {
        let open = self.file(handle)?;
        self.flush_held(&open.opens).await;
        let done = self.allocate_now(&open, (offset, len), mode).await;
        open.opens.held.set_size(None);
        done
    }

    async fn allocate_now(
        &self,
        open: &OpenFile,
        (offset, len): (u64, u64),
        mode: i32,
    ) -> Answer<()> {
        let file = self.file_for(open);
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let keeps_size = mode.contains(FallocateFlags::KEEP_SIZE);
        let rest = mode - FallocateFlags::KEEP_SIZE;
        let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
        let failed = |error| errno(&error);
        let size = file.len().await.map_err(failed)?;
        match rest {
            FallocateFlags::PUNCH_HOLE => {
                file.set_sparse(true).await.map_err(failed)?;
                clear(&file, offset, end.min(size)).await?;
            }
            FallocateFlags::ZERO_RANGE => clear(&file, offset, end.min(size)).await?,
            rest if rest.is_empty() => {}
            _ => return Err(Errno::EOPNOTSUPP),
        }
        let grows = end > size && rest != FallocateFlags::PUNCH_HOLE;
        match (grows, keeps_size) {
            // A server without reservations has the space anyway, or fails the write.
            (true, true) if rest.is_empty() => {
                let allocated = file.set_allocation(end).await;
                allocated.map_err(failed)
            }
            (true, false) => file.set_len(end).await.map_err(failed),
            _ => Ok(()),
        }
    }

    /// Finds data or a hole at or behind an offset. lseek(2)
    pub(crate) async fn seek(
        &self,
        handle: FileHandle,
        offset: u64,
        sought: Sought,
    ) -> Answer<u64> {
        let open = self.file(handle)?;
        self.flush_held(&open.opens).await;
        let file = self.file_for(&open);
        let size = file.len().await.map_err(|error| errno(&error))?;
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let whole = offset..size;
        // Without this query, the whole file counts as data.
        let parts = file.allocated_ranges(whole.clone()).await;
        let parts = parts.unwrap_or_else(|_| vec![whole]);
        found(&parts, offset..size, sought).ok_or(Errno::ENXIO)
    }

    /// Copies a part of a file to another one on the server. Returns the number of copied bytes.
    pub(crate) async fn copy(
        &self,
        (source, from): (FileHandle, u64),
        (target, to): (FileHandle, u64),
        len: u64,
    ) -> Answer<u32> {
        let (source, target) = (self.file(source)?, self.file(target)?);
        let changed = Arc::clone(&target.opens);
        self.flush_held(&source.opens).await;
        self.flush_held(&changed).await;
        let (source, target) = (self.file_for(&source), self.file_for(&target));
        let failed = |error| errno(&error);
        let size = source.len().await.map_err(failed)?;
        let len = len.min(size.saturating_sub(from)).min(COPY_MAX);
        if len == 0 {
            return Ok(0);
        }
        let mut progress = |_: u64| {};
        let copied = transfer::copy_range(&source, &target, (from, to, len), &mut progress);
        let copied = copied.await.map_err(failed);
        changed.held.set_size(None);
        let copied = copied?;
        u32::try_from(copied).map_err(|_| Errno::EIO)
    }
}

async fn clear(file: &File, start: u64, end: u64) -> Answer<()> {
    match start < end {
        true => {
            let cleared = file.zero_range(start..end).await;
            cleared.map_err(|error| errno(&error))
        }
        false => Ok(()),
    }
}

/// The first offset in `within` that is data or a hole. `parts` are the data, in order. The end of
/// the file counts as a hole.
fn found(
    parts: &[std::ops::Range<u64>],
    within: std::ops::Range<u64>,
    sought: Sought,
) -> Option<u64> {
    let behind = parts
        .iter()
        .filter(|part| part.end > within.start && part.start < within.end);
    match sought {
        Sought::Data => behind.map(|part| part.start.max(within.start)).next(),
        Sought::Hole => {
            let mut at = within.start;
            for part in behind {
                if part.start > at {
                    break;
                }
                at = at.max(part.end);
            }
            Some(at.min(within.end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_between_the_data_and_at_the_end() {
        let parts = [10..20, 20..30, 40..50];
        let of = |offset, sought| found(&parts, offset..100, sought);
        assert_eq!(of(0, Sought::Data), Some(10));
        assert_eq!(of(0, Sought::Hole), Some(0));
        assert_eq!(of(15, Sought::Data), Some(15));
        assert_eq!(of(15, Sought::Hole), Some(30));
        assert_eq!(of(45, Sought::Hole), Some(50));
        assert_eq!(of(50, Sought::Data), None);
        assert_eq!(
            found(std::slice::from_ref(&(0..200)), 5..100, Sought::Hole),
            Some(100)
        );
    }

    #[test]
    fn a_list_of_a_server_without_order_leads_to_no_offset_outside() {
        let backwards = std::ops::Range { start: 3, end: 1 };
        let parts = [90..u64::MAX, backwards, 0..7];
        for sought in [Sought::Data, Sought::Hole] {
            for offset in 0..100 {
                let at = found(&parts, offset..100, sought);
                assert!(at.is_none_or(|at| (offset..=100).contains(&at)), "{offset}");
            }
        }
    }
}
