//! Oplocks: what a client may cache of a file, and when it has to give way. \[MS-FSA\] 2.1.5.18,
//! 2.1.4.12
//!
//! One open at most holds EXCLUSIVE or BATCH: then no other open can do more than look at
//! attributes. Who wants to do more waits, in the table, until the holder has acknowledged, has
//! gone, or has had its time. Any number of opens hold level II: they are told, and nobody waits.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use wire::Status;
use wire::access::{AccessMask, OplockLevel};

use super::file_locks::FileLocks;
use super::{FileRecord, FileTable, OpenRecord, Sharing};
use crate::file::{FileKey, LocalOpen, ShareId};
use crate::id::{ConnectionId, OpId};
use crate::notice::Notice;
use crate::path::SharePath;
use crate::time::Instant;

/// What is to be told to connections, once the table is unlocked.
pub(crate) type Mail = Vec<(ConnectionId, Notice)>;

/// Rights that leave an oplock alone: those of \[MS-FSA\] 2.1.5.1.2.2, and smbtorture
/// smb2.oplock.statopen1. READ_CONTROL is not among them, unlike for a lease.
const STAT_RIGHTS: AccessMask = AccessMask(
    AccessMask::FILE_READ_ATTRIBUTES.0
        | AccessMask::FILE_WRITE_ATTRIBUTES.0
        | AccessMask::SYNCHRONIZE.0,
);

/// Who is told when an oplock breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The connection that the open was made on.
    pub(crate) connection: ConnectionId,
    /// The session, and what the client knows the open by.
    pub(crate) session: wire::SessionId,
    pub(crate) file_id: wire::FileId,
}

/// A request that waits until an oplock is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) connection: ConnectionId,
    pub(crate) op: OpId,
}

/// Who is woken, should a request have to wait, and for how long it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) waiter: Waiter,
    pub(crate) now: Instant,
    /// When an oplock that begins to break now will have had its time.
    pub(crate) deadline: Instant,
}

/// What one open holds, and what else of it counts when another asks for an oplock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    state: State,
    holder: Option<Holder>,
    /// Whether it can do no more than look at attributes.
    pub(super) is_stat_only: bool,
}

/// Open.OplockLevel and Open.OplockState. \[MS-SMB2\] 3.3.1.10
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    LevelTwo,
    Exclusive,
    Batch,
    /// EXCLUSIVE or BATCH, and the holder was told.
    Breaking {
        was_batch: bool,
        /// What it holds once it has acknowledged: level II or nothing.
        to: OplockLevel,
        /// When it will have had its time. \[MS-SMB2\] 3.3.6.1
        deadline: Instant,
    },
}

/// An open that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// What is compared with the share modes of others: an overwrite writes, whatever rights the
    /// open keeps. \[MS-FSA\] 2.1.5.1.2
    pub(crate) checked: Sharing,
    /// Whether it empties a file that is there.
    pub(crate) overwrites: bool,
    pub(crate) patience: Patience,
}

/// What an open is given once it is in the table.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    /// Its oplock.
    pub(crate) level: OplockLevel,
    /// Whether any open of the file holds level II: cheap to ask after each write.
    pub(crate) has_readers: Arc<AtomicBool>,
    /// The byte-range locks of the file: cheap to ask before each read and write.
    pub(crate) locks: Arc<FileLocks>,
}

/// What became of an open that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// It is in the table.
    Entered,
    /// It is not: its waiter is woken when it may try again. At this time at the latest an oplock
    /// that breaks has [to be expired](FileTable::expire).
    Wait(Instant),
}

/// What an oplock does about an open that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It is not concerned.
    Stay,
    /// It ends; its holder is told.
    End,
    /// Its holder is asked to come down to this level.
    Break(OplockLevel),
    /// Its holder has been asked.
    Wait,
}

impl State {
    /// The table of \[MS-FSA\] 2.1.4.12, as Samba and smbtorture smb2.oplock have it.
    ///
    /// EXCLUSIVE says nothing about the handle: who fails anyway for want of a share mode does not
    /// break it. A BATCH holder may have closed the file long ago, and will close it when asked.
    fn answer(self, violates: bool, overwrites: bool) -> Answer {
        match (self, violates, overwrites) {
            (Self::None, _, _) | (Self::LevelTwo, _, false) | (Self::LevelTwo, true, _) => {
                Answer::Stay
            }
            (Self::LevelTwo, false, true) => Answer::End,
            (Self::Exclusive, true, _) => Answer::Stay,
            (Self::Exclusive | Self::Batch, _, true) => Answer::Break(OplockLevel::NONE),
            (Self::Exclusive | Self::Batch, _, false) => Answer::Break(OplockLevel::II),
            (Self::Breaking { was_batch, .. }, true, _) if !was_batch => Answer::Stay,
            (Self::Breaking { .. }, _, _) => Answer::Wait,
        }
    }

