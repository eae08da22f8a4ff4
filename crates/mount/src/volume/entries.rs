//! Names in directories: making and renaming.

use std::ffi::OsStr;

use fuser::{Errno, FileType, RenameFlags};
use smbeam_client::{Error, ErrorKind, OpenOptions, PosixChanges, ReparsePoint, Share, Status};
use wire::reparse::{self, NfsFile};

use super::new_owner::New;
use super::{Answer, Caller, Found, Volume};
use crate::attributes::Node;
use crate::errno::errno;
use crate::handles::lock;
use crate::volume::open::attributes_of;

impl Volume {
    /// Creates a directory.
    pub(crate) async fn make_directory(
        &self,
        (parent, name): (u64, &OsStr),
        new: (Caller, u32),
    ) -> Answer<Found> {
        let (name, path) = self.named(parent, name)?;
        let node = match self.share.uses_posix() {
            true => self.create_posix(&path, new.1, true).await?,
            false => {
                let made = self.share.create_dir(&path).await;
                made.map_err(|error| errno(&error))?;
                self.node(&path).await?
            }
        };
        let node = self.give((parent, New::At(&path)), new, node).await?;
        self.found(parent, name, &node)
    }

    async fn create_posix(&self, path: &str, mode: u32, is_directory: bool) -> Answer<Node> {
        let made = self.share.create_posix(path, mode, is_directory).await;
        made.map(Node::new).map_err(|error| errno(&error))
    }

    /// Renames a file or directory, and replaces one at the new name unless the flags deny that.
    pub(crate) async fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Answer<()> {
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            // No server exchanges two names in one step.
            return Err(Errno::EINVAL);
        }
        let (name, from) = self.named(parent, name)?;
        let (kernel_name, (new_name, to)) = (new_name, self.named(new_parent, new_name)?);
        self.release_kept_at(parent, &name).await;
        self.release_kept_at(new_parent, &new_name).await;
        if flags.contains(RenameFlags::RENAME_NOREPLACE) {
            let renamed = self.share.rename(&from, &to, false).await;
            renamed.map_err(|error| errno(&error))?;
        } else {
            self.replace((&from, &to), (new_parent, &new_name)).await?;
        }
        lock(&self.inodes).renamed((parent, &name), &(new_parent, new_name));
        self.has_moved(new_parent, kernel_name);
        Ok(())
    }

    /// Renames over the file or the empty directory at the new name.
    async fn replace(&self, (from, to): (&str, &str), new: (u64, &str)) -> Answer<()> {
        if self.share.uses_posix() {
            match self.share.rename(from, to, true).await {
                // Samba 4.25 replaces no open file.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
                renamed => return renamed.map_err(|error| errno(&error)),
            }
        }
        // A server does not replace an open file.
        let aside = self.move_aside(new.0, new.1).await?;
        let renamed = match self.share.rename(from, to, true).await {
            Err(error) if is_refusal(&error) => self.replace_directory((from, to), &error).await,
            renamed => renamed.map_err(|error| errno(&error)),
        };
        match (aside, &renamed) {
            (Some(aside), Ok(())) => aside.remove().await,
            (Some(aside), Err(_)) => aside.restore(to).await,
            (None, _) => {}
        }
        renamed
    }

    /// A server replaces no directory. POSIX replaces an empty one.
    async fn replace_directory(&self, (from, to): (&str, &str), error: &Error) -> Answer<()> {
        let (Ok(old), Ok(new)) = (self.node(from).await, self.node(to).await) else {
            return Err(errno(error));
        };
        match (old.kind, new.kind) {
            (FileType::Directory, FileType::Directory) => {
                let removed = self.share.remove_dir(to).await;
                removed.map_err(|error| errno(&error))?;
                let renamed = self.share.rename(from, to, false).await;
                renamed.map_err(|error| errno(&error))
            }
            (FileType::Directory, _) => Err(Errno::ENOTDIR),
            (_, FileType::Directory) => Err(Errno::EISDIR),
            _ => Err(errno(error)),
        }
    }

    /// Creates a symbolic link.
    pub(crate) async fn symlink(
        &self,
        (parent, name): (u64, &OsStr),
        caller: Caller,
        target: &OsStr,
    ) -> Answer<Found> {
        let (name, path) = self.named(parent, name)?;
        let target = target.to_str().ok_or(Errno::EILSEQ)?;
        let made = self.share.symlink(target, &path, false).await;
        made.map_err(|error| errno(&error))?;
        let node = self.node(&path).await?;
        let node = self
            .give((parent, New::At(&path)), (caller, 0), node)
            .await?;
        self.found(parent, name, &node)
    }

    /// Creates a hard link.
    pub(crate) async fn link(&self, ino: u64, parent: u64, name: &OsStr) -> Answer<Found> {
        let from = self.path(ino)?;
        let (name, path) = self.named(parent, name)?;
        let made = self.share.hard_link(&from, &path).await;
        made.map_err(|error| errno(&error))?;
        self.opens(ino)?.forget_created();
        let node = self.node(&path).await?;
        self.found(parent, name, &node)
    }

    /// Creates a regular or special file.
    pub(crate) async fn make_node(
        &self,
        (parent, name): (u64, &OsStr),
        (caller, mode): (Caller, u32),
        device: u32,
    ) -> Answer<Found> {
        let (name, path) = self.named(parent, name)?;
        let node = match special(mode, device)? {
            None if self.share.uses_posix() => self.create_posix(&path, mode, false).await?,
            None => {
                let made = make_file(&self.share, &path, mode).await;
                made.map_err(|error| errno(&error))?;
                self.node(&path).await?
            }
            Some(file) => {
                let made = make_special(&self.share, &path, &file, mode).await;
                made.map_err(|error| errno(&error))?;
                self.node(&path).await?
            }
        };
        let node = self
            .give((parent, New::At(&path)), (caller, mode), node)
            .await?;
        self.found(parent, name, &node)
    }
}

