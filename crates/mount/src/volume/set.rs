//! Changes of attributes: length, times, mode and owner.

use std::time::SystemTime;

use fuser::{Errno, FileHandle};
use smbeam_client::{AccessMask, Changes, File, FileAttributes, OpenOptions};

use super::{Answer, Shown, Volume};
use crate::errno::errno;

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
        ino: u64,
        handle: Option<FileHandle>,
        wanted: Wanted,
    ) -> Answer<Shown> {
        self.set_owner(&wanted)?;
        // A later WRITE would change the time of the last write.
        self.flush_inode(ino).await;
        if let Some(size) = wanted.size {
            self.set_len(ino, handle, size).await?;
            self.has_size(ino, size);
        }
        self.set_basic(ino, &wanted).await?;
        self.attributes(ino, None).await
    }

    /// The server has no owners that the mount shows, so a change of them fails.
    fn set_owner(&self, wanted: &Wanted) -> Answer<()> {
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
