//! Opening, creating and closing files.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fuser::{Errno, FileHandle, FopenFlags, OpenAccMode, OpenFlags};
use rustix::fs::OFlags;
use smbeam_client::{AccessMask, Error, File, FileAttributes, LeaseState, Metadata, OpenOptions};

use super::new_owner::{New, is_refusal};
use super::{Answer, Caller, EXCLUSIVE, Found, Volume};
use crate::attributes::Node;
use crate::errno::errno;
use crate::opens::{OpenFile, Opens};
use crate::options::Cache;

/// The rights of the owner of a file: to change mode, owner and times.
const OWNER: AccessMask = AccessMask(
    AccessMask::WRITE_DAC.0 | AccessMask::WRITE_OWNER.0 | AccessMask::FILE_WRITE_ATTRIBUTES.0,
);

/// A file that the kernel has open.
pub(crate) struct Opened {
    pub(crate) handle: FileHandle,
    pub(crate) flags: FopenFlags,
}

/// The mode of an open.
#[derive(Clone, Copy)]
struct Access {
    is_readable: bool,
    is_writable: bool,
    is_append: bool,
    may_change_owner: bool,
    /// Whether the caller needs the present metadata of the file.
    needs_metadata: bool,
}

impl Access {
    fn of(flags: OpenFlags) -> Self {
        let has = |flag: OFlags| OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(flag);
        Self {
            is_readable: flags.acc_mode() != OpenAccMode::O_WRONLY,
            is_writable: flags.acc_mode() != OpenAccMode::O_RDONLY,
            is_append: has(OFlags::APPEND),
            may_change_owner: false,
            needs_metadata: false,
        }
    }

    fn options(self) -> OpenOptions {
        OpenOptions::new()
            .read(self.is_readable)
            .write(self.is_writable)
            .directory(false)
            .follow(false)
    }
}

impl Volume {
    /// Opens a file.
    pub(crate) async fn open(self: &Arc<Self>, ino: u64, flags: OpenFlags) -> Answer<Opened> {
        let mut access = Access::of(flags);
        let path = self.path(ino)?;
        let opens = self.opens(ino)?;
        let was_protected = opens.holds(LeaseState::READ_CACHING);
        if !opens.held.changes().is_empty() {
            // The new mode can permit the open.
            self.flush_held(&opens).await;
        }
        let kept = self.reuse(&opens, (access.is_readable, access.is_writable));
        if let Some(kept) = kept {
            access.may_change_owner = kept.may_change_owner;
            return self.opened(&opens, kept.file.clone(), (access, was_protected));
        }
        let options = self.open_options(access);
        let opened = self.open_owned(&path, &options, &mut access).await;
        let (file, _) = opened.map_err(|error| errno(&error))?;
        learn_size(&opens, &file);
        self.opened(&opens, file, (access, was_protected))
    }

    /// Opens a path. An open for writing gets the rights of the owner of the file too, if the user
    /// has them: then fchmod(2) and the like use the open, and it works for a removed file. An open
    /// for reading is without them, so that the client can open the file again after a loss of its
    /// connection.
    async fn open_owned(
        &self,
        path: &str,
        options: &OpenOptions,
        access: &mut Access,
    ) -> Result<(File, Metadata), Error> {
        let is_ordinary_user = self.is_ordinary_user.load(Ordering::Relaxed);
        if is_ordinary_user || !access.is_writable || !self.share.uses_posix() {
            return self.open_file(path, options, *access).await;
        }
        let owned = options.clone().access(OWNER);
        let opened = self.open_file(path, &owned, *access).await;
        match opened {
            Err(error) if is_refusal(&error) => {
                let opened = self.open_file(path, options, *access).await?;
                // Only the rights of an owner were refused.
                self.is_ordinary_user.store(true, Ordering::Relaxed);
                Ok(opened)
            }
            opened => {
                access.may_change_owner = opened.is_ok();
                opened
            }
        }
    }

    async fn open_file(
        &self,
        path: &str,
        options: &OpenOptions,
        access: Access,
    ) -> Result<(File, Metadata), Error> {
        if access.needs_metadata {
            return self.share.open_with_metadata(path, options).await;
        }
        let file = self.share.open(path, options).await?;
        let metadata = file.opened_metadata();
        Ok((file, metadata))
    }

