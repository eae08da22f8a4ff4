//! A file or directory, here or on a server, and what both sides can do with one.

mod expanded;
mod local;
mod remote;

use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

use smbeam_client::FileAttributes;

pub(crate) use expanded::ExpandedPath;
pub(crate) use local::info_of as local_info;
pub(crate) use remote::{RemotePath, changes, info_of};

use crate::failure::{Failure, Outcome};
use crate::location::shown;
use crate::names::{self, NameError};

/// A path on one of the sides.
#[derive(Clone)]
pub(crate) enum FilePath {
    /// On this machine.
    Local(PathBuf),
    /// On a server.
    Remote(RemotePath),
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, or another reparse point.
    Link,
    /// A device, socket or pipe.
    Other,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileInfo {
    /// What it is.
    pub(crate) kind: Kind,
    /// Bytes.
    pub(crate) size: u64,
    /// Bytes on disk.
    pub(crate) allocation: u64,
    /// Birth, where it is known.
    pub(crate) created: Option<SystemTime>,
    /// Last access.
    pub(crate) accessed: SystemTime,
    /// Last write.
    pub(crate) written: SystemTime,
    /// Last change of metadata.
    pub(crate) changed: SystemTime,
    /// DOS attributes; those of a local file are what can be known of it.
    pub(crate) attributes: FileAttributes,
    /// What the file system knows it by.
    pub(crate) file_id: Option<u64>,
}

/// How much a listing tells of each file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// All but [`FileInfo::file_id`], for which a server may have to work more.
    Brief,
    /// The same, with local links followed.
    Followed,
    /// All.
    Full,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: String,
    /// What is known of it.
    pub(crate) info: FileInfo,
}

/// Bytes on disk may be less than the size for other reasons than holes: what a file system packs.
const PACKED_BYTES: u64 = 64 * 1024;

impl FileInfo {
    /// Whether it is a directory.
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether it may have holes that are worth looking for.
    pub(crate) fn may_have_holes(&self) -> bool {
        self.attributes.contains(FileAttributes::SPARSE_FILE)
            || self.allocation.saturating_add(PACKED_BYTES) <= self.size
    }
}

impl Kind {
    /// A word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "link",
            Self::Other => "other",
        }
    }

    /// The name of this kind in JSON, which scripts rely on.
    pub(crate) fn json_name(self) -> &'static str {
        match self {
            Self::Directory => "folder",
            other => other.name(),
        }
    }
}

