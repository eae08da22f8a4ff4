//! CREATEs that clients send again because they lost the answer with a channel.
//! \[MS-SMB2\] 3.3.5.9.10
//!
//! The client names each CREATE with a CreateGuid. While it runs, a second one of that name is
//! told to wait; once it is done, a replay gets the very same open. So it is for as long as the
//! open is not used: who uses it has had the answer.
//!
//! Where a replay came, the first try or another replay may still lie in the socket of a channel
//! that the client gave up. The name stays taken when the open is gone: else it would come after
//! that, cut to nothing what was written, make what was deleted, or open a file for nobody.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spin::Mutex;
use wire::access::AccessMask;
use wire::create::CreateAction;
use wire::{FileId, Guid, SessionId, Status};

/// The CREATEs that run or whose opens are there, by ClientGuid and CreateGuid.
#[derive(Debug, Default)]
pub(crate) struct ReplayTable {
    entries: Mutex<Entries>,
    last_ticket: AtomicU64,
}

/// Names that stay taken, at most. What lies in a socket comes soon, or not at all: the oldest go.
const OVER_MAX: usize = 1024;

#[derive(Debug, Default)]
struct Entries {
    taken: BTreeMap<Key, Entry>,
    /// Those of `taken` that are over, the oldest first.
    over: VecDeque<Key>,
}

type Key = (Guid, Guid);

#[derive(Debug)]
struct Entry {
    ticket: u64,
    /// What came of it; `None` while it runs.
    known: Option<Known>,
    /// Open.IsReplayEligible: nothing has been done with the open yet.
    is_eligible: bool,
    /// A replay came: what it repeats may come yet.
    was_replayed: bool,
    /// Its open is gone.
    is_over: bool,
}

/// An open, as the answer to a replay needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) session: SessionId,
    pub(crate) file_id: FileId,
    pub(crate) action: CreateAction,
    /// All rights that its user has.
    pub(crate) maximal: AccessMask,
}

/// What a CREATE with a name finds.
pub(crate) enum Found {
    /// Nothing: it makes an open, and keeps the ticket with it.
    Nothing(Ticket),
    /// The open that it made before.
    Open(Known),
}

/// The name of a CREATE. It is free again when the request that failed, or the open, is gone; but
/// not where an open was replayed.
#[derive(Debug)]
pub(crate) struct Ticket {
    table: Arc<ReplayTable>,
    key: Key,
    number: u64,
    is_used: AtomicBool,
}

impl ReplayTable {
    /// Looks a CREATE up by its name, and takes the name if it is free.
    pub(crate) fn begin(
        self: &Arc<Self>,
        key: Key,
        session: SessionId,
        is_replay: bool,
    ) -> Result<Found, Status> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.taken.get_mut(&key) {
            if entry.is_over {
                return Err(Status::DUPLICATE_OBJECTID);
            }
            // The client is to try again.
            let known = entry.known.ok_or(Status::FILE_NOT_AVAILABLE)?;
            // Also where the open is in use: it is the first try, which came by another way than
            // its replay and later. Samba would open the file once more, for nobody.
            if !is_replay {
                return Err(Status::DUPLICATE_OBJECTID);
            }
            let was_replayed = core::mem::replace(&mut entry.was_replayed, true);
            if entry.is_eligible && known.session == session {
                return Ok(Found::Open(known));
            }
            // Windows and Samba open the file once more where the open is in use. But whoever uses
            // what a replay told has no more questions: this one comes late.
            if entry.is_eligible || was_replayed {
                return Err(Status::DUPLICATE_OBJECTID);
            }
        }
        let number = self.last_ticket.fetch_add(1, Ordering::Relaxed);
        let entry = Entry {
            ticket: number,
            known: None,
            is_eligible: true,
            was_replayed: is_replay,
            is_over: false,
        };
        entries.taken.insert(key, entry);
        Ok(Found::Nothing(Ticket {
            table: self.clone(),
            key,
            number,
            is_used: AtomicBool::new(false),
        }))
    }

    /// Names that are taken: none is left behind.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().taken.len()
    }
}

