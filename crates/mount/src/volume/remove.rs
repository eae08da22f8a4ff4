//! Removal of files and directories.
//!
//! A server keeps the name of a removed file until its last open closes. So a file that programs of
//! this machine have open gets another name first, and the server removes that one with the last
//! close. It does so even if this client ends. With the SMB3 POSIX extensions the server removes
//! names at once.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use smbeam_client::{AccessMask, Changes, Error, File, FileAttributes, OpenOptions, Status};

use super::{Answer, Volume};
use crate::errno::errno;
use crate::handles::lock;
use crate::names::ASIDE;

/// Number of files that got another name.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A file with another name, which the server has not removed yet.
pub(super) struct Aside {
    file: File,
}

impl Volume {
    /// Removes a file.
    pub(crate) async fn unlink(&self, parent: u64, name: &OsStr) -> Answer<()> {
        let (name, path) = self.named(parent, name)?;
        self.release_kept_at(parent, &name).await;
        if self.share.uses_posix() {
            // The name goes at once, and open files stay.
            let removed = self.share.remove_file(&path).await;
            removed.map_err(|error| errno(&error))?;
            lock(&self.inodes).unlinked(parent, &name);
            return Ok(());
        }
        match self.move_aside(parent, &name).await? {
            Some(aside) => aside.remove().await,
            None => self.remove_file(&path).await?,
        }
        lock(&self.inodes).unlinked(parent, &name);
        Ok(())
    }

    /// Removes an empty directory.
    pub(crate) async fn remove_directory(&self, parent: u64, name: &OsStr) -> Answer<()> {
        let (name, path) = self.named(parent, name)?;
        self.release_kept_at(parent, &name).await;
        let removed = self.share.remove_dir(&path).await;
        removed.map_err(|error| errno(&error))?;
        lock(&self.inodes).unlinked(parent, &name);
        Ok(())
    }

    /// POSIX asks for permissions on the directory only, so READONLY does not protect a file.
    async fn remove_file(&self, path: &str) -> Answer<()> {
        let removed = self.share.remove_file(path).await;
        let removed = match removed {
            Err(error) if error.status() == Some(Status::CANNOT_DELETE) => {
                match self.clear_read_only(path).await {
                    Ok(()) => self.share.remove_file(path).await,
                    Err(_) => Err(error),
                }
            }
            removed => removed,
        };
        removed.map_err(|error| errno(&error))
    }

    async fn clear_read_only(&self, path: &str) -> Result<(), Error> {
        let options = OpenOptions::new()
            .access(AccessMask::FILE_READ_ATTRIBUTES | AccessMask::FILE_WRITE_ATTRIBUTES)
            .follow(false);
        let file = self.share.open(path, &options).await?;
        let done = clear(&file).await;
        file.close().await.and(done)
    }

    /// Gives the file of a name another name, if programs of this machine have it open, and no
    /// other name leads to it.
    pub(super) async fn move_aside(&self, parent: u64, name: &str) -> Answer<Option<Aside>> {
        let (directory, is_open) = {
            let inodes = lock(&self.inodes);
            let ino = inodes.child(parent, name);
            let opens = ino.and_then(|ino| inodes.opens(ino).ok());
            (
                inodes.path(parent)?,
                opens.is_some_and(|opens| !opens.is_empty()),
            )
        };
        if !is_open {
            return Ok(None);
        }
        let path = crate::names::join(&directory, name);
        // The lease of the path covers this open too, so it breaks nothing.
        let options = OpenOptions::new()
            .access(
                AccessMask::DELETE
                    | AccessMask::FILE_READ_ATTRIBUTES
                    | AccessMask::FILE_WRITE_ATTRIBUTES
                    | AccessMask::FILE_READ_DATA,
            )
            .directory(false)
            .durable(false)
            .follow(false);
        let file = self.share.open(&path, &options).await;
        let file = file.map_err(|error| errno(&error))?;
        let aside = crate::names::join(&directory, &fresh_name());
        let renamed = file.rename(&aside, false).await;
        renamed.map_err(|error| errno(&error))?;
        Ok(Some(Aside { file }))
    }
}

impl Aside {
    /// Removes the file with its last open.
    pub(super) async fn remove(self) {
        let mut removed = self.file.set_delete(true).await;
        if removed.is_err() && clear(&self.file).await.is_ok() {
            removed = self.file.set_delete(true).await;
        }
        if let Err(error) = removed.and(self.file.close().await) {
            tracing::warn!(%error, "a removed file stays under another name");
        }
    }

    /// Gives the file its name back.
    pub(super) async fn restore(self, path: &str) {
        let restored = self.file.rename(path, false).await;
        if let Err(error) = restored.and(self.file.close().await) {
            tracing::warn!(%error, path, "a file stays under another name");
        }
    }
}

async fn clear(file: &File) -> Result<(), Error> {
    let now = file.metadata().await?.attributes;
    let without = now.without(FileAttributes::READONLY);
    file.set_metadata(&Changes::default().attributes(Some(without)))
        .await
}

/// A name that no other file has.
fn fresh_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |since| since.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    format!("{ASIDE}{process:x}-{now:x}-{count:x}")
}