    /// Whether nobody else may hold anything.
    fn is_sole(self) -> bool {
        !matches!(self, Self::None | Self::LevelTwo)
    }

    fn is_breaking(self) -> bool {
        matches!(self, Self::Breaking { .. })
    }

    /// The time that a holder has to acknowledge.
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::Breaking { deadline, .. } => Some(deadline),
            _ => None,
        }
    }

    fn level(self) -> OplockLevel {
        match self {
            Self::None => OplockLevel::NONE,
            Self::LevelTwo => OplockLevel::II,
            Self::Exclusive => OplockLevel::EXCLUSIVE,
            Self::Batch => OplockLevel::BATCH,
            Self::Breaking { to, .. } => to,
        }
    }

    fn of(level: OplockLevel) -> Self {
        match level {
            OplockLevel::II => Self::LevelTwo,
            OplockLevel::EXCLUSIVE => Self::Exclusive,
            OplockLevel::BATCH => Self::Batch,
            _ => Self::None,
        }
    }
}

/// Whether an open with these rights leaves oplocks alone.
pub(crate) fn is_stat_only(access: AccessMask) -> bool {
    STAT_RIGHTS.contains(access)
}

impl FileTable {
    /// Grants an open that is in the table what it may have of what it asks for. Level II beside
    /// others that may read or write, nothing beside a sole holder. \[MS-FSA\] 2.1.5.18.1;
    /// as Windows and Samba have it, who asks for more gets level II where that is to be had.
    pub(crate) fn grant(
        &self,
        key: FileKey,
        open: LocalOpen,
        wanted: OplockLevel,
        holder: &Holder,
    ) -> Granted {
        let mut files = self.files.lock();
        let file = files.get_mut(&key).expect("the open is in the table");
        let mut level = file.grantable(open, wanted);
        file.hold(open, level, holder);
        // Who locks looks for readers afterwards: one of the two sees the other.
        if level == OplockLevel::II && !file.locks.is_empty() {
            level = OplockLevel::NONE;
            file.hold(open, level, holder);
        }
        Granted {
            level,
            has_readers: file.has_readers.clone(),
            locks: file.locks.clone(),
        }
    }

    /// The holder says what it comes down to. Tells what it holds from now on, which may be less.
    /// \[MS-SMB2\] 3.3.5.22.1
    pub(crate) fn acknowledge(
        &self,
        key: FileKey,
        open: LocalOpen,
        level: OplockLevel,
        mail: &mut Mail,
    ) -> Result<OplockLevel, Status> {
        let mut files = self.files.lock();
        let file = files.get_mut(&key);
        let file = file.ok_or(Status::INVALID_OPLOCK_PROTOCOL)?;
        let mut records = file.opens.iter_mut();
        let record = records.find(|record| record.file == open);
        let record = record.ok_or(Status::INVALID_OPLOCK_PROTOCOL)?;
        let State::Breaking { to, .. } = record.held.state else {
            return Err(Status::INVALID_OPLOCK_PROTOCOL);
        };
        // Who was asked for all and keeps a part has nothing, and is told so: as Samba does.
        let kept = match level {
            OplockLevel::II => to,
            _ => OplockLevel::NONE,
        };
        record.held.state = State::of(kept);
        file.note_readers();
        file.wake(mail);
        match level {
            OplockLevel::II | OplockLevel::NONE => Ok(kept),
            _ => Err(Status::INVALID_OPLOCK_PROTOCOL),
        }
    }

    /// Asks those who hold BATCH on a file that is to be replaced to close it: its client may
    /// have closed it long ago. Until when to wait for them. \[MS-FSA\] 2.1.5.15.12
    pub(crate) fn give_handles_up(
        &self,
        key: FileKey,
        patience: &Patience,
        mail: &mut Mail,
    ) -> Option<Instant> {
        let mut files = self.files.lock();
        let file = files.get_mut(&key)?;
        let until = file.give_handles_up(patience, mail)?;
        file.waiters.push(patience.waiter);
        Some(until)
    }

