//! Files on a server.

use std::fmt;
use std::io;
use std::sync::Arc;

use smbeam_client::{Changes, Error, FileAttributes, Metadata, Pattern, Share, Wait as _};
use wire::Status;

use super::{Detail, Entry, ExpandedPath, FileInfo, FilePath, Kind};
use crate::client_failure::failure_of;
use crate::failure::{Failure, Outcome};
use crate::location::Url;
use crate::names::{folded, from_server};
use crate::session_key::is_one_session;

/// The attributes that a copy takes along. The others are the file system's own.
const KEPT_ATTRIBUTES: u32 = FileAttributes::READONLY.0
    | FileAttributes::HIDDEN.0
    | FileAttributes::SYSTEM.0
    | FileAttributes::ARCHIVE.0;

/// A path of a share.
#[derive(Clone)]
pub(crate) struct RemotePath {
    /// The share.
    pub(crate) share: Share,
    /// The path from its root, with `/`; empty is the root.
    pub(crate) path: String,
    /// The URL of the share.
    pub(crate) root: Arc<Url>,
}

impl RemotePath {
    /// What is called `name` in this directory. The name was checked.
    pub(super) fn join(&self, name: &str) -> Self {
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}/{name}"),
        };
        Self {
            path,
            ..self.clone()
        }
    }

    /// What is called `name` in this directory.
    pub(crate) fn child(&self, name: &str) -> Self {
        self.join(name)
    }

    /// What matches a pattern beside it, sorted.
    pub(crate) fn matching(&self, pattern: &str, detail: Detail) -> Outcome<Vec<ExpandedPath>> {
        let directory = match self.path.rsplit_once('/') {
            Some((directory, _)) => directory,
            None => "",
        };
        let mut entries = Vec::new();
        let meant = Pattern::new(pattern);
        self.entries(directory, pattern, detail, &mut |entry| {
            entries.extend(Some(entry).filter(|entry| matches_pattern(&meant, entry)));
            true
        })?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let found = |entry: &Entry| {
            from_server(&entry.name).map_err(|error| Failure::name(self, error))?;
            let path = FilePath::Remote(self.sibling(&entry.name));
            Ok(ExpandedPath::listed(path, entry.info))
        };
        entries.iter().map(found).collect()
    }

    /// Whether another path is this directory or in it, as far as names tell.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let (own, theirs) = (folded(&self.path), folded(&other.path));
        let is_below = own.is_empty() || theirs == own || theirs.starts_with(&format!("{own}/"));
        is_one_session(&self.root, &other.root) && self.is_same_share(other) && is_below
    }

    fn is_same_share(&self, other: &Self) -> bool {
        let share = |remote: &Self| remote.root.share.as_deref().map(folded);
        share(self) == share(other)
    }

    /// What is called `name` beside it.
    pub(super) fn sibling(&self, name: &str) -> Self {
        let path = match self.path.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/{name}"),
            None => name.to_owned(),
        };
        Self {
            path,
            ..self.clone()
        }
    }

    /// What the library says of this path.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        failure_of(self, error)
    }

    /// What the library said, where an error of a reader or a writer is one of the library.
    pub(crate) fn stream_failure(&self, error: io::Error) -> Failure {
        match error.downcast::<Error>() {
            Ok(error) => self.failure(&error),
            Err(error) => Failure::local(self, &error),
        }
    }

    /// Makes failures of this path out of the library's.
    pub(crate) fn failed(&self) -> impl Fn(Error) -> Failure + '_ {
        move |error| self.failure(&error)
    }

    pub(super) fn lookup(&self, follow: bool) -> Outcome<Option<FileInfo>> {
        let metadata = match follow {
            true => self.share.metadata(&self.path).wait(),
            false => self.share.symlink_metadata(&self.path).wait(),
        };
        match metadata {
            Ok(metadata) => Ok(Some(info_of(&metadata))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.failure(&error)),
        }
    }

    pub(super) fn list(
        &self,
        detail: Detail,
        each: &mut dyn FnMut(Outcome<Entry>) -> bool,
    ) -> Outcome {
        self.entries(&self.path, "*", detail, &mut |entry| each(Ok(entry)))
    }

    fn entries(
        &self,
        directory: &str,
        pattern: &str,
        detail: Detail,
        each: &mut dyn FnMut(Entry) -> bool,
    ) -> Outcome {
        let entries = match detail {
            Detail::Full => self.share.read_dir(directory, pattern).wait(),
            Detail::Brief | Detail::Followed => {
                self.share.read_dir_without_ids(directory, pattern).wait()
            }
        };
        let mut entries = entries.map_err(self.failed())?.blocking();
        for entry in entries.by_ref() {
            let entry = entry.map_err(self.failed())?;
            if matches!(entry.name.as_str(), "." | "..") {
                continue;
            }
            let entry = Entry {
                info: info_of(&entry.metadata),
                name: entry.name,
            };
            if !each(entry) {
                break;
            }
        }
        // A directory that is open still is there for whoever removes the one that it is in.
        entries.close().map_err(self.failed())
    }

    pub(super) fn create_directory(&self) -> Outcome<bool> {
        match self.share.create_dir(&self.path).wait() {
            Ok(()) => Ok(true),
            Err(error) if error.status() == Some(Status::OBJECT_NAME_COLLISION) => {
                match self.lookup(true)? {
                    Some(info) if info.is_directory() => Ok(false),
                    _ => Err(self.failure(&error)),
                }
            }
            Err(error) => Err(self.failure(&error)),
        }
    }

    pub(super) fn create_directories(&self) -> Outcome {
        if self.path.is_empty() {
            return Ok(());
        }
        self.share
            .create_dir_all(&self.path)
            .wait()
            .map_err(self.failed())
    }

    /// Does something to a file, and once more without READONLY where that was in the way. It is a
    /// flag, no right: a file that was copied with it is to be updated and removed like others.
    pub(crate) fn retry_without_readonly<T>(
        &self,
        act: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        act().or_else(|error| match error.status() {
            Some(Status::ACCESS_DENIED | Status::CANNOT_DELETE) if self.clear_readonly() => act(),
            _ => Err(error),
        })
    }

    /// Takes READONLY off. Says whether it was there and is gone.
    pub(crate) fn clear_readonly(&self) -> bool {
        let Ok(metadata) = self.share.symlink_metadata(&self.path).wait() else {
            return false;
        };
        let attributes = metadata.attributes;
        let is_protected = attributes.contains(FileAttributes::READONLY);
        if !is_protected || metadata.is_dir() || metadata.is_link() {
            return false;
        }
        let changes = Changes {
            attributes: Some(FileAttributes(attributes.0 & !FileAttributes::READONLY.0)),
            ..Changes::default()
        };
        let changed = self.share.set_metadata(&self.path, &changes);
        changed.wait().is_ok()
    }

    /// The same as [`Self::remove`] for a file that is READONLY.
    pub(super) fn force_remove(&self, kind: Kind) -> Outcome {
        let removed = self.retry_without_readonly(|| self.try_remove(kind));
        removed.map_err(self.failed())
    }

    pub(super) fn remove(&self, kind: Kind) -> Outcome {
        self.try_remove(kind).map_err(self.failed())
    }

    fn try_remove(&self, kind: Kind) -> Result<(), Error> {
        let file = || self.share.remove_file(&self.path).wait();
        let directory = || self.share.remove_dir(&self.path).wait();
        match kind {
            Kind::Directory => directory(),
            // Windows knows links to directories from links to files.
            Kind::Link => file().or_else(|error| match error.status() {
                Some(Status::FILE_IS_A_DIRECTORY) => directory(),
                _ => Err(error),
            }),
            Kind::File | Kind::Other => file(),
        }
    }

    /// Whether both are one file, as far as names tell.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.is_on_same_share(other) && folded(&self.path) == folded(&other.path)
    }

    /// Whether both are in one share, as far as names tell.
    pub(crate) fn is_on_same_share(&self, other: &Self) -> bool {
        is_one_session(&self.root, &other.root) && self.is_same_share(other)
    }

    /// Gives it the name of a file that gives way, even if that is READONLY.
    pub(super) fn rename_over(&self, target: &Self) -> Outcome {
        let rename = || self.share.rename(&self.path, &target.path, true).wait();
        target
            .retry_without_readonly(rename)
            .map_err(target.failed())
    }

    /// Gives it another name in the same share.
    pub(crate) fn rename(&self, target: &Self, replace: bool) -> Outcome {
        self.share
            .rename(&self.path, &target.path, replace)
            .wait()
            .map_err(|error| target.failure(&error))
    }

    pub(super) fn set_info(&self, info: &FileInfo, source_is_remote: bool) -> Outcome {
        self.share
            .set_metadata(&self.path, &changes(info, source_is_remote))
            .wait()
            .map_err(self.failed())
    }
}

