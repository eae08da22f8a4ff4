//! Open files and their names.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use proto::file::{FileKey, FileKind};
use proto::path::SharePath;
use proto::token::Token;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use wire::access::AccessMask;

use super::directory::Directory;
use super::file_ref::FileRef;
use super::stat::{as_server, by_descriptor};
use super::streams::opens::OpenStream;
use super::volume::Volume;
use crate::direct_io_gate::WriteGate;
use crate::{Direct, rights};

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// The credentials of operations on the file.
    pub(super) token: Arc<Token>,
    /// The user that opened the file.
    pub(super) user: Arc<Token>,
    /// Access rights: the granted and the implied ones.
    pub(super) access: AccessMask,
    pub(super) key: FileKey,
    /// The file system of the file.
    pub(super) volume: Arc<Volume>,
    /// The root of the share when the file was opened. Paths of operations start there.
    pub(super) root: Arc<Directory>,
    pub(super) kind: FileKind,
    /// Open for data or entries if the rights include them; else an O_PATH descriptor.
    pub(super) fd: Arc<OwnedFd>,
    pub(super) is_path: bool,
    pub(super) link: Arc<Link>,
    /// Whether names are exact in its operations: an open of the SMB3 POSIX extensions.
    pub(super) is_exact: bool,
    /// The named stream of the open; `None` for the file itself. `kind` is that of a file then.
    pub(super) stream: Option<Arc<OpenStream>>,
    pub(super) listing: Mutex<Listing>,
    pub(super) direct_descriptor: DirectDescriptor,
    /// Excludes direct and cached writes from each other; `None` without direct I/O.
    pub(super) write_gate: Option<Arc<WriteGate>>,
}

/// The descriptor for direct I/O of an open; the first use opens it.
#[derive(Debug, Default)]
pub(super) struct DirectDescriptor {
    pub(super) opened: OnceLock<Option<Direct>>,
    pub(super) is_refused: AtomicBool,
}

/// The state of a directory listing.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Whether the listing has returned entries since its start.
    pub(super) is_begun: bool,
    /// Names that are read and not yet returned.
    pub(super) names: VecDeque<String>,
}

/// A name of a file. All opens through one name share it, so that a rename updates all of them.
#[derive(Debug)]
pub(super) struct Link {
    /// The file of the name itself: the target file, or the link that leads to it.
    pub(super) key: FileKey,
    location: Mutex<Location>,
    is_unlinked: AtomicBool,
}

/// The location of a name.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) parent: Arc<Directory>,
    /// Name for clients in the parent directory; empty for the root of the share.
    pub(super) name: String,
    /// Path at the last lookup of the name, as spelled by the file system.
    pub(super) path: SharePath,
}

impl Location {
    /// Whether this is the root of the share, which has no name.
    pub(super) fn is_root(&self) -> bool {
        self.name.is_empty()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.parent.key == other.parent.key && self.name == other.name
    }
}

impl Link {
    /// The present location of the name.
    pub(super) fn location(&self) -> Location {
        self.location
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sets the location after a rename.
    pub(super) fn move_to(&self, location: Location) {
        *self.location.lock().unwrap_or_else(PoisonError::into_inner) = location;
    }

    /// Marks the name as removed.
    pub(super) fn set_unlinked(&self) {
        self.is_unlinked.store(true, Ordering::Relaxed);
    }
}

impl OpenFile {
    /// Whether the open can transfer data by its descriptor.
    pub(super) fn is_data(&self) -> bool {
        self.kind == FileKind::File && !self.is_path && self.stream.is_none()
    }

    /// Opens the file again, for a flush: an O_PATH descriptor does not support it.
    pub(super) fn reopen_to_flush(&self) -> Result<OwnedFd, Errno> {
        let path = by_descriptor(&*self.fd);
        let open = || openat(CWD, &*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        match open() {
            Err(Errno::ACCESS | Errno::PERM) => as_server(&self.token, open),
            result => result,
        }
    }

    /// Whether the name was removed, so that the last close frees the blocks of the file.
    pub(super) fn is_unlinked(&self) -> bool {
        self.link.is_unlinked.load(Ordering::Relaxed)
    }

    /// Whether the open has the right to read data or entries.
    pub(super) fn reads(&self) -> bool {
        self.access.intersects(rights::READ_DATA)
    }

    /// Whether the open has the right to write data.
    pub(super) fn writes(&self) -> bool {
        self.access.intersects(rights::WRITE_DATA)
    }

    /// The open itself as a directory for the lookup of names.
    pub(super) fn directory(&self) -> Directory {
        Directory {
            fd: self.fd.clone(),
            key: self.key,
            volume: self.volume.clone(),
        }
    }

    /// A reference to the file, for queries and changes of its attributes.
    pub(super) fn file_ref(&self) -> FileRef<'_> {
        let notes = rights::WRITE_DATA | AccessMask::FILE_WRITE_ATTRIBUTES;
        FileRef {
            fd: &self.fd,
            volume: &self.volume,
            is_path: self.is_path,
            token: &self.token,
            may_set_attributes: self.access.intersects(notes),
        }
    }
}

/// The names of all open files.
#[derive(Debug, Default)]
pub(super) struct Links {
    by_file: Mutex<HashMap<FileKey, Vec<Weak<Link>>>>,
}

impl Links {
    /// The link of a name: the one that other opens use, or a new one.
    pub(super) fn share(&self, key: FileKey, location: Location) -> Arc<Link> {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        let links = by_file.entry(key).or_default();
        let is_ours = |link: &Arc<Link>| link.location().is_same(&location) && !link.is_unlinked();
        if let Some(link) = links.iter().filter_map(Weak::upgrade).find(is_ours) {
            return link;
        }
        let location = Mutex::new(location);
        let link = Arc::new(Link {
            key,
            location,
            is_unlinked: AtomicBool::new(false),
        });
        links.retain(|link| link.strong_count() > 0);
        links.push(Arc::downgrade(&link));
        link
    }

    /// Removes the links without opens.
    pub(super) fn forget(&self, key: FileKey) {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(links) = by_file.get_mut(&key) else {
            return;
        };
        links.retain(|link| link.strong_count() > 0);
        if links.is_empty() {
            by_file.remove(&key);
        }
    }
}

impl Link {
    fn is_unlinked(&self) -> bool {
        self.is_unlinked.load(Ordering::Relaxed)
    }
}
