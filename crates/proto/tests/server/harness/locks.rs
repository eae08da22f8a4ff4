//! Requests that lock and unlock.

use wire::lock::{LockElement, LockFlags, Request};
use wire::{Command, FileId, MessageId, Status};

use super::client::{Client, Message, bytes_of};
use super::rig::Rig;

/// An exclusive lock that waits for its grant.
pub(crate) const EXCLUSIVE: LockFlags = LockFlags::EXCLUSIVE_LOCK;
/// A shared lock that waits for its grant.
pub(crate) const SHARED: LockFlags = LockFlags::SHARED_LOCK;
/// An exclusive lock that fails instead of waiting.
pub(crate) const EXCLUSIVE_NOW: LockFlags =
    LockFlags(LockFlags::EXCLUSIVE_LOCK.0 | LockFlags::FAIL_IMMEDIATELY.0);
/// A shared lock that fails instead of waiting.
pub(crate) const SHARED_NOW: LockFlags =
    LockFlags(LockFlags::SHARED_LOCK.0 | LockFlags::FAIL_IMMEDIATELY.0);
pub(crate) const UNLOCK: LockFlags = LockFlags::UNLOCK;

/// Offset and length in bytes.
pub(crate) type Place = (u64, u64);

impl Client {
    pub(crate) fn lock_message(
        &mut self,
        file_id: FileId,
        (offset, length): Place,
        flags: LockFlags,
    ) -> Message {
        let element = LockElement {
            offset,
            length,
            flags,
        };
        let request = Request {
            lock_sequence: 0,
            file_id,
            locks: vec![element],
        };
        let bytes = bytes_of(|bytes| request.encode(bytes));
        let mut message = self.message(Command::LOCK, bytes);
        message.header.credits = 8;
        message
    }

    /// Locks or unlocks, and returns the status, which comes at once.
    pub(crate) fn lock(
        &mut self,
        rig: &mut Rig,
        file_id: FileId,
        place: Place,
        flags: LockFlags,
    ) -> Status {
        let message = self.lock_message(file_id, place, flags);
        self.ask(rig, message).status()
    }

    /// Locks or unlocks at once, successfully.
    pub(crate) fn must_lock(
        &mut self,
        rig: &mut Rig,
        file_id: FileId,
        place: Place,
        flags: LockFlags,
    ) {
        let status = self.lock(rig, file_id, place, flags);
        assert_eq!(status, Status::SUCCESS, "{place:?} {flags:?}");
    }

    /// Requests a lock that must wait.
    pub(crate) fn lock_and_wait(
        &mut self,
        rig: &mut Rig,
        file_id: FileId,
        place: Place,
        flags: LockFlags,
    ) -> MessageId {
        let message = self.lock_message(file_id, place, flags);
        let id = message.header.message_id;
        self.say(rig, vec![message]);
        assert!(self.hear(rig).is_none(), "it has to wait");
        id
    }

    /// The status of a request that waited.
    pub(crate) fn hear_lock(&mut self, rig: &mut Rig, id: MessageId) -> Status {
        let answer = self.hear_answer(rig);
        let header = &answer.header;
        assert_eq!((header.command, header.message_id), (Command::LOCK, id));
        answer.status()
    }
}
