//! Options for opening a file.

use proto::client::request::{Create, Durability};
use wire::Guid;
use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, OplockLevel, ShareAccess,
};
use wire::create_context::LeaseState;

use crate::error::Error;
use crate::path;

/// Read, handle and write caching.
const RWH: LeaseState = LeaseState(
    LeaseState::READ_CACHING.0 | LeaseState::HANDLE_CACHING.0 | LeaseState::WRITE_CACHING.0,
);
/// Access rights to the data of a file.
const DATA: AccessMask = AccessMask(
    AccessMask::FILE_READ_DATA.0
        | AccessMask::FILE_WRITE_DATA.0
        | AccessMask::FILE_APPEND_DATA.0
        | AccessMask::FILE_EXECUTE.0
        | AccessMask::GENERIC_READ.0
        | AccessMask::GENERIC_WRITE.0
        | AccessMask::GENERIC_EXECUTE.0
        | AccessMask::GENERIC_ALL.0
        | AccessMask::MAXIMUM_ALLOWED.0,
);
/// Access rights of [`OpenOptions::read`].
pub(crate) const READ: AccessMask = AccessMask(
    AccessMask::FILE_READ_DATA.0
        | AccessMask::FILE_READ_ATTRIBUTES.0
        | AccessMask::FILE_READ_EA.0
        | AccessMask::READ_CONTROL.0
        | AccessMask::SYNCHRONIZE.0,
);
/// Access rights of [`OpenOptions::write`].
pub(crate) const WRITE: AccessMask = AccessMask(
    AccessMask::FILE_WRITE_DATA.0
        | AccessMask::FILE_APPEND_DATA.0
        | AccessMask::FILE_WRITE_ATTRIBUTES.0
        | AccessMask::FILE_WRITE_EA.0
        | AccessMask::FILE_READ_ATTRIBUTES.0
        | AccessMask::READ_CONTROL.0
        | AccessMask::SYNCHRONIZE.0,
);
/// Other opens may read, write and delete the file.
pub(crate) const SHARE_ALL: ShareAccess =
    ShareAccess(ShareAccess::READ.0 | ShareAccess::WRITE.0 | ShareAccess::DELETE.0);

/// Options for opening a file: the access, the handling of existing and missing files, and the
/// access that other opens may have. As with [`std::fs::OpenOptions`], at least one of `read`,
/// `write`, `append` or `access` is needed.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    pub(crate) append: bool,
    create: bool,
    create_new: bool,
    truncate: bool,
    directory: Option<bool>,
    delete_on_close: bool,
    pub(crate) write_through: bool,
    follow: bool,
    share: ShareAccess,
    access: AccessMask,
    attributes: FileAttributes,
    pub(crate) lease: LeaseState,
    /// Whether an open that is closed at once names the lease of this client on the path.
    pub(crate) shares_lease: bool,
    caches_directory: bool,
    pub(crate) durable: bool,
    /// Permission bits of a new file, with the SMB3 POSIX extensions.
    pub(crate) posix: Option<u32>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            read: false,
            write: false,
            append: false,
            create: false,
            create_new: false,
            truncate: false,
            directory: None,
            delete_on_close: false,
            write_through: false,
            follow: true,
            share: SHARE_ALL,
            access: AccessMask::NONE,
            attributes: FileAttributes::NORMAL,
            lease: RWH,
            shares_lease: false,
            caches_directory: false,
            durable: true,
            posix: None,
        }
    }
}

impl OpenOptions {
    /// Makes options without any access and with all other values at their defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the file is opened for reading. Default: no.
    #[must_use]
    pub fn read(mut self, read: bool) -> Self {
        self.read = read;
        self
    }

    /// Sets whether the file is opened for writing. Default: no.
    #[must_use]
    pub fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Sets whether the file is opened for writing with a [`File::writer`](crate::File::writer)
    /// that starts at the end of the file. Default: no.
    #[must_use]
    pub fn append(mut self, append: bool) -> Self {
        self.append = append;
        self
    }

    /// Sets whether a missing file is created. Default: no.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets whether the file is created, with an error if it exists. Takes precedence over `create`
    /// and `truncate`. Default: no.
    #[must_use]
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Sets whether an existing file is truncated to length zero. Default: no.
    #[must_use]
    pub fn truncate(mut self, truncate: bool) -> Self {
        self.truncate = truncate;
        self
    }

    /// Requires the object at the path to be a directory (`true`) or a file (`false`): otherwise
    /// the open fails. Without a call of this method, both kinds are accepted.
    #[must_use]
    pub fn directory(mut self, directory: bool) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Sets whether the server deletes the file when all opens of the file are closed. Default: no.
    #[must_use]
    pub fn delete_on_close(mut self, delete_on_close: bool) -> Self {
        self.delete_on_close = delete_on_close;
        self
    }

    /// Sets whether the server responds to a WRITE only when the bytes are on stable storage.
    /// Default: no.
    #[must_use]
    pub fn write_through(mut self, write_through: bool) -> Self {
        self.write_through = write_through;
        self
    }

    /// Sets whether the open follows a symbolic link in the last component of the path (`true`, the
    /// default), or opens the link itself.
    #[must_use]
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// Sets the access that other opens of the file may have while this open exists: to read, to
    /// write, and to delete or rename. Default: all three.
    #[must_use]
    pub fn share(mut self, read: bool, write: bool, delete: bool) -> Self {
        let flag = |is_set, flag| match is_set {
            true => flag,
            false => ShareAccess::NONE,
        };
        self.share = flag(read, ShareAccess::READ)
            | flag(write, ShareAccess::WRITE)
            | flag(delete, ShareAccess::DELETE);
        self
    }

