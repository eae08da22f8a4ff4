//! A file with named streams.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::Effort;
use crate::posix::directory::Directory;
use crate::posix::file_ref::FileRef;
use crate::posix::lasting_handle::lasting_handle;

/// A file with named streams, for an operation on one of them.
#[derive(Clone, Copy)]
pub(in crate::posix) struct Base<'a> {
    pub(super) file: FileRef<'a>,
    /// The root of the share, if it keeps large streams: their data are in a directory there.
    pub(super) root: Option<&'a Directory>,
    /// Whether the operation may block. A step that would block fails with EAGAIN.
    pub(super) effort: Effort,
}

impl<'a> Base<'a> {
    /// A file of the share with this root.
    pub(super) fn new(
        file: FileRef<'a>,
        root: &'a Directory,
        keeps_large: bool,
        effort: Effort,
    ) -> Self {
        Self {
            file,
            root: keeps_large.then_some(root),
            effort: root.volume.effort(effort),
        }
    }

    /// Fails with EAGAIN if the operation may not block.
    pub(super) fn may_block(self) -> Result<(), Errno> {
        match self.effort {
            Effort::Cached => Err(Errno::AGAIN),
            Effort::Blocking => Ok(()),
        }
    }

    /// The handle of the file, as blobs store it.
    pub(super) fn owner(self) -> Result<Vec<u8>, Errno> {
        let fd: &OwnedFd = self.file.fd;
        let handle = lasting_handle(fd, self.file.volume);
        handle.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}
