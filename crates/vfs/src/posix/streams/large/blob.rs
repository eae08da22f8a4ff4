//! Blobs: the files with the data of large streams, `.smbeam-streams/XX/ID` below the root of the
//! share.
//!
//! The server creates and opens them with its own credentials. A blob belongs to the owner of its
//! base file, so that it counts for the quota of that user.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use proto::token::Token;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, ResolveFlags, Stat, Uid, XattrFlags,
    fchown, fgetxattr, flock, fremovexattr, fsetxattr, fstat, fsync, mkdirat, openat, openat2,
    unlinkat,
};
use rustix::io::Errno;

use super::pointer::BlobId;
use crate::posix::directory::{BENEATH, Directory};
use crate::posix::stat::as_own;
use crate::posix::streams::base::Base;
use crate::{Effort, identity};

/// The directory of the blobs in the root of a share.
pub(in crate::posix) const DIRECTORY: &str = ".smbeam-streams";
/// The attribute of a blob with the handle of its base file.
const OWNER: &str = "user.smbeam.owner";
/// The attribute of a blob with the name of the stream, while the stream moves without space for
/// both the data and the pointer in the attributes of the base file.
const MOVING: &str = "user.smbeam.moving";
/// The attribute of a blob that its base file no longer uses: the number of searches that found no
/// other file with a pointer to it.
const RELEASED: &str = "user.smbeam.released";
/// Maximum length of the value of these attributes in bytes.
const VALUE_MAX: usize = 256;

/// An open blob.
#[derive(Clone, Debug)]
pub(in crate::posix::streams) struct Blob {
    pub(super) id: BlobId,
    pub(in crate::posix::streams) fd: Arc<OwnedFd>,
    /// Whether the blob belongs to the file. Another one is the blob of the file of which this file
    /// is a copy, and is not changed.
    pub(in crate::posix::streams) is_own: bool,
}

impl Blob {
    /// The length of the data in bytes.
    pub(in crate::posix::streams) fn size(&self) -> Result<u64, Errno> {
        Ok(size_of(&fstat(&*self.fd)?))
    }
}

pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Opens the blob of a file. `None` if it does not exist, or if it belongs to another file and
/// another user: a pointer alone, which everyone can write into his own file, gives no access.
pub(super) fn open(base: Base<'_>, root: &Directory, id: &BlobId) -> Result<Option<Blob>, Errno> {
    let opened = as_own(base.file.token, || {
        let Some(fd) = open_file(root, id, base.effort)? else {
            return Ok(None);
        };
        let owner = read(&fd, OWNER)?;
        Ok(Some((fd, owner)))
    });
    let Some((fd, owner)) = opened? else {
        return Ok(None);
    };
    let is_own = owner.is_some_and(|owner| base.owner().is_ok_and(|own| own == owner));
    if !is_own && fstat(&fd)?.st_uid != fstat(base.file.fd)?.st_uid {
        return Ok(None);
    }
    Ok(Some(Blob {
        id: id.clone(),
        fd: Arc::new(fd),
        is_own,
    }))
}

/// Opens the file of a blob with the credentials of the thread.
fn open_file(root: &Directory, id: &BlobId, effort: Effort) -> Result<Option<OwnedFd>, Errno> {
    let Some(blobs) = find_directory(&root.fd, DIRECTORY, effort)? else {
        return Ok(None);
    };
    check_directory(&blobs)?;
    let path = format!("{}/{id}", id.shard());
    let open = |mode| {
        let flags = mode | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat2(&blobs, &path, flags, Mode::empty(), rules(effort))
    };
    let opened = match open(OFlags::RDWR) {
        Err(Errno::ROFS) => open(OFlags::RDONLY),
        result => result,
    };
    match found(opened)? {
        Some(fd) if FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::RegularFile => {
            Ok(Some(fd))
        }
        _ => Ok(None),
    }
}

/// Opens a directory to look up names in it. `None` if it does not exist.
fn find_directory(parent: &OwnedFd, path: &str, effort: Effort) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    found(openat2(parent, path, flags, Mode::empty(), rules(effort)))
}

