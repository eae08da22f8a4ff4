//! The thread that reads what the kernel tells, keeps the tree of marks, and tells the server.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::file::LocalEvent;
use ring::{Entry, FileHandle, file_handle};
use rustix::fs::OFlags;

use super::scan::{Astray, Scan, open};
use super::tree::Way;
use super::{Shared, Work, lock};
use crate::{Listener, identity};

/// What is remembered of events until the queue is empty, at most: names that a scan told and an
/// event may tell again; what was renamed; what was not found.
pub(super) const REMEMBERED_MAX: usize = 65_536;
/// How long to wait where all events were our own, so that they do not wake us one by one: the
/// kernel makes one of those that are alike. What others do is told that much later at most.
pub(super) const GATHER: Duration = Duration::from_millis(10);

/// The thread.
pub(super) struct Watcher {
    pub(super) shared: Arc<Shared>,
    pub(super) listener: Listener,
    /// To be told next.
    pub(super) news: Vec<LocalEvent>,
    /// What a scan told: events that tell it again are in the queue by then.
    pub(super) found: HashSet<(FileHandle, String)>,
    /// What was renamed since the queue was empty, and from where.
    pub(super) moved: HashSet<(FileHandle, Option<Entry>)>,
    /// Directories that were not where they were looked for: events to come may say where they are.
    pub(super) astray: Vec<Astray>,
    /// How often in a row they were looked for.
    pub(super) searches: u32,
    /// Whether events were lost, or came so that nobody can tell what happened.
    pub(super) has_overflowed: bool,
}

impl Watcher {
    pub(super) fn new(shared: Arc<Shared>, listener: Listener) -> Self {
        Self {
            shared,
            listener,
            news: Vec::new(),
            found: HashSet::new(),
            moved: HashSet::new(),
            astray: Vec::new(),
            searches: 0,
            has_overflowed: false,
        }
    }

    /// Runs until the share ends.
    pub(super) fn run(mut self) {
        if identity::own().is_err() {
            tracing::error!("the thread that watches for changes cannot become the server");
            return;
        }
        loop {
            self.shared.queue.wait();
            if self.shared.ends.load(Ordering::Relaxed) {
                return;
            }
            let has_told = self.turn();
            if !has_told {
                std::thread::sleep(GATHER);
            }
        }
    }

    /// Does all that there is to do by now. Whether any of it was told.
    fn turn(&mut self) -> bool {
        let mut has_told = false;
        loop {
            while self.work() {}
            let events = self.shared.queue.read().unwrap_or_else(|error| {
                tracing::error!(%error, "the queue of changes cannot be read");
                Vec::new()
            });
            let is_drained = events.is_empty();
            events.iter().for_each(|event| self.take(event));
            if std::mem::take(&mut self.has_overflowed) {
                self.start_again();
            }
            self.tell_lost();
            has_told |= self.flush();
            if is_drained {
                self.found.clear();
                self.moved.clear();
                if !self.search() && lock(&self.shared.state).work.is_empty() {
                    return has_told;
                }
            }
        }
    }

    /// Does one thing that others asked for. Whether there was one.
    fn work(&mut self) -> bool {
        let (work, left) = {
            let mut state = lock(&self.shared.state);
            let must_sweep = std::mem::take(&mut state.must_sweep);
            let left = must_sweep.then(|| state.tree.sweep());
            (state.work.pop_front(), left.unwrap_or_default())
        };
        for left in left {
            self.unmark(&left.handle, left.way);
        }
        match work {
            None => return false,
            Some(Work::Tell(directory)) => self.scan(directory, Scan::Tell),
            Some(Work::Arm(directory, since)) => {
                self.scan(directory, Scan::Since(since));
                if self.shared.arming.fetch_sub(1, Ordering::Relaxed) == 1 {
                    lock(&self.shared.state).own.clear();
                }
            }
        }
        true
    }

    /// Ends a mark. Where the directory is not to be found any more the mark ends with it, and
    /// what it tells until then is nobody's.
    fn unmark(&self, handle: &FileHandle, way: Option<Way>) {
        let Some(fd) = way.and_then(|way| open(&way.from, &way.path, OFlags::PATH).ok()) else {
            return;
        };
        let is_it = file_handle(fd.as_fd()).is_ok_and(|found| found == *handle);
        // Somebody may watch it again by now.
        let state = lock(&self.shared.state);
        if is_it && !state.tree.contains(handle) {
            let _ = self.shared.queue.unmark(fd.as_fd());
        }
    }

    /// Events were lost: the tree is read anew, then everybody looks for themselves.
    pub(super) fn start_again(&mut self) {
        tracing::debug!("some changes are lost");
        self.news.clear();
        self.found.clear();
        self.moved.clear();
        self.astray.clear();
        let roots = lock(&self.shared.state).tree.roots();
        let mut seen = HashSet::new();
        for root in roots {
            seen.extend(self.scan_all(root, Scan::Again));
        }
        lock(&self.shared.state).tree.keep_only(&seen);
        self.news.push(LocalEvent::Lost(None));
    }

    /// Tells that changes of some directories are not seen.
    fn tell_lost(&mut self) {
        if std::mem::take(&mut lock(&self.shared.state).is_lost) {
            // Of a directory that is not in the tree it is not known who watches it.
            self.news.push(LocalEvent::Lost(None));
        }
    }

    pub(super) fn flush(&mut self) -> bool {
        if self.news.is_empty() {
            return false;
        }
        (self.listener)(&self.news);
        self.news.clear();
        true
    }
}