    /// Sets access rights that the open requests in addition to those of `read`, `write` and
    /// `append`. Default: none.
    #[must_use]
    pub fn access(mut self, access: AccessMask) -> Self {
        self.access = access;
        self
    }

    /// Sets the DOS attributes of the file if this open creates it. An existing file keeps its
    /// attributes.
    #[must_use]
    pub fn attributes(mut self, attributes: FileAttributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Sets the caching rights that the open requests from the server as a lease. Opens of a path
    /// in one session share a lease, which has the rights of all of them. [`LeaseState::NONE`]
    /// requests no lease. Without [`Options::leases`](crate::Options::leases), for directories and
    /// for opens without access to data, the client requests none. Default: read, write and handle
    /// caching.
    #[must_use]
    pub fn lease(mut self, lease: LeaseState) -> Self {
        self.lease = lease;
        self
    }

    /// Sets whether the open of a directory requests a lease: the rights of
    /// [`lease`](Self::lease) without write caching. While the server grants it, no other client
    /// changes the list of the directory: names, and what a change of an entry changes. A file that
    /// another client writes counts as changed when that client closes it. It needs dialect 3.0 or
    /// later. Opens of files in the directory that have leases name it to the server, so they do
    /// not break it. \[MS-SMB2\] 2.2.13.2.10. Default: no.
    #[must_use]
    pub fn cache_directory(mut self, caches_directory: bool) -> Self {
        self.caches_directory = caches_directory;
        self
    }

    /// Sets whether the open is durable: after a loss of all connections the server preserves it
    /// for some time, with its byte-range locks, and the client reclaims it. It needs a lease with
    /// handle caching and [`Options::durable`](crate::Options::durable), and the server can refuse
    /// it. Default: yes.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Uses the SMB3 POSIX extensions for the open. `mode` has the permission bits (`st_mode &
    /// 07777`) of a file that the open creates. Path components are the exact names of files:
    /// case counts, every character but `/` and NUL stands for itself, and only `/` separates
    /// components. The open fails if the server
    /// [does not have the extensions](crate::Share::has_posix). Default: no.
    #[must_use]
    pub fn posix(mut self, mode: u32) -> Self {
        self.posix = Some(mode & 0o7777);
        self
    }

    /// Uses the SMB3 POSIX extensions with the usual permissions of new files and directories,
    /// unless [`posix`](Self::posix) has set others.
    pub(crate) fn with_posix(mut self) -> Self {
        let usual = match self.directory {
            Some(true) => 0o755,
            _ => 0o644,
        };
        self.posix.get_or_insert(usual);
        self
    }

    /// Converts a path to the form of the protocol.
    pub(crate) fn to_wire(&self, path: &str) -> Result<String, Error> {
        match self.posix {
            Some(_) => path::to_posix(path),
            None => path::to_wire(path),
        }
    }

    /// Whether the open may have a lease: it accesses the data of a file.
    pub(crate) fn may_cache(&self) -> bool {
        let is_cached = match self.directory {
            Some(true) => self.caches_directory,
            _ => true,
        };
        is_cached && self.wanted().intersects(DATA)
    }

    /// The caching rights that the open requests. A directory has no write caching.
    pub(crate) fn wanted_lease(&self) -> LeaseState {
        match self.directory {
            Some(true) => LeaseState(self.lease.0 & !LeaseState::WRITE_CACHING.0),
            _ => self.lease,
        }
    }

    /// The CREATE for a path in the form of the protocol. With a `create_guid` another channel can
    /// send it again when its channel is lost.
    pub(crate) fn create_request(&self, name: String, create_guid: Option<Guid>) -> Create {
        Create {
            name,
            oplock: OplockLevel::NONE,
            access: self.wanted(),
            attributes: self.attributes,
            share: self.share,
            disposition: self.disposition(),
            options: self.flags(),
            lease: None,
            create_guid,
            durable: Durability::None,
            allocation: None,
            query_maximal_access: false,
            posix_mode: self.posix,
            driver_acknowledges: false,
        }
    }

    fn wanted(&self) -> AccessMask {
        let mut access = self.access;
        if self.read {
            access |= READ;
        }
        if self.write || self.append {
            access |= WRITE;
        }
        if self.delete_on_close {
            access |= AccessMask::DELETE;
        }
        access
    }

    fn disposition(&self) -> CreateDisposition {
        match (self.create_new, self.create, self.truncate) {
            (true, _, _) => CreateDisposition::CREATE,
            (false, true, true) => CreateDisposition::OVERWRITE_IF,
            (false, true, false) => CreateDisposition::OPEN_IF,
            (false, false, true) => CreateDisposition::OVERWRITE,
            (false, false, false) => CreateDisposition::OPEN,
        }
    }

    fn flags(&self) -> CreateOptions {
        let flag = |is_set, flag| match is_set {
            true => flag,
            false => CreateOptions::NONE,
        };
        flag(self.directory == Some(true), CreateOptions::DIRECTORY_FILE)
            | flag(
                self.directory == Some(false),
                CreateOptions::NON_DIRECTORY_FILE,
            )
            | flag(self.delete_on_close, CreateOptions::DELETE_ON_CLOSE)
            | flag(self.write_through, CreateOptions::WRITE_THROUGH)
            | flag(!self.follow, CreateOptions::OPEN_REPARSE_POINT)
    }
}
