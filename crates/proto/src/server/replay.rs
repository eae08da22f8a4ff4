//! CREATEs that clients send again because they lost the answer with a channel.
//! \[MS-SMB2\] 3.3.5.9.10
//!
//! The client names each CREATE with a CreateGuid. While it runs, a second one with that
//! name gets FILE_NOT_AVAILABLE; once it has completed, a replay gets the same open. This ends with
//! the first use of the open: a client that uses it has received the answer.
//!
//! After a replay, the first try or another replay may still wait in the socket of an abandoned
//! channel. The name therefore stays in use after the open is closed. Otherwise the late request
//! could truncate written data, create a deleted file again, or open a file that no client closes.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spin::Mutex;
use wire::access::AccessMask;
use wire::create::CreateAction;
use wire::{FileId, Guid, SessionId, Status};

use crate::server::channel_sequence::is_earlier;

/// Running CREATEs and CREATEs with a live open, by ClientGuid and CreateGuid.
#[derive(Debug, Default)]
pub(crate) struct ReplayTable {
    entries: Mutex<Entries>,
    last_entry: AtomicU64,
}

/// Maximum number of names in use after the end of their opens. A late request arrives soon or
/// never, so that the oldest are dropped.
const OVER_MAX: usize = 1024;

#[derive(Debug, Default)]
struct Entries {
    taken: BTreeMap<Key, Entry>,
    /// The entries of `taken` with a closed open, the oldest first.
    over: VecDeque<Key>,
}

type Key = (Guid, Guid);

#[derive(Debug)]
struct Entry {
    replay_entry: u64,
    /// The result; `None` while the CREATE runs.
    known: Option<CompletedCreate>,
    /// Open.IsReplayEligible: nothing has been done with the open yet.
    is_eligible: bool,
    /// A replay has arrived: the request that it repeats may arrive later.
    was_replayed: bool,
    /// The latest request: its session and ChannelSequence.
    latest: (SessionId, u16),
    /// Its open is closed.
    is_over: bool,
}

/// An open, as the answer to a replay needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedCreate {
    pub(crate) session: SessionId,
    pub(crate) file_id: FileId,
    pub(crate) action: CreateAction,
    /// All rights that its user has.
    pub(crate) maximal: AccessMask,
}

/// A CREATE with a CreateGuid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) session: SessionId,
    /// Its ChannelSequence.
    pub(crate) sequence: u16,
    /// SMB2_FLAGS_REPLAY_OPERATION
    pub(crate) is_replay: bool,
}

/// The result of looking up the CreateGuid of a CREATE.
pub(crate) enum Found {
    /// Nothing: it makes an open, and keeps the entry with it.
    Nothing(CreateReplayEntry),
    /// The open that it made before. It may belong to another session, or to none.
    Open(CompletedCreate),
}

/// The entry of a CREATE in the table, by its CreateGuid. Dropping it frees the name, unless the
/// CREATE was replayed.
#[derive(Debug)]
pub(crate) struct CreateReplayEntry {
    table: Arc<ReplayTable>,
    key: Key,
    number: u64,
    /// Whether the name had an open, which its client uses.
    is_second: bool,
    is_used: AtomicBool,
}

impl ReplayTable {
    /// Looks a CREATE up by its name, and takes the name if it is free.
    pub(crate) fn begin(self: &Arc<Self>, key: Key, attempt: Attempt) -> Result<Found, Status> {
        let Attempt {
            session,
            sequence,
            is_replay,
        } = attempt;
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.taken.get_mut(&key) {
            if entry.is_over {
                return Err(Status::DUPLICATE_OBJECTID);
            }
            // The client is to try again.
            let known = entry.known.ok_or(Status::FILE_NOT_AVAILABLE)?;
            // Also where the open is in use: it is the first try, which came by another way than
            // its replay and later. Samba would open the file once more, without a
            // client that closes it.
            if !is_replay {
                return Err(Status::DUPLICATE_OBJECTID);
            }
            let (latest_session, latest) = entry.latest;
            // Sent before the channel failed over which a later replay came.
            let is_outdated = latest_session == session && is_earlier(sequence, latest);
            entry.was_replayed = true;
            if !is_outdated {
                entry.latest = (session, sequence);
            }
            if entry.is_eligible {
                return Ok(Found::Open(known));
            }
            // As Windows and Samba, opens the file once more if the open is in use. But a client
            // that uses the open of a replay has received its answer: an earlier replay is
            // outdated. smbtorture smb2.replay.replay6, replay-twice-durable
            if is_outdated {
                return Err(Status::DUPLICATE_OBJECTID);
            }
        }
        let is_second = entries.taken.contains_key(&key);
        let number = self.last_entry.fetch_add(1, Ordering::Relaxed);
        let entry = Entry {
            replay_entry: number,
            known: None,
            is_eligible: true,
            was_replayed: is_replay,
            latest: (session, sequence),
            is_over: false,
        };
        entries.taken.insert(key, entry);
        Ok(Found::Nothing(CreateReplayEntry {
            table: self.clone(),
            key,
            number,
            is_second,
            is_used: AtomicBool::new(false),
        }))
    }

