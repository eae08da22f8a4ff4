//! An open of a file by a client. \[MS-SMB2\] 3.3.1.10

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use spin::Mutex;
use wire::access::{AccessMask, CreateOptions, FileAttributes};
use wire::fscc::ModeFlags;
use wire::{DecodeError, FileId, FileTime, Guid, Status, TreeId};

use crate::file::{DirectoryEntry, FileKey, LocalOpen, Metadata, Select, StreamId};
use crate::id::ConnectionId;
use crate::server::app_instances::InstanceEntry;
use crate::server::channel_sequence::ChannelSequence;
use crate::server::config::{Share, SyncPolicy};
use crate::server::durability::Durability;
use crate::server::fsa::byte_range::{ByteRange, LockFlavor, RangeAccess};
use crate::server::fsa::file_locks::{FileLocks, LockOwner};
use crate::server::ledger::{Charge, User};
use crate::server::lock_sequence::LockSequences;
use crate::server::quota::QuotaGuard;
use crate::server::replay::CreateReplayEntry;

/// An open of a file by a client. \[MS-SMB2\] 3.3.1.10
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) id: FileId,
    /// The session's use of the open; a reconnect replaces it.
    pub(crate) attachment: Attachment,
    pub(crate) share: Arc<Share>,
    /// The file system's open.
    pub(crate) file: LocalOpen,
    /// Which file it is.
    pub(crate) key: FileKey,
    pub(crate) is_directory: bool,
    /// Whether it is an open of the SMB3 POSIX extensions.
    pub(crate) is_posix: bool,
    /// Open.GrantedAccess.
    pub(crate) granted: AccessMask,
    /// Whether the tree connect of the CREATE was read-only.
    pub(crate) is_read_only: bool,
    pub(crate) options: CreateOptions,
    /// Whether any open of the file holds an oplock of level II.
    pub(crate) has_readers: Arc<AtomicBool>,
    /// Byte-range locks of the file.
    pub(crate) locks: Arc<FileLocks>,
    /// FilePositionInformation, in bytes. Not in the state: every READ sets it.
    pub(crate) position: AtomicU64,
    /// The settable flags of FileModeInformation: WRITE_THROUGH and SEQUENTIAL_ONLY. Not in the
    /// state: every WRITE reads it.
    pub(crate) mode: AtomicU32,
    /// Bytes that were read through it, while the audit rules of its share selected anything.
    pub(crate) bytes_read: AtomicU64,
    /// The same for written bytes.
    pub(crate) bytes_written: AtomicU64,
    /// Whether data were written through it.
    pub(crate) is_modified: AtomicBool,
    /// The time of the last write that writes through this open do not change; 0 if they do. Not in
    /// the state: every WRITE reads it.
    pub(crate) kept_write_time: AtomicU64,
    /// The name of the CREATE that made it, if its client gave it one.
    pub(crate) replay_entry: Option<Arc<CreateReplayEntry>>,
    /// Open.CreateGuid, if the client requested a durable open of version 2.
    pub(crate) create_guid: Option<Guid>,
    /// Counts its byte-range locks for the user, which is Open.DurableOwner.
    pub(crate) lock_charge: Mutex<Charge>,
    /// The requests that act on the open. In a separate lock, because every READ takes it.
    pub(crate) sequence: Mutex<ChannelSequence>,
    pub(crate) state: Mutex<OpenState>,
}

/// The use of an open by its session. A reconnect to the open replaces it.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// The TreeId of the tree connect.
    tree: AtomicU32,
    /// Whether the CREATE was encrypted: then notifications are encrypted too.
    is_encrypted: AtomicBool,
    /// Counts the open for its connection and user.
    quota: Mutex<Option<Arc<QuotaGuard>>>,
}

/// The changeable state of an open.
#[derive(Debug, Default)]
pub(crate) struct OpenState {
    /// Whether the open survives the loss of its connection.
    pub(crate) durability: Durability,
    /// The entry of the application instance that made it.
    pub(crate) app_instance: Option<InstanceEntry>,
    /// Open.LockSequenceArray.
    pub(crate) lock_sequences: LockSequences,
    /// Where QUERY_DIRECTORY stands.
    pub(crate) enumeration: Option<Enumeration>,
    /// Index of the extended attribute with which the next query of all attributes starts.
    pub(crate) next_ea: usize,
    /// Smallest uid with which the next query of all quotas starts.
    pub(crate) next_quota: u32,
    /// The connection that sent the last break notification. If it is lost, the notification is
    /// sent again, because the client may not have received it.
    pub(crate) notified_on: Option<ConnectionId>,
}

/// Where QUERY_DIRECTORY stands. \[MS-SMB2\] 3.3.5.18
#[derive(Debug)]
pub(crate) struct Enumeration {
    /// Number of restarts. Entries of an earlier scan do not belong to a later one.
    pub(crate) scan: u64,
    /// The entries that the first call selected.
    pub(crate) select: Select,
    /// Whether the next call of the file system starts at the first entry.
    pub(crate) restart: bool,
    /// Entries that the file system gave and that did not fit in the last answer; the next first,
    /// from the end of the vector on.
    pub(crate) left_over: Vec<DirectoryEntry>,
    /// Whether any entry was returned.
    pub(crate) has_matched: bool,
}

/// Rights by which something on disk changes.
pub(crate) const WRITE_RIGHTS: AccessMask = AccessMask(
    AccessMask::FILE_WRITE_DATA.0
        | AccessMask::FILE_APPEND_DATA.0
        | AccessMask::FILE_WRITE_EA.0
        | AccessMask::FILE_DELETE_CHILD.0
        | AccessMask::FILE_WRITE_ATTRIBUTES.0
        | AccessMask::DELETE.0
        | AccessMask::WRITE_DAC.0
        | AccessMask::WRITE_OWNER.0,
);

