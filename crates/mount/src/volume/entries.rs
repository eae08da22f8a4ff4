//! Names in directories: making, removing, renaming.

use std::ffi::OsStr;

use fuser::{Errno, RenameFlags};

use super::{Answer, Found, Volume};
use crate::errno::errno;
use crate::handles::lock;

impl Volume {
    /// Creates a directory.
    pub(crate) async fn make_directory(&self, parent: u64, name: &OsStr) -> Answer<Found> {
        let (name, path) = self.named(parent, name)?;
        let made = self.share.create_dir(&path).await;
        made.map_err(|error| errno(&error))?;
        let node = self.node(&path).await?;
        self.found(parent, name, &node)
    }

    /// Removes a file.
    pub(crate) async fn unlink(&self, parent: u64, name: &OsStr) -> Answer<()> {
        let (name, path) = self.named(parent, name)?;
        let removed = self.share.remove_file(&path).await;
        removed.map_err(|error| errno(&error))?;
        lock(&self.inodes).unlinked(parent, &name);
        Ok(())
    }

    /// Removes an empty directory.
    pub(crate) async fn remove_directory(&self, parent: u64, name: &OsStr) -> Answer<()> {
        let (name, path) = self.named(parent, name)?;
        let removed = self.share.remove_dir(&path).await;
        removed.map_err(|error| errno(&error))?;
        lock(&self.inodes).unlinked(parent, &name);
        Ok(())
    }

    /// Renames a file or directory.
    pub(crate) async fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Answer<()> {
        let replaces = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return Err(Errno::EINVAL);
        }
        let (name, from) = self.named(parent, name)?;
        let (new_name, to) = self.named(new_parent, new_name)?;
        let renamed = self.share.rename(&from, &to, replaces).await;
        renamed.map_err(|error| errno(&error))?;
        lock(&self.inodes).renamed((parent, &name), (new_parent, new_name));
        Ok(())
    }

    /// Creates a symbolic link.
    pub(crate) async fn symlink(&self, parent: u64, name: &OsStr, target: &OsStr) -> Answer<Found> {
        let (name, path) = self.named(parent, name)?;
        let target = target.to_str().ok_or(Errno::EILSEQ)?;
        let made = self.share.symlink(target, &path, false).await;
        made.map_err(|error| errno(&error))?;
        let node = self.node(&path).await?;
        self.found(parent, name, &node)
    }

    /// Creates a hard link.
    pub(crate) async fn link(&self, ino: u64, parent: u64, name: &OsStr) -> Answer<Found> {
        let from = self.path(ino)?;
        let (name, path) = self.named(parent, name)?;
        let made = self.share.hard_link(&from, &path).await;
        made.map_err(|error| errno(&error))?;
        let node = self.node(&path).await?;
        self.found(parent, name, &node)
    }
}
