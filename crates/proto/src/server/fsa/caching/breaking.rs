//! Breaks of caching rights, and the requests that wait for them. \[MS-FSA\] 2.1.4.12
//! \[MS-SMB2\] 3.3.4.6, 3.3.6.1

use wire::upcase::is_same_name;

use super::holder::{Holder, HolderId, LeaseId};
use super::state::{Conflict, Kind, State, Step, Transition};
use super::{is_lease_stat_only, is_stat_only};
use crate::file::{FileKey, LocalOpen, ShareId};
use crate::id::ConnectionId;
use crate::notice::{CachingBreak, Notice};
use crate::path::SharePath;
use crate::server::fsa::{FileTable, OpenRecord, Sharing, StreamRecord};
use crate::server::notices::{Notices, Waiter};
use crate::time::Instant;

/// The wait of a request for the end of a break, should it have to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BreakWait {
    /// The request.
    pub(crate) waiter: Waiter,
    pub(crate) now: Instant,
    /// When a break that begins now ends at the latest.
    pub(crate) deadline: Instant,
}

/// A request to open a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenAttempt {
    /// The rights that are checked against the share modes of other opens. An overwrite counts as a
    /// write even if the open has no right to write. \[MS-FSA\] 2.1.5.1.2
    pub(crate) checked: Sharing,
    /// Whether the request truncates an existing file.
    pub(crate) overwrites: bool,
    /// Whether the request has waited for a break before.
    pub(crate) is_retry: bool,
    /// [`FileTable::removals`] before the file system opened the file.
    pub(crate) removals: u64,
    /// The requested lease, even if the open gets none.
    pub(crate) lease: Option<LeaseId>,
    pub(crate) wait: BreakWait,
}

impl FileTable {
    /// Breaks HANDLE_CACHING on all streams of a file that a rename will replace: a client with
    /// that right may keep the file open without an application that uses it. Returns the stream of
    /// a holder that the request must wait for, and the end of the wait; `None` if no holder has
    /// the right. \[MS-FSA\] 2.1.5.15.12
    pub(crate) fn break_handle_caching(
        &self,
        key: FileKey,
        wait: &BreakWait,
        notices: &mut Notices,
    ) -> Option<(FileKey, Instant)> {
        let mut files = self.files.lock();
        let streams = files.streams_mut(key);
        break_handles(streams, |_| true, wait, notices)
    }

    /// The same for the file of an open that renames or deletes it, and for leases only: the lease
    /// of that open keeps its rights (smbtorture smb2.lease.v2_rename), and so do oplocks, as with
    /// Samba.
    pub(crate) fn break_handle_leases(
        &self,
        key: FileKey,
        by: LocalOpen,
        wait: &BreakWait,
        notices: &mut Notices,
    ) -> Option<(FileKey, Instant)> {
        let mut files = self.files.lock();
        let own = files.stream(key).and_then(|stream| stream.open(by));
        let own = own.map(|open| open.holder);
        let is_affected = |id: HolderId| id.lease().is_some() && Some(id) != own;
        let streams = files.streams_mut(key);
        break_handles(streams, is_affected, wait, notices)
    }

    /// The same for a directory by its name.
    pub(crate) fn break_handle_caching_at(
        &self,
        share: ShareId,
        directory: &SharePath,
        wait: &BreakWait,
        notices: &mut Notices,
    ) -> Option<(FileKey, Instant)> {
        let is_it = |path: &SharePath| is_same_name(path.as_str(), directory.as_str());
        self.break_handle_caching_where(share, is_it, wait, notices)
    }

    /// The same for every file that is open below a directory which a rename will move.
    pub(crate) fn break_handle_caching_below(
        &self,
        share: ShareId,
        directory: &SharePath,
        wait: &BreakWait,
        notices: &mut Notices,
    ) -> Option<(FileKey, Instant)> {
        let is_below = |path: &SharePath| path.is_below(directory);
        self.break_handle_caching_where(share, is_below, wait, notices)
    }