/// The rights that an operation needs on its open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To be open, no more.
    Nothing,
    /// One of these rights.
    Right(AccessMask),
    /// Something will change, but no right of the open allows or forbids that.
    Change,
}

impl Attachment {
    /// The use of an open by a request to open it.
    pub(crate) fn new(tree: TreeId, is_encrypted: bool, quota: Option<Arc<QuotaGuard>>) -> Self {
        Self {
            tree: AtomicU32::new(tree.0),
            is_encrypted: AtomicBool::new(is_encrypted),
            quota: Mutex::new(quota),
        }
    }

    /// Replaces the use by that of another session. No request acts on the open.
    pub(crate) fn replace(&self, other: Self) {
        let Self {
            tree,
            is_encrypted,
            quota,
        } = other;
        self.tree.store(tree.into_inner(), Ordering::Relaxed);
        let is_encrypted = is_encrypted.into_inner();
        self.is_encrypted.store(is_encrypted, Ordering::Relaxed);
        *self.quota.lock() = quota.into_inner();
    }
}

impl Open {
    /// The tree connect through which the client uses the open.
    pub(crate) fn tree(&self) -> TreeId {
        TreeId(self.attachment.tree.load(Ordering::Relaxed))
    }

    /// Whether notifications about the open are encrypted, because its CREATE was.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.attachment.is_encrypted.load(Ordering::Relaxed)
    }

    /// Whether the open is for a named stream, not for the file itself.
    pub(crate) fn is_named_stream(&self) -> bool {
        self.key.stream != StreamId::DATA
    }

    /// The user that created the open (Open.DurableOwner).
    pub(crate) fn owner(&self) -> Arc<User> {
        self.lock_charge.lock().user().clone()
    }

    /// The time of the last write, once the client has set or frozen it: writes through this open
    /// do not change it any more. \[MS-FSA\] 2.1.4.17, Open.UserSetModificationTime
    pub(crate) fn kept_write_time(&self) -> Option<FileTime> {
        let time = FileTime(self.kept_write_time.load(Ordering::Relaxed));
        (time != FileTime(0)).then_some(time)
    }

    /// Sets the time of the last write that writes through this open preserve; `None` if they
    /// change it.
    pub(crate) fn keep_write_time(&self, time: Option<FileTime>) {
        let FileTime(time) = time.unwrap_or(FileTime(0));
        self.kept_write_time.store(time, Ordering::Relaxed);
    }

    /// The one check before every operation on an open: whether it was opened for this, and, where
    /// something will change, whether the tree connect lets anything change.
    pub(crate) fn authorize(&self, need: Need) -> Result<(), Status> {
        let (is_granted, changes) = match need {
            Need::Nothing => (true, false),
            Need::Right(rights) => (
                self.granted.intersects(rights),
                rights.intersects(WRITE_RIGHTS),
            ),
            Need::Change => (true, true),
        };
        if !is_granted || (changes && self.is_read_only) {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(())
    }

    /// The open as the owner of byte-range locks.
    pub(crate) fn lock_owner(&self) -> LockOwner {
        LockOwner {
            open: self.file,
            flavor: match self.is_posix {
                true => LockFlavor::Posix,
                false => LockFlavor::Windows,
            },
        }
    }

    /// Checks that byte-range locks permit to read or write a range. Every access to data calls
    /// this first. Without any lock on the stream it costs one atomic load.
    /// \[MS-FSA\] 2.1.4.10
    pub(crate) fn check_locks(
        &self,
        access: RangeAccess,
        offset: u64,
        length: u64,
    ) -> Result<(), Status> {
        if length == 0 || self.locks.is_empty() {
            return Ok(());
        }
        let range = ByteRange::clamped(offset, length);
        self.locks.check(self.lock_owner(), access, range)
    }

    /// The settable flags of FileModeInformation. \[MS-FSA\] 2.1.5.15.8
    pub(crate) fn mode(&self) -> ModeFlags {
        ModeFlags(self.mode.load(Ordering::Relaxed))
    }

    /// Whether the response to a write waits until the data are on stable storage. `is_requested`:
    /// the request asks for that. FILE_NO_INTERMEDIATE_BUFFERING does not: it means the caches of
    /// the client, and neither Windows nor Samba empties the cache of the disk for it.
    pub(crate) fn writes_through(&self, is_requested: bool) -> bool {
        match self.share.sync {
            SyncPolicy::Client => false,
            SyncPolicy::Flush => is_requested || self.mode().contains(ModeFlags::WRITE_THROUGH),
            SyncPolicy::Always => true,
        }
    }
}

/// The flags of FileModeInformation that SET_INFO can change.
pub(crate) const SETTABLE_MODE: ModeFlags =
    ModeFlags(ModeFlags::WRITE_THROUGH.0 | ModeFlags::SEQUENTIAL_ONLY.0);

/// The settable flags of FileModeInformation that a CREATE sets: they have the same bits as its
/// options.
pub(crate) fn initial_mode(options: CreateOptions) -> AtomicU32 {
    AtomicU32::new(options.0 & SETTABLE_MODE.0)
}

/// Attributes as the wire has them: never none. \[MS-FSCC\] 2.6
pub(crate) fn wire_attributes(metadata: &Metadata) -> FileAttributes {
    if metadata.attributes.is_empty() {
        FileAttributes::NORMAL
    } else {
        metadata.attributes
    }
}

/// The status for a request that cannot be decoded. \[MS-SMB2\] 3.3.5.2.6
pub(crate) fn malformed(_: DecodeError) -> Status {
    Status::INVALID_PARAMETER
}
