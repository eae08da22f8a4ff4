//! The thread that reads what the kernel tells, keeps the tree of marks, and tells the server.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::effect::{FileKind, LocalChange, LocalEvent};
use ring::{Entry, Event, FileHandle, file_handle};
use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, openat2};
use rustix::io::Errno;
use wire::change_notify::CompletionFilter;
use wire::fscc::FileAction;

use super::super::scan::BUFFER;
use super::super::stat::{self, kind_of};
use super::tree::Way;
use super::{DIRECTORIES_MAX, Shared, Work, lock};
use crate::{Listener, identity};

/// Events that are told at once, at most.
const TOLD_MAX: usize = 1024;
/// What is remembered of events until the queue is empty, at most: names that a scan told and an
/// event may tell again; what was renamed.
const FOUND_MAX: usize = 65_536;
/// How often in a row directories are looked for that are not where they should be.
const SEARCHES_MAX: u32 = 8;
/// How long to wait where all events were our own, so that they do not wake us one by one: the
/// kernel makes one of those that are alike. What others do is told that much later at most.
const GATHER: Duration = Duration::from_millis(10);

/// What a change of data is seen by.
const DATA: CompletionFilter =
    CompletionFilter(CompletionFilter::SIZE.0 | CompletionFilter::LAST_WRITE.0);
/// What a change of the inode is seen by: the kernel does not say what changed.
const INODE: CompletionFilter = CompletionFilter(
    CompletionFilter::ATTRIBUTES.0
        | CompletionFilter::LAST_WRITE.0
        | CompletionFilter::LAST_ACCESS.0
        | CompletionFilter::SECURITY.0
        | CompletionFilter::EA.0,
);

/// The thread.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    listener: Listener,
    /// To be told next.
    news: Vec<LocalEvent>,
    /// What a scan told: events that tell it again are in the queue by then.
    found: HashSet<(FileHandle, String)>,
    /// What was renamed since the queue was empty, and from where.
    moved: HashSet<(FileHandle, Option<Entry>)>,
    /// Directories that were not where they were looked for: events to come may say where they are.
    astray: Vec<Astray>,
    /// How often in a row they were looked for.
    searches: u32,
    /// Whether events were lost, or came so that nobody can tell what happened.
    has_overflowed: bool,
}

/// What to do with what a directory holds that just got its mark.
#[derive(Clone, Copy)]
enum Scan {
    /// It is new, and so is all that is in it.
    Tell,
    /// It was there before; what changed since then, and before its mark, is lost.
    Since(Duration),
    /// All that was known may be wrong.
    Again,
}

/// A directory that was not where it was looked for.
enum Astray {
    /// One of the tree, and how to read it.
    Known(FileHandle, Scan),
    /// A new one, by the directory and the name that it had.
    New(Event, FileHandle, String, Scan),
}