fn found(opened: Result<OwnedFd, Errno>) -> Result<Option<OwnedFd>, Errno> {
    match opened {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ISDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn rules(effort: Effort) -> ResolveFlags {
    let rules = BENEATH | ResolveFlags::NO_SYMLINKS;
    match effort {
        Effort::Cached => rules | ResolveFlags::CACHED,
        Effort::Blocking => rules,
    }
}

/// Fails if another user made the directory of the blobs, or can change it: that user could replace
/// the data of all large streams.
pub(super) fn check_directory(blobs: &OwnedFd) -> Result<(), Errno> {
    let stat = fstat(blobs)?;
    let is_safe = stat.st_uid == identity::process_token().uid && stat.st_mode & 0o022 == 0;
    if !is_safe {
        let (uid, mode) = (stat.st_uid, stat.st_mode & 0o7777);
        tracing::error!(
            uid,
            mode,
            "not using {DIRECTORY}: other users can change it"
        );
        return Err(Errno::PERM);
    }
    Ok(())
}

/// Creates the blob of a file, without data. A shared lock keeps it from the sweep until its last
/// descriptor is closed: the pointer may be set much later, after a long copy. Fails with
/// EOPNOTSUPP if the file system of the file has no handles.
pub(super) fn create(base: Base<'_>, root: &Directory) -> Result<Blob, Errno> {
    let id = BlobId::random()?;
    let owner = base.owner()?;
    let stat = fstat(base.file.fd)?;
    let created = as_own(base.file.token, || {
        let directory = make_directories(root, &id)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let fd = openat(&directory, id.to_string(), flags, Mode::RUSR | Mode::WUSR)?;
        let furnished = flock(&fd, FlockOperation::LockShared)
            .and_then(|()| give(&fd, &stat))
            .and_then(|()| fsetxattr(&fd, OWNER, &owner, XattrFlags::empty()))
            .and_then(|()| fsync(&directory));
        furnished.inspect_err(|_| {
            let _ = unlinkat(&directory, id.to_string(), AtFlags::empty());
        })?;
        Ok(fd)
    });
    Ok(Blob {
        fd: Arc::new(created?),
        id,
        is_own: true,
    })
}

/// Gives a blob to the owner of its base file. A server that is not root keeps it.
fn give(fd: &OwnedFd, base: &Stat) -> Result<(), Errno> {
    let (uid, gid) = (Uid::from_raw(base.st_uid), Gid::from_raw(base.st_gid));
    match fchown(fd, Some(uid), Some(gid)) {
        // The second error: a user of the file that this user namespace does not know.
        Err(Errno::PERM | Errno::INVAL) => Ok(()),
        result => result,
    }
}

/// Creates the directories of a blob on stable storage, and opens the inner one.
fn make_directories(root: &Directory, id: &BlobId) -> Result<OwnedFd, Errno> {
    let root = open_directory(&root.fd, ".")?;
    let blobs = make_directory(&root, DIRECTORY)?;
    check_directory(&blobs)?;
    make_directory(&blobs, id.shard())
}

fn make_directory(parent: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => fsync(parent)?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    open_directory(parent, name)
}

/// Opens a directory to list or flush it. A link is not followed.
pub(super) fn open_directory(parent: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Marks a blob that its base file no longer uses, if it belongs to the file. A local copy of the
/// file may have a pointer to it, so that only the sweep removes it.
pub(super) fn release(base: Base<'_>, root: &Directory, id: &BlobId) -> Result<(), Errno> {
    match open(base, root, id)? {
        Some(blob) if blob.is_own => as_own(base.file.token, || note_searches(&*blob.fd, Some(0))),
        _ => Ok(()),
    }
}

/// Notes that a blob is not in use, and the number of searches that found no pointer to it; or that
/// it is in use. The thread has the credentials of the server.
pub(super) fn note_searches(blob: &impl AsFd, searches: Option<u8>) -> Result<(), Errno> {
    match searches {
        Some(count) => fsetxattr(blob, RELEASED, &[b'0' + count.min(9)], XattrFlags::empty()),
        None => match fremovexattr(blob, RELEASED) {
            Ok(()) | Err(Errno::NODATA) => Ok(()),
            Err(errno) => Err(errno),
        },
    }
}

/// Gives a blob to another file that has a pointer to it. The thread has the credentials of the
/// server.
pub(super) fn adopt(blob: &impl AsFd, owner: &[u8]) -> Result<(), Errno> {
    fsetxattr(blob, OWNER, owner, XattrFlags::empty())?;
    note_searches(blob, None)
}

/// Removes a new blob, which no pointer names yet.
pub(super) fn remove(base: Base<'_>, root: &Directory, id: &BlobId) -> Result<(), Errno> {
    let is_own = open(base, root, id)?.is_some_and(|blob| blob.is_own);
    if !is_own {
        return Ok(());
    }
    as_own(base.file.token, || {
        let directory = format!("{DIRECTORY}/{}", id.shard());
        match find_directory(&root.fd, &directory, base.effort)? {
            Some(directory) => unlinkat(&directory, id.to_string(), AtFlags::empty()),
            None => Ok(()),
        }
    })
}

/// Remembers the name of the stream that moves into a blob, on stable storage; or forgets it.
pub(super) fn note_move(blob: &Blob, token: &Arc<Token>, name: Option<&str>) -> Result<(), Errno> {
    as_own(token, || match name {
        Some(name) => {
            fsetxattr(&*blob.fd, MOVING, name.as_bytes(), XattrFlags::empty())?;
            fsync(&*blob.fd)
        }
        None => fremovexattr(&*blob.fd, MOVING),
    })
}

/// The notes of a blob for the sweep.
pub(super) struct Notes {
    /// The handle of the base file.
    pub(super) owner: Option<Vec<u8>>,
    /// The name of the stream that moves into the blob.
    pub(super) moving: Option<Vec<u8>>,
    /// The number of searches that found no pointer; `None` if the blob was not released.
    pub(super) searches: Option<u8>,
}

/// Reads the notes of a blob. The thread has the credentials of the server.
pub(super) fn notes(blob: &impl AsFd) -> Result<Notes, Errno> {
    Ok(Notes {
        owner: read(blob, OWNER)?,
        moving: read(blob, MOVING)?,
        searches: read(blob, RELEASED)?
            .and_then(|value| value.first().map(|digit| digit.saturating_sub(b'0'))),
    })
}

fn read(blob: &impl AsFd, name: &str) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = [0; VALUE_MAX];
    match fgetxattr(blob, name, &mut value[..]) {
        Ok(length) => Ok(Some(value[..length].to_vec())),
        Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}