/// The special file of a mode; `None` for a regular file.
fn special(mode: u32, device: u32) -> Answer<Option<NfsFile>> {
    let device = u64::from(device);
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Ok(match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::RegularFile => None,
        rustix::fs::FileType::Fifo => Some(NfsFile::Fifo),
        rustix::fs::FileType::Socket => Some(NfsFile::Socket),
        rustix::fs::FileType::CharacterDevice => Some(NfsFile::CharacterDevice { major, minor }),
        rustix::fs::FileType::BlockDevice => Some(NfsFile::BlockDevice { major, minor }),
        _ => return Err(Errno::EINVAL),
    })
}

async fn make_file(share: &Share, path: &str, mode: u32) -> Result<(), Error> {
    let options = OpenOptions::new()
        .write(true)
        .create_new(true)
        .directory(false)
        .follow(false)
        .attributes(attributes_of(mode));
    share.open(path, &options).await?.close().await
}

async fn make_special(share: &Share, path: &str, file: &NfsFile, mode: u32) -> Result<(), Error> {
    let bytes = file.encode();
    let reparse::ReparsePoint { tag, guid, data } =
        reparse::ReparsePoint::decode(&bytes).expect("it was encoded here");
    let data = data.to_vec();
    let point = ReparsePoint { tag, guid, data };
    share.create_reparse_point(path, &point, false).await?;
    match share.uses_posix() {
        true => {
            let changes = PosixChanges::default().mode(Some(mode));
            share.change_posix(path, &changes).await.map(drop)
        }
        false => Ok(()),
    }
}

/// Whether a rename can have failed because one of the files is a directory.
fn is_refusal(error: &Error) -> bool {
    let kinds = [
        ErrorKind::PermissionDenied,
        ErrorKind::AlreadyExists,
        ErrorKind::WrongFileType,
    ];
    kinds.contains(&error.kind()) || error.status() == Some(Status::INVALID_PARAMETER)
}
