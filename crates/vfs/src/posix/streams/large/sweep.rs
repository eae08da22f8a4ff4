//! The removal of blobs that no file uses: those that the server has released, those of files that
//! local programs have deleted, and those that a crash has left.
//!
//! A local copy of a file has pointers to the blobs of its original. So a sweep searches the share
//! for pointers to the blobs that their base files do not use (`search`). A file that has one
//! becomes the base file of the blob. A blob without a pointer is removed after the second search.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proto::path::StreamName;
use proto::token::Token;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir, flock, fstat, openat, unlinkat};
use rustix::io::Errno;

use super::blob::{self, DIRECTORY, Notes};
use super::pointer::{self, BlobId};
use super::search;
use crate::identity;
use crate::posix::directory::Directory;
use crate::posix::file_ref::FileRef;
use crate::posix::lasting_handle;
use crate::posix::stat::stat;
use crate::posix::streams::xattr;

/// Time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Minimum age of a blob that a sweep removes: a younger one may not have its pointer yet.
const MIN_AGE: Duration = Duration::from_secs(10 * 60);
/// Length of the buffer for entries of a directory in bytes.
const BUFFER: usize = 32 << 10;

/// Minimum time between two sweeps while blobs wait for their second search.
const SEARCH_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Part of the time that sweeps with a search of the share may take: one in this number.
const SEARCH_SHARE: u32 = 20;
/// Number of searches without a pointer after which a sweep removes a blob. One search can miss a
/// file that moves at the same time.
const SEARCHES: u8 = 2;
/// Maximum number of blobs for which a sweep searches pointers; the next sweep continues.
const CANDIDATES_MAX: usize = 100_000;

/// The sweeps of a share.
#[derive(Debug, Default)]
pub(in crate::posix) struct Sweeps {
    /// The time from which on the next sweep is due; `None` before the first one.
    next: Arc<Mutex<Option<Instant>>>,
}

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::posix) struct Swept {
    /// Number of removed blobs.
    pub(in crate::posix) removed: usize,
    /// Number of blobs that a later sweep removes, unless it finds a pointer.
    pub(in crate::posix) waiting: usize,
}

impl Sweeps {
    /// Starts a sweep on a thread of its own: at the first call, then once a day, and sooner while
    /// blobs wait for their second search.
    pub(in crate::posix) fn start_if_due(&self, root: &Arc<Directory>) {
        if !self.is_due(Instant::now()) {
            return;
        }
        let (root, next) = (root.clone(), self.next.clone());
        let run = move || {
            let start = Instant::now();
            let swept = sweep(&root, MIN_AGE);
            match &swept {
                Ok(Swept { removed: 0, .. }) => {}
                Ok(Swept { removed, .. }) => {
                    tracing::info!(removed, "removed data of named streams without a file");
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot look for data of deleted named streams");
                }
            }
            if swept.is_ok_and(|swept| swept.waiting > 0) {
                let pause = SEARCH_INTERVAL.max(start.elapsed() * SEARCH_SHARE);
                let soon = Instant::now() + pause.min(INTERVAL);
                *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(soon);
            }
        };
        let thread = std::thread::Builder::new().name("stream-sweep".to_owned());
        if let Err(error) = thread.spawn(run) {
            tracing::warn!(%error, "cannot start the thread that looks for deleted named streams");
        }
    }

    /// Whether a sweep is due. It then counts as started, and the next one is due after a day.
    fn is_due(&self, now: Instant) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = next.is_none_or(|next| now >= next);
        if is_due {
            *next = Some(now + INTERVAL);
        }
        is_due
    }
}

/// A blob that its base file does not use.
struct Candidate {
    shard: Arc<OwnedFd>,
    /// Number of earlier searches without a pointer.
    searches: u8,
}

