//! The kernel's events about names in directories: inotify. The notifications for clients use
//! fanotify instead; `ring/src/fanotify.rs` explains why both are in use.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::token::Token;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use wire::file_name::NameMapping;

use super::directory::Directory;
use super::stat::{as_server, by_descriptor};

/// Length of the read buffer in bytes: some thousand events.
const BUFFER: usize = 64 << 10;
/// Length of an event without its name in bytes; names are padded to a multiple of it.
const EVENT: usize = 16;
/// Maximum length of an event in bytes.
const EVENT_MAX: usize = EVENT + 256 + EVENT;

/// An inotify queue with its watched directories.
#[derive(Debug)]
pub(super) struct Inotify {
    fd: OwnedFd,
    buffer: Box<[MaybeUninit<u8>]>,
    mapping: NameMapping,
}

/// A change of the names in a directory. The names are those that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added(String),
    Removed(String),
}

/// An event of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InotifyEvent {
    /// A change in the directory of this watch.
    Change(i32, Change),
    /// The kernel has removed this watch: its directory was deleted, or its file system unmounted.
    WatchRemoved(i32),
    /// The queue overflowed, and events were lost.
    Overflow,
}

impl Inotify {
    /// Creates a queue; `None` if the kernel refuses: each user has a limited number.
    pub(super) fn new(mapping: NameMapping) -> Option<Self> {
        match inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC) {
            Ok(fd) => Some(Self {
                fd,
                buffer: Box::new_uninit_slice(BUFFER),
                mapping,
            }),
            Err(error) => {
                tracing::warn!(%error, "no inotify queue: every lookup scans the directory");
                None
            }
        }
    }

    /// Watches a directory; as the server if the token may not read it. Returns the descriptor of
    /// the watch; `None` if the kernel refuses.
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
        // Fails if the directory was deleted and the watch with it.
        let _ = inotify::remove_watch(&self.fd, descriptor);
    }

    /// Reads all pending events.
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
            events.extend(event_of(&event, self.mapping));
            if reader.is_buffer_empty() {
                // The buffer had space for a further event, so the queue is empty.
                if bytes + EVENT_MAX < BUFFER {
                    return events;
                }
                bytes = 0;
            }
        }
    }
}

fn event_of(event: &inotify::Event<'_>, mapping: NameMapping) -> Option<InotifyEvent> {
    let events = event.events();
    if events.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(InotifyEvent::Overflow);
    }
    if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT | ReadFlags::DELETE_SELF) {
        return Some(InotifyEvent::WatchRemoved(event.wd()));
    }
    // A client cannot request a hidden name, so the index does not contain it.
    let name = mapping.to_wire(event.file_name()?.to_bytes())?.into_owned();
    let is_added = events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
    let change = if is_added {
        Change::Added(name)
    } else {
        Change::Removed(name)
    };
    Some(InotifyEvent::Change(event.wd(), change))
}
