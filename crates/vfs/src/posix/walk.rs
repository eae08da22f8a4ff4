//! Resolution of paths beneath the root of the share.
//!
//! A path is resolved only by `openat2` with RESOLVE_BENEATH from the root, or as a single name in
//! an open directory. Links inside the share are followed. An absolute link, or one with a target
//! outside the share, counts as a link without a target.

use std::os::fd::OwnedFd;

use proto::file::FileKind;
use proto::path::SharePath;
use rustix::fs::OFlags;
use rustix::io::Errno;
use wire::Status;

use super::Posix;
use super::directory::{BENEATH, Directory, Entry, Parent, Run, entry_of, open_name, resolve};
use super::stat::{kind_of, stat};
use crate::errno::{Context, status};
use crate::{Step, Stop};

impl Posix {
    /// Opens a path beneath the root. Links are followed.
    pub(super) fn beneath(
        &self,
        path: &SharePath,
        flags: OFlags,
        run: Run<'_>,
    ) -> Step<Result<OwnedFd, Errno>> {
        let root = &run.root.fd;
        if path.is_root() {
            return resolve(root, b".", flags, BENEATH, run.effort);
        }
        resolve(root, &self.disk_path(path)?, flags, BENEATH, run.effort)
    }

    /// The directory of a path, without regard to case.
    pub(super) fn directory(&self, path: &SharePath, run: Run<'_>) -> Step<Parent> {
        if path.is_root() {
            let stat = stat(&run.root.fd).map_err(|errno| status(errno, Context::Walk))?;
            let directory = run.root.clone();
            return Ok(Parent {
                directory,
                stat,
                path: SharePath::root(),
            });
        }
        match self.beneath(path, OFlags::PATH | OFlags::DIRECTORY, run)? {
            Ok(fd) => self.parent(fd, path.clone(), run),
            Err(Errno::NOENT) if !run.is_exact => self.spelled_directory(path, run),
            Err(errno) => Err(status(errno, Context::Walk).into()),
        }
    }

    /// Resolves a path name by name, if its spelling differs from that of the file system.
    fn spelled_directory(&self, path: &SharePath, run: Run<'_>) -> Step<Parent> {
        let mut at = self.directory(&SharePath::root(), run)?;
        for name in path.components() {
            let entry = self.entry(&at.directory, name, run)?;
            let entry = entry.ok_or(Status::OBJECT_PATH_NOT_FOUND)?;
            let path = at.path.join(&entry.name);
            at = match kind_of(&entry.stat) {
                FileKind::Directory => self.parent(entry.fd, path, run)?,
                FileKind::Link => self.linked_directory(path, run)?,
                FileKind::File | FileKind::Special => {
                    return Err(Status::OBJECT_PATH_NOT_FOUND.into());
                }
            };
        }
        Ok(at)
    }

    fn linked_directory(&self, path: SharePath, run: Run<'_>) -> Step<Parent> {
        let opened = self.beneath(&path, OFlags::PATH | OFlags::DIRECTORY, run)?;
        let fd = opened.map_err(|errno| status(errno, Context::Walk))?;
        self.parent(fd, path, run)
    }

    fn parent(&self, fd: OwnedFd, path: SharePath, run: Run<'_>) -> Step<Parent> {
        let stat = stat(&fd).map_err(|errno| status(errno, Context::Walk))?;
        let volume = |fd: &OwnedFd| self.volumes.find(fd, &stat, &run.root.volume, run.token);
        let directory = self.directories.share(fd, &stat, volume);
        Ok(Parent {
            directory,
            stat,
            path,
        })
    }

    /// The entry of a name in a directory: the exact name, else one that differs in case unless
    /// names are exact. Links are not followed.
    pub(super) fn entry(
        &self,
        directory: &Directory,
        name: &str,
        run: Run<'_>,
    ) -> Step<Option<Entry>> {
        let on_disk = self.disk_name(name)?;
        match open_name(directory, &on_disk, OFlags::PATH, run.effort) {
            Ok(Ok(fd)) => entry_of(name.to_owned(), fd).map(Some),
            Ok(Err(Errno::NOENT)) if run.is_exact => Ok(None),
            Ok(Err(Errno::NOENT)) => self.other_spelling(directory, name, run),
            // The kernel's cache does not contain the name. The index may know that it does not
            // exist.
            Err(Stop::WouldBlock) => self.other_spelling(directory, name, run),
            Ok(Err(errno)) => Err(status(errno, Context::Open).into()),
            Err(stop) => Err(stop),
        }
    }

    /// The entry of a name that differs in case.
    fn other_spelling(
        &self,
        directory: &Directory,
        name: &str,
        run: Run<'_>,
    ) -> Step<Option<Entry>> {
        let Some(spelled) = self.index.spell(directory, name, run)? else {
            return Ok(None);
        };
        if run.is_exact && spelled != name {
            return Ok(None);
        }
        let opened = open_name(
            directory,
            &self.disk_name(&spelled)?,
            OFlags::PATH,
            run.effort,
        )?;
        match opened {
            Ok(fd) => entry_of(spelled, fd).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(status(errno, Context::Open).into()),
        }
    }
}
