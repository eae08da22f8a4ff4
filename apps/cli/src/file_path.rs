//! Paths of files and directories, on this machine or on a server, and the operations that both
//! sides support.

mod exact_name;
mod expanded;
mod local;
mod local_path;
mod remote;

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use smbeam_client::FileAttributes;
use wire::upcase::upcased;

pub(crate) use expanded::ExpandedPath;
pub(crate) use local::info_of as local_info;
pub(crate) use local_path::LocalPath;
pub(crate) use remote::{KEPT_ATTRIBUTES, RemotePath, changes, info_of};

use crate::failure::{Failure, Outcome};
use crate::filter::Filter;
use crate::location::shown;
use crate::names::{self, NameError};

/// A path on this machine or on a share.
#[derive(Clone)]
pub(crate) enum FilePath {
    /// A path on this machine.
    Local(LocalPath),
    /// A path on a share of a server.
    Remote(RemotePath),
}

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link or another reparse point.
    Link,
    /// A device, socket or pipe.
    Other,
}

/// Metadata of a file or directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileInfo {
    /// File, directory, link or other.
    pub(crate) kind: Kind,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Allocated bytes on disk.
    pub(crate) allocation: u64,
    /// Time of creation, if the file system records it.
    pub(crate) created: Option<SystemTime>,
    /// Time of last access.
    pub(crate) accessed: SystemTime,
    /// Time of last write.
    pub(crate) written: SystemTime,
    /// Time of last change of the metadata.
    pub(crate) changed: SystemTime,
    /// DOS attributes. A local file has only DIRECTORY and READONLY.
    pub(crate) attributes: FileAttributes,
    /// The number of the file in its file system (inode number or file id).
    pub(crate) file_id: Option<u64>,
    /// Number of the file system and of the file, for a file with several names (hard links);
    /// `None` for one name, and if the names were not counted.
    pub(crate) shared: Option<(u64, u64)>,
}

/// The level of detail of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything except [`FileInfo::file_id`], which costs some servers extra work.
    Brief,
    /// As [`Detail::Brief`], but local symbolic links are followed.
    Followed,
    /// Everything.
    Full,
    /// As [`Detail::Full`], with the hard links of files if the server has the SMB3 POSIX
    /// extensions.
    Links,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The name in SMB, one component of a path. A local file can have another one: see
    /// [`LocalNames`](crate::names::LocalNames).
    pub(crate) name: String,
    /// The metadata.
    pub(crate) info: FileInfo,
}

/// A file may use less space on disk than its size without holes, because file systems pack or
/// compress data. Smaller differences than this number of bytes do not count as holes.
const PACKED_BYTES: u64 = 64 * 1024;

impl FileInfo {
    /// Whether it is a directory.
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether the file may have holes, so that asking for its data ranges is worthwhile.
    pub(crate) fn may_have_holes(&self) -> bool {
        self.attributes.contains(FileAttributes::SPARSE_FILE)
            || self.allocation.saturating_add(PACKED_BYTES) <= self.size
    }
}