impl Ticket {
    /// The CREATE made an open.
    pub(crate) fn fulfil(&self, known: Known) {
        self.change(|entry| entry.known = Some(known));
    }

    /// The client uses the open: it has had the answer.
    pub(crate) fn spend(&self) {
        if !self.is_used.swap(true, Ordering::Relaxed) {
            self.change(|entry| entry.is_eligible = false);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.table.entries.lock();
        let entry = entries.taken.get_mut(&self.key);
        entry
            .filter(|entry| entry.ticket == self.number)
            .map(change);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Entries { taken, over } = &mut *self.table.entries.lock();
        let entry = taken.get_mut(&self.key);
        let Some(entry) = entry.filter(|entry| entry.ticket == self.number) else {
            return;
        };
        if !entry.was_replayed || entry.known.is_none() {
            taken.remove(&self.key);
            return;
        }
        entry.is_over = true;
        over.push_back(self.key);
        if over.len() > OVER_MAX
            && let Some(oldest) = over.pop_front()
        {
            taken.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = (Guid([1; 16]), Guid([2; 16]));
    const SESSION: SessionId = SessionId(7);

    fn known() -> Known {
        Known {
            session: SESSION,
            file_id: FileId::RELATED,
            action: CreateAction::CREATED,
            maximal: AccessMask::NONE,
        }
    }

    fn ticket(found: Result<Found, Status>) -> Ticket {
        match found {
            Ok(Found::Nothing(ticket)) => ticket,
            _ => panic!("the name is free"),
        }
    }

    #[test]
    fn a_name_is_taken_from_the_first_try_to_the_end_of_the_open() {
        let table = Arc::new(ReplayTable::default());
        let first = ticket(table.begin(KEY, SESSION, false));
        let status = |found: Result<Found, Status>| found.err();
        for is_replay in [false, true] {
            let found = table.begin(KEY, SESSION, is_replay);
            assert_eq!(status(found), Some(Status::FILE_NOT_AVAILABLE));
        }
        first.fulfil(known());
        let again = table.begin(KEY, SESSION, false);
        assert_eq!(status(again), Some(Status::DUPLICATE_OBJECTID));
        let elsewhere = table.begin(KEY, SessionId(8), true);
        assert_eq!(status(elsewhere), Some(Status::DUPLICATE_OBJECTID));
        assert!(matches!(
            table.begin(KEY, SESSION, true),
            Ok(Found::Open(_))
        ));
        drop(first);
        let late = table.begin(KEY, SESSION, false).err();
        assert_eq!(late, Some(Status::DUPLICATE_OBJECTID));
    }

    #[test]
    fn a_name_that_was_not_replayed_is_free_again() {
        let table = Arc::new(ReplayTable::default());
        let first = ticket(table.begin(KEY, SESSION, false));
        first.fulfil(known());
        drop(first);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn names_that_stay_taken_are_few() {
        let table = Arc::new(ReplayTable::default());
        for number in 0..2 * OVER_MAX as u128 {
            let key = (KEY.0, Guid(number.to_le_bytes()));
            let replay = ticket(table.begin(key, SESSION, true));
            replay.fulfil(known());
            drop(replay);
            let late = table.begin(key, SESSION, false).err();
            assert_eq!(late, Some(Status::DUPLICATE_OBJECTID));
        }
        assert_eq!(table.len(), OVER_MAX);
    }

    #[test]
    fn who_uses_an_open_does_not_replay_its_create() {
        let table = Arc::new(ReplayTable::default());
        let first = ticket(table.begin(KEY, SESSION, false));
        first.fulfil(known());
        first.spend();
        let late = table.begin(KEY, SESSION, false).err();
        assert_eq!(late, Some(Status::DUPLICATE_OBJECTID));
        let second = ticket(table.begin(KEY, SESSION, true));
        drop(first);
        assert_eq!(table.len(), 1, "the name is the second's by now");
        second.fulfil(known());
        second.spend();
        let late = table.begin(KEY, SESSION, true).err();
        assert_eq!(late, Some(Status::DUPLICATE_OBJECTID));
    }
}
