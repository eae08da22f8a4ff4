//! CREATEs that clients send again because they lost the answer with a channel.
//! \[MS-SMB2\] 3.3.5.9.10
//!
//! The client names each CREATE with a CreateGuid. While it runs, a second one of that name is
//! told to wait; once it is done, a replay gets the very same open. So it is for as long as the
//! open is not used: who uses it has had the answer.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spin::Mutex;
use wire::access::AccessMask;
use wire::create::CreateAction;
use wire::{FileId, Guid, SessionId, Status};

/// The CREATEs that run or whose opens are there, by ClientGuid and CreateGuid.
#[derive(Debug, Default)]
pub(crate) struct ReplayTable {
    entries: Mutex<BTreeMap<Key, Entry>>,
    last_ticket: AtomicU64,
}

type Key = (Guid, Guid);

#[derive(Debug)]
struct Entry {
    ticket: u64,
    /// What came of it; `None` while it runs.
    known: Option<Known>,
    /// Open.IsReplayEligible: nothing has been done with the open yet.
    is_eligible: bool,
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

/// The name of a CREATE. It is free again when the request that failed, or the open, is gone.
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
        match entries
            .get(&key)
            .map(|entry| (entry.known, entry.is_eligible))
        {
            // The client is to try again.
            Some((None, _)) => return Err(Status::FILE_NOT_AVAILABLE),
            // Also where the open is in use: it is the first try, which came by another way than
            // its replay and later. Samba would open the file once more, for nobody.
            Some((Some(_), _)) if !is_replay => return Err(Status::DUPLICATE_OBJECTID),
            Some((Some(known), true)) if known.session == session => {
                return Ok(Found::Open(known));
            }
            Some((Some(_), true)) => return Err(Status::DUPLICATE_OBJECTID),
            Some((Some(_), false)) | None => {}
        }
        let number = self.last_ticket.fetch_add(1, Ordering::Relaxed);
        let entry = Entry {
            ticket: number,
            known: None,
            is_eligible: true,
        };
        entries.insert(key, entry);
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
        self.entries.lock().len()
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
        let entry = entries.get_mut(&self.key);
        entry
            .filter(|entry| entry.ticket == self.number)
            .map(change);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut entries = self.table.entries.lock();
        let entry = entries.get(&self.key);
        if entry.is_some_and(|entry| entry.ticket == self.number) {
            entries.remove(&self.key);
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
        assert_eq!(table.len(), 0);
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
        drop(second);
        assert_eq!(table.len(), 0);
    }
}
