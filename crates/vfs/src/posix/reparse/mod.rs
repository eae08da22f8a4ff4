//! Reparse points: data that clients attach to files, such as the targets of symbolic links.
//!
//! They are stored as Samba stores them: the extended attribute `user.SmbReparse` has the encoded
//! reparse point, and the DOS attributes have REPARSE_POINT. Samba accepts them on regular files
//! only; on Windows directories have them too, and so here. Links and special files of Unix are
//! shown as reparse points.

pub(super) mod stored;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::file::{FileKind, FoundLink, Outcome};
use proto::path::SharePath;
use proto::token::Token;
use rustix::fs::{FileType, OFlags, XattrFlags, fstat, major, minor, readlinkat};
use rustix::io::Errno;
use wire::Status;
use wire::reparse::{self, NfsFile, ReparseTag};

use self::stored::{NAME, read, read_tag, tag_of};
use super::Posix;
use super::directory::Run;
use super::file::OpenFile;
use super::file_ref::FileRef;
use super::stat::{stat, supports_attributes};
use super::xattr;
use crate::dosattrib::DosInfo;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, attributes, identity};

/// The part of a path that an open did not find.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// A directory of the path.
    Directory,
    /// The last name.
    Name,
}

impl Posix {
    pub(super) fn read_reparse(&self, file: &OpenFile) -> Step<Outcome> {
        if file.stream.is_some() {
            return Err(Status::NOT_A_REPARSE_POINT.into());
        }
        let data = match file.kind {
            FileKind::Link => of_link(&file.fd)?,
            FileKind::Special => of_special(&file.fd)?,
            FileKind::File | FileKind::Directory => {
                let data = read(&file.fd, &file.token);
                let data = data.map_err(|_| Status::NOT_A_REPARSE_POINT)?;
                tag_of(&data).ok_or(Status::NOT_A_REPARSE_POINT)?;
                data
            }
        };
        Ok(Outcome::Reparse(data))
    }

    pub(super) fn set_reparse(
        &self,
        file: &OpenFile,
        tag: ReparseTag,
        data: &[u8],
        run: Run<'_>,
    ) -> Step<Outcome> {
        check_tag(file, tag, true)?;
        if file.kind == FileKind::Directory {
            if run.effort == Effort::Cached {
                return Err(Stop::WouldBlock);
            }
            self.check_empty(file, run)?;
        }
        let of = file.file_ref();
        change(of, || xattr::set(of, NAME, data, XattrFlags::empty()))?;
        self.store_reparse(file, true)
    }

    pub(super) fn remove_reparse(&self, file: &OpenFile, tag: ReparseTag) -> Step<Outcome> {
        check_tag(file, tag, false)?;
        let of = file.file_ref();
        change(of, || xattr::remove(of, NAME))?;
        self.store_reparse(file, false)
    }

