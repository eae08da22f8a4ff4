//! Opening, creating and closing files.

use std::ffi::OsStr;
use std::sync::Arc;

use fuser::{Errno, FileHandle, FopenFlags, OpenAccMode, OpenFlags};
use rustix::fs::OFlags;
use smbeam_client::{File, FileAttributes, OpenOptions};

use super::{Answer, Found, Volume};
use crate::attributes::Node;
use crate::errno::errno;
use crate::handles::lock;
use crate::opens::OpenFile;
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
    pub(crate) async fn open(&self, ino: u64, flags: OpenFlags) -> Answer<Opened> {
        let access = Access::of(flags);
        let path = self.path(ino)?;
        let file = self.share.open(&path, &access.options()).await;
        let file = file.map_err(|error| errno(&error))?;
        self.opened(ino, file, access)
    }

    /// Creates a file and opens it.
    pub(crate) async fn create(
        &self,
        (parent, name): (u64, &OsStr),
        mode: u32,
        flags: OpenFlags,
    ) -> Answer<(Found, Opened)> {
        let access = Access::of(flags);
        let is_new = OFlags::from_bits_retain(flags.0.cast_unsigned()).contains(OFlags::EXCL);
        let (name, path) = self.named(parent, name)?;
        let options = access
            .options()
            .create(true)
            .create_new(is_new)
            .attributes(attributes_of(mode));
        let file = self.share.open(&path, &options).await;
        let file = file.map_err(|error| errno(&error))?;
        let metadata = file.metadata().await.map_err(|error| errno(&error))?;
        let found = self.found(parent, name, &Node::new(metadata))?;
        let ino = found.attributes.ino.0;
        match self.opened(ino, file, access) {
            Ok(opened) => Ok((found, opened)),
            Err(error) => {
                // The kernel does not receive the reference.
                self.forget(ino, 1);
                Err(error)
            }
        }
    }

    fn opened(&self, ino: u64, file: File, access: Access) -> Answer<Opened> {
        let opens = self.opens(ino)?;
        let open = Arc::new(OpenFile {
            ino,
            file,
            is_readable: access.is_readable,
            is_writable: access.is_writable,
            is_append: access.is_append,
        });
        let handle = self.files.add(Arc::clone(&open))?;
        opens.add(&open);
        Ok(Opened {
            handle,
            flags: match self.options.cache {
                Cache::None => FopenFlags::FOPEN_DIRECT_IO,
                Cache::Strict | Cache::Loose => FopenFlags::empty(),
            },
        })
    }

    /// Closes a file.
    pub(crate) async fn release(&self, handle: FileHandle) -> Answer<()> {
        let open = self.files.remove(handle).ok_or(Errno::EBADF)?;
        if let Ok(opens) = lock(&self.inodes).opens(open.ino) {
            opens.remove(&open);
        }
        open.file.close().await.map_err(|error| errno(&error))
    }
}

/// The DOS attributes of a new file with a mode.
pub(super) fn attributes_of(mode: u32) -> FileAttributes {
    match mode & 0o222 {
        0 => FileAttributes::READONLY,
        _ => FileAttributes::NORMAL,
    }
}