/// What came of opening a directory.
enum Found {
    Here(OwnedFd),
    /// Another one has its name, or none.
    Elsewhere,
    /// It is not to be had.
    Nowhere,
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
    fn start_again(&mut self) {
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

    fn flush(&mut self) -> bool {
        if self.news.is_empty() {
            return false;
        }
        (self.listener)(&self.news);
        self.news.clear();
        true
    }

    /// Looks again for directories that were not where they should have been. Whether there were
    /// any.
    fn search(&mut self) -> bool {
        if self.astray.is_empty() {
            self.searches = 0;
            return false;
        }
        self.searches += 1;
        if self.searches > SEARCHES_MAX {
            self.searches = 0;
            self.start_again();
            return true;
        }
        std::thread::sleep(GATHER);
        for astray in std::mem::take(&mut self.astray) {
            // One that is gone is in the tree no more.
            match astray {
                Astray::Known(handle, scan) => self.scan(handle, scan),
                Astray::New(event, parent, name, scan) => {
                    self.appear(&event, &parent, &name, scan);
                }
            }
        }
        true
    }

    /// Notes what may have come in another order than it happened. The kernel makes one event, at
    /// the place of the first, of those with the same directories, names and file: of a file that is
    /// renamed there and back and there again it tells two renames. So one that came back to where
    /// it was since the queue was empty may be anywhere.
    fn note_order(&mut self, event: &Event) {
        let Some(target) = event.target.clone() else {
            return;
        };
        if event.is_own && !event.is_directory() {
            return;
        }
        let is_back = self.moved.contains(&(target.clone(), event.entry.clone()));
        self.moved.insert((target, event.from.clone()));
        self.has_overflowed |= is_back || self.moved.len() > FOUND_MAX;
    }

    fn take(&mut self, event: &Event) {
        if event.is_overflow() {
            self.has_overflowed = true;
            return;
        }
        if event.is_renamed() {
            return self.take_rename(event);
        }
        let Some((directory, name)) = event.entry.as_ref().and_then(named) else {
            return self.take_own_attributes(event);
        };
        let filter = of_name(event.is_directory());
        let is_both = event.is_created() && event.is_deleted();
        let is_back = is_both && self.is_there(event, directory, name);
        if event.is_deleted() && is_back {
            self.tell(event, (directory, name), FileAction::REMOVED, filter);
        }
        if event.is_created() {
            self.take_new(event, directory, name);
        }
        let changed = [
            (event.is_modified(), DATA),
            (event.has_new_attributes(), INODE),
        ];
        let changed = changed.iter().filter(|(is_it, _)| *is_it);
        let seen = changed.fold(CompletionFilter::NONE, |seen, (_, filter)| seen | *filter);
        if seen != CompletionFilter::NONE {
            self.tell(event, (directory, name), FileAction::MODIFIED, seen);
        }
        if event.is_deleted() && !is_back {
            self.tell(event, (directory, name), FileAction::REMOVED, filter);
            self.forget(event);
        }
    }

    /// What changed of a directory is told of the directory alone, without its name. It is known
    /// below one that is watched as a tree, and to nobody else.
    fn take_own_attributes(&mut self, event: &Event) {
        let is_it = |entry: &&Entry| event.has_new_attributes() && entry.name == b".";
        if let Some(entry) = event.entry.as_ref().filter(is_it) {
            let place = lock(&self.shared.state)
                .tree
                .parent(&entry.directory)
                .cloned();
            if let Some((parent, name)) = place {
                self.tell(event, (&parent, &name), FileAction::MODIFIED, INODE);
            }
        }
    }

    fn take_new(&mut self, event: &Event, directory: &FileHandle, name: &str) {
        let was_found =
            !self.found.is_empty() && self.found.remove(&(directory.clone(), name.to_owned()));
        if !was_found {
            let filter = of_name(event.is_directory());
            self.tell(event, (directory, name), FileAction::ADDED, filter);
        }
        if event.is_directory() {
            // What this process made has its mark by now, but where there was no room.
            let scan = match event.is_own {
                true => Scan::Since(Duration::MAX),
                false => Scan::Tell,
            };
            self.appear(event, directory, name, scan);
        }
    }

    /// Within a directory the name changes; from one to another it goes and comes.
    fn take_rename(&mut self, event: &Event) {
        let from = event.from.as_ref().and_then(named);
        let to = event.entry.as_ref().and_then(named);
        let filter = of_name(event.is_directory());
        self.note_order(event);
        match (from, to) {
            (Some(from), Some(to)) if from.0 == to.0 => {
                self.tell_pair(event, from, to, filter);
            }
            _ => {
                if let Some(from) = from {
                    self.tell(event, from, FileAction::REMOVED, filter);
                }
                if let Some(to) = to {
                    self.tell(event, to, FileAction::ADDED, filter);
                }
            }
        }
        if event.is_directory() {
            self.move_directory(event, from, to);
        }
    }

    fn move_directory(
        &mut self,
        event: &Event,
        from: Option<(&FileHandle, &str)>,
        to: Option<(&FileHandle, &str)>,
    ) {
        let mut state = lock(&self.shared.state);
        let is_covered = |at: &(&FileHandle, &str)| state.tree.is_covered(at.0);
        let (was_covered, to) = (
            from.is_some_and(|at| is_covered(&at)),
            to.filter(is_covered),
        );
        let place = to.map(|(directory, name)| (directory.clone(), name.to_owned()));
        let target = event.target.as_ref();
        let is_known = target.is_some_and(|target| state.tree.move_to(target, place));
        state.must_sweep |= to.is_none() && is_known;
        drop(state);
        // One that was in the tree and is not known is so new that it was renamed before it was
        // looked at. One from elsewhere comes with all that it holds, of which nothing is told.
        if let Some((directory, name)) = to.filter(|_| !is_known) {
            let scan = match was_covered && !event.is_own {
                true => Scan::Tell,
                false => Scan::Since(Duration::MAX),
            };
            self.appear(event, directory, name, scan);
        }
    }

    /// A directory is gone, and perhaps somebody watched it.
    fn forget(&mut self, event: &Event) {
        let Some(target) = event.target.as_ref().filter(|_| event.is_directory()) else {
            return;
        };
        let watched = lock(&self.shared.state).tree.remove(target);
        if let Some(key) = watched.filter(|_| !event.is_own) {
            self.news.push(LocalEvent::Gone(key));
        }
    }

    /// A directory has come into being, or from elsewhere. Where all that is below counts it gets
    /// its mark, and so does what is in it.
    fn appear(&mut self, event: &Event, parent: &FileHandle, name: &str, scan: Scan) {
        let parent_fd = match self.find(parent, OFlags::PATH) {
            Found::Here(fd) => fd,
            Found::Elsewhere => {
                let (parent, name) = (parent.clone(), name.to_owned());
                self.astray
                    .push(Astray::New(event.clone(), parent, name, scan));
                return;
            }
            Found::Nowhere => return,
        };
        let entered = self.enter(&parent_fd, parent, name, event.target.as_ref());
        if let Some(entered) = entered.filter(|entered| !entered.was_covered) {
            // From when it came: a rename changes that time.
            let scan = match scan {
                Scan::Since(Duration::MAX) => Scan::Since(entered.changed),
                scan => scan,
            };
            self.scan(entered.handle, scan);
        }
    }

    /// Opens a directory that is watched with all below it.
    fn find(&self, handle: &FileHandle, flags: OFlags) -> Found {
        let way = {
            let state = lock(&self.shared.state);
            // Somebody may have stopped to watch meanwhile.
            let is_covered = state.tree.is_covered(handle);
            is_covered.then(|| state.tree.way(handle)).flatten()
        };
        let Some(way) = way else {
            return Found::Nowhere;
        };
        match open(&way.from, &way.path, flags) {
            Ok(fd) => match file_handle(fd.as_fd()) {
                Ok(found) if found == *handle => Found::Here(fd),
                Ok(_) => Found::Elsewhere,
                Err(_) => Found::Nowhere,
            },
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Found::Elsewhere,
            // It may not be read. Nor can what is in it be told to anybody.
            Err(_) => Found::Nowhere,
        }
    }

    fn scan(&mut self, root: FileHandle, scan: Scan) {
        self.scan_all(root, scan);
    }

    /// Reads a directory that has its mark and all below it, which get theirs. All that were seen.
    fn scan_all(&mut self, root: FileHandle, scan: Scan) -> Vec<FileHandle> {
        let mut seen = Vec::new();
        let mut left = vec![root];
        while let Some(handle) = left.pop() {
            match self.find(&handle, OFlags::RDONLY | OFlags::NONBLOCK) {
                Found::Here(fd) => left.extend(self.read(&fd, &handle, scan, seen.is_empty())),
                Found::Elsewhere => self.astray.push(Astray::Known(handle.clone(), scan)),
                Found::Nowhere => {}
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
            if let Scan::Tell = scan {
                self.tell_found(handle, name, is_directory);
            }
            if is_directory {
                // Of one that was covered all that is below it is, or is about to be.
                let entered = self.enter(fd, handle, name, None);
                let is_new = |it: &Entered| !it.was_covered || matches!(scan, Scan::Again);
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
            if !state.tree.contains(&handle) && !self.shared.has_room(&mut state) {
                return None;
            }
            let was_covered = state.tree.is_covered(&handle);
            state.tree.place(&handle, stat.key(), parent, name);
            was_covered
        };
        match self.shared.queue.mark(fd.as_fd()) {
            Ok(()) => {}
            Err(error) if super::is(&error, Errno::NOSPC) => {
                self.shared.say_full("fs.fanotify.max_user_marks");
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
        if time(&stat.0.stx_mtime) <= since || state.own.contains(&stat.key()) {
            return;
        }
        let watched = state.tree.watched(handle);
        drop(state);
        for lost in watched.into_iter().map(|key| LocalEvent::Lost(Some(key))) {
            if self.news.last() != Some(&lost) {
                self.news.push(lost);
            }
        }
    }

    /// Whether a name stands for what an event is about.
    fn is_there(&self, event: &Event, directory: &FileHandle, name: &str) -> bool {
        let way = lock(&self.shared.state).tree.way(directory);
        let opened = way.and_then(|way| open(&way.from, &way.path, OFlags::PATH).ok());
        let found = opened.and_then(|fd| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat2(fd, name, flags, Mode::empty(), ResolveFlags::BENEATH).ok()
        });
        let found = found.and_then(|fd| file_handle(fd.as_fd()).ok());
        found.is_some() && found == event.target
    }

    /// Tells what others did to a name.
    fn tell(
        &mut self,
        event: &Event,
        (directory, name): (&FileHandle, &str),
        action: FileAction,
        filter: CompletionFilter,
    ) {
        if !event.is_own {
            self.tell_change(directory, name, action, filter);
        }
    }

    fn tell_change(
        &mut self,
        directory: &FileHandle,
        name: &str,
        action: FileAction,
        filter: CompletionFilter,
    ) {
        let observers = lock(&self.shared.state).tree.observers(directory, name);
        for (directory, path) in observers {
            self.news.push(LocalEvent::Change(LocalChange {
                directory,
                path,
                action,
                filter,
            }));
        }
        if self.news.len() >= TOLD_MAX {
            self.flush();
        }
    }

    /// Tells that others renamed something within a directory: one name right after the other.
    fn tell_pair(
        &mut self,
        event: &Event,
        (directory, from): (&FileHandle, &str),
        (_, to): (&FileHandle, &str),
        filter: CompletionFilter,
    ) {
        if event.is_own {
            return;
        }
        let state = lock(&self.shared.state);
        let old = state.tree.observers(directory, from);
        let new = state.tree.observers(directory, to);
        drop(state);
        for ((directory, old), (_, new)) in old.into_iter().zip(new) {
            let change = |path, action| {
                LocalEvent::Change(LocalChange {
                    directory,
                    path,
                    action,
                    filter,
                })
            };
            self.news.push(change(old, FileAction::RENAMED_OLD_NAME));
            self.news.push(change(new, FileAction::RENAMED_NEW_NAME));
        }
    }

    /// Tells of what a scan found. An event may come to tell it again.
    fn tell_found(&mut self, directory: &FileHandle, name: &str, is_directory: bool) {
        if self.found.len() >= FOUND_MAX {
            // Rather that than to forget which was told.
            self.has_overflowed = true;
            return;
        }
        self.found.insert((directory.clone(), name.to_owned()));
        self.tell_change(directory, name, FileAction::ADDED, of_name(is_directory));
    }
}

/// The directory and the name of an entry, if clients can see it.
fn named(entry: &Entry) -> Option<(&FileHandle, &str)> {
    let name = std::str::from_utf8(&entry.name).ok()?;
    (name != "." && is_shown(name)).then_some((&entry.directory, name))
}

/// Whether a name is listed: see `list.rs`.
fn is_shown(name: &str) -> bool {
    !name.contains('\\')
}

fn of_name(is_directory: bool) -> CompletionFilter {
    match is_directory {
        true => CompletionFilter::DIR_NAME,
        false => CompletionFilter::FILE_NAME,
    }
}

/// Opens a directory by its path from another; links are not followed.
fn open(from: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { "." } else { path };
    let flags = flags | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    openat2(from, path, flags, Mode::empty(), rules)
}

/// A time of a file since 1970.
fn time(time: &rustix::fs::StatxTimestamp) -> Duration {
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), time.tv_nsec)
}
