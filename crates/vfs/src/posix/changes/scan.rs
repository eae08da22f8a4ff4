//! New directories and directories with a new watch: they get a mark first, and are read afterward.

use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use proto::file::{FileKind, LocalEvent};
use ring::{Event, FileHandle, file_handle};
use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, openat2};
use rustix::io::Errno;
use wire::fscc::FileAction;

use super::super::mapping::disk_path;
use super::super::scan::BUFFER;
use super::super::stat::{self, kind_of};
use super::events::of_name;
use super::shared::{self, DIRECTORIES_MAX, lock};
use super::watcher::{GATHER, Misplaced, REMEMBERED_MAX, Scan, Watcher};

/// Maximum number of consecutive retries for misplaced directories.
const RETRIES_MAX: u32 = 8;

/// The result of a search for a directory.
enum Lookup {
    Found(OwnedFd),
    /// The name refers to another directory, or does not exist.
    Moved,
    /// The directory is not accessible, or no longer watched.
    Unavailable,
}

/// A directory that was added to the tree.
struct Entered {
    handle: FileHandle,
    /// Whether a tree watch covered the directory before.
    was_covered: bool,
    /// Time of its last change or rename.
    changed: Duration,
}

impl Watcher {
    /// Searches again for misplaced directories. Returns whether there were any.
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
            // A removed directory is no longer in the tree.
            match misplaced {
                Misplaced::Known(handle, scan) => self.scan(handle, scan),
                Misplaced::New(event, parent, name, scan) => {
                    self.add_directory(&event, &parent, &name, scan);
                }
            }
        }
        true
    }

    /// Handles a directory that was created or moved here. If a tree watch covers it, it and its
    /// descendants get marks.
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
            // Only changes after the move are lost; a rename updates this time.
            let scan = match scan {
                Scan::MovedIn => Scan::Since(entered.changed),
                scan => scan,
            };
            self.scan(entered.handle, scan);
        }
    }

    /// Opens a directory that a tree watch covers.
    fn find(&self, handle: &FileHandle, flags: OFlags) -> Lookup {
        let route = {
            let state = lock(&self.shared.state);
            // The watch may have ended in the meantime.
            let is_covered = state.tree.is_covered(handle);
            is_covered.then(|| state.tree.route(handle)).flatten()
        };
        let Some(route) = route else {
            return Lookup::Unavailable;
        };
        match self.open(&route.from, &route.path, flags) {
            Ok(fd) => match file_handle(fd.as_fd()) {
                Ok(found) if found == *handle => Lookup::Found(fd),
                Ok(_) => Lookup::Moved,
                Err(_) => Lookup::Unavailable,
            },
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Lookup::Moved,
            // The directory is not readable; its contents cannot be reported to anyone.
            Err(_) => Lookup::Unavailable,
        }
    }

    pub(super) fn scan(&mut self, root: FileHandle, scan: Scan) {
        self.scan_all(root, scan);
    }

    /// Reads a marked directory and all its descendants, which get marks. Returns all directories
    /// it read.
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

    /// Reads a directory. Returns its subdirectories to read next.
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
            let on_disk = entry.file_name().to_bytes();
            if matches!(on_disk, b"." | b"..") {
                continue;
            }
            let Some(name) = self.shared.mapping.to_wire(on_disk) else {
                continue;
            };
            let name = &*name;
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Unknown => stat::stat_name(fd, on_disk)
                    .is_ok_and(|stat| kind_of(&stat) == FileKind::Directory),
                _ => false,
            };
            if let Scan::Report = scan {
                self.report_found(handle, name, is_directory);
            }
            if is_directory {
                // If a directory was covered before, its descendants are covered or about to be.
                let entered = self.enter(fd, handle, name, None);
                let is_new = |it: &Entered| !it.was_covered || matches!(scan, Scan::Rescan);
                below.extend(entered.filter(is_new).map(|entered| entered.handle));
            }
        }
        below
    }

    /// Adds a directory to the tree and marks it. With `wanted`, it does so only for that
    /// directory: another one may have the name by now, for which a further event exists.
    fn enter(
        &self,
        parent_fd: &OwnedFd,
        parent: &FileHandle,
        name: &str,
        wanted: Option<&FileHandle>,
    ) -> Option<Entered> {
        let fd = self.open(parent_fd, name, OFlags::PATH).ok()?;
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

    /// Reports a loss if a directory changed between the start of the watch and its mark.
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

    /// Whether a name still refers to the file of an event.
    pub(super) fn is_target(&self, event: &Event, directory: &FileHandle, name: &str) -> bool {
        let route = lock(&self.shared.state).tree.route(directory);
        let opened = route.and_then(|route| {
            let path = self.open(&route.from, &route.path, OFlags::PATH);
            path.ok()
        });
        let on_disk = self.shared.mapping.to_disk(name);
        let found = opened.zip(on_disk).and_then(|(fd, name)| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat2(fd, &*name, flags, Mode::empty(), ResolveFlags::BENEATH).ok()
        });
        let found = found.and_then(|fd| file_handle(fd.as_fd()).ok());
        found.is_some() && found == event.target
    }

    /// Reports an entry that a scan found, and remembers it, because an event for it may follow.
    fn report_found(&mut self, directory: &FileHandle, name: &str, is_directory: bool) {
        if self.found.len() >= REMEMBERED_MAX {
            // An overflow is better than a duplicate report.
            self.has_overflowed = true;
            return;
        }
        self.found.insert((directory.clone(), name.to_owned()));
        self.report_change(directory, name, FileAction::ADDED, of_name(is_directory));
    }

    /// Opens a directory by its path relative to another one. Links are not followed.
    pub(super) fn open(&self, from: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = match path {
            "" => Cow::Borrowed(&b"."[..]),
            path => disk_path(self.shared.mapping, path).ok_or(Errno::NOENT)?,
        };
        let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        openat2(from, &*path, flags, Mode::empty(), rules)
    }

    /// Remembers a directory for a later search.
    fn defer(&mut self, misplaced: Misplaced) {
        match self.misplaced.len() < REMEMBERED_MAX {
            true => self.misplaced.push(misplaced),
            false => self.has_overflowed = true,
        }
    }
}

/// The time of a file, as a duration since 1970-01-01 UTC.
fn time(time: &rustix::fs::StatxTimestamp) -> Duration {
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), time.tv_nsec)
}
