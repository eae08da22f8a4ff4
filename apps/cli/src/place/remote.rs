//! Files on a server.

use std::fmt;
use std::io;
use std::sync::Arc;

use smbeam_client::{Changes, Error, FileAttributes, Metadata, Pattern, Share, Wait as _};
use wire::Status;

use super::{Detail, Entry, Facts, Found, Kind, Place};
use crate::connect::{failure_of, is_one_session};
use crate::exit::{Failure, Outcome};
use crate::location::Url;
use crate::names::{folded, from_server};

/// The attributes that a copy takes along. The others are the file system's own.
const KEPT_ATTRIBUTES: u32 = FileAttributes::READONLY.0
    | FileAttributes::HIDDEN.0
    | FileAttributes::SYSTEM.0
    | FileAttributes::ARCHIVE.0;

/// A path of a share.
#[derive(Clone)]
pub(crate) struct Remote {
    /// The share.
    pub(crate) share: Share,
    /// The path from its root, with `/`; empty is the root.
    pub(crate) path: String,
    /// The URL of the share.
    pub(crate) root: Arc<Url>,
}

impl Remote {
    /// What is called `name` in this folder. The name was checked.
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

    /// What is called `name` in this folder.
    pub(crate) fn below(&self, name: &str) -> Self {
        self.join(name)
    }