impl FilePath {
    /// Whether it is on a server.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// The last component, if there is one.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Local(path) => path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
            Self::Remote(remote) => {
                let name = remote.path.rsplit('/').next().unwrap_or_default();
                (!name.is_empty()).then(|| name.to_owned())
            }
        }
    }

    /// The name that a copy of it gets: the share's for the root of a share.
    pub(crate) fn name_or_share(&self) -> Outcome<String> {
        let name = match self {
            Self::Local(path) => match path.canonicalize() {
                // `.` and `..` have names, too.
                Ok(path) if path.file_name().is_none() => None,
                Ok(canonical) => path
                    .file_name()
                    .or(canonical.file_name())
                    .map(std::ffi::OsStr::to_os_string),
                Err(error) => return Err(Failure::local(self, &error)),
            },
            Self::Remote(remote) => self
                .name()
                .or_else(|| remote.root.share.clone())
                .map(Into::into),
        };
        let name = name.ok_or_else(|| Failure::usage(self, "it has no name"))?;
        name.into_string()
            .map_err(|_| Failure::name(self, NameError::NotUtf8))
    }

    /// What is called `name` in this directory, if that is a name on this side.
    pub(crate) fn join(&self, name: &str) -> Result<Self, NameError> {
        match self {
            Self::Local(path) => Ok(Self::Local(path.join(names::from_server(name)?))),
            Self::Remote(remote) => Ok(Self::Remote(remote.join(names::to_server(name.as_ref())?))),
        }
    }

    /// What a listing of this directory called `name`. Unlike [`Self::join`] it takes what there is,
    /// as long as it is one component.
    pub(crate) fn listed(&self, name: &str) -> Result<Self, NameError> {
        match self {
            Self::Local(path) => Ok(Self::Local(path.join(names::from_server(name)?))),
            Self::Remote(remote) => Ok(Self::Remote(remote.join(names::from_server(name)?))),
        }
    }

    /// What `name` is found by on this side: SMB does not care for case.
    pub(crate) fn key_of(&self, name: &str) -> String {
        match self {
            Self::Local(_) => name.to_owned(),
            Self::Remote(_) => names::folded(name),
        }
    }

    /// The same for what it is called itself.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Local(path) => self.key_of(&path.to_string_lossy()),
            Self::Remote(remote) => self.key_of(&remote.path),
        }
    }

    /// The same with something behind its name.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.with_file_name(name)),
            Self::Remote(remote) => Self::Remote(remote.sibling(name)),
        }
    }

    /// What is known of it; none if there is no such file. Links are followed if `follow` says so.
    pub(crate) fn lookup(&self, follow: bool) -> Outcome<Option<FileInfo>> {
        match self {
            Self::Local(path) => local::lookup(path, follow),
            Self::Remote(remote) => remote.lookup(follow),
        }
    }

    /// What is known of it; it must be there.
    pub(crate) fn info(&self, follow: bool) -> Outcome<FileInfo> {
        self.lookup(follow)?.ok_or_else(|| self.missing())
    }

    fn missing(&self) -> Failure {
        let reason = match self {
            Self::Local(_) => "No such file or directory".to_owned(),
            Self::Remote(_) => crate::exit::describe_status(wire::Status::OBJECT_NAME_NOT_FOUND),
        };
        Failure::new(crate::exit::Exit::NotFound, self, reason)
    }

    /// Tells `each` of the entries until it says that it has enough. An entry that cannot be told
    /// of is a failure of its own.
    pub(crate) fn list(
        &self,
        detail: Detail,
        each: &mut dyn FnMut(Outcome<Entry>) -> bool,
    ) -> Outcome {
        match self {
            Self::Local(path) => local::list(path, detail, each),
            Self::Remote(remote) => remote.list(detail, each),
        }
    }

    /// Makes a directory; one that is there already will do. Says whether it is new.
    pub(crate) fn create_directory(&self) -> Outcome<bool> {
        match self {
            Self::Local(path) => local::create_directory(path),
            Self::Remote(remote) => remote.create_directory(),
        }
    }

    /// Makes a directory and all that it is in.
    pub(crate) fn create_directories(&self) -> Outcome {
        match self {
            Self::Local(path) => {
                std::fs::create_dir_all(path).map_err(|error| Failure::local(&shown(path), &error))
            }
            Self::Remote(remote) => remote.create_directories(),
        }
    }

    /// Removes a file or link, or a directory that is empty.
    pub(crate) fn remove(&self, kind: Kind) -> Outcome {
        match self {
            Self::Local(path) => local::remove(path, kind),
            Self::Remote(remote) => remote.remove(kind),
        }
    }

    /// The same for a file on a server that is READONLY.
    pub(crate) fn force_remove(&self, kind: Kind) -> Outcome {
        match self {
            Self::Local(path) => local::remove(path, kind),
            Self::Remote(remote) => remote.force_remove(kind),
        }
    }

    /// Gives it another name on the same side, over a file that has it.
    pub(crate) fn rename_over(&self, target: &Self) -> Outcome {
        match (self, target) {
            (Self::Local(from), Self::Local(to)) => {
                std::fs::rename(from, to).map_err(|error| Failure::local(&shown(to), &error))
            }
            (Self::Remote(from), Self::Remote(to)) => from.rename_over(to),
            _ => Err(Failure::usage(target, "on another side")),
        }
    }

    /// Gives it the times (and, on a server, the attributes) that `info` say.
    pub(crate) fn set_info(&self, info: &FileInfo, source_is_remote: bool) -> Outcome {
        match self {
            Self::Local(path) => local::set_info(path, info, source_is_remote),
            Self::Remote(remote) => remote.set_info(info, source_is_remote),
        }
    }
}

impl Detail {
    /// What [`crate::describe::FileDescription`] has, or what other listings show.
    pub(crate) fn of(is_described: bool) -> Self {
        match is_described {
            true => Self::Full,
            false => Self::Brief,
        }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => f.write_str(&shown(path)),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_lying_server_stay_in_the_directory() {
        let directory = FilePath::Local("/target".into());
        for name in ["..", "../x", "/etc/passwd", "a/../../x", "a\\b", "", "x\0"] {
            assert!(directory.join(name).is_err(), "{name:?}");
            assert!(directory.listed(name).is_err(), "{name:?}");
        }
        let inside = directory.join("x").expect("a name");
        assert_eq!(inside.to_string(), "/target/x");
        assert_eq!(inside.sibling("y").to_string(), "/target/y");
    }
}
