//! How workers and ranks read and write the files of a store.

use std::ops::Range;

use anyhow::Result;

/// Bytes of a piece of a file that streams: that of checkpoints in round v3.
pub(super) const PIECE: usize = 32 << 20;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) is_directory: bool,
}

/// A part of a file that belongs to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extent<'a> {
    pub(crate) path: &'a str,
    /// Bytes of the whole file by the listing.
    pub(crate) file_bytes: u64,
    /// The bytes to read; `None` for the whole file.
    pub(crate) range: Option<Range<u64>>,
}

/// Takes the bytes of an extent and checks them.
pub(crate) type Check<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// Makes the bytes at an offset of a file.
pub(crate) type Fill<'a> = &'a mut dyn FnMut(u64, &mut [u8]);

/// Reads files for one worker. It keeps its buffers.
pub(crate) trait Reader: Send {
    /// Reads the extents into memory, and passes the bytes of each to `check`. Returns the number
    /// of read bytes.
    ///
    /// # Errors
    /// A file is missing or shorter than expected, the check fails, or the storage does.
    fn read(&mut self, extents: &[Extent<'_>], check: Check<'_>) -> Result<u64>;

    /// Reads a whole file in pieces, and returns the number of read bytes.
    ///
    /// # Errors
    /// The file is missing, or the storage fails.
    fn stream(&mut self, path: &str) -> Result<u64>;
}

/// Writes files for one rank. It keeps its buffers.
pub(crate) trait Writer: Send {
    /// Writes a new file of `len` bytes that `fill` makes. With `sync` the bytes are on stable
    /// storage when the call returns.
    ///
    /// # Errors
    /// The storage is full, or fails.
    fn write(&mut self, path: &str, len: u64, sync: bool, fill: Fill<'_>) -> Result<()>;
}

/// How readers and writers use a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    /// Number of the session for a store on a server. Each number has its own session.
    pub(crate) session: usize,
    /// Whether a local store bypasses the page cache.
    pub(crate) direct: bool,
}
