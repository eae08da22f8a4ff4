//! Rename, hard link and removal of names.

use std::sync::atomic::{AtomicU64, Ordering};

use proto::file::{FileKind, Outcome, Replace};
use proto::path::SharePath;
use rustix::fs::{AtFlags, CWD, RenameFlags, linkat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use wire::Status;

use super::Posix;
use super::directory::{Directory, Entry, Parent, RACES, Run};
use super::file::{Location, OpenFile};
use super::file_ref::FileRef;
use super::scan;
use super::stat::{Stat, by_descriptor, kind_of, stat, stat_name, supports_attributes};
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, rights};

impl Posix {
    pub(super) fn rename(
        &self,
        file: &OpenFile,
        to: &SharePath,
        replace: Replace,
        run: Run<'_>,
    ) -> Step<Outcome> {
        let to = &*self.canonical_new(to)?;
        let (from, _) = self.named_at(file.link.location(), file)?;
        let parent = self.target(to, run)?;
        if parent.directory.key != from.parent.key {
            let is_directory = file.kind == FileKind::Directory;
            self.parent_descriptor(is_directory, &parent, run)?;
        }
        let name = &*self.disk_name(to.name())?;
        let old_name = (&*from.parent, &*self.disk_name(&from.name)?);
        let new_name = (&*parent.directory, name);
        self.changes.will_change(from.parent.key);
        self.changes.will_change(parent.directory.key);
        let _name_lock = self
            .index
            .lock_name(&parent.directory, to.name(), run.effort)?;
        for _ in 0..RACES {
            let there = self.entry(&parent.directory, to.name(), run)?;
            let renamed = match there {
                None => move_name(old_name, new_name),
                Some(entry) if is_itself(&entry, &parent, &from) => {
                    respell(&parent.directory, old_name.1, name)
                }
                Some(entry) if replace == Replace::Posix => {
                    self.replacing(file, &entry, run, || {
                        renameat(&*old_name.0.fd, old_name.1, &*new_name.0.fd, new_name.1)
                    })?
                }
                Some(entry) => {
                    self.check_replaceable(file, (&parent, &entry), replace, run)?;
                    let replaced = &*self.disk_name(&entry.name)?;
                    let is_same_file = entry.stat.key() == file.link.key;
                    self.replacing(file, &entry, run, || {
                        replace_name(old_name, new_name, replaced, is_same_file)
                    })?
                }
            };
            match renamed {
                Ok(()) => return Ok(Outcome::Renamed(moved(file, parent, to.name()))),
                // Another process created or removed the name at the same time.
                Err(Errno::EXIST) if !matches!(replace, Replace::Nothing | Replace::Posix) => {}
                Err(errno) if replace == Replace::Posix => {
                    return Err(posix_rename_status(errno).into());
                }
                Err(errno) => return Err(status(errno, Context::Rename).into()),
            }
        }
        Err(Status::SHARING_VIOLATION.into())
    }

    pub(super) fn link(
        &self,
        file: &OpenFile,
        to: &SharePath,
        replace: bool,
        run: Run<'_>,
    ) -> Step<Outcome> {
        if file.kind == FileKind::Directory {
            return Err(Status::FILE_IS_A_DIRECTORY.into());
        }
        let to = &*self.canonical_new(to)?;
        let parent = self.target(to, run)?;
        self.parent_descriptor(false, &parent, run)?;
        let name = &*self.disk_name(to.name())?;
        self.changes.will_change(parent.directory.key);
        let _name_lock = self
            .index
            .lock_name(&parent.directory, to.name(), run.effort)?;
        let linked = match self.entry(&parent.directory, to.name(), run)? {
            None => link_free(file, &parent.directory, name),
            Some(entry) if replace && entry.stat.key() == file.key => {
                respell(&parent.directory, &self.disk_name(&entry.name)?, name)
            }
            Some(entry) => {
                self.check_replaceable(file, (&parent, &entry), replace.into(), run)?;
                let replaced = &*self.disk_name(&entry.name)?;
                self.replacing(file, &entry, run, || {
                    link_over(file, &parent.directory, replaced, name)
                })?
            }
        };
        linked.map_err(|errno| status(errno, Context::Rename))?;
        Ok(Outcome::Done)
    }

