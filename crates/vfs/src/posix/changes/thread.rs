//! The thread that reads the kernel's events, maintains the tree of marks, and calls the listener.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use proto::file::LocalEvent;
use ring::{FileHandle, file_handle};
use rustix::fs::OFlags;

use super::shared::{Job, lock};
use super::tree::Route;
use super::watcher::{GATHER, Scan, Watcher};
use crate::identity;

impl Watcher {
    /// Runs until the share ends.
    pub(super) fn run(mut self) {
        if identity::own().is_err() {
            tracing::error!(
                "the thread for change notifications cannot switch to the credentials of the server"
            );
            return;
        }
        loop {
            self.shared.queue.wait();
            if self.shared.must_end.load(Ordering::Relaxed) {
                return;
            }
            let has_reported = self.process();
            if !has_reported {
                std::thread::sleep(GATHER);
            }
        }
    }

    /// Processes all pending jobs and events. Returns whether it reported any change.
    fn process(&mut self) -> bool {
        let mut has_reported = false;
        loop {
            while self.run_job() {}
            let events = self.shared.queue.read().unwrap_or_else(|error| {
                tracing::error!(%error, "cannot read the fanotify queue");
                Vec::new()
            });
            let is_drained = events.is_empty();
            events.iter().for_each(|event| self.take(event));
            if std::mem::take(&mut self.has_overflowed) {
                self.rescan_all();
            }
            self.report_lost();
            has_reported |= self.flush();
            if is_drained {
                self.found.clear();
                self.moved.clear();
                if !self.retry_misplaced() && lock(&self.shared.state).jobs.is_empty() {
                    return has_reported;
                }
            }
        }
    }

    /// Runs one pending job. Returns whether there was one.
    fn run_job(&mut self) -> bool {
        let (work, left) = {
            let mut state = lock(&self.shared.state);
            let must_sweep = std::mem::take(&mut state.must_sweep);
            let left = must_sweep.then(|| state.tree.sweep());
            (state.jobs.pop_front(), left.unwrap_or_default())
        };
        for left in left {
            self.unmark(&left.handle, left.route);
        }
        match work {
            None => return false,
            Some(Job::Report(directory)) => self.scan(directory, Scan::Report),
            Some(Job::MarkTree(directory, since)) => {
                self.scan(directory, Scan::Since(since));
                if self
                    .shared
                    .trees_being_marked
                    .fetch_sub(1, Ordering::Relaxed)
                    == 1
                {
                    lock(&self.shared.state).changed_by_us.clear();
                }
            }
        }
        true
    }

    /// Removes the mark of a directory. If the directory cannot be found, its mark ends with it;
    /// events until then are discarded.
    fn unmark(&self, handle: &FileHandle, route: Option<Route>) {
        let Some(route) = route else { return };
        let Ok(fd) = self.open(&route.from, &route.path, OFlags::PATH) else {
            return;
        };
        let is_it = file_handle(fd.as_fd()).is_ok_and(|found| found == *handle);
        // A new watch may exist by now.
        let state = lock(&self.shared.state);
        if is_it && !state.tree.contains(handle) {
            let _ = self.shared.queue.unmark(fd.as_fd());
        }
    }

    /// Events were lost: reads the whole tree again, and reports a loss to all watches.
    pub(super) fn rescan_all(&mut self) {
        tracing::debug!("some changes are lost");
        self.outgoing.clear();
        self.found.clear();
        self.moved.clear();
        self.misplaced.clear();
        let roots = lock(&self.shared.state).tree.roots();
        let mut seen = HashSet::new();
        for root in roots {
            seen.extend(self.scan_all(root, Scan::Rescan));
        }
        lock(&self.shared.state).tree.keep_only(&seen);
        self.outgoing.push(LocalEvent::Lost(None));
    }

    /// Reports a loss if some directories have no mark.
    fn report_lost(&mut self) {
        if std::mem::take(&mut lock(&self.shared.state).is_lost) {
            // The watches of a directory outside the tree are unknown, so all receive the report.
            self.outgoing.push(LocalEvent::Lost(None));
        }
    }

    pub(super) fn flush(&mut self) -> bool {
        if self.outgoing.is_empty() {
            return false;
        }
        (self.listener)(&self.outgoing);
        self.outgoing.clear();
        true
    }
}
