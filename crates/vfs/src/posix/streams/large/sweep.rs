//! The removal of blobs without a base file: those of files that local programs have deleted, and
//! those that a crash has left.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proto::path::StreamName;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir, flock, fstat, openat, unlinkat};
use rustix::io::Errno;

use super::blob::{self, DIRECTORY, Notes};
use super::pointer::{self, BlobId};
use crate::identity;
use crate::posix::directory::Directory;
use crate::posix::file_ref::FileRef;
use crate::posix::lasting_handle;
use crate::posix::streams::xattr;

/// Time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Minimum age of a blob that a sweep removes: a younger one may not have its pointer yet.
const MIN_AGE: Duration = Duration::from_secs(10 * 60);
/// Length of the buffer for entries of a directory in bytes.
const BUFFER: usize = 32 << 10;

/// The sweeps of a share.
#[derive(Debug, Default)]
pub(in crate::posix) struct Sweeps {
    /// Start of the last sweep.
    last: Mutex<Option<Instant>>,
}

impl Sweeps {
    /// Starts a sweep on a thread of its own, at the first call and then once a day.
    pub(in crate::posix) fn start_if_due(&self, root: &Arc<Directory>) {
        if !self.is_due(Instant::now()) {
            return;
        }
        let root = root.clone();
        let run = move || match sweep(&root, MIN_AGE) {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "removed data of named streams without a file"),
            Err(error) => tracing::warn!(%error, "cannot look for data of deleted named streams"),
        };
        let thread = std::thread::Builder::new().name("stream-sweep".to_owned());
        if let Err(error) = thread.spawn(run) {
            tracing::warn!(%error, "cannot start the thread that looks for deleted named streams");
        }
    }

    /// Whether a sweep is due. It then counts as started.
    fn is_due(&self, now: Instant) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

/// Removes the blobs of a share without a base file that are at least `min_age` old. Returns their
/// number. Does nothing without CAP_DAC_READ_SEARCH, which the lookup of a base file needs.
pub(in crate::posix) fn sweep(root: &Directory, min_age: Duration) -> io::Result<usize> {
    identity::own().map_err(|status| io::Error::other(format!("{status:?}")))?;
    let mount = blob::open_directory(&root.fd, ".")?;
    let blobs = match blob::open_directory(&mount, DIRECTORY) {
        Err(Errno::NOENT) => return Ok(0),
        blobs => blobs?,
    };
    blob::check_directory(&blobs)?;
    let sweep = Sweep {
        root,
        mount,
        min_age,
    };
    let mut count = 0;
    for shard in names(&blobs)? {
        let Ok(shard) = blob::open_directory(&blobs, &shard) else {
            continue;
        };
        for name in names(&shard)? {
            match sweep.visit(&shard, &name) {
                Ok(is_removed) => count += usize::from(is_removed),
                Err(Errno::PERM) => return Ok(count),
                Err(error) => tracing::debug!(name, %error, "cannot check a named stream"),
            }
        }
    }
    Ok(count)
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
}

struct Sweep<'a> {
    root: &'a Directory,
    /// The root, open for reading.
    mount: OwnedFd,
    min_age: Duration,
}

impl Sweep<'_> {
    /// Checks a blob, and removes it if it has no base file. Returns whether it did.
    fn visit(&self, shard: &OwnedFd, name: &str) -> Result<bool, Errno> {
        let Some(id) = BlobId::parse(name) else {
            return Ok(false);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(shard, name, flags, Mode::empty())?;
        let is_locked = flock(&fd, FlockOperation::NonBlockingLockExclusive).is_err();
        if is_locked || !self.is_old(&fd)? {
            return Ok(false);
        }
        let Notes { owner, moving } = blob::notes(&fd)?;
        let is_used = match owner {
            // A crash during the creation.
            None => false,
            Some(owner) => match self.base_of(&owner)? {
                BaseFile::Unknown => true,
                BaseFile::Deleted => false,
                BaseFile::Found(base) => self.has_pointer(&base, &id, moving.as_deref())?,
            },
        };
        if !is_used {
            unlinkat(shard, name, AtFlags::empty())?;
        }
        Ok(!is_used)
    }

    /// Whether a blob has not changed for the minimum age.
    fn is_old(&self, fd: &OwnedFd) -> Result<bool, Errno> {
        let stat = fstat(fd)?;
        let changed = u64::try_from(stat.st_ctime).unwrap_or(0);
        let changed = UNIX_EPOCH + Duration::from_secs(changed);
        let age = SystemTime::now().duration_since(changed);
        Ok(age.is_ok_and(|age| age >= self.min_age))
    }

    /// Opens the base file with this handle. Fails with EPERM without CAP_DAC_READ_SEARCH.
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
                Some(errno) => Err(errno),
            },
        }
    }

    /// Whether a file has a pointer to a blob. Sets the pointer if a crash has prevented that: see
    /// `displace` in the module above.
    fn has_pointer(&self, fd: &OwnedFd, id: &BlobId, moving: Option<&[u8]>) -> Result<bool, Errno> {
        let file = FileRef {
            fd,
            volume: &self.root.volume,
            is_path: true,
            token: &identity::process_token(),
            may_set_attributes: true,
        };
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
    }
}
