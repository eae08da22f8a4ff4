//! Opening, creating and closing files.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use fuser::{Errno, FileHandle, FopenFlags, OpenAccMode, OpenFlags};
use rustix::fs::OFlags;
use smbeam_client::{File, FileAttributes, LeaseState, OpenOptions};

use super::{Answer, EXCLUSIVE, Found, Volume};
use crate::attributes::Node;
use crate::errno::errno;
use crate::opens::{OpenFile, Opens};
use crate::options::Cache;

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
}

impl Access {
    fn of(flags: OpenFlags) -> Self {
        let has = |flag: OFlags| OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(flag);
        Self {
            is_readable: flags.acc_mode() != OpenAccMode::O_WRONLY,
            is_writable: flags.acc_mode() != OpenAccMode::O_RDONLY,
            is_append: has(OFlags::APPEND),
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
        let access = Access::of(flags);
        let path = self.path(ino)?;
        let opens = self.opens(ino)?;
        let was_protected = opens.holds(LeaseState::READ_CACHING);
        let kept = self.reuse(&opens, (access.is_readable, access.is_writable));
        if let Some(kept) = kept {
            return self.opened(&opens, kept.file.clone(), (access, was_protected));
        }
        let file = self.share.open(&path, &self.open_options(access)).await;
        let file = file.map_err(|error| errno(&error))?;
        learn_size(&opens, &file);
        self.opened(&opens, file, (access, was_protected))
    }

    /// Creates a file and opens it.
    pub(crate) async fn create(
        self: &Arc<Self>,
        (parent, name): (u64, &OsStr),
        mode: u32,
        flags: OpenFlags,
    ) -> Answer<(Found, Opened)> {
        let access = Access::of(flags);
        let is_new = OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(OFlags::EXCL);
        let (name, path) = self.named(parent, name)?;
        let options = self
            .open_options(access)
            .create(true)
            .create_new(is_new)
            .attributes(attributes_of(mode));
        let file = self.share.open(&path, &options).await;
        let file = file.map_err(|error| errno(&error))?;
        let metadata = file.metadata().await.map_err(|error| errno(&error))?;
        let found = self.found(parent, name, &Node::new(metadata))?;
        let ino = found.attributes.ino.0;
        let opened = self.opens(ino);
        let opened = opened.and_then(|opens| {
            learn_size(&opens, &file);
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