/// Removes the blobs of a share that are at least `min_age` old and that no file uses, after the
/// second search for pointers. Without CAP_DAC_READ_SEARCH, which the lookup of a base file needs,
/// it removes those only that the server has released.
pub(in crate::posix) fn sweep(root: &Directory, min_age: Duration) -> io::Result<Swept> {
    identity::own().map_err(|status| io::Error::other(format!("{status:?}")))?;
    let mount = blob::open_directory(&root.fd, ".")?;
    let blobs = match blob::open_directory(&mount, DIRECTORY) {
        Err(Errno::NOENT) => return Ok(Swept::default()),
        blobs => blobs?,
    };
    blob::check_directory(&blobs)?;
    let sweep = Sweep {
        root,
        mount,
        min_age,
    };
    let mut candidates = BTreeMap::new();
    for shard in names(&blobs)? {
        let Ok(shard) = blob::open_directory(&blobs, &shard) else {
            continue;
        };
        sweep.add_candidates(&Arc::new(shard), &mut candidates)?;
    }
    if candidates.is_empty() {
        return Ok(Swept::default());
    }
    search::files_with_pointers(root, |file| sweep.adopt(file, &mut candidates))?;
    let mut swept = Swept::default();
    for (id, candidate) in candidates {
        match sweep.end(&id, &candidate) {
            Ok(true) => swept.removed += 1,
            Ok(false) => swept.waiting += 1,
            Err(error) => tracing::debug!(%id, %error, "cannot remove a named stream"),
        }
    }
    Ok(swept)
}

/// The names in a directory that are no other than ASCII text.
fn names(directory: &OwnedFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    let mut buffer = Box::new_uninit_slice(BUFFER);
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_str().ok();
        let name = name.filter(|name| name.is_ascii() && !name.starts_with('.'));
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// The base file of a blob.
enum BaseFile {
    Found(OwnedFd),
    Deleted,
    /// The base file is on another file system, or the blob has no valid handle.
    Unknown,
    /// The server lacks CAP_DAC_READ_SEARCH.
    Unreadable,
}

struct Sweep<'a> {
    root: &'a Directory,
    /// The root, open for reading.
    mount: OwnedFd,
    min_age: Duration,
}

