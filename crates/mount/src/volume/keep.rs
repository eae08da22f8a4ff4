//! Opens that stay after the last close of a program: when they are kept, used again and closed.

use std::sync::Arc;

use smbeam_client::{LeaseState, Wait as _};

use super::Volume;
use crate::handles::lock;
use crate::kept::KEEP;
use crate::names::join;
use crate::opens::{OpenFile, Opens};
use crate::options::Cache;

/// The rights of a lease under which an open may stay. Without READ_CACHING it protects no pages.
const KEEPING: LeaseState = LeaseState(LeaseState::READ_CACHING.0 | LeaseState::HANDLE_CACHING.0);

impl Volume {
    /// Keeps an open that a program has closed, if its lease permits that. A file that was written
    /// is closed: only then do other clients see the time of its last write. The second value says
    /// whether the caller must run [`Self::sweep`].
    pub(super) async fn keep(&self, open: &Arc<OpenFile>) -> (bool, bool) {
        let lease = open.file.lease();
        let may_keep = self.options.cache == Cache::Strict
            && !open.has_written()
            && lease.is_some_and(|lease| lease.state.contains(KEEPING))
            && self.path(open.ino).is_ok()
            && lock(&open.opens.locks.holder).is_none();
        if !may_keep || !open.opens.keep(open) {
            return (false, false);
        }
        let (oldest, needs_sweeper) = self.kept.add(Arc::clone(open));
        if let Some(oldest) = oldest {
            self.close_kept(&oldest).await;
        }
        // A break that came meanwhile has not seen the file.
        let lease = open.file.lease();
        if !lease.is_some_and(|lease| lease.state.contains(KEEPING)) {
            self.release_kept(&open.opens).await;
        }
        (true, needs_sweeper)
    }

    /// Returns a kept open of an inode with this access, which is kept no more.
    pub(super) fn reuse(&self, opens: &Opens, access: (bool, bool)) -> Option<Arc<OpenFile>> {
        let suits = |open: &OpenFile| (open.is_readable, open.is_writable) == access;
        let open = opens.take_kept(suits)?;
        self.kept.take(|it| std::ptr::eq(it, &raw const *open));
        let lease = open.file.lease();
        if lease.is_some_and(|lease| lease.state.contains(KEEPING)) {
            return Some(open);
        }
        // The break closes its other opens, and this one is dropped: that closes it too.
        None
    }

    /// Closes the kept opens of an inode.
    pub(crate) async fn release_kept(&self, opens: &Opens) {
        while let Some(open) = opens.take_kept(|_| true) {
            self.kept.take(|it| std::ptr::eq(it, &raw const *open));
            close(&open).await;
        }
        opens.closed();
    }

    /// Closes the kept opens of the file at a name, or those of the directory at a name and below
    /// it.
    pub(super) async fn release_kept_at(&self, parent: u64, name: &str) {
        let (path, child, is_directory) = {
            let inodes = lock(&self.inodes);
            let path = inodes.path(parent).map(|parent| join(&parent, name));
            let child = inodes.child(parent, name);
            let is_directory = child.is_some_and(|ino| inodes.is_directory(ino));
            (
                path,
                child.and_then(|ino| inodes.opens(ino).ok()),
                is_directory,
            )
        };
        if let Some(opens) = child {
            self.release_kept(&opens).await;
        }
        let Some(path) = path.ok().filter(|_| is_directory) else {
            return;
        };
        self.release_directories(&path).await;
        let below = format!("{path}/");
        let is_below = |open: &OpenFile| {
            let at = self.path(open.ino);
            at.is_ok_and(|at| at.starts_with(&below))
        };
        for open in self.kept.take(is_below) {
            self.close_kept(&open).await;
        }
    }

    /// The lease is losing HANDLE_CACHING. Blocks the thread until the kept opens are closed.
    pub(crate) fn end_keeping(&self, opens: &Opens) {
        self.release_kept(opens).wait();
    }

    /// Closes kept opens after their time, until none is left.
    pub(crate) async fn sweep(&self) {
        while let Some(ended) = self.kept.expired() {
            for open in ended {
                self.close_kept(&open).await;
            }
            self.timer.sleep(KEEP / 4).await;
        }
    }

    /// Closes an open that left the list of the mount, unless another task uses it by now.
    async fn close_kept(&self, open: &Arc<OpenFile>) {
        let is_same = |it: &OpenFile| std::ptr::eq(it, &raw const **open);
        if open.opens.take_kept(is_same).is_some() {
            close(open).await;
            open.opens.closed();
        }
    }
}

async fn close(open: &OpenFile) {
    if let Err(error) = open.file.close().await {
        tracing::debug!(%error, path = open.file.path(), "a kept file was not closed");
    }
}