    /// The same for all files of a share with an open by a path that the predicate selects.
    fn break_handle_caching_where(
        &self,
        share: ShareId,
        is_meant: impl Fn(&SharePath) -> bool,
        wait: &BreakWait,
        notices: &mut Notices,
    ) -> Option<(FileKey, Instant)> {
        let is_meant = |open: &OpenRecord| open.file.share == share && is_meant(&open.path);
        let mut files = self.files.lock();
        let streams = files.all_streams_mut();
        let meant = streams.filter(|(_, stream)| stream.opens.iter().any(is_meant));
        break_handles(meant, |_| true, wait, notices)
    }

    /// The data of a stream have changed: no holder has cached the new data. The oplock of the
    /// open that changed them breaks too, as with Windows and Samba (smbtorture
    /// smb2.oplock.levelii500); its lease does not.
    pub(crate) fn break_read_caching(
        &self,
        key: FileKey,
        by: LocalOpen,
        deadline: Instant,
        notices: &mut Notices,
    ) {
        let mut files = self.files.lock();
        let Some(stream) = files.stream_mut(key) else {
            return;
        };
        let writer = stream.open(by).map(|open| open.holder);
        stream.break_each(deadline, notices, |holder| {
            let is_own_lease = Some(holder.id) == writer && holder.id.lease().is_some();
            match is_own_lease {
                true => holder.state.unaffected(),
                false => holder.state.on_change(),
            }
        });
    }

    /// Takes all rights away from the holders on a stream with breaks that have reached their time
    /// limit. Returns the next time limit, if a break is still in progress. \[MS-SMB2\] 3.3.6.1
    pub(crate) fn expire(
        &self,
        key: FileKey,
        now: Instant,
        notices: &mut Notices,
    ) -> Option<Instant> {
        self.files.lock().stream_mut(key)?.expire(now, notices)
    }

    /// A request no longer waits for the end of a break.
    pub(crate) fn forget_waiter(&self, key: FileKey, waiter: Waiter) {
        if let Some(stream) = self.files.lock().stream_mut(key) {
            stream.waiters.retain(|other| *other != waiter);
        }
    }

    /// Number of requests that wait for the end of a break.
    #[cfg(test)]
    pub(crate) fn waiters(&self) -> usize {
        let mut files = self.files.lock();
        let streams = files.all_streams_mut();
        streams.map(|(_, stream)| stream.waiters.len()).sum()
    }
}

fn break_handles<'a>(
    streams: impl Iterator<Item = (FileKey, &'a mut StreamRecord)>,
    is_affected: impl Fn(HolderId) -> bool,
    wait: &BreakWait,
    notices: &mut Notices,
) -> Option<(FileKey, Instant)> {
    let mut found = None;
    for (key, stream) in streams {
        let until = stream.break_handles(&is_affected, wait, notices);
        if let (Some(until), None) = (until, &found) {
            stream.waiters.push(wait.waiter);
            found = Some((key, until));
        }
    }
    found
}

impl StreamRecord {
    /// Breaks the rights of other holders that are in the way of an open. Returns the end of the
    /// wait if the open has to wait.
    pub(in super::super) fn break_for_open(
        &mut self,
        attempt: &OpenAttempt,
        by: HolderId,
        violates: bool,
        notices: &mut Notices,
    ) -> Option<Instant> {
        let access = attempt.checked.access;
        if is_stat_only(access) {
            return None;
        }
        let conflict = Conflict {
            violates,
            overwrites: attempt.overwrites,
            is_retry: attempt.is_retry,
        };
        let until = self.break_each(attempt.wait.deadline, notices, |holder| {
            let is_lease = holder.id.kind() == Kind::Lease;
            match holder.id == by || (is_lease && is_lease_stat_only(access)) {
                true => holder.state.unaffected(),
                false => holder.state.on_open(conflict),
            }
        });
        if until.is_some() {
            self.waiters.push(attempt.wait.waiter);
        }
        until
    }

    /// Breaks HANDLE_CACHING of the leases of other holders; no request waits for that. smbtorture
    /// smb2.lease.initial_delete_tdis
    pub(in super::super) fn break_handle_leases(
        &mut self,
        own: HolderId,
        deadline: Instant,
        notices: &mut Notices,
    ) {
        self.break_each(deadline, notices, |holder| {
            match holder.id.lease().is_some() && holder.id != own {
                true => holder.state.on_rename(),
                false => holder.state.unaffected(),
            }
        });
    }