    /// What matches a pattern beside it, sorted.
    pub(crate) fn matching(&self, pattern: &str, detail: Detail) -> Outcome<Vec<Found>> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, _)) => folder,
            None => "",
        };
        let mut entries = Vec::new();
        let meant = Pattern::new(pattern);
        self.entries(folder, pattern, detail, &mut |entry| {
            entries.extend(Some(entry).filter(|entry| is_meant(&meant, entry)));
            true
        })?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let found = |entry: &Entry| {
            from_server(&entry.name).map_err(|error| Failure::name(self, error))?;
            let place = Place::Remote(self.sibling(&entry.name));
            Ok(Found::listed(place, entry.facts))
        };
        entries.iter().map(found).collect()
    }

    /// Whether another place is this folder or in it, as far as names tell.
    pub(crate) fn holds(&self, other: &Self) -> bool {
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
            Some((folder, _)) => format!("{folder}/{name}"),
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

    pub(super) fn look(&self, follow: bool) -> Outcome<Option<Facts>> {
        let metadata = match follow {
            true => self.share.metadata(&self.path).wait(),
            false => self.share.symlink_metadata(&self.path).wait(),
        };
        match metadata {
            Ok(metadata) => Ok(Some(facts_of(&metadata))),
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
        folder: &str,
        pattern: &str,
        detail: Detail,
        each: &mut dyn FnMut(Entry) -> bool,
    ) -> Outcome {
        let entries = match detail {
            Detail::Whole => self.share.read_dir(folder, pattern).wait(),
            Detail::Brief | Detail::Followed => {
                self.share.read_dir_without_ids(folder, pattern).wait()
            }
        };
        let mut entries = entries.map_err(self.failed())?.blocking();
        for entry in entries.by_ref() {
            let entry = entry.map_err(self.failed())?;
            if matches!(entry.name.as_str(), "." | "..") {
                continue;
            }
            let entry = Entry {
                facts: facts_of(&entry.metadata),
                name: entry.name,
            };
            if !each(entry) {
                break;
            }
        }
        // A folder that is open still is there for whoever removes the one that it is in.
        entries.close().map_err(self.failed())
    }

    pub(super) fn make_folder(&self) -> Outcome<bool> {
        match self.share.create_dir(&self.path).wait() {
            Ok(()) => Ok(true),
            Err(error) if error.status() == Some(Status::OBJECT_NAME_COLLISION) => {
                match self.look(true)? {
                    Some(facts) if facts.is_folder() => Ok(false),
                    _ => Err(self.failure(&error)),
                }
            }
            Err(error) => Err(self.failure(&error)),
        }
    }

    pub(super) fn make_folders(&self) -> Outcome {
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
    pub(crate) fn insist<T>(&self, act: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        act().or_else(|error| match error.status() {
            Some(Status::ACCESS_DENIED | Status::CANNOT_DELETE) if self.unprotect() => act(),
            _ => Err(error),
        })
    }

    /// Takes READONLY off. Says whether it was there and is gone.
    pub(crate) fn unprotect(&self) -> bool {
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
    pub(super) fn remove_protected(&self, kind: Kind) -> Outcome {
        let removed = self.insist(|| self.try_remove(kind));
        removed.map_err(self.failed())
    }

    pub(super) fn remove(&self, kind: Kind) -> Outcome {
        self.try_remove(kind).map_err(self.failed())
    }

    fn try_remove(&self, kind: Kind) -> Result<(), Error> {
        let file = || self.share.remove_file(&self.path).wait();
        let folder = || self.share.remove_dir(&self.path).wait();
        match kind {
            Kind::Folder => folder(),
            // Windows knows links to folders from links to files.
            Kind::Link => file().or_else(|error| match error.status() {
                Some(Status::FILE_IS_A_DIRECTORY) => folder(),
                _ => Err(error),
            }),
            Kind::File | Kind::Other => file(),
        }
    }

    /// Whether both are one file, as far as names tell.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.is_beside(other) && folded(&self.path) == folded(&other.path)
    }

    /// Whether both are in one share, as far as names tell.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        is_one_session(&self.root, &other.root) && self.is_same_share(other)
    }

    /// Gives it the name of a file that gives way, even if that is READONLY.
    pub(super) fn rename_over(&self, target: &Self) -> Outcome {
        let rename = || self.share.rename(&self.path, &target.path, true).wait();
        target.insist(rename).map_err(target.failed())
    }

    /// Gives it another name in the same share.
    pub(crate) fn rename(&self, target: &Self, replace: bool) -> Outcome {
        self.share
            .rename(&self.path, &target.path, replace)
            .wait()
            .map_err(|error| target.failure(&error))
    }

    pub(super) fn set_facts(&self, facts: &Facts, source_is_remote: bool) -> Outcome {
        self.share
            .set_metadata(&self.path, &changes(facts, source_is_remote))
            .wait()
            .map_err(self.failed())
    }
}

/// What a copy of a file with these facts is to be told. Of a local file no attribute is known but
/// that nobody may write to it.
pub(crate) fn changes(facts: &Facts, source_is_remote: bool) -> Changes {
    let kept = facts.attributes.0 & KEPT_ATTRIBUTES;
    let attributes = match (facts.kind, source_is_remote) {
        (Kind::Folder, false) => None,
        (Kind::Folder, true) => Some(kept | FileAttributes::DIRECTORY.0),
        (_, true) if kept == 0 => Some(FileAttributes::NORMAL.0),
        (_, true) => Some(kept),
        (_, false) if kept == 0 => None,
        (_, false) => Some(kept | FileAttributes::ARCHIVE.0),
    };
    Changes {
        created: facts.created.filter(|_| source_is_remote),
        accessed: Some(facts.accessed),
        written: Some(facts.written),
        attributes: attributes.map(FileAttributes),
        ..Changes::default()
    }
}

/// What a server says of a file.
pub(crate) fn facts_of(metadata: &Metadata) -> Facts {
    let kind = if metadata.is_link() {
        Kind::Link
    } else if metadata.is_dir() {
        Kind::Folder
    } else {
        Kind::File
    };
    Facts {
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
fn is_meant(pattern: &Pattern, entry: &Entry) -> bool {
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

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.with_path(&self.path).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn facts(kind: Kind, attributes: FileAttributes) -> Facts {
        Facts {
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
        let told = changes(&facts(Kind::File, hidden), true);
        assert_eq!(told.attributes, Some(FileAttributes::HIDDEN));
        assert!(told.created.is_some());
        let none = changes(&facts(Kind::File, FileAttributes::COMPRESSED), true);
        assert_eq!(none.attributes, Some(FileAttributes::NORMAL));
    }

    #[test]
    fn a_local_file_has_times_and_may_be_read_only() {
        let told = changes(&facts(Kind::File, FileAttributes::NONE), false);
        assert!(told.attributes.is_none() && told.created.is_none());
        let told = changes(&facts(Kind::File, FileAttributes::READONLY), false);
        let wanted = FileAttributes::READONLY | FileAttributes::ARCHIVE;
        assert_eq!(told.attributes, Some(wanted));
        assert!(
            changes(&facts(Kind::Folder, FileAttributes::READONLY), false)
                .attributes
                .is_none()
        );
    }

    #[test]
    fn what_a_server_adds_is_not_meant() {
        let is_meant = |pattern: &str, name: &str| {
            let entry = Entry {
                name: name.to_owned(),
                facts: facts(Kind::File, FileAttributes::NONE),
            };
            is_meant(&Pattern::new(pattern), &entry)
        };
        for name in ["a.txt", "B.TXT", "[x].txt", "\u{e4}.txt"] {
            assert!(is_meant("*.txt", name), "{name}");
        }
        assert!(is_meant("?.txt", "\u{e4}.txt") && is_meant("[a]{b}!*", "[A]{b}!c"));
        for (pattern, name) in [
            ("*.txt", ".bashrc"),
            ("*.htm", "page.html"),
            ("?.txt", "ab.txt"),
            ("[ab]*", "a"),
        ] {
            assert!(!is_meant(pattern, name), "{pattern} {name}");
        }
    }
}
