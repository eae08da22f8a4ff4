//! The root directory of a share.
//!
//! A share is a path. The directory at that path changes when a disk is mounted there, unmounted or
//! replaced, or when the directory is removed and created again. So each open of a file looks the
//! path up. An open keeps the root that it started from: its renames and links stay there.
//!
//! Only opens hold a descriptor of the root. Without them, nothing of the share prevents the
//! administrator from unmounting the disk.
//!
//! The user of an operation may lack the permission to search the directories above the root. Then
//! the server looks it up with its own credentials: the configuration names the path.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use proto::token::Token;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::directory::Directory;
use super::stat::{Stat, as_server};
use super::volume::Volume;
use crate::Effort;

/// Time between two log lines about a missing root.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The root directory of a share, by its path.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    last: Mutex<Last>,
}

/// The last root that was found.
#[derive(Debug, Default)]
struct Last {
    directory: Option<Weak<Directory>>,
    /// Its inode and mount. Valid also after the last open was closed.
    stat: Option<Stat>,
    /// When the log received that the root is missing; `None` while it is not.
    missing_since: Option<Instant>,
}

impl Root {
    /// A root at a path, which need not exist. The path of a later working directory of the process
    /// does not matter.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: std::path::absolute(path)?,
            last: Mutex::default(),
        })
    }

    /// Fails with the reason if the root cannot be opened with the credentials of the server.
    pub(super) fn check(&self) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat2(CWD, &self.path, flags, Mode::empty(), ResolveFlags::empty())?;
        Ok(())
    }

    /// Opens the directory at the path; from the kernel's caches only with [`Effort::Cached`].
    pub(super) fn open(&self, token: &Arc<Token>, effort: Effort) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let rules = match effort {
            Effort::Cached => ResolveFlags::CACHED,
            Effort::Blocking => ResolveFlags::empty(),
        };
        let open = || openat2(CWD, &self.path, flags, Mode::empty(), rules);
        match open() {
            Err(Errno::ACCESS | Errno::PERM) => as_server(token, open),
            result => result,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs that the root is missing, at most once a minute.
    pub(super) fn log_missing(&self, errno: Errno) {
        let mut last = self.lock();
        let is_known = |since: Instant| since.elapsed() < LOG_INTERVAL;
        if last.missing_since.is_some_and(is_known) {
            return;
        }
        last.missing_since = Some(Instant::now());
        drop(last);
        let (path, error) = (self.path.display(), errno);
        tracing::error!(%path, %error, "the directory of a share is missing: refusing clients");
    }
}

impl Root {
    /// The directory that opens share while the root stays the same. `volume` returns its file
    /// system; its argument is whether the root is another directory than before.
    pub(super) fn enter(
        &self,
        fd: OwnedFd,
        stat: Stat,
        volume: impl FnOnce(&OwnedFd, bool) -> Arc<Volume>,
    ) -> Arc<Directory> {
        let mut last = self.lock();
        let is_same = |last: &Stat| last.key() == stat.key() && last.mount() == stat.mount();
        let is_same = last.stat.as_ref().is_some_and(is_same);
        let path = self.path.display();
        if last.missing_since.take().is_some() {
            tracing::info!(%path, "the directory of the share exists again");
        }
        let directory = last.directory.as_ref().and_then(Weak::upgrade);
        if let Some(directory) = directory.filter(|_| is_same) {
            return directory;
        }
        if last.stat.is_some() && !is_same {
            tracing::info!(%path, "another directory or disk is now at the path of the share");
        }
        let volume = volume(&fd, !is_same);
        if !volume.stores_attributes && !is_same {
            tracing::warn!(%path, "no extended attributes: DOS attributes are not stored");
        }
        let directory = Arc::new(Directory {
            key: stat.key(),
            fd: Arc::new(fd),
            volume,
        });
        last.directory = Some(Arc::downgrade(&directory));
        last.stat = Some(stat);
        directory
    }
}
