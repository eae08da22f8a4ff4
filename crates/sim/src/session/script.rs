//! What a session does: the opens that it has, and what each request was for.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use wire::FileId;

use super::books::{Books, Cells};
use crate::check::contents::Stamp;
use crate::choices::Choices;

/// The file of an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// One of those that all sessions write to.
    Content(u64),
    /// One to which is only appended.
    Log(u64),
    /// One that is renamed and deleted.
    Named(u64),
    /// One that is locked.
    Lock(u64),
}

/// How an open stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Opening,
    Open,
    Closing,
}

/// An open, or one that is asked for.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) subject: Subject,
    pub(super) file_id: FileId,
    /// Requests on it that are not done.
    pub(super) busy: u32,
    /// What stands for it as the source of a copy.
    pub(super) resume_key: Option<[u8; 24]>,
    /// Whether its file goes with it; `None` where nobody knows.
    pub(super) deletes: Option<bool>,
    /// Of its locks, so far.
    pub(super) sequence: u32,
}

/// Locks that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// At once, and the byte is free.
    Lock,
    /// At once, and another has it.
    Try,
    /// For as long as another has it.
    Wait,
    Unlock,
}

/// What a request is for.
#[derive(Clone, Debug)]
pub(super) enum Intent {
    Enter,
    Open {
        slot: u64,
        /// Whether what is there is cut to nothing.
        overwrites: bool,
        /// The name of a file that must be new.
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
    /// Open, read and close in one, one file or several: which cells of which.
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
    /// Changes nothing, and may fail.
    Ask {
        slot: u64,
    },
    Leave,
}

impl Intent {
    /// Whether it is answered only when something happens.
    pub(super) fn may_wait(&self) -> bool {
        let attempt = match self {
            Self::Lock { attempt, .. } => *attempt,
            _ => return false,
        };
        attempt == Attempt::Wait
    }

    /// The open that it acts on.
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

/// Bytes of a file that are locked.
pub(super) const LOCK_BYTES: usize = 4;

/// Two opens of a file that lock its bytes against each other.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) slots: [u64; 2],
    /// Who of the two holds each byte.
    pub(super) owners: [Option<u64>; LOCK_BYTES],
    /// Whether a request that does not wait is under way.
    pub(super) is_busy: bool,
    /// Who waits, and for which byte.
    pub(super) waiter: Option<(u64, usize)>,
}

/// What a session does.
pub(super) struct Script {
    /// Operations still to be done.
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

    /// All opens are gone, or go when the server hears of it.
    pub(super) fn session_over(&mut self, books: &mut Books) {
        for slot in self.slots.values() {
            if let (Subject::Named(file), None | Some(true)) = (&slot.subject, slot.deletes) {
                books.perhaps_at(*file, None, &BTreeSet::new());
            }
        }
        self.slots.clear();
        self.rig = None;
    }

    /// Those opens that are there and meet a condition.
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

    /// Nobody knows what is locked any more: its opens are closed, and others are made.
    pub(super) fn abandon_rig(&mut self) {
        self.rig = None;
    }

    /// Whether a request waits for a byte that is unlocked: it has to end by itself.
    pub(super) fn is_due(&self, intent: &Intent) -> bool {
        match (intent, &self.rig) {
            (Intent::Lock { slot, byte, .. }, Some(rig)) => {
                rig.waiter == Some((*slot, *byte)) && rig.owners[*byte].is_none()
            }
            _ => false,
        }
    }

    /// Whether an open is one of the two that lock.
    pub(super) fn is_of_rig(&self, slot: u64) -> bool {
        (self.rig.as_ref()).is_some_and(|rig| rig.slots.contains(&slot))
    }

    pub(super) fn describe(&self) -> String {
        format!("{} to do, {:?}, {:?}", self.quota, self.slots, self.rig)
    }
}
