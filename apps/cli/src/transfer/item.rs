//! The files and directories that a command names.

use std::path::PathBuf;

use crate::file_path::{FileInfo, FilePath};

/// A file or directory to transfer.
pub(crate) struct Item {
    /// The source.
    pub(crate) source: FilePath,
    /// Metadata of the source.
    pub(crate) info: FileInfo,
    /// The target, with the final name.
    pub(crate) target: FilePath,
    /// The path from the root of the transfer, for filters; empty for the root.
    pub(crate) relative: PathBuf,
}