    /// Names that are taken: none is left behind.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().taken.len()
    }
}

impl CreateReplayEntry {
    /// Whether the CREATE opens the file once more: an earlier one by this name is complete.
    pub(crate) fn is_second(&self) -> bool {
        self.is_second
    }

    /// The CREATE made an open.
    pub(crate) fn complete(&self, known: CompletedCreate) {
        self.change(|entry| entry.known = Some(known));
    }

    /// The open has moved to another session.
    pub(crate) fn move_to(&self, session: SessionId) {
        self.change(|entry| {
            let known = entry.known.iter_mut();
            known.for_each(|known| known.session = session);
        });
    }

    /// The client uses the open: it has had the answer.
    pub(crate) fn mark_used(&self) {
        if !self.is_used.swap(true, Ordering::Relaxed) {
            self.change(|entry| entry.is_eligible = false);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.table.entries.lock();
        let entry = entries.taken.get_mut(&self.key);
        entry
            .filter(|entry| entry.replay_entry == self.number)
            .map(change);
    }
}

impl Drop for CreateReplayEntry {
    fn drop(&mut self) {
        let Entries { taken, over } = &mut *self.table.entries.lock();
        let entry = taken.get_mut(&self.key);
        let Some(entry) = entry.filter(|entry| entry.replay_entry == self.number) else {
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

    fn attempt(is_replay: bool) -> Attempt {
        numbered(0, is_replay)
    }

    fn numbered(sequence: u16, is_replay: bool) -> Attempt {
        Attempt {
            session: SESSION,
            sequence,
            is_replay,
        }
    }

    fn known() -> CompletedCreate {
        CompletedCreate {
            session: SESSION,
            file_id: FileId::RELATED,
            action: CreateAction::CREATED,
            maximal: AccessMask::NONE,
        }
    }

    fn replay_entry(found: Result<Found, Status>) -> CreateReplayEntry {
        match found {
            Ok(Found::Nothing(replay_entry)) => replay_entry,
            _ => panic!("the name is free"),
        }
    }

    #[test]
    fn a_name_is_taken_from_the_first_try_to_the_end_of_the_open() {
        let table = Arc::new(ReplayTable::default());
        let first = replay_entry(table.begin(KEY, attempt(false)));
        let status = |found: Result<Found, Status>| found.err();
        for is_replay in [false, true] {
            let found = table.begin(KEY, attempt(is_replay));
            assert_eq!(status(found), Some(Status::FILE_NOT_AVAILABLE));
        }
        first.complete(known());
        let again = table.begin(KEY, attempt(false));
        assert_eq!(status(again), Some(Status::DUPLICATE_OBJECTID));
        let elsewhere = Attempt {
            session: SessionId(8),
            ..attempt(true)
        };
        assert!(matches!(
            table.begin(KEY, elsewhere),
            Ok(Found::Open(known)) if known.session == SESSION
        ));
        assert!(matches!(
            table.begin(KEY, attempt(true)),
            Ok(Found::Open(_))
        ));
        drop(first);
        let late = table.begin(KEY, attempt(false)).err();
        assert_eq!(late, Some(Status::DUPLICATE_OBJECTID));
    }

    #[test]
    fn a_name_that_was_not_replayed_is_free_again() {
        let table = Arc::new(ReplayTable::default());
        let first = replay_entry(table.begin(KEY, attempt(false)));
        first.complete(known());
        drop(first);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn names_that_stay_taken_are_few() {
        let table = Arc::new(ReplayTable::default());
        for number in 0..2 * OVER_MAX as u128 {
            let key = (KEY.0, Guid(number.to_le_bytes()));
            let replay = replay_entry(table.begin(key, attempt(true)));
            replay.complete(known());
            drop(replay);
            let late = table.begin(key, attempt(false)).err();
            assert_eq!(late, Some(Status::DUPLICATE_OBJECTID));
        }
        assert_eq!(table.len(), OVER_MAX);
    }

    #[test]
    fn a_used_open_ends_the_replay_of_its_create() {
        let table = Arc::new(ReplayTable::default());
        let first = replay_entry(table.begin(KEY, attempt(false)));
        first.complete(known());
        first.mark_used();
        let late = table.begin(KEY, attempt(false)).err();
        assert_eq!(late, Some(Status::DUPLICATE_OBJECTID));
        let second = replay_entry(table.begin(KEY, numbered(1, true)));
        drop(first);
        assert_eq!(table.len(), 1, "the name is the second's by now");
        second.complete(known());
        second.mark_used();
        let late = table.begin(KEY, numbered(0, true)).err();
        assert_eq!(late, Some(Status::DUPLICATE_OBJECTID), "an earlier channel");
        replay_entry(table.begin(KEY, numbered(1, true)));
    }
}
