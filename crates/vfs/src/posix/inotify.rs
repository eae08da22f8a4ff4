//! What the kernel tells of changes in directories: inotify.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::token::Token;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::directory::Directory;
use super::stat::{as_server, by_descriptor};

/// Bytes read at once: some thousand events.
const BUFFER: usize = 64 << 10;
/// Bytes of an event without its name; names are padded to a multiple of as much.
const EVENT: usize = 16;
/// Bytes of the longest event.
const EVENT_MAX: usize = EVENT + 256 + EVENT;

/// A queue of changes in the directories that are watched.
#[derive(Debug)]
pub(super) struct Inotify {
    fd: OwnedFd,
    buffer: Box<[MaybeUninit<u8>]>,
}

/// A change of the names in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added(String),
    Removed(String),
}

/// What the kernel tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InotifyEvent {
    /// A change in the directory of a watch.
    Change(i32, Change),
    /// The watch is over: its directory was removed, or its file system unmounted.
    WatchRemoved(i32),
    /// Changes were lost.
    Overflow,
}

impl Inotify {
    /// A queue; `None` where the kernel gives none: there is a limit for each user.
    pub(super) fn new() -> Option<Self> {
        match inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC) {
            Ok(fd) => Some(Self {
                fd,
                buffer: Box::new_uninit_slice(BUFFER),
            }),
            Err(error) => {
                tracing::warn!(%error, "no inotify queue: directories are scanned each time");
                None
            }
        }
    }

    /// Watches a directory. Done as the server itself where the token may not read it.
    pub(super) fn add(&self, directory: &Directory, token: &Arc<Token>) -> Option<i32> {
        let wanted = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        let path = by_descriptor(&directory.fd);
        let add = || inotify::add_watch(&self.fd, path.as_str(), wanted);
        let added = match add() {
            Err(Errno::ACCESS) => as_server(token, add),
            result => result,
        };
        added
            .inspect_err(|error| tracing::debug!(%error, "cannot watch a directory"))
            .ok()
    }

    /// Ends a watch.
    pub(super) fn remove(&self, descriptor: i32) {
        // Fails where the directory is gone, and the watch with it.
        let _ = inotify::remove_watch(&self.fd, descriptor);
    }

    /// All that the kernel has to tell by now.
    pub(super) fn read(&mut self) -> Vec<InotifyEvent> {
        let mut events = Vec::new();
        let mut reader = Reader::new(&self.fd, &mut self.buffer);
        let mut bytes = 0;
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => return events,
            };
            let name = event.file_name().map_or(0, |name| name.count_bytes() + 1);
            bytes += EVENT + name.next_multiple_of(EVENT);
            events.extend(event_of(&event));
            if reader.is_buffer_empty() {
                // With room for one more event in the buffer, that was all.
                if bytes + EVENT_MAX < BUFFER {
                    return events;
                }
                bytes = 0;
            }
        }
    }
}

fn event_of(event: &inotify::Event<'_>) -> Option<InotifyEvent> {
    let events = event.events();
    if events.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(InotifyEvent::Overflow);
    }
    if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT | ReadFlags::DELETE_SELF) {
        return Some(InotifyEvent::WatchRemoved(event.wd()));
    }
    // A name that is not UTF-8 cannot be asked for, and is not in the index.
    let name = event.file_name()?.to_str().ok()?.to_owned();
    let is_added = events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
    let change = if is_added {
        Change::Added(name)
    } else {
        Change::Removed(name)
    };
    Some(InotifyEvent::Change(event.wd(), change))
}