    /// The same for every file that is open below a directory which is to be renamed: one of those
    /// to wait for, and until when.
    pub(crate) fn give_handles_below_up(
        &self,
        share: ShareId,
        directory: &SharePath,
        patience: &Patience,
        mail: &mut Mail,
    ) -> Option<(FileKey, Instant)> {
        let is_below =
            |open: &OpenRecord| open.file.share == share && open.path.is_below(directory);
        let mut found = None;
        let mut files = self.files.lock();
        for (key, file) in &mut *files {
            if file.opens.iter().any(is_below) {
                let until = file.give_handles_up(patience, mail);
                found = found.or(until.map(|until| (*key, until)));
            }
        }
        let (key, until) = found?;
        let file = files.get_mut(&key).expect("it was just seen");
        file.waiters.push(patience.waiter);
        Some((key, until))
    }

    /// The data of a file changed: nobody has read what is there now. Also who changed them is
    /// told, as Windows and Samba do: smbtorture smb2.oplock.levelii500.
    pub(crate) fn end_level_two(&self, key: FileKey, mail: &mut Mail) {
        if let Some(file) = self.files.lock().get_mut(&key) {
            for open in &mut file.opens {
                if open.held.state == State::LevelTwo {
                    open.held.end(mail);
                }
            }
            file.note_readers();
        }
    }

    /// Takes the oplocks of those away that had their time. When to ask again, if any is left that
    /// breaks. \[MS-SMB2\] 3.3.6.1
    pub(crate) fn expire(&self, key: FileKey, now: Instant, mail: &mut Mail) -> Option<Instant> {
        self.files.lock().get_mut(&key)?.expire(now, mail)
    }

    /// What an open may hold from now on: of an oplock that breaks, what is left of it.
    pub(crate) fn level(&self, key: FileKey, open: LocalOpen) -> OplockLevel {
        let files = self.files.lock();
        let mut opens = files.get(&key).into_iter().flat_map(|file| &file.opens);
        let record = opens.find(|record| record.file == open);
        record.map_or(OplockLevel::NONE, |record| record.held.state.level())
    }

    /// A client learns only now that it has the open: of an oplock that breaks it never had more
    /// than what is left. Tells what that is.
    pub(crate) fn settle(&self, key: FileKey, open: LocalOpen, mail: &mut Mail) -> OplockLevel {
        let mut files = self.files.lock();
        let Some(file) = files.get_mut(&key) else {
            return OplockLevel::NONE;
        };
        let mut opens = file.opens.iter_mut();
        let Some(record) = opens.find(|record| record.file == open) else {
            return OplockLevel::NONE;
        };
        let was_breaking = record.held.state.is_breaking();
        let level = record.held.state.level();
        record.held.state = State::of(level);
        if was_breaking {
            file.note_readers();
            file.wake(mail);
        }
        level
    }

    /// Ends the oplock of an open without a notification: its client is disconnected.
    pub(crate) fn end_oplock(&self, key: FileKey, open: LocalOpen, mail: &mut Mail) {
        let mut files = self.files.lock();
        let Some(file) = files.get_mut(&key) else {
            return;
        };
        let mut opens = file.opens.iter_mut();
        let Some(record) = opens.find(|record| record.file == open) else {
            return;
        };
        let was_breaking = record.held.state.is_breaking();
        record.held.state = State::None;
        file.note_readers();
        if was_breaking {
            file.wake(mail);
        }
    }

    /// A request no longer waits.
    pub(crate) fn forget_waiter(&self, key: FileKey, waiter: Waiter) {
        if let Some(file) = self.files.lock().get_mut(&key) {
            file.waiters.retain(|other| *other != waiter);
        }
    }

    /// Requests that wait, in all: none is left behind.
    #[cfg(test)]
    pub(crate) fn waiters(&self) -> usize {
        let files = self.files.lock();
        files.values().map(|file| file.waiters.len()).sum()
    }
}

impl FileRecord {
    /// Asks whoever is in the way of an open that comes to give way. Until when it has to wait.
    pub(super) fn give_way(
        &mut self,
        arrival: &Arrival,
        violates: bool,
        mail: &mut Mail,
    ) -> Option<Instant> {
        if is_stat_only(arrival.checked.access) {
            return None;
        }
        let mut until = None;
        for open in &mut self.opens {
            match open.held.state.answer(violates, arrival.overwrites) {
                Answer::Stay => {}
                Answer::End => open.held.end(mail),
                Answer::Break(to) => {
                    let deadline = arrival.patience.deadline;
                    open.held.begin_to_break(to, deadline, mail);
                    until = Some(deadline);
                }
                Answer::Wait => until = open.held.state.deadline(),
            }
        }
        if until.is_some() {
            self.waiters.push(arrival.patience.waiter);
        }
        self.note_readers();
        until
    }