    /// Creates a file and opens it.
    pub(crate) async fn create(
        self: &Arc<Self>,
        (parent, name): (u64, &OsStr),
        (caller, mode): (Caller, u32),
        flags: OpenFlags,
    ) -> Answer<(Found, Opened)> {
        let mut access = Access {
            needs_metadata: true,
            ..Access::of(flags)
        };
        let is_new = OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(OFlags::EXCL);
        let (name, path) = self.named(parent, name)?;
        let mut options = self.open_options(access).create(true).create_new(is_new);
        options = match self.share.uses_posix() {
            true => options.posix(mode),
            false => options.attributes(attributes_of(mode)),
        };
        let opened = self.open_owned(&path, &options, &mut access).await;
        let (file, metadata) = opened.map_err(|error| errno(&error))?;
        let mut node = Node::new(metadata);
        if file.was_created() {
            let new = match access.may_change_owner {
                true => New::Open(&file),
                false => New::At(&path),
            };
            node = self.give((parent, new), (caller, mode), node).await?;
        }
        let found = self.found(parent, name, &node)?;
        let ino = found.attributes.ino.0;
        let opened = self.opens(ino);
        let opened = opened.and_then(|opens| {
            learn_size(&opens, &file);
            if file.was_created() {
                opens.has_created(node.metadata);
            }
            self.opened(&opens, file, (access, false))
        });
        match opened {
            Ok(opened) => Ok((found, opened)),
            Err(error) => {
                // The kernel does not receive the reference.
                self.forget(ino, 1);
                Err(error)
            }
        }
    }

    fn open_options(&self, access: Access) -> OpenOptions {
        match self.options.cache {
            Cache::Strict => access.options(),
            // Without a lease the server breaks nothing, and keeps nothing open for the client.
            Cache::Loose | Cache::None => access.options().lease(LeaseState::NONE),
        }
    }

    fn opened(
        self: &Arc<Self>,
        opens: &Arc<Opens>,
        file: File,
        (access, was_protected): (Access, bool),
    ) -> Answer<Opened> {
        self.watch(opens, &file);
        let open = Arc::new(OpenFile {
            ino: opens.ino,
            file,
            is_readable: access.is_readable,
            is_writable: access.is_writable,
            is_append: access.is_append,
            has_written: AtomicBool::new(false),
            failures_seen: AtomicU64::new(opens.held.failures()),
            may_change_owner: access.may_change_owner,
            opens: Arc::clone(opens),
        });
        let handle = self.files.add(Arc::clone(&open))?;
        opens.add(&open);
        if !opens.holds(EXCLUSIVE) {
            // Other clients can write now. The kernel may have older attributes for a long time.
            self.drop_attributes(open.ino);
        }
        Ok(Opened {
            handle,
            flags: self.open_flags(opens, was_protected),
        })
    }

    /// A program closes a descriptor of a file. Its locks end, even if another descriptor is open.
    pub(crate) async fn flush(&self, handle: FileHandle, owner: u64) -> Answer<()> {
        let open = self.file(handle)?;
        let written = self.settle(&open).await;
        self.release_locks(&open, owner).await;
        written
    }

    /// Closes a file.
    ///
    /// Returns whether the caller must run [`Self::sweep`] after the reply.
    pub(crate) async fn release(&self, handle: FileHandle, owner: Option<u64>) -> Answer<bool> {
        let open = self.files.remove(handle).ok_or(Errno::EBADF)?;
        if let Some(owner) = owner {
            self.release_locks(&open, owner).await;
        }
        if open.is_writable {
            // The last write of a mapping comes after the last flush.
            self.flush_held(&open.opens).await;
        }
        if let (true, needs_sweeper) = self.keep(&open).await {
            return Ok(needs_sweeper);
        }
        open.opens.remove(&open);
        let closed = open.file.close().await;
        if open.has_written() {
            // The server can change the time of the last write until the close.
            self.drop_attributes(open.ino);
        }
        closed.map(|()| false).map_err(|error| errno(&error))
    }
}

/// The DOS attributes of a new file with a mode.
pub(super) fn attributes_of(mode: u32) -> FileAttributes {
    match mode & 0o222 {
        0 => FileAttributes::READONLY,
        _ => FileAttributes::NORMAL,
    }
}

/// Takes note of the length of a file that was opened now. If the lease is exclusive and no other
/// open of this mount exists, no client changes it later.
fn learn_size(opens: &Opens, file: &File) {
    let lease = file.lease();
    let is_exclusive = lease.is_some_and(|lease| lease.state.contains(EXCLUSIVE));
    if is_exclusive && !opens.has_open() && opens.held.is_empty() {
        opens.held.set_size(Some(file.opened_metadata().size));
    }
}
