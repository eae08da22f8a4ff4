//! Which bytes of which file an operation reads or writes.

use std::sync::Arc;

use proto::effect::ReadPlan;
use proto::file::LocalOpen;
use vfs::FileSystem;

use super::context::Context;

/// The bytes of a READ.
pub(super) struct Span {
    pub(super) file_system: Arc<dyn FileSystem>,
    pub(super) file: LocalOpen,
    /// Offset of the first byte in the file.
    pub(super) offset: u64,
    /// Most bytes that are read: fewer at the end of the file.
    pub(super) length: usize,
}

/// Where a WRITE goes.
pub(crate) struct Target {
    pub(super) file_system: Arc<dyn FileSystem>,
    pub(super) file: LocalOpen,
    /// Offset of the first byte in the file; `None` appends.
    pub(super) offset: Option<u64>,
    /// The write completes once the bytes are on stable storage.
    pub(super) through: bool,
}

impl Span {
    pub(super) fn of(context: &Context, plan: &ReadPlan) -> Self {
        Self {
            file_system: context.worker.file_system(plan.file.share),
            file: plan.file,
            offset: plan.offset,
            length: plan.length as usize,
        }
    }
}

impl Target {
    pub(crate) fn new(
        context: &Context,
        file: LocalOpen,
        offset: Option<u64>,
        through: bool,
    ) -> Self {
        Self {
            file_system: context.worker.file_system(file.share),
            file,
            offset,
            through,
        }
    }
}
