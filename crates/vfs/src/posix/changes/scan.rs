//! Directories that come into being or are about to be watched: marked first, then read.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use proto::file::{FileKind, LocalEvent};
use ring::{Event, FileHandle, file_handle};
use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, openat2};
use rustix::io::Errno;
use wire::fscc::FileAction;

use super::super::scan::BUFFER;
use super::super::stat::{self, kind_of};
use super::events::{is_shown, of_name};
use super::shared::{self, DIRECTORIES_MAX, lock};
use super::watcher::{GATHER, Misplaced, REMEMBERED_MAX, Scan, Watcher};

/// How often in a row directories are looked for that are not where they should be.
const RETRIES_MAX: u32 = 8;

/// What came of opening a directory.
enum Lookup {
    Found(OwnedFd),
    /// Another one has its name, or none.
    Moved,
    /// It is not to be had.
    Unavailable,
}

/// A directory that was put into the tree.
struct Entered {
    handle: FileHandle,
    /// Whether somebody watched all below it before.
    was_covered: bool,
    /// When it was changed or renamed last.
    changed: Duration,
}

impl Watcher {
    /// Looks again for directories that were not where they should have been. Whether there were
    /// any.
    pub(super) fn retry_misplaced(&mut self) -> bool {
        if self.misplaced.is_empty() {
            self.retries = 0;
            return false;
        }
        self.retries += 1;
        if self.retries > RETRIES_MAX {
            self.retries = 0;
            self.rescan_all();
            return true;
        }
        std::thread::sleep(GATHER);
        for misplaced in std::mem::take(&mut self.misplaced) {
            // One that is gone is in the tree no more.
            match misplaced {
                Misplaced::Known(handle, scan) => self.scan(handle, scan),
                Misplaced::New(event, parent, name, scan) => {
                    self.add_directory(&event, &parent, &name, scan);
                }
            }
        }
        true
    }

    /// A directory has come into being, or from elsewhere. Where all that is below counts it gets
    /// its mark, and so does what is in it.
    pub(super) fn add_directory(
        &mut self,
        event: &Event,
        parent: &FileHandle,
        name: &str,
        scan: Scan,
    ) {
        let parent_fd = match self.find(parent, OFlags::PATH) {
            Lookup::Found(fd) => fd,
            Lookup::Moved => {
                let (parent, name) = (parent.clone(), name.to_owned());
                self.defer(Misplaced::New(event.clone(), parent, name, scan));
                return;
            }
            Lookup::Unavailable => return,
        };
        let entered = self.enter(&parent_fd, parent, name, event.target.as_ref());
        if let Some(entered) = entered.filter(|entered| !entered.was_covered) {
            // From when it came: a rename changes that time.
            let scan = match scan {
                Scan::MovedIn => Scan::Since(entered.changed),
                scan => scan,
            };
            self.scan(entered.handle, scan);
        }
    }

    /// Opens a directory that is watched with all below it.
    fn find(&self, handle: &FileHandle, flags: OFlags) -> Lookup {
        let route = {
            let state = lock(&self.shared.state);
            // Somebody may have stopped to watch meanwhile.
            let is_covered = state.tree.is_covered(handle);
            is_covered.then(|| state.tree.route(handle)).flatten()
        };
        let Some(route) = route else {
            return Lookup::Unavailable;
        };
        match open(&route.from, &route.path, flags) {
            Ok(fd) => match file_handle(fd.as_fd()) {
                Ok(found) if found == *handle => Lookup::Found(fd),
                Ok(_) => Lookup::Moved,
                Err(_) => Lookup::Unavailable,
            },
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Lookup::Moved,
            // It may not be read. Nor can what is in it be told to anybody.
            Err(_) => Lookup::Unavailable,
        }
    }

    pub(super) fn scan(&mut self, root: FileHandle, scan: Scan) {
        self.scan_all(root, scan);
    }

    /// Reads a directory that has its mark and all below it, which get theirs. All that were seen.
    pub(super) fn scan_all(&mut self, root: FileHandle, scan: Scan) -> Vec<FileHandle> {
        let mut seen = Vec::new();
        let mut left = vec![root];
        while let Some(handle) = left.pop() {
            match self.find(&handle, OFlags::RDONLY | OFlags::NONBLOCK) {
                Lookup::Found(fd) => left.extend(self.read(&fd, &handle, scan, seen.is_empty())),
                Lookup::Moved => self.defer(Misplaced::Known(handle.clone(), scan)),
                Lookup::Unavailable => {}
            }
            seen.push(handle);
            if seen.len() > DIRECTORIES_MAX {
                break;
            }
        }
        seen
    }

