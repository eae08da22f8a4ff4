//! A path from the command line after the expansion of wildcards.

use super::{FileInfo, FilePath, Kind};
use crate::failure::Outcome;

/// A path that the command line names, or that matches a wildcard pattern.
pub(crate) struct ExpandedPath {
    /// The path.
    pub(crate) path: FilePath,
    seen: Option<FileInfo>,
}

impl ExpandedPath {
    /// A path that the command line names. Its metadata are not known yet.
    pub(crate) fn named(path: FilePath) -> Self {
        Self { path, seen: None }
    }

    /// A path from a listing. The metadata of a link are not used, because they do not describe its
    /// target.
    pub(super) fn listed(path: FilePath, info: FileInfo) -> Self {
        let seen = (info.kind != Kind::Link).then_some(info);
        Self { path, seen }
    }

    /// Returns the metadata, with links followed. Fails if the file does not exist.
    pub(crate) fn info(&self) -> Outcome<FileInfo> {
        match self.seen {
            Some(info) => Ok(info),
            None => self.path.info(true),
        }
    }

    /// Whether it is a directory, with links followed. `None` if the file does not exist.
    pub(crate) fn is_directory(&self) -> Outcome<Option<bool>> {
        let info = match self.seen {
            Some(info) => Some(info),
            None => self.path.lookup(true)?,
        };
        Ok(info.map(|info| info.is_directory()))
    }

    /// Returns the metadata without following links. Fails if the file does not exist. A listing is
    /// not sufficient for directories: a server may list a link with the metadata of its target.
    pub(crate) fn own_info(&self) -> Outcome<FileInfo> {
        match self.seen {
            Some(info) if !info.is_directory() => Ok(info),
            _ => self.path.info(false),
        }
    }
}
