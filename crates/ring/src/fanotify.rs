//! Notifications about changes in directories: fanotify(7).
//!
//! Each directory has a separate mark. So the kernel reports nothing about the rest of the file
//! system, and the process needs no privilege (Linux 5.13). Events name directories and files by
//! handles, which outlive a rename.
//!
//! # Why both fanotify and inotify are in use
//!
//! Two features of the `vfs` crate watch directories:
//!
//! - Notifications for clients (`posix/changes/`) use fanotify. An event reports whether this
//!   process caused it, so the watcher leaves out the server's own changes. inotify does not report
//!   that, and guessing loses changes or reports them twice. And fanotify reports a rename as one
//!   event with both names.
//! - The index of names (`posix/index.rs`) uses inotify. It needs only names, in order, and the
//!   server's own changes as well. inotify also works on file systems without handles, and on
//!   kernels before 5.17, where a server without the index would be slow.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::sys;

/// Bytes of one read: some hundred events.
const BUFFER: usize = 64 << 10;
/// Bytes of an event without the records that follow it. fanotify_event_metadata.
const METADATA: usize = 24;
/// Bytes of a record before the bytes of the handle. fanotify_event_info_fid.
const RECORD: usize = 20;
/// The events that a mark on a directory reports.
const WANTED: u64 = libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_RENAME
    | libc::FAN_MODIFY
    | libc::FAN_ATTRIB
    | libc::FAN_DELETE_SELF
    | libc::FAN_ONDIR
    | libc::FAN_EVENT_ON_CHILD;

/// Identity of a file or directory in fanotify events: file system and inode. It does not depend on
/// the names of the file. Two handles are equal if they identify the same file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileHandle(Arc<[u8]>);

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileHandle(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// A name in a directory, as a fanotify [`Event`] reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The directory that has the name.
    pub directory: FileHandle,
    /// The name as bytes, one path component without separators; `.` stands for the directory
    /// itself.
    pub name: Vec<u8>,
}

/// A change in a marked directory, as fanotify reports it. The kernel may merge several changes of
/// one name into one event: then several of the methods return true, and the order of the changes
/// is not known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Event {
    /// Bits such as FAN_CREATE.
    mask: u64,
    /// Whether this process caused the change. False for a change by another process.
    pub is_own: bool,
    /// The changed name, or the new name of a renamed file. `None` if the file was renamed into a
    /// directory without a mark.
    pub entry: Option<Entry>,
    /// The old name of a renamed file. `None` if the file was not renamed, or if the old directory
    /// has no mark.
    pub from: Option<Entry>,
    /// The changed file or directory itself. `None` if the kernel does not report it.
    pub target: Option<FileHandle>,
}

impl Event {
    fn has(&self, bits: u64) -> bool {
        self.mask & bits != 0
    }

    /// Returns whether the kernel lost events because the queue was full. The fields of such an
    /// event are `None`.
    pub fn is_overflow(&self) -> bool {
        self.has(libc::FAN_Q_OVERFLOW)
    }

    /// Returns whether the changed object is a directory.
    pub fn is_directory(&self) -> bool {
        self.has(libc::FAN_ONDIR)
    }

    /// Returns whether a file or directory with the name `entry` was created.
    pub fn is_created(&self) -> bool {
        self.has(libc::FAN_CREATE)
    }

    /// Returns whether the name `entry` was deleted.
    pub fn is_deleted(&self) -> bool {
        self.has(libc::FAN_DELETE)
    }

    /// Returns whether a file was renamed: the fields `from` and `entry` have its old and its new
    /// name.
    pub fn is_renamed(&self) -> bool {
        self.has(libc::FAN_RENAME)
    }

    /// Returns whether the data of the file changed.
    pub fn is_modified(&self) -> bool {
        self.has(libc::FAN_MODIFY)
    }

    /// Returns whether the metadata of the file changed: times, permissions, owner, attributes.
    pub fn has_new_attributes(&self) -> bool {
        self.has(libc::FAN_ATTRIB)
    }

    /// Returns whether a directory with a mark was deleted. The field `entry` has the handle of the
    /// directory.
    pub fn is_directory_deleted(&self) -> bool {
        self.has(libc::FAN_DELETE_SELF)
    }
}

/// A fanotify queue: it receives the changes in all marked directories. The kernel limits the
/// number of queued events (fs.fanotify.max_queued_events) and reports an overflow.
#[derive(Debug)]
pub struct Fanotify {
    queue: OwnedFd,
    wake: OwnedFd,
}

