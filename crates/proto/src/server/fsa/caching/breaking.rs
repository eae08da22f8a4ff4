//! Breaks of caching rights, and the requests that wait for them. \[MS-FSA\] 2.1.4.12
//! \[MS-SMB2\] 3.3.4.6, 3.3.6.1

use wire::create_context::LeaseState;

use super::holder::{Holder, HolderId};
use super::is_stat_only;
use super::state::{State, Transition};
use crate::file::{FileKey, LocalOpen, ShareId};
use crate::notice::Notice;
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
        break_handles(streams, wait, notices)
    }

    /// The same for every file that is open below a directory which a rename will move.
    pub(crate) fn break_handle_caching_below(
        &self,
        share: ShareId,
        directory: &SharePath,
        wait: &BreakWait,
        notices: &mut Notices,
    ) -> Option<(FileKey, Instant)> {
        let is_below =
            |open: &OpenRecord| open.file.share == share && open.path.is_below(directory);
        let mut files = self.files.lock();
        let streams = files.all_streams_mut();
        let below = streams.filter(|(_, stream)| stream.opens.iter().any(is_below));
        break_handles(below, wait, notices)
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
            let is_own_lease = Some(holder.id) == writer && holder.id.lease_key().is_some();
            match is_own_lease {
                true => Transition::Unaffected,
                false => holder.state.without_read(holder.id.kind()),
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
    wait: &BreakWait,
    notices: &mut Notices,
) -> Option<(FileKey, Instant)> {
    let mut found = None;
    for (key, stream) in streams {
        let until = stream.break_handles(wait, notices);
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
        if is_stat_only(attempt.checked.access) {
            return None;
        }
        let overwrites = attempt.overwrites;
        let until = self.break_each(attempt.wait.deadline, notices, |holder| {
            match holder.id == by {
                true => Transition::Unaffected,
                false => (holder.state).transition(holder.id.kind(), violates, overwrites),
            }
        });
        if until.is_some() {
            self.waiters.push(attempt.wait.waiter);
        }
        until
    }

    fn break_handles(&mut self, wait: &BreakWait, notices: &mut Notices) -> Option<Instant> {
        self.expire(wait.now, notices);
        self.break_each(wait.deadline, notices, |holder| {
            holder.state.without_handle(holder.id.kind())
        })
    }

    /// Applies a transition to each holder. Returns the end of the wait if the cause of the
    /// transitions has to wait for a holder.
    fn break_each(
        &mut self,
        deadline: Instant,
        notices: &mut Notices,
        transition: impl Fn(&Holder) -> Transition,
    ) -> Option<Instant> {
        let (mut until, mut index) = (None, 0);
        while let Some(holder) = self.holders.get(index) {
            let transition = transition(holder);
            until = until.or(self.apply(index, transition, deadline, notices));
            if transition != Transition::Revoke {
                index += 1;
            }
        }
        self.note_readers();
        until
    }

    /// Applies a transition to a holder and notifies its client. Returns the end of the wait if
    /// the cause of the transition has to wait.
    fn apply(
        &mut self,
        index: usize,
        transition: Transition,
        deadline: Instant,
        notices: &mut Notices,
    ) -> Option<Instant> {
        let state = self.holders[index].state;
        let from = state.before_break();
        match transition {
            Transition::Unaffected => None,
            Transition::Wait => state.deadline(),
            Transition::Revoke => {
                let id = self.holders.remove(index).id;
                self.notify(id, from, LeaseState::NONE, notices);
                None
            }
            Transition::Break { to, must_wait } => {
                self.holders[index].state = State::Breaking { from, to, deadline };
                self.notify(self.holders[index].id, from, to, notices);
                must_wait.then_some(deadline)
            }
        }
    }

    /// Notifies the client of a holder of a break, through the newest open of the holder.
    fn notify(&self, id: HolderId, from: LeaseState, to: LeaseState, notices: &mut Notices) {
        let opens = self.opens.iter().filter(|open| open.holder == id);
        let target = opens.filter_map(|open| open.target.as_ref()).next_back();
        // An open that has entered the table and was not granted rights yet learns of the break
        // with its grant.
        let Some(target) = target else {
            return;
        };
        let notice = Notice::BreakCaching {
            session: target.session,
            file_id: target.file_id,
            lease_key: id.lease_key(),
            from,
            to,
        };
        notices.push((target.connection, notice));
    }

    /// Ends the breaks that have reached their time limit. Returns the next time limit.
    pub(in super::super) fn expire(
        &mut self,
        now: Instant,
        notices: &mut Notices,
    ) -> Option<Instant> {
        let before = self.holders.len();
        let is_due = |at: Instant| at <= now;
        (self.holders).retain(|holder| !holder.state.deadline().is_some_and(is_due));
        if self.holders.len() < before {
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
