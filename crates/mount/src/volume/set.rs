//! Changes of attributes: length, times, mode and owner.

use std::sync::Arc;
use std::time::SystemTime;

use fuser::{Errno, FileHandle};
use smbeam_client::{AccessMask, Changes, Error, File, FileAttributes, OpenOptions};

use super::{Answer, Caller, Shown, Volume};
use crate::errno::errno;
use crate::opens::OpenFile;

/// The changes of one request. `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<SystemTime>,
    pub(crate) written: Option<SystemTime>,
}

impl Volume {
    /// Changes attributes, and returns all of them.
    pub(crate) async fn set(
        &self,
        (ino, caller): (u64, Caller),
        handle: Option<FileHandle>,
        mut wanted: Wanted,
    ) -> Answer<Shown> {
        // A later WRITE would change the time of the last write.
        self.flush_inode(ino).await;
        if self.share.uses_posix() {
            self.change_owner(ino, &wanted).await?;
            if let Some(mode) = wanted.mode.take() {
                self.set_mode(ino, mode).await?;
            }
        } else {
            self.check_owner(&wanted)?;
        }
        if let Some(size) = wanted.size {
            if caller.uid != 0 {
                self.clear_special_bits(ino).await?;
            }
            self.set_len(ino, handle, size).await?;
            self.has_size(ino, size);
        }
        self.set_basic(ino, &wanted).await?;
        self.attributes(ino, None).await
    }

    /// Changes owner and group by the SMB3 POSIX extensions.
    async fn change_owner(&self, ino: u64, wanted: &Wanted) -> Answer<()> {
        let &Wanted { uid, gid, .. } = wanted;
        if uid.is_none() && gid.is_none() {
            return Ok(());
        }
        let done = match self.owned(ino)? {
            Some(open) => open.file.set_posix_owner(uid, gid).await,
            None => self.share.set_posix_owner(&self.path(ino)?, uid, gid).await,
        };
        done.map_err(|error| not_the_owner(&error))
    }

    /// Changes the permissions by the SMB3 POSIX extensions.
    pub(super) async fn set_mode(&self, ino: u64, mode: u32) -> Answer<()> {
        let done = match self.owned(ino)? {
            Some(open) => open.file.set_posix_mode(mode).await,
            None => self.share.set_posix_mode(&self.path(ino)?, mode).await,
        };
        done.map_err(|error| not_the_owner(&error))
    }

    /// An open with the rights of the owner. It breaks no lease.
    fn owned(&self, ino: u64) -> Answer<Option<Arc<OpenFile>>> {
        Ok(self.opens(ino)?.find(|open| open.may_change_owner))
    }

    /// Without the extensions the mount shows no owners of the server, so a change of them fails.
    fn check_owner(&self, wanted: &Wanted) -> Answer<()> {
        let is_same = |id: Option<u32>, shown| id.is_none_or(|id| id == shown);
        match is_same(wanted.uid, self.options.uid) && is_same(wanted.gid, self.options.gid) {
            true => Ok(()),
            false => Err(Errno::EPERM),
        }
    }

    async fn set_len(&self, ino: u64, handle: Option<FileHandle>, size: u64) -> Answer<()> {
        let failed = |error| errno(&error);
        if let Some(open) = self.writable(ino, handle)? {
            return open.set_len(size).await.map_err(failed);
        }
        let options = OpenOptions::new().write(true).directory(false);
        let file = self.share.open(&self.path(ino)?, &options).await;
        let file = file.map_err(failed)?;
        let done = file.set_len(size).await;
        let closed = file.close().await;
        done.and(closed).map_err(failed)
    }

    /// An open of the inode with the right to write: the one of the request, or any.
    fn writable(&self, ino: u64, handle: Option<FileHandle>) -> Answer<Option<File>> {
        let own = handle.and_then(|handle| self.file(handle).ok());
        let own = own.filter(|open| open.is_writable && open.ino == ino);
        let open = match own {
            Some(open) => Some(open),
            None => self.opens(ino)?.find(|open| open.is_writable),
        };
        Ok(open.map(|open| open.file.clone()))
    }

    /// Changes times and the attribute READONLY, which stands for a mode without the permission to
    /// write.
    async fn set_basic(&self, ino: u64, wanted: &Wanted) -> Answer<()> {
        let mut attributes = None;
        if let Some(mode) = wanted.mode {
            attributes = self.attributes_for(ino, mode).await?;
        }
        let changes = Changes::default()
            .accessed(wanted.accessed)
            .written(wanted.written)
            .attributes(attributes);
        if changes == Changes::default() {
            return Ok(());
        }
        let failed = |error| errno(&error);
        if let Some(open) = self.writable(ino, None)? {
            return open.set_metadata(&changes).await.map_err(failed);
        }
        let options = OpenOptions::new()
            .access(AccessMask::FILE_WRITE_ATTRIBUTES)
            .follow(false);
        let file = self.share.open(&self.path(ino)?, &options).await;
        let file = file.map_err(failed)?;
        let done = file.set_metadata(&changes).await;
        let closed = file.close().await;
        done.and(closed).map_err(failed)
    }

    /// The DOS attributes for a mode; `None` if they stay.
    async fn attributes_for(&self, ino: u64, mode: u32) -> Answer<Option<FileAttributes>> {
        let now = self.node_of(ino).await?.metadata.attributes;
        if now.contains(FileAttributes::DIRECTORY) {
            return Ok(None);
        }
        let wanted = match mode & 0o222 {
            0 => now | FileAttributes::READONLY,
            _ => now.without(FileAttributes::READONLY),
        };
        Ok((wanted != now).then_some(wanted))
    }
}

/// chmod(2) and chown(2) fail with EPERM for another user than the owner.
fn not_the_owner(error: &Error) -> Errno {
    match errno(error) {
        error if error == Errno::EACCES => Errno::EPERM,
        error => error,
    }
}
