//! The nouns of a transfer: a source, what it is, and a target.

use crate::file_path::{FileInfo, FilePath};

/// Something to transfer.
pub(crate) struct Item {
    /// From here.
    pub(crate) source: FilePath,
    /// What it is.
    pub(crate) info: FileInfo,
    /// To there.
    pub(crate) target: FilePath,
}