impl Kind {
    /// The name of this kind for people.
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
    /// Whether the path is on a server.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::Remote(_))
    }

    /// The name in SMB of the last component. `None` for the root of a share or file system.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Local(path) => path.name(),
            Self::Remote(remote) => {
                let name = remote.path.rsplit('/').next().unwrap_or_default();
                (!name.is_empty()).then(|| name.to_owned())
            }
        }
    }

    /// The name of a copy in SMB: the last component, or the name of the share for the root of a
    /// share.
    pub(crate) fn name_or_share(&self) -> Outcome<String> {
        let name = match self {
            Self::Local(path) => {
                // Canonicalization finds the names of `.` and `..`.
                let canonical = path
                    .canonicalize()
                    .map_err(|error| Failure::local(self, &error))?;
                let name = path.file_name().or(canonical.file_name());
                let name = name.filter(|_| canonical.file_name().is_some());
                let name = name.map(|name| path.smb_name(name)).transpose();
                name.map_err(|error| Failure::name(self, error))?
            }
            Self::Remote(remote) => self.name().or_else(|| remote.root.share.clone()),
        };
        name.ok_or_else(|| Failure::usage(self, "the path has no file name"))
    }

    /// Returns the path of `name` in this directory. Fails if this side does not allow the name.
    pub(crate) fn join(&self, name: &str) -> Result<Self, NameError> {
        match self {
            Self::Local(path) => Ok(Self::Local(path.child(name)?)),
            Self::Remote(remote) => Ok(Self::Remote(remote.join(names::to_server(name.as_ref())?))),
        }
    }

    /// Returns the path of the existing entry `name` in this directory. Unlike [`Self::join`] it
    /// accepts any single component.
    pub(crate) fn listed(&self, name: &str) -> Result<Self, NameError> {
        match self {
            Self::Local(path) => Ok(Self::Local(path.child(name)?)),
            Self::Remote(remote) => Ok(Self::Remote(remote.join(names::from_server(name)?))),
        }
    }

    /// The path of a file below this directory, with a relative local path.
    pub(crate) fn descendant(&self, path: &Path) -> Outcome<Self> {
        let mut below = self.clone();
        for component in path.components() {
            let name = match component {
                Component::CurDir => continue,
                Component::Normal(name) => name.to_string_lossy(),
                _ => {
                    return Err(Failure::usage(
                        shown(path),
                        "the path must not contain `..`",
                    ));
                }
            };
            below = match &below {
                Self::Local(local) => Self::Local(local.with_path(local.join(component))),
                Self::Remote(_) => below
                    .join(&name)
                    .map_err(|error| Failure::name(&shown(path), error))?,
            };
        }
        Ok(below)
    }

    /// The key for comparing this path with others on the same side. SMB ignores case.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Local(path) => path
                .as_os_str()
                .as_encoded_bytes()
                .escape_ascii()
                .to_string(),
            Self::Remote(remote) => upcased(&remote.path),
        }
    }

    /// Returns the path of `name` in the same directory. Fails if this side does not allow the
    /// name.
    pub(crate) fn sibling(&self, name: &str) -> Result<Self, NameError> {
        Ok(match self {
            Self::Local(path) => Self::Local(path.sibling(name)?),
            Self::Remote(remote) => Self::Remote(remote.sibling(name)),
        })
    }

    /// The path from the directory of this file, with the local form of its name, for filters.
    pub(crate) fn relative(&self) -> PathBuf {
        Filter::path_of(Path::new(""), &self.name().unwrap_or_default())
    }

    /// The path below `to` that this path has below `from`, all on the same side. A path that is
    /// not below `from` has its name below `to`.
    pub(crate) fn relocated(&self, from: &Self, to: &Self) -> Option<Self> {
        match (self, from, to) {
            (Self::Local(path), Self::Local(from), Self::Local(to)) => {
                let below = path.strip_prefix(&**from).ok();
                let below = below.filter(|below| below.file_name().is_some());
                let below = below.or_else(|| path.file_name().map(Path::new))?;
                Some(Self::Local(to.with_path(to.join(below))))
            }
            (Self::Remote(path), Self::Remote(from), Self::Remote(to)) => {
                Some(Self::Remote(path.relocated(from, to)))
            }
            _ => None,
        }
    }

    /// The directory of this path; `None` for the root of a share or file system.
    pub(crate) fn parent(&self) -> Option<Self> {
        match self {
            Self::Local(path) => {
                let parent = path.parent()?;
                Some(Self::Local(path.with_path(parent.to_owned())))
            }
            Self::Remote(remote) => remote.parent().map(Self::Remote),
        }
    }

    /// Whether the name has another form on this side.
    pub(crate) fn is_mapped(&self, name: &str) -> bool {
        matches!(self, Self::Local(path) if path.is_mapped(name))
    }

    /// Returns the metadata, or `None` if the file does not exist. `follow` follows links.
    pub(crate) fn lookup(&self, follow: bool) -> Outcome<Option<FileInfo>> {
        match self {
            Self::Local(path) => local::lookup(path, follow),
            Self::Remote(remote) => remote.lookup(follow),
        }
    }

    /// Returns the metadata. Fails if the file does not exist.
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

    /// Passes every entry of the directory to `each` until it returns false. If the name or the
    /// metadata of an entry cannot be read, `each` gets a failure.
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

    /// Creates the directory unless it exists. Returns whether it is new.
    pub(crate) fn create_directory(&self) -> Outcome<bool> {
        match self {
            Self::Local(path) => local::create_directory(path),
            Self::Remote(remote) => remote.create_directory(),
        }
    }

    /// Creates the directory and its missing parents.
    pub(crate) fn create_directories(&self) -> Outcome {
        match self {
            Self::Local(path) => {
                std::fs::create_dir_all(path).map_err(|error| Failure::local(&shown(path), &error))
            }
            Self::Remote(remote) => remote.create_directories(),
        }
    }

    /// Removes a file, a link or an empty directory.
    pub(crate) fn remove(&self, kind: Kind) -> Outcome {
        match self {
            Self::Local(path) => local::remove(path, kind),
            Self::Remote(remote) => remote.remove(kind),
        }
    }

    /// As [`Self::remove`], but also removes a file with READONLY from a server.
    pub(crate) fn force_remove(&self, kind: Kind) -> Outcome {
        match self {
            Self::Local(path) => local::remove(path, kind),
            Self::Remote(remote) => remote.force_remove(kind),
        }
    }

    /// Renames the file to `target` on the same side, and replaces a file with this name.
    pub(crate) fn rename_over(&self, target: &Self) -> Outcome {
        match (self, target) {
            (Self::Local(from), Self::Local(to)) => {
                std::fs::rename(from, to).map_err(|error| Failure::local(&shown(to), &error))
            }
            (Self::Remote(from), Self::Remote(to)) => from.rename_over(to),
            _ => Err(Failure::usage(
                target,
                "source and target must be on the same machine",
            )),
        }
    }

    /// Gives the file another name on the same side, which may differ in case only.
    pub(crate) fn rename(&self, target: &Self) -> Outcome {
        match (self, target) {
            (Self::Remote(from), Self::Remote(to)) => from.rename(to, false),
            _ => self.rename_over(target),
        }
    }

    /// Sets the times of a link or special file itself.
    pub(crate) fn set_own_times(&self, info: &FileInfo) -> Outcome {
        match self {
            Self::Local(path) => local::set_times(path, info, false),
            Self::Remote(remote) => remote.set_own_times(info),
        }
    }

    /// Gives the file another name on the same side, which does not exist.
    pub(crate) fn hard_link(&self, link: &Self) -> Outcome {
        match (self, link) {
            (Self::Local(from), Self::Local(to)) => {
                std::fs::hard_link(from, to).map_err(|error| Failure::local(&shown(to), &error))
            }
            (Self::Remote(from), Self::Remote(to)) => from.hard_link(to),
            _ => Err(Failure::usage(
                link,
                "a hard link is on the side of its file",
            )),
        }
    }

    /// Sets the times and, on a server, the attributes of `info`.
    pub(crate) fn set_info(&self, info: &FileInfo, source_is_remote: bool) -> Outcome {
        match self {
            Self::Local(path) => local::set_info(path, info, source_is_remote),
            Self::Remote(remote) => remote.set_info(info, source_is_remote),
        }
    }
}

