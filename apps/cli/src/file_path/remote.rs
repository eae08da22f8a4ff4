//! Files on a server.

use std::fmt;
use std::io;
use std::sync::Arc;

use smbeam_client::{Changes, Error, FileAttributes, Metadata, Pattern, Share, Wait as _};
use smbeam_profile::is_one_session;
use wire::Status;
use wire::upcase::upcased;

use super::exact_name::mapped_name;
use super::{Detail, Entry, ExpandedPath, FileInfo, FilePath, Kind};
use crate::client_failure::failure_of;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::location::Url;
use crate::names::from_server;

/// The attributes that a copy keeps. The file system of the target sets all others.
pub(crate) const KEPT_ATTRIBUTES: u32 = FileAttributes::READONLY.0
    | FileAttributes::HIDDEN.0
    | FileAttributes::SYSTEM.0
    | FileAttributes::ARCHIVE.0;

/// A path on a share.
#[derive(Clone)]
pub(crate) struct RemotePath {
    /// The connected share.
    pub(crate) share: Share,
    /// The path from the root of the share, with `/` between components. The root is empty.
    pub(crate) path: String,
    /// The URL of the share.
    pub(crate) root: Arc<Url>,
}

impl RemotePath {
    /// Returns the path of `name` in this directory. The caller has checked the name.
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

    /// Returns the path of `name` in this directory. The caller has checked the name.
    pub(crate) fn child(&self, name: &str) -> Self {
        self.join(name)
    }

    /// Lists the entries beside this path that match a wildcard pattern, sorted by name.
    pub(crate) fn matching(&self, pattern: &str, detail: Detail) -> Outcome<Vec<ExpandedPath>> {
        let directory = match self.path.rsplit_once('/') {
            Some((directory, _)) => directory,
            None => "",
        };
        let mut entries = Vec::new();
        let meant = Pattern::new(pattern);
        let mut unusable = None;
        self.entries(directory, pattern, detail, &mut |entry| {
            match entry {
                Ok(entry) if matches_pattern(&meant, &entry) => entries.push(entry),
                Ok(_) => {}
                Err(failure) => unusable = Some(failure),
            }
            unusable.is_none()
        })?;
        if let Some(failure) = unusable {
            return Err(failure);
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let found = |entry: &Entry| {
            from_server(&entry.name).map_err(|error| Failure::name(self, error))?;
            let path = FilePath::Remote(self.sibling(&entry.name));
            Ok(ExpandedPath::listed(path, entry.info))
        };
        entries.iter().map(found).collect()
    }

    /// Whether `other` is this directory or inside it, according to the names.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        let (own, theirs) = (upcased(&self.path), upcased(&other.path));
        let is_below = own.is_empty() || theirs == own || theirs.starts_with(&format!("{own}/"));
        is_one_session(&self.root, &other.root) && self.is_same_share(other) && is_below
    }

    fn is_same_share(&self, other: &Self) -> bool {
        let share = |remote: &Self| remote.root.share.as_deref().map(upcased);
        share(self) == share(other)
    }

    /// Returns the path of `name` in the same directory.
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

    /// The path below `to` that this path has below `from`. A path that is not below `from` has its
    /// name below `to`.
    pub(super) fn relocated(&self, from: &Self, to: &Self) -> Self {
        let name = || self.path.rsplit('/').next().unwrap_or_default();
        let below = match from.path.as_str() {
            "" => Some(self.path.as_str()),
            from => self
                .path
                .strip_prefix(from)
                .and_then(|rest| rest.strip_prefix('/')),
        };
        Self {
            path: to.path.clone(),
            ..self.clone()
        }
        .join(below.unwrap_or_else(name))
    }

    /// The directory of this path; `None` for the root of the share.
    pub(super) fn parent(&self) -> Option<Self> {
        let (path, _) = self.path.rsplit_once('/').unwrap_or_default();
        (!self.path.is_empty()).then(|| Self {
            path: path.to_owned(),
            ..self.clone()
        })
    }