    /// Reads a directory. Those in it that are to be read, too.
    fn read(
        &mut self,
        fd: &OwnedFd,
        handle: &FileHandle,
        scan: Scan,
        is_root: bool,
    ) -> Vec<FileHandle> {
        if let Scan::Since(since) = scan
            && !is_root
        {
            self.check_unchanged(fd, handle, since);
        }
        let mut below = Vec::new();
        let mut buffer = Box::new_uninit_slice(BUFFER);
        let mut entries = RawDir::new(fd, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if matches!(name, "." | "..") || !is_shown(name) {
                continue;
            }
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Unknown => stat::stat_name(fd, name)
                    .is_ok_and(|stat| kind_of(&stat) == FileKind::Directory),
                _ => false,
            };
            if let Scan::Report = scan {
                self.report_found(handle, name, is_directory);
            }
            if is_directory {
                // Of one that was covered all that is below it is, or is about to be.
                let entered = self.enter(fd, handle, name, None);
                let is_new = |it: &Entered| !it.was_covered || matches!(scan, Scan::Rescan);
                below.extend(entered.filter(is_new).map(|entered| entered.handle));
            }
        }
        below
    }

    /// Puts a directory into the tree and sets its mark: only this one, if one is named, for by now
    /// another may have the name. Then an event will tell of that one.
    fn enter(
        &self,
        parent_fd: &OwnedFd,
        parent: &FileHandle,
        name: &str,
        wanted: Option<&FileHandle>,
    ) -> Option<Entered> {
        let fd = open(parent_fd, name, OFlags::PATH).ok()?;
        let handle = file_handle(fd.as_fd()).ok()?;
        if wanted.is_some_and(|wanted| *wanted != handle) {
            return None;
        }
        let stat = stat::stat(&fd).ok()?;
        let was_covered = {
            let mut state = lock(&self.shared.state);
            if !state.tree.contains(&handle) && !self.shared.has_capacity(&mut state) {
                return None;
            }
            let was_covered = state.tree.is_covered(&handle);
            state.tree.attach(&handle, stat.key(), parent, name);
            was_covered
        };
        match self.shared.queue.mark(fd.as_fd()) {
            Ok(()) => {}
            Err(error) if shared::is(&error, Errno::NOSPC) => {
                self.shared.warn_full("fs.fanotify.max_user_marks");
                lock(&self.shared.state).is_lost = true;
            }
            Err(error) => tracing::debug!(%error, "cannot watch a directory"),
        }
        Some(Entered {
            handle,
            was_covered,
            changed: time(&stat.0.stx_ctime),
        })
    }

    /// What changed in a directory before it got its mark, and after its changes were to be told,
    /// is lost.
    fn check_unchanged(&mut self, fd: &OwnedFd, handle: &FileHandle, since: Duration) {
        let Ok(stat) = stat::stat(fd) else { return };
        let state = lock(&self.shared.state);
        if time(&stat.0.stx_mtime) <= since || state.changed_by_us.contains(&stat.key()) {
            return;
        }
        let watched = state.tree.watched(handle);
        drop(state);
        for lost in watched.into_iter().map(|key| LocalEvent::Lost(Some(key))) {
            if self.outgoing.last() != Some(&lost) {
                self.outgoing.push(lost);
            }
        }
    }

    /// Whether a name stands for what an event is about.
    pub(super) fn is_target(&self, event: &Event, directory: &FileHandle, name: &str) -> bool {
        let route = lock(&self.shared.state).tree.route(directory);
        let opened = route.and_then(|route| open(&route.from, &route.path, OFlags::PATH).ok());
        let found = opened.and_then(|fd| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat2(fd, name, flags, Mode::empty(), ResolveFlags::BENEATH).ok()
        });
        let found = found.and_then(|fd| file_handle(fd.as_fd()).ok());
        found.is_some() && found == event.target
    }

    /// Tells of what a scan found. An event may come to tell it again.
    fn report_found(&mut self, directory: &FileHandle, name: &str, is_directory: bool) {
        if self.found.len() >= REMEMBERED_MAX {
            // Rather that than to forget which was told.
            self.has_overflowed = true;
            return;
        }
        self.found.insert((directory.clone(), name.to_owned()));
        self.report_change(directory, name, FileAction::ADDED, of_name(is_directory));
    }

    /// Looks for a directory again later.
    fn defer(&mut self, misplaced: Misplaced) {
        match self.misplaced.len() < REMEMBERED_MAX {
            true => self.misplaced.push(misplaced),
            false => self.has_overflowed = true,
        }
    }
}

/// Opens a directory by its path from another; links are not followed.
pub(super) fn open(from: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { "." } else { path };
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    openat2(from, path, flags, Mode::empty(), rules)
}

/// A time of a file since 1970.
fn time(time: &rustix::fs::StatxTimestamp) -> Duration {
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), time.tv_nsec)
}
