//! The options of a transfer.

use std::sync::Arc;
use std::time::Duration;

use super::pace::Rate;
use crate::filter::Filter;

/// When to transfer a file to an existing target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Always, without comparison.
    Never,
    /// If size or time of last write differ. Times may differ by this tolerance.
    SizeAndTime(Duration),
    /// If the contents differ.
    Contents,
}

/// The options of a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// When to transfer a file to an existing target.
    pub(crate) compare: Compare,
    /// Whether to remove files from the target that the source does not have.
    pub(crate) delete: bool,
    /// Most removals of files and directories; `None` is no limit.
    pub(crate) max_delete: Option<u64>,
    /// The files that take part.
    pub(crate) filter: Arc<Filter>,
    /// Limit of the data of all files together.
    pub(crate) rate: Rate,
    /// Whether to change nothing, and only print the changes.
    pub(crate) dry_run: bool,
    /// Whether to copy times and attributes.
    pub(crate) preserve: bool,
    /// Whether to copy streams, extended attributes and security descriptors as well.
    pub(crate) archive: bool,
    /// Whether to copy links as links.
    pub(crate) links: bool,
    /// Whether to follow local symbolic links.
    pub(crate) follow: bool,
    /// Whether to resume an interrupted transfer.
    pub(crate) resume: bool,
    /// Whether to write small files under a temporary name as well.
    pub(crate) atomic: bool,
    /// Whether to write files under their final names from the beginning.
    pub(crate) in_place: bool,
    /// Whether to read and compare both sides afterwards.
    pub(crate) verify: bool,
    /// How long to keep reconnecting after the connection is lost. Zero gives up at once.
    pub(crate) reconnect: Duration,
    /// Files at the same time; 0 selects a default for both sides.
    pub(crate) jobs: usize,
    /// Bytes per request; 0 selects a default for the file and the transport.
    pub(crate) io_size: u32,
    /// Requests in flight per large file; 0 selects a default for the transport.
    pub(crate) depth: usize,
}

impl Default for Policy {
    /// A copy of data alone that replaces every target.
    fn default() -> Self {
        Self {
            compare: Compare::Never,
            delete: false,
            max_delete: None,
            filter: Arc::default(),
            rate: Rate::default(),
            dry_run: false,
            preserve: false,
            archive: false,
            links: false,
            follow: false,
            resume: false,
            atomic: false,
            in_place: false,
            verify: false,
            reconnect: Duration::ZERO,
            jobs: 0,
            io_size: 0,
            depth: 0,
        }
    }
}

impl Policy {
    /// Maximum bytes of a file that is transferred with one request.
    pub(super) fn request_bytes(&self) -> u64 {
        match self.io_size {
            0 => u64::from(smbeam_client::REQUEST_BYTES),
            size => u64::from(size),
        }
    }
}