    pub(super) fn unlink(&self, file: &OpenFile, path: &SharePath, run: Run<'_>) -> Step<Outcome> {
        let own = file.link.location();
        let path = &*self.canonical(path)?;
        let other = match own.path == *path || path.is_root() {
            true => None,
            false => self.other_name(file, path, run)?,
        };
        let is_own = other.is_none();
        let (location, stat) = self.named_at(other.unwrap_or(own), file)?;
        let flags = match kind_of(&stat) {
            FileKind::Directory => AtFlags::REMOVEDIR,
            FileKind::File | FileKind::Link | FileKind::Special => AtFlags::empty(),
        };
        self.may_remove_streams(file.file_ref(), run)?;
        self.changes.will_change(location.parent.key);
        let name = &*self.disk_name(&location.name)?;
        let unlinked = unlinkat(&*location.parent.fd, name, flags);
        unlinked.map_err(|errno| status(errno, Context::Remove))?;
        self.name_removed(file.file_ref(), flags == AtFlags::REMOVEDIR, run);
        if is_own {
            file.link.set_unlinked();
        }
        Ok(Outcome::Done)
    }

    /// Another name of the open's file: a hard link. `None` when the path leads to another file
    /// because a directory above was renamed; then the open's own name is right.
    fn other_name(
        &self,
        file: &OpenFile,
        path: &SharePath,
        run: Run<'_>,
    ) -> Step<Option<Location>> {
        let found = self.directory(&path.parent(), run).and_then(|parent| {
            let entry = self.entry(&parent.directory, path.name(), run)?;
            Ok(entry.map(|entry| (parent, entry)))
        });
        match found {
            Ok(Some((parent, entry))) if entry.stat.key() == file.link.key => {
                let path = parent.path.join(&entry.name);
                Ok(Some(Location {
                    parent: parent.directory,
                    name: entry.name,
                    path,
                }))
            }
            Ok(_) | Err(Stop::Failed(_)) => Ok(None),
            Err(Stop::WouldBlock) => Err(Stop::WouldBlock),
        }
    }

    pub(super) fn check_empty(&self, file: &OpenFile, run: Run<'_>) -> Step<Outcome> {
        if file.kind != FileKind::Directory {
            return Err(Status::NOT_A_DIRECTORY.into());
        }
        if run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        let opened = scan::open(&file.directory(), run.token)?.ok_or(Status::ACCESS_DENIED)?;
        match scan::is_empty(&opened)? {
            true => Ok(Outcome::Done),
            false => Err(Status::DIRECTORY_NOT_EMPTY.into()),
        }
    }

    pub(super) fn check_delete(&self, file: &OpenFile, run: Run<'_>) -> Step<Outcome> {
        let location = file.link.location();
        let stat_of = |fd| stat(fd).map_err(|errno| status(errno, Context::Open));
        let metadata = self.metadata(file.file_ref(), &stat_of(&file.fd)?, "");
        if location.is_root() || rights::is_read_only(&metadata) {
            return Err(Status::CANNOT_DELETE.into());
        }
        let Directory { fd, volume, .. } = &*location.parent;
        let parent = (&**fd, &**volume, &stat_of(fd)?);
        match self.may_remove(run, &metadata, parent, true) {
            true => Ok(Outcome::Done),
            false => Err(Status::ACCESS_DENIED.into()),
        }
    }

