//! The choices of a transfer.

use std::time::Duration;

/// When a file that is there already is transferred again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Always.
    Never,
    /// When size or time of last write differ, the time by more than this.
    SizeAndTime(Duration),
    /// When the bytes differ.
    Contents,
}

/// What a command wants.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// When a file that is there already is transferred again.
    pub(crate) compare: Compare,
    /// Whether what the source lacks is removed.
    pub(crate) delete: bool,
    /// Whether nothing is done but said.
    pub(crate) dry_run: bool,
    /// Whether times and attributes go along.
    pub(crate) preserve: bool,
    /// Whether links of this machine are followed.
    pub(crate) follow: bool,
    /// Whether a transfer that broke is continued.
    pub(crate) resume: bool,
    /// Whether even a small file gets its name when it is whole only.
    pub(crate) atomic: bool,
    /// Whether files are written under their own name from the beginning.
    pub(crate) in_place: bool,
    /// Whether both sides are read again and compared.
    pub(crate) verify: bool,
    /// How long to try to connect anew after the last connection was lost.
    pub(crate) reconnect: Duration,
    /// Files at once; 0: as many as suit both sides.
    pub(crate) jobs: usize,
    /// Bytes of one request; 0: as many as suit the file and the transport.
    pub(crate) io_size: u32,
    /// Requests in flight for one large file; 0: as many as suit the transport.
    pub(crate) depth: usize,
}

impl Policy {
    /// Bytes that go in one request without further thought.
    pub(super) fn request_bytes(&self) -> u64 {
        match self.io_size {
            0 => u64::from(smbeam_client::REQUEST_BYTES),
            size => u64::from(size),
        }
    }
}
