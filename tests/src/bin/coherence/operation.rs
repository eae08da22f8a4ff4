//! The operations that the checker sends to its two processes, and their answers.

use std::hash::{DefaultHasher, Hasher as _};

use serde::{Deserialize, Serialize};
use smbeam_tests::random::Random;

/// The size of the pieces of a file that are compared, in bytes.
pub(crate) const PAGE: usize = 4096;
/// Number of files that a process can have open.
pub(crate) const SLOTS: usize = 2;

/// An operation. A path is relative to the directory of the process. A slot is the number of an
/// open file, below [`SLOTS`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Operation {
    /// Creates a file, which must be new, and opens it.
    Create { slot: usize, path: String },
    /// Opens a file that exists.
    Open { slot: usize, path: String },
    /// Closes the file.
    Close { slot: usize },
    /// Writes `length` bytes that depend on `seed`, to stable storage.
    Write {
        slot: usize,
        offset: u64,
        length: usize,
        seed: u64,
    },
    /// Reads up to `length` bytes.
    Read {
        slot: usize,
        offset: u64,
        length: usize,
    },
    /// Changes the size of the file.
    Truncate { slot: usize, size: u64 },
    /// Writes the data of the file to stable storage.
    Sync { slot: usize },
    /// Asks for the size of an open file.
    Size { slot: usize },
    /// Opens the file, reads all of it and closes it.
    Get { path: String },
    /// Asks for the size of a file by its name.
    Stat { path: String },
    /// Renames a file.
    Rename { from: String, to: String },
    /// Deletes a file.
    Unlink { path: String },
    /// Creates a directory.
    MakeDirectory { path: String },
    /// Deletes an empty directory.
    RemoveDirectory { path: String },
    /// Lists a directory.
    List { path: String },
}

/// The answer to an operation. Fields that do not belong to the operation are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The error number; none: success.
    pub(crate) errno: Option<i32>,
    /// The size of a file in bytes, or the length of the data that was read.
    pub(crate) size: Option<u64>,
    /// The inode number of a file that was opened.
    pub(crate) inode: Option<u64>,
    /// A hash of each [`PAGE`] bytes of the data that was read.
    pub(crate) pages: Vec<u64>,
    /// The sorted names in the directory.
    pub(crate) names: Vec<String>,
}

/// The data of a write.
pub(crate) fn data(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Random::new(seed).fill(&mut bytes);
    bytes
}

/// The hash of each page of `bytes`.
pub(crate) fn pages(bytes: &[u8]) -> Vec<u64> {
    let hash = |page: &[u8]| {
        let mut hasher = DefaultHasher::new();
        hasher.write(page);
        hasher.finish()
    };
    bytes.chunks(PAGE).map(hash).collect()
}
