//! What a command was given, once it is known what that names.

use super::{FileInfo, FilePath, Kind};
use crate::failure::Outcome;

/// A path that was named, or that matches a pattern.
pub(crate) struct ExpandedPath {
    /// Where it is.
    pub(crate) path: FilePath,
    seen: Option<FileInfo>,
}

impl ExpandedPath {
    /// What was named.
    pub(crate) fn named(path: FilePath) -> Self {
        Self { path, seen: None }
    }

    /// What a listing has shown. Of a link that says nothing of what it leads to.
    pub(super) fn listed(path: FilePath, info: FileInfo) -> Self {
        let seen = (info.kind != Kind::Link).then_some(info);
        Self { path, seen }
    }

    /// What is known of it, with links followed; it must be there.
    pub(crate) fn info(&self) -> Outcome<FileInfo> {
        match self.seen {
            Some(info) => Ok(info),
            None => self.path.info(true),
        }
    }

    /// Whether it is a directory, with links followed; nothing if it is not there.
    pub(crate) fn is_directory(&self) -> Outcome<Option<bool>> {
        let info = match self.seen {
            Some(info) => Some(info),
            None => self.path.lookup(true)?,
        };
        Ok(info.map(|info| info.is_directory()))
    }

    /// What is known of itself, with no link followed; it must be there. A server may list a link
    /// as what it leads to.
    pub(crate) fn own_info(&self) -> Outcome<FileInfo> {
        match self.seen {
            Some(info) if !info.is_directory() => Ok(info),
            _ => self.path.info(false),
        }
    }
}