/// What a copy of a file with these info is to be told. Of a local file no attribute is known but
/// that nobody may write to it.
pub(crate) fn changes(info: &FileInfo, source_is_remote: bool) -> Changes {
    let kept = info.attributes.0 & KEPT_ATTRIBUTES;
    let attributes = match (info.kind, source_is_remote) {
        (Kind::Directory, false) => None,
        (Kind::Directory, true) => Some(kept | FileAttributes::DIRECTORY.0),
        (_, true) if kept == 0 => Some(FileAttributes::NORMAL.0),
        (_, true) => Some(kept),
        (_, false) if kept == 0 => None,
        (_, false) => Some(kept | FileAttributes::ARCHIVE.0),
    };
    Changes {
        created: info.created.filter(|_| source_is_remote),
        accessed: Some(info.accessed),
        written: Some(info.written),
        attributes: attributes.map(FileAttributes),
        ..Changes::default()
    }
}

/// What a server says of a file.
pub(crate) fn info_of(metadata: &Metadata) -> FileInfo {
    let kind = if metadata.is_link() {
        Kind::Link
    } else if metadata.is_dir() {
        Kind::Directory
    } else {
        Kind::File
    };
    FileInfo {
        kind,
        size: metadata.size,
        allocation: metadata.allocation,
        created: Some(metadata.created),
        accessed: metadata.accessed,
        written: metadata.written,
        changed: metadata.changed,
        attributes: metadata.attributes,
        file_id: metadata.file_id,
    }
}