    /// Stores the attribute REPARSE_POINT.
    fn store_reparse(&self, file: &OpenFile, is_reparse: bool) -> Step<Outcome> {
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Attributes))?;
        let is = self.metadata(file.file_ref(), &stat, "");
        let info = DosInfo {
            attributes: Some(attributes::with_reparse(is.attributes, is_reparse)),
            created: Some(is.created),
        };
        let stored = super::metadata::store(file.file_ref(), info);
        stored.map_err(|errno| status(errno, Context::Attributes))?;
        Ok(Outcome::Done)
    }

    /// Whether a path leads through a reparse point. If the last name is missing, only its
    /// directory can be one: the directory of a reparse point has no names.
    pub(super) fn leads_through_reparse(
        &self,
        path: &SharePath,
        missing: Missing,
        run: Run<'_>,
    ) -> Step<bool> {
        let parent = path.parent();
        match missing {
            Missing::Name if parent.is_root() => Ok(false),
            Missing::Name => Ok(self.reparse_at(&parent, run)?.is_some()),
            Missing::Directory => Ok(self.first_reparse(path, run)?.is_some()),
        }
    }

    /// Finds the first reparse point on a path.
    pub(super) fn find_link(
        &self,
        token: &Arc<Token>,
        path: &SharePath,
        effort: Effort,
    ) -> Step<Outcome> {
        let user = token;
        let token = self.credentials(user);
        identity::assume(token)?;
        let root = &self.root(token, effort)?;
        let run = Run {
            token,
            user,
            root,
            effort,
            is_exact: false,
        };
        Ok(Outcome::Link(self.first_reparse(path, run)?))
    }

    fn first_reparse(&self, path: &SharePath, run: Run<'_>) -> Step<Option<FoundLink>> {
        let mut at = SharePath::root();
        for (index, component) in path.components().enumerate() {
            at = at.join(component);
            if let Some(data) = self.reparse_at(&at, run)? {
                let depth = index + 1;
                return Ok(Some(FoundLink { depth, data }));
            }
        }
        Ok(None)
    }

    /// The stored reparse point of the file at a path; `None` if it has none or does not exist.
    fn reparse_at(&self, path: &SharePath, run: Run<'_>) -> Step<Option<Vec<u8>>> {
        let path = &*self.canonical(path)?;
        let fd = match self.beneath(path, OFlags::PATH, run)? {
            Ok(fd) => fd,
            // The name may differ in case.
            Err(_) => {
                let parent = self.directory(&path.parent(), run);
                match parent.and_then(|it| self.entry(&it.directory, path.name(), run)) {
                    Ok(Some(entry)) => entry.fd,
                    Err(Stop::WouldBlock) => return Err(Stop::WouldBlock),
                    Ok(None) | Err(Stop::Failed(_)) => return Ok(None),
                }
            }
        };
        let can_have_one = stat(&fd).is_ok_and(|stat| supports_attributes(&stat));
        let data = can_have_one.then(|| read(&fd, run.token).ok()).flatten();
        Ok(data.filter(|data| tag_of(data).is_some()))
    }
}

/// Fails unless the file can have a reparse point with this tag.
fn check_tag(file: &OpenFile, tag: ReparseTag, may_be_none: bool) -> Step<()> {
    let can_have_one = matches!(file.kind, FileKind::File | FileKind::Directory);
    if !can_have_one || !file.volume.stores_attributes || file.stream.is_some() {
        return Err(Status::ACCESS_DENIED.into());
    }
    match read_tag(file.file_ref()) {
        Some(is) if is == tag => Ok(()),
        Some(_) => Err(Status::IO_REPARSE_TAG_MISMATCH.into()),
        None if may_be_none => Ok(()),
        None => Err(Status::NOT_A_REPARSE_POINT.into()),
    }
}

/// Runs a change of an attribute that the rights of the open permit.
fn change(of: FileRef<'_>, run: impl FnMut() -> Result<(), Errno>) -> Step<()> {
    let changed = xattr::as_permitted(of, run);
    Ok(changed.map_err(|errno| status(errno, Context::Attributes))?)
}

/// A symbolic link of Unix as a reparse point.
fn of_link(fd: &OwnedFd) -> Step<Vec<u8>> {
    let target = readlinkat(fd, "", Vec::new());
    let target = target.map_err(|errno| status(errno, Context::Open))?;
    Ok(reparse::encode_unix_symlink(&target.to_string_lossy()))
}

/// A special file of Unix as a reparse point.
fn of_special(fd: &OwnedFd) -> Step<Vec<u8>> {
    let stat = fstat(fd).map_err(|errno| status(errno, Context::Open))?;
    let (major, minor) = (major(stat.st_rdev), minor(stat.st_rdev));
    let file = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => NfsFile::Fifo,
        FileType::Socket => NfsFile::Socket,
        FileType::CharacterDevice => NfsFile::CharacterDevice { major, minor },
        FileType::BlockDevice => NfsFile::BlockDevice { major, minor },
        _ => return Err(Status::NOT_A_REPARSE_POINT.into()),
    };
    Ok(file.encode())
}
