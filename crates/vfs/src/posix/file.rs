//! An open file, and the name that it was opened under.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use proto::file::{FileKey, FileKind};
use proto::path::SharePath;
use proto::token::Token;
use wire::access::AccessMask;

use super::directory::Directory;
use super::stat::FileRef;
use crate::direct_io_gate::WriteGate;
use crate::{Direct, rights};

/// An open file.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) token: Arc<Token>,
    /// Rights granted and implied.
    pub(super) access: AccessMask,
    pub(super) key: FileKey,
    pub(super) kind: FileKind,
    /// For bytes or entries if the rights say so; else an O_PATH descriptor.
    pub(super) fd: Arc<OwnedFd>,
    pub(super) is_path: bool,
    pub(super) link: Arc<Link>,
    pub(super) listing: Mutex<Listing>,
    pub(super) direct_descriptor: DirectDescriptor,
    /// Where bytes may go past the page cache.
    pub(super) write_gate: Option<Arc<WriteGate>>,
}

/// The second descriptor of an open, once it was asked for.
#[derive(Debug, Default)]
pub(super) struct DirectDescriptor {
    pub(super) opened: OnceLock<Option<Direct>>,
    pub(super) is_refused: AtomicBool,
}

/// Where the listing of a directory stands.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Whether anything was listed since the start.
    pub(super) is_begun: bool,
    /// Names that were read and not listed yet.
    pub(super) names: VecDeque<String>,
}

/// A name of a file. All opens through one name share it, so that each knows of a rename.
#[derive(Debug)]
pub(super) struct Link {
    /// What the name itself stands for: the file, or a link that leads to it.
    pub(super) key: FileKey,
    location: Mutex<Location>,
    is_unlinked: AtomicBool,
}

/// Where a name is.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) parent: Arc<Directory>,
    /// Empty for the root of the share.
    pub(super) name: String,
    /// The path when the name was last looked up, as the file system spells it.
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
    /// Where the name is now.
    pub(super) fn location(&self) -> Location {
        self.location
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Notes that the file was renamed.
    pub(super) fn move_to(&self, location: Location) {
        *self.location.lock().unwrap_or_else(PoisonError::into_inner) = location;
    }

    /// Notes that the name was removed.
    pub(super) fn set_unlinked(&self) {
        self.is_unlinked.store(true, Ordering::Relaxed);
    }
}

impl OpenFile {
    /// Whether it is open for bytes.
    pub(super) fn is_data(&self) -> bool {
        self.kind == FileKind::File && !self.is_path
    }

    /// Whether its name was removed: then the last close frees its blocks.
    pub(super) fn is_unlinked(&self) -> bool {
        self.link.is_unlinked.load(Ordering::Relaxed)
    }

    /// Whether the open has the right to read bytes or entries.
    pub(super) fn reads(&self) -> bool {
        self.access.intersects(rights::READ_DATA)
    }

    /// Whether the open has the right to write bytes.
    pub(super) fn writes(&self) -> bool {
        self.access.intersects(rights::WRITE_DATA)
    }

    /// The file, to be asked or changed.
    pub(super) fn file_ref(&self) -> FileRef<'_> {
        let notes = rights::WRITE_DATA | AccessMask::FILE_WRITE_ATTRIBUTES;
        FileRef {
            fd: &self.fd,
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

    /// Lets go of what nobody has open.
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
