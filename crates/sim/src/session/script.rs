//! The state of a session: its opens, and the purpose of each request.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use wire::FileId;

use super::books::{Books, Cells};
use crate::check::contents::Stamp;
use crate::choices::Choices;

/// The file of an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A file that all sessions write to.
    Content(u64),
    /// A log.
    Log(u64),
    /// A file that is renamed and deleted.
    Named(u64),
    /// A file for locks.
    Lock(u64),
}

/// The state of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    Open,
    Closing,
}

/// An open, or a requested open.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) subject: Subject,
    pub(super) file_id: FileId,
    /// Number of requests on it in flight.
    pub(super) busy: u32,
    /// The resume key, after the session has requested it.
    pub(super) resume_key: Option<[u8; 24]>,
    /// Whether its file is deleted with it; `None` if that is unknown.
    pub(super) deletes: Option<bool>,
    /// Number of its locks so far.
    pub(super) sequence: u32,
}

/// The kinds of lock attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Without waiting, of a free byte.
    Lock,
    /// Without waiting, of a byte that the other open holds.
    Try,
    /// Waiting while the other open holds the byte.
    Wait,
    Unlock,
}

/// The purpose of a request.
#[derive(Clone, Debug)]
pub(super) enum Intent {
    Enter,
    Open {
        slot: u64,
        /// Whether an existing file is truncated.
        overwrites: bool,
        /// The name, if the file must be new.
        name: Option<String>,
    },
    Close {
        slot: u64,
    },
    Write {
        slot: u64,
        key: u64,
        cells: Range<u32>,
        stamp: Stamp,
    },
    Read {
        slot: u64,
        key: u64,
        cells: Range<u32>,
    },
    /// Open, read and close in one compound, one file or several: the cells of each.
    Peek(Vec<(u64, Range<u32>)>),
    Append {
        slot: u64,
        file: u64,
        number: u64,
    },
    Rename {
        slot: u64,
        file: u64,
        to: String,
    },
    Delete {
        slot: u64,
    },
    Lock {
        slot: u64,
        byte: usize,
        attempt: Attempt,
    },
    Key {
        slot: u64,
    },
    Copy {
        slot: u64,
        key: u64,
        fillings: Vec<Cells>,
    },
    /// A request that changes nothing and may fail.
    Ask {
        slot: u64,
    },
    Leave,
}

impl Intent {
    /// Returns whether the response waits for an event.
    pub(super) fn may_wait(&self) -> bool {
        let attempt = match self {
            Self::Lock { attempt, .. } => *attempt,
            _ => return false,
        };
        attempt == Attempt::Wait
    }

    /// Returns the open of the request.
    pub(super) fn slot(&self) -> Option<u64> {
        match self {
            Self::Open { slot, .. }
            | Self::Close { slot }
            | Self::Write { slot, .. }
            | Self::Read { slot, .. }
            | Self::Append { slot, .. }
            | Self::Rename { slot, .. }
            | Self::Delete { slot }
            | Self::Lock { slot, .. }
            | Self::Key { slot }
            | Self::Copy { slot, .. }
            | Self::Ask { slot } => Some(*slot),
            Self::Enter | Self::Peek(_) | Self::Leave => None,
        }
    }
}

/// Number of bytes of a file that are locked.
pub(super) const LOCK_BYTES: usize = 4;

/// Two opens of a file that compete for its bytes.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) slots: [u64; 2],
    /// The holder of each byte.
    pub(super) owners: [Option<u64>; LOCK_BYTES],
    /// Whether a request that does not wait is in flight.
    pub(super) is_busy: bool,
    /// The waiting open, and its byte.
    pub(super) waiter: Option<(u64, usize)>,
}

/// The state of a session.
pub(super) struct Script {
    /// Number of operations left.
    pub(super) quota: u32,
    pub(super) choices: Choices,
    pub(super) slots: BTreeMap<u64, Slot>,
    pub(super) rig: Option<Rig>,
    pub(super) next_slot: u64,
    pub(super) next_stamp: u64,
    pub(super) next_name: u64,
}

impl Script {
    pub(super) fn new(quota: u32, choices: Choices) -> Self {
        Self {
            quota,
            choices,
            slots: BTreeMap::new(),
            rig: None,
            next_slot: 0,
            next_stamp: 0,
            next_name: 0,
        }
    }

    /// All opens have ended, or will end when the server learns of it.
    pub(super) fn session_over(&mut self, books: &mut Books) {
        for slot in self.slots.values() {
            if let (Subject::Named(file), None | Some(true)) = (&slot.subject, slot.deletes) {
                books.perhaps_at(*file, None, &BTreeSet::new());
            }
        }
        self.slots.clear();
        self.rig = None;
    }

    /// Returns the existing opens that meet a condition.
    pub(super) fn pick(&mut self, is_meant: impl Fn(&Slot) -> bool) -> Option<(u64, FileId)> {
        let open = (self.slots.iter())
            .filter(|(_, slot)| slot.state == State::Open && is_meant(slot))
            .map(|(number, slot)| (*number, slot.file_id));
        let open: Vec<_> = open.collect();
        match open.is_empty() {
            true => None,
            false => Some(self.choices.pick(&open)),
        }
    }

    /// The locks are unknown: the session closes their opens and opens others.
    pub(super) fn abandon_rig(&mut self) {
        self.rig = None;
    }

    /// Returns whether a request waits for an unlocked byte: then it ends by itself.
    pub(super) fn is_due(&self, intent: &Intent) -> bool {
        match (intent, &self.rig) {
            (Intent::Lock { slot, byte, .. }, Some(rig)) => {
                rig.waiter == Some((*slot, *byte)) && rig.owners[*byte].is_none()
            }
            _ => false,
        }
    }

    /// Returns whether an open is one of the two that compete.
    pub(super) fn is_of_rig(&self, slot: u64) -> bool {
        (self.rig.as_ref()).is_some_and(|rig| rig.slots.contains(&slot))
    }

    pub(super) fn describe(&self) -> String {
        format!("{} to do, {:?}, {:?}", self.quota, self.slots, self.rig)
    }
}
