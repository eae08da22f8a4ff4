//! Byte-range locks. \[MS-SMB2\] 2.2.26

use std::ops::Range;
use std::sync::atomic::Ordering;

use proto::client::{Request, Step};
use wire::Status;
use wire::lock::{LockElement, LockFlags};

use crate::error::{Cause, Error};
use crate::file::File;
use crate::io::call::{Memory, Pending};

/// Length of Open.LockSequenceArray. \[MS-SMB2\] 3.3.1.10
const LOCK_SEQUENCES: u32 = 64;

/// Mode of a byte-range lock on a file: shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// All opens may read the range, and none may write to it. Several opens may hold such a lock.
    Shared,
    /// Only the open that holds the lock may read or write the range.
    Exclusive,
}

/// Whether another lock denies a LOCK.
fn is_conflict(cause: &Cause) -> bool {
    let status = cause.status();
    status.is_some_and(|status| {
        [Status::LOCK_NOT_GRANTED, Status::FILE_LOCK_CONFLICT].contains(&status)
    })
}

impl File {
    /// Locks a range of bytes, which may be beyond the end of the file, in the mode `kind`. The
    /// lock lasts until [`unlock`](Self::unlock) or until the file is closed. With `wait`, the
    /// future waits until the conflicting locks are released, and dropping it cancels the request.
    ///
    /// # Errors
    /// Without `wait`, another open holds a conflicting lock: LOCK_NOT_GRANTED.
    pub async fn lock(&self, range: Range<u64>, kind: LockKind, wait: bool) -> Result<(), Error> {
        let flags = match kind {
            LockKind::Shared => LockFlags::SHARED_LOCK,
            LockKind::Exclusive => LockFlags::EXCLUSIVE_LOCK,
        };
        let flags = match wait {
            true => flags,
            false => flags | LockFlags::FAIL_IMMEDIATELY,
        };
        self.lock_step("lock", &range, flags, wait).await
    }

    /// Releases the byte-range lock on exactly the bytes `range`, which [`lock`](Self::lock) of
    /// this file acquired.
    ///
    /// # Errors
    /// No lock of this file has this range: RANGE_NOT_LOCKED.
    pub async fn unlock(&self, range: Range<u64>) -> Result<(), Error> {
        self.lock_step("unlock", &range, LockFlags::UNLOCK, false)
            .await
    }

    /// The number by which the server recognizes a LOCK that is sent again: LockSequenceIndex and,
    /// in the low 4 bits, LockSequenceNumber. 0 if the session sends no request again.
    /// \[MS-SMB2\] 2.2.26, 3.2.4.19
    fn next_lock_sequence(&self) -> u32 {
        let is_durable = self.inner.open.durable().is_some();
        if !self.inner.share.session().may_replay() && !is_durable {
            return 0;
        }
        let count = self.inner.locks.fetch_add(1, Ordering::Relaxed);
        let (index, number) = (count % LOCK_SEQUENCES + 1, count / LOCK_SEQUENCES % 16);
        index << 4 | number
    }

    async fn lock_step(
        &self,
        operation: &'static str,
        range: &Range<u64>,
        flags: LockFlags,
        wait: bool,
    ) -> Result<(), Error> {
        let element = LockElement {
            offset: range.start,
            length: range.end.saturating_sub(range.start),
            flags,
        };
        self.inner.open.locks();
        let done = self.start_lock(element, wait).await;
        let was_repeated = done.was_repeated;
        let result = done.only().0.map(drop);
        let result = match result {
            Err(cause) if was_repeated && is_conflict(&cause) => {
                self.lock_again(element, wait, cause).await
            }
            result => result,
        };
        result.map_err(|cause| self.failed(operation, cause))
    }

    /// Handles a conflict of a LOCK that was sent a second time, after a loss of the connection:
    /// without LockSequence verification the lock conflicts with itself if the server executed the
    /// first one. Then the open has the lock, and can release it and acquire it again.
    async fn lock_again(
        &self,
        element: LockElement,
        wait: bool,
        conflict: Cause,
    ) -> Result<(), Cause> {
        let unlock = LockElement {
            flags: LockFlags::UNLOCK,
            ..element
        };
        match self.start_lock(unlock, false).await.only().0 {
            Ok(_) => self.start_lock(element, wait).await.only().0.map(drop),
            Err(cause) if cause.is_of_connection() => Err(cause),
            Err(_) => Err(conflict),
        }
    }

    fn start_lock(&self, element: LockElement, wait: bool) -> Pending {
        let step = Step::Lock {
            file: self.file(),
            sequence: self.next_lock_sequence(),
            locks: vec![element],
        };
        let mut request = Request::new(None, vec![step]);
        request.timeout = wait.then_some(None);
        self.start_request(request, Memory::None)
    }
}
