//! Ranges of files in memory: copies, zeros and allocated ranges.

use std::ops::Range;

use proto::file::{ClonePlan, CopyPlan, FileKind, LocalOpen, Outcome};
use wire::Status;
use wire::access::FileAttributes;

use super::State;
use crate::{attributes, copy, rights};

/// Bytes that a duplication of extents copies at a time.
const CLONE_PIECE: u64 = 1 << 20;

impl State {
    /// Copies a range within the share.
    pub(super) fn copy_range(
        &mut self,
        target: LocalOpen,
        plan: &CopyPlan,
    ) -> Result<Outcome, Status> {
        let CopyPlan {
            source,
            source_offset,
            target_offset,
            length,
        } = *plan;
        let from = self.data_of(source, rights::READ_DATA)?;
        self.data_of(target, rights::WRITE_DATA)?;
        copy::ends_within(plan, self.bytes_mut(from).len())?;
        let mut bytes = vec![0; length as usize];
        self.bytes_mut(from).read(source_offset, &mut bytes);
        self.write(target, Some(target_offset), &bytes)?;
        Ok(Outcome::Copied {
            count: length,
            status: Status::SUCCESS,
        })
    }

    /// Copies a range piece by piece: files in memory share no pages.
    pub(super) fn clone_range(
        &mut self,
        target: LocalOpen,
        plan: &ClonePlan,
    ) -> Result<Outcome, Status> {
        let mut done = 0;
        while done < plan.length {
            let length = (plan.length - done).min(CLONE_PIECE);
            self.copy_range(
                target,
                &CopyPlan {
                    source: plan.source,
                    source_offset: plan.source_offset + done,
                    target_offset: plan.target_offset + done,
                    length: length as u32,
                },
            )?;
            done += length;
        }
        Ok(Outcome::Done)
    }

    pub(super) fn zero_range(
        &mut self,
        file: LocalOpen,
        range: &Range<u64>,
    ) -> Result<Outcome, Status> {
        let id = self.data_of(file, rights::WRITE_DATA)?;
        let bytes = self.bytes_mut(id);
        let end = range.end.min(bytes.len());
        if range.start < end {
            bytes.zero(range.start..end);
            self.tree.touch(id);
        }
        Ok(Outcome::Zeroed(range.end))
    }

    /// Memory has no use for a hint, but its clients must not rely on the old data.
    pub(super) fn trim(&mut self, file: LocalOpen, range: &Range<u64>) -> Result<Outcome, Status> {
        self.zero_range(file, range)?;
        Ok(Outcome::Done)
    }

    pub(super) fn set_sparse(
        &mut self,
        file: LocalOpen,
        is_sparse: bool,
    ) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.node;
        if self.tree.node(id).kind() != FileKind::File {
            return Err(Status::INVALID_PARAMETER);
        }
        let now = self.tree.now;
        let node = self.tree.node_mut(id);
        node.stored = attributes::with_sparse(node.stored, is_sparse);
        node.changed = now;
        self.stat(file)
    }

    pub(super) fn allocated_ranges(
        &mut self,
        file: LocalOpen,
        range: &Range<u64>,
        limit: usize,
    ) -> Result<Outcome, Status> {
        let id = self.data_of(file, rights::READ_DATA)?;
        let is_sparse = (self.tree.node(id).stored).contains(FileAttributes::SPARSE_FILE);
        let bytes = self.bytes_mut(id);
        let within = range.start..range.end.min(bytes.len());
        Ok(Outcome::Ranges(match () {
            () if within.is_empty() => Vec::new(),
            () if is_sparse => bytes.ranges(within, limit),
            () => vec![within],
        }))
    }
}
