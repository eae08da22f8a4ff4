//! Writes that return before the server has them.
//!
//! A program's write returns when its bytes are held here, if the inode has a lease with read and
//! write caching: no other client reads the file then. The break of the lease, fsync(2), close(2)
//! and each operation that needs the bytes on the server send them first.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fuser::Errno;
use smbeam_client::{Error, File, Metadata, PosixChanges, Wait as _};

use super::{Answer, EXCLUSIVE, Volume};
use crate::errno::errno;
use crate::handles::lock;
use crate::held::{Batch, Held, Insert, Position};
use crate::opens::{OpenFile, Opens};
use crate::options::Cache;

/// Time after which held data are sent at the latest.
const PAUSE: Duration = Duration::from_secs(1);

/// A write that is held.
pub(super) struct Holding {
    pub(super) at: u64,
    pub(super) sending: Sending,
}

/// The work that follows the reply to a write.
pub(crate) struct Sending {
    opens: Arc<Opens>,
    needs_timer: bool,
}

impl Volume {
    /// Holds a write. Returns the bytes if the server must have them before the reply.
    pub(super) async fn hold(
        &self,
        open: &OpenFile,
        position: Position,
        mut bytes: Vec<u8>,
    ) -> Result<Holding, Vec<u8>> {
        let (opens, held) = (&open.opens, &open.opens.held);
        loop {
            if !self.may_hold(open).await {
                return Err(bytes);
            }
            let is_protected = || opens.holds(EXCLUSIVE);
            match held.insert(position, bytes, &self.budget, is_protected) {
                Insert::Held { at, needs_timer } => {
                    let opens = Arc::clone(opens);
                    let sending = Sending { opens, needs_timer };
                    return Ok(Holding { at, sending });
                }
                Insert::Refused(bytes) => return Err(bytes),
                Insert::Busy(back) => {
                    bytes = back;
                    // Without this, extents that are not full could wait for the timer.
                    self.send_held(opens, false).await;
                    held.has_space(bytes.len(), &self.budget).await;
                }
            }
        }
    }

    /// Whether the lease permits to hold data, and the length of the file is known.
    async fn may_hold(&self, open: &OpenFile) -> bool {
        let opens = &open.opens;
        if self.options.cache != Cache::Strict || !opens.holds(EXCLUSIVE) {
            return false;
        }
        if opens.held.shown().0.is_some() {
            return true;
        }
        self.flush_held(opens).await;
        let _gate = opens.gate.lock().await;
        let lease = open.file.lease();
        let Ok(size) = self.file_for(open).len().await else {
            return false;
        };
        let is_same = || opens.holds(EXCLUSIVE) && open.file.lease() == lease;
        opens.held.learn_size(size, is_same);
        true
    }

    /// Continues after the reply to a held write: sends full extents now and the rest after a
    /// pause.
    pub(crate) async fn send_later(&self, sending: Sending) {
        let Sending { opens, needs_timer } = sending;
        self.send_held(&opens, true).await;
        if !needs_timer {
            return;
        }
        loop {
            self.timer.sleep(PAUSE).await;
            if !opens.held.timer_ended() {
                return;
            }
            match opens.held.changes().is_empty() {
                true => self.send_held(&opens, false).await,
                false => self.flush_held(&opens).await,
            }
        }
    }

    /// Sends extents until none waits that can be sent.
    async fn send_held(&self, opens: &Opens, only_full: bool) {
        loop {
            let batch = opens.held.take(only_full);
            if batch.is_empty() {
                return;
            }
            self.send(opens, batch).await;
        }
    }

    async fn send(&self, opens: &Opens, batch: Batch) {
        let range = |(at, bytes): &(u64, Vec<u8>)| *at..*at + bytes.len() as u64;
        let ranges: Vec<Range<u64>> = batch.iter().map(range).collect();
        let error = match opens.find(|open| open.is_writable) {
            Some(open) => {
                let written = self.file_for(&open).write_ranges(batch).await;
                let failed = written.into_iter().find_map(|(result, _)| result.err());
                failed.map(|error| not_sent(&open.file, &error))
            }
            None => Some(Errno::EIO),
        };
        self.has_sent(opens, &ranges, error);
    }