    /// Converts an error of the client library into a failure of this path.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        failure_of(self, error)
    }

    /// Converts an error of a reader or writer. It can contain an error of the client library.
    pub(crate) fn stream_failure(&self, error: io::Error) -> Failure {
        match error.downcast::<Error>() {
            Ok(error) => self.failure(&error),
            Err(error) => Failure::local(self, &error),
        }
    }

    /// Returns a function that converts errors of the client library into failures of this path.
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
        self.entries(&self.path, "*", detail, each)
    }

    fn entries(
        &self,
        directory: &str,
        pattern: &str,
        detail: Detail,
        each: &mut dyn FnMut(Outcome<Entry>) -> bool,
    ) -> Outcome {
        if detail == Detail::Links && self.has_posix() && pattern == "*" {
            return self.unix_entries(directory, each);
        }
        let entries = match detail {
            Detail::Full | Detail::Links => self.share.read_dir(directory, pattern).wait(),
            Detail::Brief | Detail::Followed => {
                self.share.read_dir_without_ids(directory, pattern).wait()
            }
        };
        let mut entries = entries.map_err(self.failed())?.blocking();
        for entry in entries.by_ref() {
            let entry = self.listed(entry)?.map(|entry| Entry {
                info: info_of(&self.with_tag(directory, &entry)),
                name: entry.name,
            });
            if !each(entry) {
                break;
            }
        }
        // An open directory would keep its parent from being removed.
        entries.close().map_err(self.failed())
    }

    /// Passes the entries of a directory with their hard links to `each`.
    fn unix_entries(
        &self,
        directory: &str,
        each: &mut dyn FnMut(Outcome<Entry>) -> bool,
    ) -> Outcome {
        let of_directory = Self {
            path: directory.to_owned(),
            ..self.clone()
        };
        let entries =
            of_directory.by_exact_name(|path| self.share.read_dir_posix(path, "*").wait());
        let mut entries = entries?.blocking();
        for entry in entries.by_ref() {
            let entry = self.listed(entry)?.and_then(|entry| self.mapped(&entry));
            if !each(entry) {
                break;
            }
        }
        entries.close().map_err(self.failed())
    }

    /// The next entry of a listing. The inner failure is that of one entry; the listing continues.
    fn listed(
        &self,
        entry: Result<smbeam_client::Entry, Error>,
    ) -> Outcome<Outcome<smbeam_client::Entry>> {
        match entry {
            Ok(entry) => Ok(Ok(entry)),
            Err(Error::InvalidName(name, why)) => {
                let path = format!("{self}/{}", name.escape_debug());
                Ok(Err(Failure::new(Exit::BadName, path, why)))
            }
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// An entry of a listing with exact names, with the name that other clients see.
    fn mapped(&self, entry: &smbeam_client::Entry) -> Outcome<Entry> {
        let info = info_of(&entry.metadata);
        match mapped_name(&entry.name) {
            Some(name) => Ok(Entry {
                name: name.into_owned(),
                info,
            }),
            None => {
                let path = format!("{self}/{}", entry.name.escape_debug());
                Err(Failure::new(
                    Exit::BadName,
                    path,
                    "no file can have this name",
                ))
            }
        }
    }

    pub(super) fn set_own_times(&self, info: &FileInfo) -> Outcome {
        let changes = Changes::default()
            .accessed(Some(info.accessed))
            .written(Some(info.written));
        let set = self.share.set_symlink_metadata(&self.path, &changes);
        set.wait().map_err(self.failed())
    }

    pub(super) fn hard_link(&self, link: &Self) -> Outcome {
        let linked = self.share.hard_link(&self.path, &link.path);
        linked.wait().map_err(link.failed())
    }

    /// The metadata of an entry. A listing without file ids does not show the tag of a reparse
    /// point, which says whether it is a link.
    fn with_tag(&self, directory: &str, entry: &smbeam_client::Entry) -> Metadata {
        if entry.metadata.reparse_tag.is_some() {
            return entry.metadata;
        }
        let path = match directory {
            "" => entry.name.clone(),
            directory => format!("{directory}/{}", entry.name),
        };
        let found = self.share.symlink_metadata(&path).wait();
        found.unwrap_or(entry.metadata)
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

    /// Calls `act`. If READONLY is the reason of its failure, clears the attribute and calls `act`
    /// again. READONLY is an attribute, not a permission, so a copy with READONLY can be updated
    /// and removed.
    pub(crate) fn retry_without_readonly<T>(
        &self,
        act: impl Fn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        act().or_else(|error| match error.status() {
            Some(Status::ACCESS_DENIED | Status::CANNOT_DELETE) if self.clear_readonly() => act(),
            _ => Err(error),
        })
    }

    /// Clears READONLY of a file. Returns whether it was set and is now clear.
    pub(crate) fn clear_readonly(&self) -> bool {
        let Ok(metadata) = self.share.symlink_metadata(&self.path).wait() else {
            return false;
        };
        let attributes = metadata.attributes;
        let is_protected = attributes.contains(FileAttributes::READONLY);
        if !is_protected || metadata.is_dir() || metadata.is_link() {
            return false;
        }
        let changes = Changes::default().attributes(Some(FileAttributes(
            attributes.0 & !FileAttributes::READONLY.0,
        )));
        let changed = self.share.set_metadata(&self.path, &changes);
        changed.wait().is_ok()
    }

    /// As [`Self::remove`], but also removes a file with READONLY.
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
            // Windows distinguishes links to directories from links to files.
            Kind::Link => file().or_else(|error| match error.status() {
                Some(Status::FILE_IS_A_DIRECTORY) => directory(),
                _ => Err(error),
            }),
            Kind::File | Kind::Other => file(),
        }
    }

    /// Whether both paths name the same file, ignoring case.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.is_on_same_share(other) && upcased(&self.path) == upcased(&other.path)
    }

    /// Whether both paths are on the same share, according to the URLs.
    pub(crate) fn is_on_same_share(&self, other: &Self) -> bool {
        is_one_session(&self.root, &other.root) && self.is_same_share(other)
    }

    /// Renames the file to `target`, and replaces a file with this name even if it has READONLY.
    pub(super) fn rename_over(&self, target: &Self) -> Outcome {
        let rename = || self.share.rename(&self.path, &target.path, true).wait();
        target
            .retry_without_readonly(rename)
            .map_err(target.failed())
    }

    /// Renames the file on the same share. With `replace` it replaces a file of the new name.
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

