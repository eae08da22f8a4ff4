//! Changes of attributes: length, times, mode and owner.

use std::time::SystemTime;

use fuser::{Errno, FileHandle};
use smbeam_client::{AccessMask, Changes, Error, File, FileAttributes, OpenOptions, PosixChanges};

use super::{Answer, Caller, Shown, Volume};
use crate::attributes::Node;
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

impl Wanted {
    /// The changes by the SMB3 POSIX extensions.
    fn with_posix(&self) -> PosixChanges {
        let times = Changes::default()
            .accessed(self.accessed)
            .written(self.written);
        PosixChanges::default()
            .owner(self.uid, self.gid)
            .mode(self.mode)
            .basic(times)
    }
}

impl Volume {
    /// Changes attributes, and returns all of them.
    pub(crate) async fn set(
        &self,
        (ino, caller): (u64, Caller),
        handle: Option<FileHandle>,
        wanted: Wanted,
    ) -> Answer<Shown> {
        if wanted.size.is_none() && self.share.uses_posix() {
            return self.set_posix(ino, &wanted).await;
        }
        // A later WRITE would change the time of the last write.
        self.flush_inode(ino).await;
        if !self.share.uses_posix() {
            self.check_owner(&wanted)?;
        }
        if let Some(size) = wanted.size {
            if caller.uid != 0 {
                self.clear_special_bits(ino).await?;
            }
            self.set_len(ino, handle, size).await?;
            self.has_size(ino, size);
        }
        match self.share.uses_posix() {
            true => self.set_posix(ino, &wanted).await,
            false => {
                self.set_basic(ino, &wanted).await?;
                self.attributes(ino, None).await
            }
        }
    }

    /// Changes attributes by the SMB3 POSIX extensions, and returns all of them.
    async fn set_posix(&self, ino: u64, wanted: &Wanted) -> Answer<Shown> {
        let changes = wanted.with_posix();
        if changes.is_empty() {
            return self.attributes(ino, None).await;
        }
        let leases = self.leases_of(ino);
        let node = match self.change_later(ino, &changes)? {
            Some(node) => node,
            None => self.change(ino, &changes).await?,
        };
        self.shown(ino, node, leases)
    }

    /// Holds changes of a file that this mount has created, if they cannot fail. `None`: the server
    /// must have them before the reply.
    fn change_later(&self, ino: u64, changes: &PosixChanges) -> Answer<Option<Node>> {
        let opens = self.opens(ino)?;
        let Some(metadata) = opens.created() else {
            return Ok(None);
        };
        let unix = metadata.unix;
        let is_same = |wanted: Option<u32>, now: Option<u32>| wanted.is_none() || wanted == now;
        let keeps_owner = is_same(changes.uid, unix.and_then(|unix| unix.uid()))
            && is_same(changes.gid, unix.and_then(|unix| unix.gid()));
        let is_held = unix.is_some() && keeps_owner && self.defer(&opens, changes);
        Ok(is_held.then(|| Node::new(metadata)))
    }

    /// Changes attributes by the SMB3 POSIX extensions, and returns the file as it is then. The
    /// server gets held data first: a later WRITE would change the time of the last write.
    async fn change(&self, ino: u64, changes: &PosixChanges) -> Answer<Node> {
        let by_owner = changes.uid.is_some() || changes.gid.is_some() || changes.mode.is_some();
        let opens = self.opens(ino)?;
        self.flush_held(&opens).await;
        let open = match by_owner {
            true => opens.find(|open| open.may_change_owner),
            false => opens.find(|open| open.is_writable),
        };
        let changed = match open {
            Some(open) => open.file.change_posix(changes).await,
            None => self.share.change_posix(&self.path(ino)?, changes).await,
        };
        let metadata = changed.map_err(|error| match by_owner {
            true => not_the_owner(&error),
            false => errno(&error),
        });
        let metadata = metadata?;
        opens.has_changed(metadata);
        let mut node = Node::new(metadata);
        // A file without a name is open, and a regular file.
        if let Ok(path) = self.path(ino) {
            node = self.with_reparse_point(&path, node).await?;
        }
        Ok(node)
    }

    /// Changes the permissions by the SMB3 POSIX extensions.
    pub(super) async fn set_mode(&self, ino: u64, mode: u32) -> Answer<()> {
        let changes = PosixChanges::default().mode(Some(mode));
        self.change(ino, &changes).await.map(drop)
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