    pub(super) fn look_up(&self, path: &SharePath, run: Run<'_>) -> Step<Outcome> {
        let found = if path.is_root() {
            self.look_up_root(run)
        } else {
            self.canonical(path)
                .map_err(Stop::from)
                .and_then(|path| self.find(&path, run))
        };
        match found {
            Ok(found) => Ok(found),
            Err(Stop::Failed(Status::OBJECT_PATH_NOT_FOUND | Status::OBJECT_NAME_NOT_FOUND)) => {
                Ok(Outcome::Found(None))
            }
            Err(stop) => Err(stop),
        }
    }

    fn look_up_root(&self, run: Run<'_>) -> Step<Outcome> {
        let Parent {
            directory,
            stat,
            path: _,
        } = self.directory(&SharePath::root(), run)?;
        let file_ref = FileRef {
            fd: &directory.fd,
            volume: &directory.volume,
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        Ok(Outcome::Found(Some(self.metadata(file_ref, &stat, ""))))
    }

    fn find(&self, path: &SharePath, run: Run<'_>) -> Step<Outcome> {
        let parent = self.directory(&path.parent(), run)?;
        let entry = self.entry(&parent.directory, path.name(), run)?;
        let Entry {
            name,
            mut fd,
            mut stat,
        } = entry.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
        if kind_of(&stat) == FileKind::Link && !run.is_exact {
            (fd, stat) = self.follow(&parent.path.join(&name), run)?;
        }
        let near = &parent.directory.volume;
        let file_ref = FileRef {
            fd: &fd,
            volume: &self.volumes.find(&fd, &stat, near, run.token),
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        Ok(Outcome::Found(Some(self.metadata(file_ref, &stat, &name))))
    }

    /// The parent directory of a new name.
    fn target(&self, to: &SharePath, run: Run<'_>) -> Step<Parent> {
        if to.is_root() {
            return Err(Status::OBJECT_NAME_COLLISION.into());
        }
        self.finished_directory(&to.parent(), run)
    }

    /// Replaces the name of an entry, and removes what only the entry's file used.
    fn replacing(
        &self,
        file: &OpenFile,
        entry: &Entry,
        run: Run<'_>,
        replace: impl FnOnce() -> Result<(), Errno>,
    ) -> Step<Result<(), Errno>> {
        if !self.options.large_streams || !supports_attributes(&entry.stat) {
            return Ok(replace());
        }
        let near = &file.link.location().parent.volume;
        let file_ref = FileRef {
            fd: &entry.fd,
            volume: &self.volumes.find(&entry.fd, &entry.stat, near, run.token),
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        self.may_remove_streams(file_ref, run)?;
        let replaced = replace();
        if replaced.is_ok() {
            let is_directory = kind_of(&entry.stat) == FileKind::Directory;
            self.name_removed(file_ref, is_directory, run);
        }
        Ok(replaced)
    }

    /// Checks whether a rename may replace a file. \[MS-FSA\] 2.1.5.15.11
    fn check_replaceable(
        &self,
        file: &OpenFile,
        (parent, entry): (&Parent, &Entry),
        replace: Replace,
        run: Run<'_>,
    ) -> Step<()> {
        if replace == Replace::Nothing {
            return Err(Status::OBJECT_NAME_COLLISION.into());
        }
        let near = &file.link.location().parent.volume;
        let file_ref = FileRef {
            fd: &entry.fd,
            volume: &self.volumes.find(&entry.fd, &entry.stat, near, run.token),
            is_path: true,
            token: run.token,
            may_set_attributes: false,
        };
        let there = self.metadata(file_ref, &entry.stat, "");
        let is_directory = there.is_directory() || file.kind == FileKind::Directory;
        let is_protected = replace != Replace::Any && rights::is_read_only(&there);
        if is_directory || is_protected {
            return Err(Status::ACCESS_DENIED.into());
        }
        self.check_replaced(file_ref, parent, run)
    }

    /// Checks that a name still refers to the opened file. Another process may replace the file
    /// between this check and the operation: no system call removes or renames by descriptor.
    fn named_at(&self, location: Location, file: &OpenFile) -> Step<(Location, Stat)> {
        if location.is_root() {
            return Err(Status::ACCESS_DENIED.into());
        }
        let name = &*self.disk_name(&location.name)?;
        match stat_name(&*location.parent.fd, name) {
            Ok(stat) if stat.key() == file.link.key => Ok((location, stat)),
            Ok(_) | Err(Errno::NOENT) => Err(Status::OBJECT_NAME_NOT_FOUND.into()),
            Err(errno) => Err(status(errno, Context::Open).into()),
        }
    }
}

/// The status of a rename(2) that replaces. Clients of the SMB3 POSIX extensions convert it back.
fn posix_rename_status(errno: Errno) -> Status {
    match errno {
        Errno::ISDIR => Status::FILE_IS_A_DIRECTORY,
        Errno::NOTDIR => Status::NOT_A_DIRECTORY,
        Errno::NOTEMPTY | Errno::EXIST => Status::DIRECTORY_NOT_EMPTY,
        errno => status(errno, Context::Rename),
    }
}

/// A name on the disk, in its directory.
type DiskName<'a> = (&'a Directory, &'a [u8]);

/// Whether an entry is the one to rename.
fn is_itself(entry: &Entry, parent: &Parent, from: &Location) -> bool {
    parent.directory.key == from.parent.key && entry.name == from.name
}

/// Sets the new location of a file after a rename. Returns its path.
fn moved(file: &OpenFile, parent: Parent, name: &str) -> SharePath {
    let path = parent.path.join(name);
    let location = Location {
        parent: parent.directory,
        name: name.to_owned(),
        path: path.clone(),
    };
    file.link.move_to(location);
    path
}

/// Renames within a directory to a name that differs at most in case.
fn respell(directory: &Directory, from: &[u8], to: &[u8]) -> Result<(), Errno> {
    match from == to {
        true => Ok(()),
        false => move_name((directory, from), (directory, to)),
    }
}

/// Renames to a name that does not exist.
fn move_name(from: DiskName<'_>, to: DiskName<'_>) -> Result<(), Errno> {
    let free = RenameFlags::NOREPLACE;
    match renameat_with(&*from.0.fd, from.1, &*to.0.fd, to.1, free) {
        // A file system without RENAME_NOREPLACE: rely on the previous lookup.
        Err(Errno::INVAL) if stat_name(&*to.0.fd, to.1).is_err() => {
            renameat(&*from.0.fd, from.1, &*to.0.fd, to.1)
        }
        result => result,
    }
}

/// Replaces a file. Its name may differ in case from the new one.
fn replace_name(
    from: DiskName<'_>,
    to: DiskName<'_>,
    replaced: &[u8],
    is_same_file: bool,
) -> Result<(), Errno> {
    match is_same_file {
        // Both names are hard links of one file: rename(2) would leave both.
        true => unlinkat(&*from.0.fd, from.1, AtFlags::empty())?,
        false => renameat(&*from.0.fd, from.1, &*to.0.fd, replaced)?,
    }
    respell(to.0, replaced, to.1)
}

/// Creates a hard link with a name that does not exist.
fn link_free(file: &OpenFile, to: &Directory, name: &[u8]) -> Result<(), Errno> {
    linkat(
        CWD,
        by_descriptor(&*file.fd),
        &*to.fd,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )
}

/// Replaces a file by a hard link. It creates the link under a temporary name first, because no
/// system call replaces a file by a link.
fn link_over(file: &OpenFile, to: &Directory, old: &[u8], name: &[u8]) -> Result<(), Errno> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let own = format!(".smbeam-link-{}-{count}", std::process::id());
    link_free(file, to, own.as_bytes())?;
    renameat(&*to.fd, &own, &*to.fd, old).inspect_err(|_| {
        let _ = unlinkat(&*to.fd, &own, AtFlags::empty());
    })?;
    respell(to, old, name)
}