impl Sweep<'_> {
    /// Adds the blobs of a directory that their base files do not use.
    fn add_candidates(
        &self,
        shard: &Arc<OwnedFd>,
        candidates: &mut BTreeMap<BlobId, Candidate>,
    ) -> Result<(), Errno> {
        for name in names(shard)? {
            if candidates.len() >= CANDIDATES_MAX {
                break;
            }
            let Some(id) = BlobId::parse(&name) else {
                continue;
            };
            match self.unused(shard, &id) {
                Ok(Some(searches)) => {
                    let shard = shard.clone();
                    candidates.insert(id, Candidate { shard, searches });
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%id, %error, "cannot check a named stream"),
            }
        }
        Ok(())
    }

    /// Opens and locks a blob. `None` if it is open, or younger than the minimum age.
    fn lock(&self, shard: &OwnedFd, id: &BlobId) -> Result<Option<OwnedFd>, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(shard, id.to_string(), flags, Mode::empty())?;
        let is_locked = flock(&fd, FlockOperation::NonBlockingLockExclusive).is_err();
        Ok((!is_locked && self.is_old(&fd)?).then_some(fd))
    }

    /// The number of searches for pointers to a blob that its base file does not use; `None` if it
    /// is in use.
    fn unused(&self, shard: &OwnedFd, id: &BlobId) -> Result<Option<u8>, Errno> {
        let Some(fd) = self.lock(shard, id)? else {
            return Ok(None);
        };
        let Notes {
            owner,
            moving,
            searches,
        } = blob::notes(&fd)?;
        let is_used = match owner {
            // A crash during the creation.
            None => false,
            Some(owner) => match self.base_of(&owner)? {
                BaseFile::Unknown => true,
                BaseFile::Unreadable => searches.is_none(),
                BaseFile::Deleted => false,
                BaseFile::Found(base) => self.has_pointer(&base, id, moving.as_deref())?,
            },
        };
        Ok((!is_used).then_some(searches.unwrap_or(0)))
    }

    /// Removes the blobs to which a file has pointers from the candidates. The file becomes their
    /// base file if it is on the file system of the root. A file of another user gets nothing, as
    /// everyone can write a pointer.
    fn adopt(
        &self,
        file: &OwnedFd,
        candidates: &mut BTreeMap<BlobId, Candidate>,
    ) -> Result<(), Errno> {
        let stat = stat(file)?;
        for (_, id) in pointer::list(self.file_ref(file, &identity::process_token()))? {
            let Some(candidate) = candidates.get(&id) else {
                continue;
            };
            let Some(fd) = self.lock(&candidate.shard, &id)? else {
                candidates.remove(&id);
                continue;
            };
            if fstat(&fd)?.st_uid != stat.0.stx_uid {
                continue;
            }
            candidates.remove(&id);
            let volume = &self.root.volume;
            if volume.holds(&stat)
                && let Ok(owner) = lasting_handle::lasting_handle(file, volume)
            {
                blob::adopt(&fd, &owner)?;
            }
        }
        Ok(())
    }

    /// Removes a blob to which no file has a pointer, if earlier searches found none either.
    /// Returns whether it did.
    fn end(&self, id: &BlobId, candidate: &Candidate) -> Result<bool, Errno> {
        let Candidate { shard, searches } = candidate;
        let Some(fd) = self.lock(shard, id)? else {
            return Ok(false);
        };
        let searches = searches + 1;
        if searches < SEARCHES {
            blob::note_searches(&fd, Some(searches))?;
            return Ok(false);
        }
        unlinkat(&**shard, id.to_string(), AtFlags::empty())?;
        Ok(true)
    }

    fn file_ref<'f>(&'f self, fd: &'f OwnedFd, token: &'f Arc<Token>) -> FileRef<'f> {
        FileRef {
            fd,
            volume: &self.root.volume,
            is_path: true,
            token,
            may_set_attributes: true,
        }
    }

    /// Whether a blob has not changed for the minimum age.
    fn is_old(&self, fd: &OwnedFd) -> Result<bool, Errno> {
        let stat = fstat(fd)?;
        let changed = u64::try_from(stat.st_ctime).unwrap_or(0);
        let changed = UNIX_EPOCH + Duration::from_secs(changed);
        let age = SystemTime::now().duration_since(changed);
        Ok(age.is_ok_and(|age| age >= self.min_age))
    }

    /// Opens the base file with this handle.
    fn base_of(&self, owner: &[u8]) -> Result<BaseFile, Errno> {
        let Some((serial, handle)) = lasting_handle::parts(owner) else {
            return Ok(BaseFile::Unknown);
        };
        if serial != self.root.volume.id.serial {
            return Ok(BaseFile::Unknown);
        }
        match ring::open_by_handle(self.mount.as_fd(), handle) {
            Ok(fd) if fstat(&fd)?.st_nlink == 0 => Ok(BaseFile::Deleted),
            Ok(fd) => Ok(BaseFile::Found(fd)),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::STALE) => Ok(BaseFile::Deleted),
                Some(Errno::INVAL) | None => Ok(BaseFile::Unknown),
                Some(Errno::PERM) => Ok(BaseFile::Unreadable),
                Some(errno) => Err(errno),
            },
        }
    }

    /// Whether a file has a pointer to a blob. Sets the pointer if a crash has prevented that: see
    /// `displace` in the module above.
    fn has_pointer(&self, fd: &OwnedFd, id: &BlobId, moving: Option<&[u8]>) -> Result<bool, Errno> {
        let token = identity::process_token();
        let file = self.file_ref(fd, &token);
        let pointers = pointer::list(file)?;
        if pointers.iter().any(|(_, other)| other == id) {
            return Ok(true);
        }
        let name = moving.and_then(|name| std::str::from_utf8(name).ok());
        let Some(name) = name.and_then(StreamName::new) else {
            return Ok(false);
        };
        let is_replaced =
            pointers.iter().any(|(other, _)| *other == name) || xattr::list(file)?.contains(&name);
        if !is_replaced {
            pointer::set(file, &name, id)?;
        }
        Ok(!is_replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_due_at_first_and_once_a_day() {
        let sweeps = Sweeps::default();
        let start = Instant::now();
        let hours = |hours: u64| start + Duration::from_secs(hours * 60 * 60);
        let due = [0, 0, 23, 24, 25, 49].map(|at| sweeps.is_due(hours(at)));
        assert_eq!(due, [true, false, false, true, false, true]);
        *sweeps.next.lock().expect("no panic") = Some(hours(50));
        let due = [49, 50, 51, 74].map(|at| sweeps.is_due(hours(at)));
        assert_eq!(due, [false, true, false, true]);
    }
}