/// Whether the name of what a server has found matches. Windows finds by 8.3 names as well, and a
/// server may lie: nobody who gets `*.txt` asked for `.bashrc`.
fn matches_pattern(pattern: &Pattern, entry: &Entry) -> bool {
    pattern.matches(&entry.name)
}

/// Whether there is no such file.
fn is_missing(error: &Error) -> bool {
    matches!(
        error.status(),
        Some(
            Status::OBJECT_NAME_NOT_FOUND
                | Status::OBJECT_PATH_NOT_FOUND
                | Status::NO_SUCH_FILE
                | Status::NOT_FOUND
        )
    )
}

impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.with_path(&self.path).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn info(kind: Kind, attributes: FileAttributes) -> FileInfo {
        FileInfo {
            kind,
            size: 0,
            allocation: 0,
            created: Some(UNIX_EPOCH),
            accessed: UNIX_EPOCH,
            written: UNIX_EPOCH,
            changed: UNIX_EPOCH,
            attributes,
            file_id: None,
        }
    }

    #[test]
    fn attributes_that_are_the_file_systems_own_stay_behind() {
        let hidden = FileAttributes::HIDDEN | FileAttributes::COMPRESSED;
        let told = changes(&info(Kind::File, hidden), true);
        assert_eq!(told.attributes, Some(FileAttributes::HIDDEN));
        assert!(told.created.is_some());
        let none = changes(&info(Kind::File, FileAttributes::COMPRESSED), true);
        assert_eq!(none.attributes, Some(FileAttributes::NORMAL));
    }

    #[test]
    fn a_local_file_has_times_and_may_be_read_only() {
        let told = changes(&info(Kind::File, FileAttributes::NONE), false);
        assert!(told.attributes.is_none() && told.created.is_none());
        let told = changes(&info(Kind::File, FileAttributes::READONLY), false);
        let wanted = FileAttributes::READONLY | FileAttributes::ARCHIVE;
        assert_eq!(told.attributes, Some(wanted));
        assert!(
            changes(&info(Kind::Directory, FileAttributes::READONLY), false)
                .attributes
                .is_none()
        );
    }

    #[test]
    fn what_a_server_adds_is_not_meant() {
        let matches_pattern = |pattern: &str, name: &str| {
            let entry = Entry {
                name: name.to_owned(),
                info: info(Kind::File, FileAttributes::NONE),
            };
            matches_pattern(&Pattern::new(pattern), &entry)
        };
        for name in ["a.txt", "B.TXT", "[x].txt", "\u{e4}.txt"] {
            assert!(matches_pattern("*.txt", name), "{name}");
        }
        assert!(matches_pattern("?.txt", "\u{e4}.txt") && matches_pattern("[a]{b}!*", "[A]{b}!c"));
        for (pattern, name) in [
            ("*.txt", ".bashrc"),
            ("*.htm", "page.html"),
            ("?.txt", "ab.txt"),
            ("[ab]*", "a"),
        ] {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }
}
