//! LOCK requests that come twice: a client that lost its connection does not know whether the first
//! was served. \[MS-SMB2\] 3.3.1.10, 3.3.5.14

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use crate::server::notices::Waiter;

/// Entries of Open.LockSequenceArray. \[MS-SMB2\] 3.3.1.10
const BUCKETS: usize = 64;
/// The number of an entry that has none: a request has 4 bits for it.
const NONE: u8 = 0xFF;

/// Open.LockSequenceArray; `None` until a client uses it.
#[derive(Debug, Default)]
pub(crate) struct LockSequences {
    numbers: Option<Box<[u8; BUCKETS]>>,
    /// Requests that wait for their lock. As many as the limits let wait.
    waiting: Vec<Waiting>,
}

/// A request that waits for its lock.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) sequence: Sequence,
    pub(crate) waiter: Waiter,
    /// Set where the same request came again, and waits instead.
    pub(crate) is_replaced: Arc<AtomicBool>,
}

/// Where a request stands among those that may come twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    bucket: usize,
    number: u8,
}

impl Sequence {
    /// Reads LockSequence; `None` if the server does not verify it: the index is out of its bounds,
    /// or the client cannot repeat a request, because it has one connection and the open does not
    /// outlive it. Windows verifies it for fewer opens. This follows the specification and Samba:
    /// smbtorture smb2.lock.replay_smb3_specification_multi, replay_smb3_specification_durable.
    pub(crate) fn of(may_repeat: bool, lock_sequence: u32) -> Option<Self> {
        let index = usize::try_from(lock_sequence >> 4).ok()?;
        let is_in_bounds = (1..=BUCKETS).contains(&index);
        (may_repeat && is_in_bounds).then(|| Self {
            bucket: index - 1,
            number: (lock_sequence & 0x0F) as u8,
        })
    }
}

impl LockSequences {
    /// Whether a request has been served already. If not, its entry holds nothing until it is.
    pub(crate) fn is_replay(&mut self, sequence: Sequence) -> bool {
        let Some(numbers) = &mut self.numbers else {
            return false;
        };
        let number = &mut numbers[sequence.bucket];
        let is_replay = *number == sequence.number;
        if !is_replay {
            *number = NONE;
        }
        is_replay
    }

    /// A request waits for its lock.
    pub(crate) fn wait(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// It waits no more.
    pub(crate) fn forget(&mut self, waiter: Waiter) {
        self.waiting.retain(|waiting| waiting.waiter != waiter);
    }

    /// The request that waits under the same number, which does so no more.
    pub(crate) fn replace(&mut self, sequence: Sequence) -> Option<Waiting> {
        let mut waiting = self.waiting.iter();
        let index = waiting.position(|waiting| waiting.sequence == sequence)?;
        Some(self.waiting.swap_remove(index))
    }

    /// A request was served.
    pub(crate) fn remember(&mut self, sequence: Sequence) {
        let numbers = self
            .numbers
            .get_or_insert_with(|| Box::new([NONE; BUCKETS]));
        numbers[sequence.bucket] = sequence.number;
    }
}