impl Fanotify {
    /// Creates a fanotify queue without marked directories.
    ///
    /// # Errors
    /// The kernel is older than 5.17, allows this user no more queues
    /// (fs.fanotify.max_user_groups), or a sandbox forbids it.
    pub fn new() -> io::Result<Self> {
        let flags = libc::FAN_CLASS_NOTIF
            | libc::FAN_CLOEXEC
            | libc::FAN_NONBLOCK
            | libc::FAN_REPORT_DFID_NAME_TARGET;
        Ok(Self {
            queue: sys::fanotify_init(flags)?,
            wake: sys::eventfd()?,
        })
    }

    /// Marks a directory: from now on the queue receives the changes in it, but not in its
    /// subdirectories. A second mark of the same directory has no effect, and one
    /// [`unmark`](Self::unmark) removes it.
    ///
    /// # Errors
    /// ENOSPC if this user has reached fs.fanotify.max_user_marks; EACCES if the caller may not
    /// read the directory.
    pub fn mark(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR;
        sys::fanotify_mark(self.queue.as_fd(), flags, WANTED, directory)
    }

    /// Removes the mark of a directory, so that the queue receives no further changes in it. Events
    /// of the directory that are already in the queue remain.
    ///
    /// # Errors
    /// ENOENT if the directory has no mark.
    pub fn unmark(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        sys::fanotify_mark(self.queue.as_fd(), libc::FAN_MARK_REMOVE, WANTED, directory)
    }

    /// Blocks the thread until the queue has an event or another thread calls [`Self::wake`]. It
    /// may return without an event; the caller then gets an empty batch from [`Self::read`].
    pub fn wait(&self) {
        sys::wait_readable([self.queue.as_fd(), self.wake.as_fd()]);
        sys::eventfd_clear(self.wake.as_fd());
    }

    /// Ends the wait of a thread that [`Self::wait`] blocks. If no thread waits, the next call of
    /// `wait` returns at once. Any thread may call this.
    pub fn wake(&self) {
        sys::eventfd_signal(self.wake.as_fd());
    }