    fn break_handles(
        &mut self,
        is_affected: impl Fn(HolderId) -> bool,
        wait: &BreakWait,
        notices: &mut Notices,
    ) -> Option<Instant> {
        self.expire(wait.now, notices);
        self.break_each(wait.deadline, notices, |holder| {
            match is_affected(holder.id) {
                true => holder.state.on_rename(),
                false => holder.state.unaffected(),
            }
        })
    }

    /// Applies a transition to each holder and notifies its client. Returns the end of the wait if
    /// the cause of the transitions has to wait for a holder.
    pub(super) fn break_each(
        &mut self,
        deadline: Instant,
        notices: &mut Notices,
        transition: impl Fn(&Holder) -> Transition,
    ) -> Option<Instant> {
        let mut until: Option<Instant> = None;
        for index in 0..self.holders.len() {
            let holder = &mut self.holders[index];
            let Transition { to, must_wait } = transition(holder);
            let step = holder.break_to(to, deadline);
            if must_wait {
                let end = holder.state.deadline().unwrap_or(deadline);
                until = Some(until.map_or(end, |until| until.min(end)));
            }
            if let Some(step) = step {
                self.notify(index, step, notices);
            }
        }
        self.holders.retain(|holder| !holder.is_over());
        self.note_readers();
        until
    }

    /// Notifies the client of a holder of a break, through the newest open of the holder.
    pub(super) fn notify(&self, index: usize, step: Step, notices: &mut Notices) {
        // An open that has entered the table and was not granted rights yet learns of the break
        // with its grant.
        notices.extend(self.notification(&self.holders[index], step));
    }

    fn notification(&self, holder: &Holder, step: Step) -> Option<(ConnectionId, Notice)> {
        let opens = self.opens.iter().filter(|open| open.holder == holder.id);
        let targets = opens.filter_map(|open| open.target.as_ref());
        let target = targets.max_by_key(|target| target.file_id.volatile)?;
        let caching_break = CachingBreak {
            session: target.session,
            file_id: target.file_id,
            lease: holder.lease_break(step),
            from: step.from,
            to: step.to,
        };
        Some((target.connection, Notice::BreakCaching(caching_break)))
    }

    /// The notification that the client of an open received last, to send it again.
    pub(super) fn last_notification(&self, open: &OpenRecord) -> Option<(ConnectionId, Notice)> {
        let mut holders = self.holders.iter();
        let holder = holders.find(|holder| holder.id == open.holder);
        match (holder, open.target.as_ref()) {
            (Some(holder), _) => self.notification(holder, holder.state.last_step()?),
            // An oplock that the server took away.
            (None, Some(target)) => {
                let caching_break = CachingBreak::of_oplock(target.session, target.file_id);
                Some((target.connection, Notice::BreakCaching(caching_break)))
            }
            (None, None) => None,
        }
    }

    /// Ends the breaks that have reached their time limit: the holders lose all rights. Returns the
    /// next time limit.
    pub(in super::super) fn expire(
        &mut self,
        now: Instant,
        notices: &mut Notices,
    ) -> Option<Instant> {
        let is_due = |holder: &&mut Holder| holder.state.deadline().is_some_and(|at| at <= now);
        let mut has_expired = false;
        for holder in self.holders.iter_mut().filter(is_due) {
            holder.revoke();
            has_expired = true;
        }
        if has_expired {
            self.holders.retain(|holder| !holder.is_over());
            self.note_readers();
            self.wake(notices);
        }
        let states = self.holders.iter().map(|holder| holder.state);
        states.filter_map(State::deadline).min()
    }

    /// Wakes all requests that wait for the end of a break. Each tries again.
    pub(super) fn wake(&mut self, notices: &mut Notices) {
        let waiters = self.waiters.drain(..);
        let notice = |waiter: Waiter| (waiter.connection, Notice::CachingBroken(waiter.op));
        notices.extend(waiters.map(notice));
    }
}