/// The metadata to set on a copy of a file. Of a local file, READONLY is the only known attribute.
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
    Changes::default()
        .created(info.created.filter(|_| source_is_remote))
        .accessed(Some(info.accessed))
        .written(Some(info.written))
        .attributes(attributes.map(FileAttributes))
}

/// Converts the metadata of a file on a server.
pub(crate) fn info_of(metadata: &Metadata) -> FileInfo {
    let kind = if metadata.is_special() {
        Kind::Other
    } else if metadata.is_link() {
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
        shared: metadata.unix.and_then(|unix| {
            let is_shared = kind == Kind::File && unix.links > 1;
            let number = metadata.file_id.filter(|_| is_shared)?;
            Some((unix.device.into(), number))
        }),
    }
}

/// Whether the name of an entry matches the pattern. Windows also matches 8.3 names, and a hostile
/// server could return any name.
fn matches_pattern(pattern: &Pattern, entry: &Entry) -> bool {
    pattern.matches(&entry.name)
}

/// Whether the error says that the file does not exist.
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
            shared: None,
        }
    }

    #[test]
    fn attributes_that_are_the_file_systems_own_stay_behind() {
        let hidden = FileAttributes::HIDDEN | FileAttributes::COMPRESSED;
        let set = changes(&info(Kind::File, hidden), true);
        assert_eq!(set.attributes, Some(FileAttributes::HIDDEN));
        assert!(set.created.is_some());
        let none = changes(&info(Kind::File, FileAttributes::COMPRESSED), true);
        assert_eq!(none.attributes, Some(FileAttributes::NORMAL));
    }

    #[test]
    fn a_local_file_has_times_and_may_be_read_only() {
        let set = changes(&info(Kind::File, FileAttributes::NONE), false);
        assert!(set.attributes.is_none() && set.created.is_none());
        let set = changes(&info(Kind::File, FileAttributes::READONLY), false);
        let wanted = FileAttributes::READONLY | FileAttributes::ARCHIVE;
        assert_eq!(set.attributes, Some(wanted));
        assert!(
            changes(&info(Kind::Directory, FileAttributes::READONLY), false)
                .attributes
                .is_none()
        );
    }

    #[test]
    fn names_that_do_not_match_are_dropped() {
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