    /// The server has responded to the WRITEs of held data.
    fn has_sent(&self, opens: &Opens, ranges: &[Range<u64>], error: Option<Errno>) {
        self.counters.sent.add(ranges.len() as u64);
        opens.held.sent(ranges, error, &self.budget);
    }

    /// Holds changes of attributes. Returns false if the server must have them before the reply.
    pub(super) fn defer(&self, opens: &Opens, changes: &PosixChanges) -> bool {
        let has_locks = lock(&opens.locks.holder).is_some();
        self.options.cache == Cache::Strict
            && !has_locks
            && opens.find(|open| open.may_change_owner).is_some()
            && opens.held.defer(changes, || opens.holds(EXCLUSIVE))
    }

    /// Sends the held data of an inode and the changes of its attributes, and waits until the
    /// server has responded.
    pub(crate) async fn flush_held(&self, opens: &Opens) {
        let held = &opens.held;
        if held.is_clean() {
            return;
        }
        let _flush = held.begin_flush();
        loop {
            self.send_together(opens).await;
            self.send_held(opens, false).await;
            if held.settled().await {
                self.send_changes(opens).await;
                held.has_changed().await;
            }
            if held.is_clean() {
                return;
            }
        }
    }

    /// Sends held data and changes in one message, if they are few.
    async fn send_together(&self, opens: &Opens) {
        let Some(open) = opens.find(|open| open.may_change_owner) else {
            return;
        };
        let Some((at, bytes, changes)) = opens.held.take_together(File::SMALL_WRITE) else {
            return;
        };
        let (file, range) = (&open.file, at..at + bytes.len() as u64);
        let (wrote, changed, _) = file.write_and_change_posix((bytes, at), &changes).await;
        let error = wrote.err().map(|error| not_sent(file, &error));
        self.has_sent(opens, &[range], error);
        has_changed(opens, file, changed);
    }

    async fn send_changes(&self, opens: &Opens) {
        let Some(changes) = opens.held.begin_change() else {
            return;
        };
        match opens.find(|open| open.may_change_owner) {
            Some(open) => {
                let changed = open.file.change_posix(&changes).await;
                has_changed(opens, &open.file, changed);
            }
            None => opens.held.end_change(Some(Errno::EIO)),
        }
    }

    /// Sends the held data of an inode by its number, if the table has it.
    pub(super) async fn flush_inode(&self, ino: u64) {
        if let Ok(opens) = self.opens(ino) {
            self.flush_held(&opens).await;
        }
    }

    /// Takes note of the new length of an inode that this mount has truncated or extended.
    pub(super) fn has_size(&self, ino: u64, size: u64) {
        if let Ok(opens) = self.opens(ino) {
            let is_known = opens.held.shown().0.is_some() && opens.holds(EXCLUSIVE);
            opens.held.set_size(is_known.then_some(size));
        }
    }

    /// Sends the held data of an open before it is used in another way, and reports an error that
    /// the program has not received.
    pub(super) async fn settle(&self, open: &OpenFile) -> Answer<()> {
        self.flush_held(&open.opens).await;
        match open.is_writable {
            true => open.opens.held.take_error(&open.failures_seen),
            false => Ok(()),
        }
    }

    /// Sends the held data of the mount. Blocks the thread.
    pub(crate) fn flush_all(&self) {
        for open in self.files.all() {
            self.flush_held(&open.opens).wait();
        }
    }

    /// The lease is losing WRITE_CACHING. Blocks the thread until the server has the held data.
    pub(crate) fn end_holding(&self, opens: &Opens) {
        self.flush_held(opens).wait();
        opens.held.set_size(None);
    }
}

/// The server has responded to changes of attributes.
fn has_changed(opens: &Opens, file: &File, changed: Result<Metadata, Error>) {
    match changed {
        Ok(metadata) => {
            opens.has_changed(metadata);
            opens.held.end_change(None);
        }
        Err(error) => opens.held.end_change(Some(not_sent(file, &error))),
    }
}

/// The error for programs after data or changes that a file has not received.
fn not_sent(file: &File, error: &Error) -> Errno {
    tracing::warn!(%error, path = file.path(), "held data or changes were not sent");
    errno(error)
}

/// Whether a read needs held data on the server first.
pub(super) fn needs_flush(held: &Held, offset: u64, len: u32) -> bool {
    held.concerns(&(offset..offset.saturating_add(len.into())))
}