    /// Removes some of the oldest events from the queue and returns them, without waiting. The
    /// queue may have further events. The result is empty only if the queue is empty.
    ///
    /// # Errors
    /// An error of read(2), which does not occur with a working queue.
    pub fn read(&self) -> io::Result<Vec<Event>> {
        let mut buffer = vec![0; BUFFER];
        match sys::read(self.queue.as_fd(), &mut buffer) {
            Ok(count) => Ok(events(&buffer[..count])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.read(),
            Err(error) => Err(error),
        }
    }
}

/// Returns the [`FileHandle`] with which fanotify events identify this file or directory. `file`
/// may be any descriptor of it, also one with O_PATH.
///
/// # Errors
/// The file system does not support file handles.
pub fn file_handle(file: BorrowedFd<'_>) -> io::Result<FileHandle> {
    let mut bytes = sys::file_system_id(file)?.to_vec();
    // The id of the file system comes first, as in an event.
    bytes.extend_from_slice(&sys::file_handle(file)?);
    Ok(FileHandle(bytes.into()))
}

/// Returns a file handle of the file `file` that [`open_by_handle`] accepts: the type of the handle
/// in four bytes, then the bytes of the handle. It stays valid until the file is deleted.
///
/// # Errors
/// EOPNOTSUPP if the file system does not support file handles.
pub fn openable_handle(file: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    sys::openable_handle(file)
}

/// Opens a file with O_PATH by a handle that [`openable_handle`] returned. `mount` is any open file
/// of the same file system.
///
/// # Errors
/// ESTALE if the file was deleted, EPERM without CAP_DAC_READ_SEARCH, EINVAL for bytes that are not
/// a handle.
pub fn open_by_handle(mount: BorrowedFd<'_>, handle: &[u8]) -> io::Result<OwnedFd> {
    sys::open_by_handle(mount, handle)
}

/// Parses consecutive events. Each starts with its length.
fn events(mut bytes: &[u8]) -> Vec<Event> {
    let own = std::process::id();
    let mut events = Vec::new();
    while let Some(length) = u32_at(bytes, 0) {
        let length = length as usize;
        if length < METADATA || length > bytes.len() {
            break;
        }
        let (event, rest) = bytes.split_at(length);
        bytes = rest;
        events.extend(read_event(event, own));
    }
    events
}

fn read_event(bytes: &[u8], own: u32) -> Option<Event> {
    let head = usize::from(u16::from_ne_bytes(bytes.get(6..8)?.try_into().ok()?));
    let mask = u64::from_ne_bytes(bytes.get(8..16)?.try_into().ok()?);
    let mut event = Event {
        mask,
        is_own: u32_at(bytes, 20)? == own,
        ..Event::default()
    };
    let mut records = bytes.get(head..)?;
    while let Some(header) = records.get(..4) {
        let length = usize::from(u16::from_ne_bytes([header[2], header[3]]));
        let record = records.get(..length).filter(|it| it.len() >= RECORD)?;
        let (handle, name) = read_record(record)?;
        match header[0] {
            libc::FAN_EVENT_INFO_TYPE_FID => event.target = Some(handle),
            libc::FAN_EVENT_INFO_TYPE_OLD_DFID_NAME => event.from = Some(entry(handle, name)),
            libc::FAN_EVENT_INFO_TYPE_DFID_NAME
            | libc::FAN_EVENT_INFO_TYPE_NEW_DFID_NAME
            | libc::FAN_EVENT_INFO_TYPE_DFID => event.entry = Some(entry(handle, name)),
            _ => {}
        }
        records = &records[length..];
    }
    Some(event)
}

/// Splits a record into the handle (with the id of its file system) and the bytes after it: a name
/// or nothing, then zeros.
fn read_record(record: &[u8]) -> Option<(FileHandle, &[u8])> {
    let end = RECORD + u32_at(record, 12)? as usize;
    let mut handle = record.get(4..12)?.to_vec();
    handle.extend_from_slice(record.get(16..end)?);
    let name = &record[end..];
    let name = CStr::from_bytes_until_nul(name).map_or(name, CStr::to_bytes);
    Some((FileHandle(handle.into()), name))
}

fn entry(directory: FileHandle, name: &[u8]) -> Entry {
    let name = name.to_vec();
    Entry { directory, name }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::process::Command;

    use super::*;

    #[test]
    fn events_have_names_and_report_own_changes() {
        let scratch = tempfile::tempdir().expect("a directory");
        let directory = File::open(scratch.path()).expect("the directory exists");
        let handle = file_handle(directory.as_fd()).expect("a local file system has handles");
        let Ok(queue) = Fanotify::new() else {
            println!("no fanotify here");
            return;
        };
        queue.mark(directory.as_fd()).expect("it can be watched");
        fs::write(scratch.path().join("own"), "x").expect("disk space");
        let script = "mkdir other && mv other renamed";
        let status = Command::new("sh")
            .args(["-c", script])
            .current_dir(scratch.path())
            .status();
        assert!(status.expect("a shell").success());
        queue.wait();
        let events = queue.read().expect("it reads");
        let name = |entry: &Option<Entry>| {
            let entry = entry.as_ref().expect("a name");
            assert_eq!(entry.directory, handle);
            String::from_utf8(entry.name.clone()).expect("it is ASCII")
        };
        let own = events.iter().find(|event| event.is_own).expect("our own");
        assert!(own.is_created() && name(&own.entry) == "own");
        let others: Vec<_> = events.iter().filter(|event| !event.is_own).collect();
        assert!(others[0].is_created() && others[0].is_directory());
        assert_eq!(name(&others[0].entry), "other");
        assert!(others[1].is_renamed());
        assert_eq!(name(&others[1].from), "other");
        assert_eq!(name(&others[1].entry), "renamed");
        let renamed = File::open(scratch.path().join("renamed")).expect("the directory exists");
        let target = file_handle(renamed.as_fd()).expect("a handle");
        assert_eq!(others[1].target, Some(target));
        assert_eq!(queue.read().expect("it reads"), []);
    }

    #[test]
    fn truncated_events_are_left_out() {
        assert_eq!(events(&[0; 100]), []);
        assert_eq!(events(&[255; 100]), []);
        let mut event = vec![0; METADATA];
        event[0] = METADATA as u8;
        event[6] = METADATA as u8;
        event[9] = 0x40;
        let read = events(&event);
        assert!(read.len() == 1 && read[0].is_overflow());
        // A record with a length that exceeds the event.
        event[0] += 8;
        event.extend([2, 0, 255, 0, 0, 0, 0, 0]);
        assert_eq!(events(&event), []);
    }
}