    fn give_handles_up(&mut self, patience: &Patience, mail: &mut Mail) -> Option<Instant> {
        self.expire(patience.now, mail);
        let mut until = None;
        for open in &mut self.opens {
            if open.held.state == State::Batch {
                let deadline = patience.deadline;
                open.held.begin_to_break(OplockLevel::II, deadline, mail);
            }
            if let State::Breaking {
                was_batch: true,
                deadline,
                ..
            } = open.held.state
            {
                until = Some(deadline);
            }
        }
        until
    }

    /// Ends the breaks that had their time.
    pub(super) fn expire(&mut self, now: Instant, mail: &mut Mail) -> Option<Instant> {
        let mut has_ended = false;
        for open in &mut self.opens {
            if open.held.state.deadline().is_some_and(|at| at <= now) {
                open.held.state = State::None;
                has_ended = true;
            }
        }
        if has_ended {
            self.wake(mail);
        }
        let states = self.opens.iter().map(|open| open.held.state);
        states.filter_map(State::deadline).min()
    }

    /// An open is gone, with what it held.
    pub(super) fn gone(&mut self, open: &OpenRecord, mail: &mut Mail) {
        if open.held.state.is_breaking() {
            self.wake(mail);
        }
        self.note_readers();
    }

    fn hold(&mut self, open: LocalOpen, level: OplockLevel, holder: &Holder) {
        if let Some(record) = self.opens.iter_mut().find(|record| record.file == open) {
            record.held.state = State::of(level);
            record.held.holder = Some(holder.clone());
        }
        self.note_readers();
    }

    fn grantable(&self, open: LocalOpen, wanted: OplockLevel) -> OplockLevel {
        let others = || self.opens.iter().filter(|record| record.file != open);
        if others().any(|record| record.held.state.is_sole()) {
            return OplockLevel::NONE;
        }
        let is_alone = others().all(|record| record.held.is_stat_only);
        let has_readers = others().any(|record| record.held.state == State::LevelTwo);
        match wanted {
            OplockLevel::EXCLUSIVE | OplockLevel::BATCH if is_alone && !has_readers => wanted,
            OplockLevel::II | OplockLevel::EXCLUSIVE | OplockLevel::BATCH => OplockLevel::II,
            _ => OplockLevel::NONE,
        }
    }

    /// Everybody who waits tries again, once.
    fn wake(&mut self, mail: &mut Mail) {
        let waiters = self.waiters.drain(..);
        mail.extend(waiters.map(|waiter| (waiter.connection, Notice::OplockBroken(waiter.op))));
    }

    fn note_readers(&self) {
        let mut opens = self.opens.iter();
        let has_readers = opens.any(|open| open.held.state == State::LevelTwo);
        self.has_readers.store(has_readers, Ordering::SeqCst);
    }
}

impl Held {
    /// An open that holds nothing yet.
    pub(crate) fn nothing(is_stat_only: bool) -> Self {
        Self {
            is_stat_only,
            ..Self::default()
        }
    }

    /// What is held; while it breaks, what it is breaking from.
    pub(super) fn level(&self) -> OplockLevel {
        match self.state {
            State::None => OplockLevel::NONE,
            State::LevelTwo => OplockLevel::II,
            State::Exclusive
            | State::Breaking {
                was_batch: false, ..
            } => OplockLevel::EXCLUSIVE,
            State::Batch
            | State::Breaking {
                was_batch: true, ..
            } => OplockLevel::BATCH,
        }
    }

    fn end(&mut self, mail: &mut Mail) {
        self.state = State::None;
        self.tell(OplockLevel::NONE, mail);
    }

    fn begin_to_break(&mut self, to: OplockLevel, deadline: Instant, mail: &mut Mail) {
        self.state = State::Breaking {
            was_batch: self.state == State::Batch,
            to,
            deadline,
        };
        self.tell(to, mail);
    }

    fn tell(&self, level: OplockLevel, mail: &mut Mail) {
        let holder = self.holder.as_ref().expect("what is held has a holder");
        let notice = Notice::BreakOplock {
            session: holder.session,
            file_id: holder.file_id,
            level,
        };
        mail.push((holder.connection, notice));
    }
}

#[cfg(test)]
mod tests;