impl Detail {
    /// The level for a [`crate::describe::FileDescription`], or for another listing.
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
    fn names_of_a_hostile_server_stay_in_the_directory() {
        let directory = FilePath::Local("/target".into());
        for name in ["..", "../x", "/etc/passwd", "a/../../x", "a\\b", "", "x\0"] {
            assert!(directory.join(name).is_err(), "{name:?}");
            assert!(directory.listed(name).is_err(), "{name:?}");
        }
        let inside = directory.join("x").expect("a name");
        assert_eq!(inside.to_string(), "/target/x");
        let sibling = inside.sibling("y\u{f022}").expect("a name");
        assert_eq!(sibling.to_string(), "/target/y:");
        assert_eq!(sibling.name().as_deref(), Some("y\u{f022}"));
        assert!(directory.is_mapped("y\u{f022}") && !directory.is_mapped("y"));
    }

    #[test]
    fn a_relocated_path_keeps_its_place() {
        let path = |text: &str| FilePath::Local(text.into());
        let moved = |text: &str, from: &str| {
            let moved = path(text).relocated(&path(from), &path("/old"));
            moved.map(|path| path.to_string())
        };
        assert_eq!(moved("/a/b/c", "/a").as_deref(), Some("/old/b/c"));
        assert_eq!(moved("/a/b", "/a/b").as_deref(), Some("/old/b"));
        assert_eq!(moved("/x/y", "/a").as_deref(), Some("/old/y"));
        assert_eq!(
            path("/a/b")
                .parent()
                .map(|path| path.to_string())
                .as_deref(),
            Some("/a")
        );
    }
}
