//! The vocabulary between the core and the world. Read this first.
//!
//! A driver (the server's worker, the simulator, a fuzzer, a unit test) gives a connection what
//! came in and takes out of [`Effects`] what is to be done. What is done is told with
//! `complete`, under the [`OpId`] that the effect carried: once for each operation, whether the
//! driver finished it at once or later.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::time::Duration;

use wire::access::{AccessMask, FileAttributes, OplockLevel};
use wire::change_notify::CompletionFilter;
use wire::fscc::FileAction;
use wire::smbd::BufferDescriptorV1;
use wire::{FileTime, Status};

use crate::path::SharePath;
use crate::pattern::Pattern;
use crate::queue::Queue;
use crate::seal::{Seal, Sign};
use crate::token::Token;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($int:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);
    };
}

id! {
    /// An operation that the core has asked for and that the driver will complete. Unique within
    /// its connection.
    OpId(u64)
}
id! {
    /// A transport connection. Unique within the process.
    ConnectionId(u64)
}
id! {
    /// A share, by its place in the configuration.
    ShareId(u32)
}
id! {
    /// Bytes that the driver holds for a response: a registered buffer, a pipe, the peer's memory.
    PayloadToken(u64)
}
id! {
    /// A login under way: the legs of one SPNEGO exchange. Unique within its connection.
    ConversationId(u64)
}

/// A point in time on a clock that never goes back: the time since the driver's own start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub Duration);

impl Instant {
    /// This point, later by `duration`.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// The time of a call into the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Now {
    /// For time-outs.
    pub instant: Instant,
    /// For what is told to a client.
    pub wall: FileTime,
}

/// An open file in the world: a share and a slot in its file system's table. Process-wide, so
/// that channels on several workers can use one open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalOpen {
    /// The share whose file system knows the slot.
    pub share: ShareId,
    /// The file system's own number.
    pub slot: u64,
}

/// What came in: one frame without its length prefix. The bytes are unsealed in place.
#[derive(Debug)]
pub struct Inbound<'a> {
    /// From the first byte of the SMB2, SMB1 or transform header to the end of the frame.
    pub bytes: &'a mut [u8],
}

/// What is to be done, in order. The driver owns and reuses it.
pub type Effects = Queue<Effect>;

/// One thing to be done.
#[derive(Debug)]
pub enum Effect {
    /// Send a frame. Frames go out in the order of their effects.
    Send(Outbound),
    /// Read into a payload; completed with [`Outcome::Read`].
    Read(ReadPlan),
    /// Write from the message or from memory; completed with [`Outcome::Written`].
    Write(WritePlan),
    /// Do something with a file; completed as the operation says.
    File(OpId, FileOp),
    /// Take a login one step further; completed with [`Outcome::Authenticated`].
    Authenticate(OpId, Authenticate),
    /// Forget a login that is over, whatever its state. Not completed.
    EndConversation(ConversationId),
    /// The answer to the operation is no longer wanted. It is completed all the same, with what
    /// came of it or with CANCELLED.
    Cancel(OpId),
    /// The payload will not be sent: its bytes may go.
    Release(PayloadToken),
    /// Tell another connection of this process.
    Notify(ConnectionId, Notice),
    /// End the connection. What was sent before still goes out.
    Disconnect(Violation),
}

/// A frame to be sent: the messages of a compound one after the other, perhaps sealed as a whole.
#[derive(Debug)]
pub struct Outbound {
    /// At least one.
    pub messages: Vec<OutMessage>,
    /// How to seal the frame. Then no message is signed.
    pub seal: Option<Seal>,
    /// The key of memory of the peer that its transport is to take back when the frame is there:
    /// the last SEND of the frame goes out as one with invalidation. Only with SMB Direct.
    /// \[MS-SMBD\] 3.1.4.2
    pub invalidate: Option<u32>,
}

/// A message to be sent: a head, then the payload, then zero bytes.
#[derive(Debug)]
pub struct OutMessage {
    /// The header and the body up to the payload.
    pub head: Vec<u8>,
    /// What follows the head.
    pub payload: Option<Payload>,
    /// Zero bytes behind it: the next member of a compound starts at a multiple of 8.
    pub padding: u8,
    /// How to sign the message: over head, payload and padding.
    pub sign: Option<Sign>,
}

/// Bytes that the driver holds; the core knows only how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Which ones.
    pub token: PayloadToken,
    /// Bytes.
    pub len: u32,
}

/// What must be true of the bytes of a READ. The driver chooses the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nobody looks at the bytes on their way.
    Opaque,
    /// They will be signed or sealed, and must not change in between.
    InMemory,
}

/// Where the bytes of a READ go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Into a payload, which follows the head of the answer.
    Inline,
    /// Into this memory of the client, piece by piece in this order: as many bytes as there are,
    /// and never more than the pieces hold. The core asks for that only where its
    /// [`Carrier`](crate::carrier::Carrier) has RDMA, and never for the data of what is sealed.
    Remote(Vec<BufferDescriptorV1>),
}

/// Read a range of a file for a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// Under which it is completed.
    pub op: OpId,
    /// The file.
    pub file: LocalOpen,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes at most.
    pub length: u32,
    /// What must be true of the bytes.
    pub access: Access,
    /// Where they go.
    pub delivery: Delivery,
}

/// Where the bytes of a WRITE are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteData {
    /// In the inbound frame of the very call that made the effect, unsealed by now. The driver
    /// keeps the frame's buffer until the write is completed.
    Inbound(Range<usize>),
    /// Here: the request had to wait, and its frame may be gone.
    Owned(Vec<u8>),
    /// In this memory of the client, piece by piece in this order: all of it is to be there before
    /// any of it is written. The core asks for that only where its
    /// [`Carrier`](crate::carrier::Carrier) has RDMA.
    Remote(Vec<BufferDescriptorV1>),
}

impl WriteData {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Inbound(range) => range.len(),
            Self::Owned(bytes) => bytes.len(),
            Self::Remote(pieces) => pieces.iter().map(|piece| piece.length as usize).sum(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Write a range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePlan {
    /// Under which it is completed.
    pub op: OpId,
    /// The file.
    pub file: LocalOpen,
    /// Bytes from the start of the file; `None` appends at its end.
    pub offset: Option<u64>,
    /// The bytes.
    pub data: WriteData,
    /// Whether it is done only when it is on stable storage.
    pub through: bool,
}

/// Something to be done with a file. Every operation but `Open` names a [`LocalOpen`] and runs
/// with the token that it was opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Open or create; [`Outcome::Opened`].
    Open(OpenPlan),
    /// Close; [`Outcome::Done`]. Never fails: what is open no longer is.
    Close(LocalOpen),
    /// Ask for the metadata; [`Outcome::Metadata`].
    Stat(LocalOpen),
    /// Cut to nothing and replace the attributes, as CREATE with an overwriting disposition does;
    /// [`Outcome::Metadata`].
    Overwrite {
        /// The file.
        file: LocalOpen,
        /// Its attributes from now on; ARCHIVE is added.
        attributes: FileAttributes,
        /// Bytes to reserve.
        allocation: u64,
    },
    /// Change times and attributes; [`Outcome::Metadata`].
    SetBasic {
        /// The file.
        file: LocalOpen,
        /// What to change.
        changes: BasicChanges,
    },
    /// Set the Unix permissions (chmod), by which alone access is decided; [`Outcome::Metadata`].
    SetMode {
        /// The file.
        file: LocalOpen,
        /// The nine bits of the permissions; the other bits of st_mode stay.
        mode: u32,
    },
    /// Set the length of the file; [`Outcome::Done`].
    SetEndOfFile {
        /// The file.
        file: LocalOpen,
        /// Bytes.
        length: u64,
    },
    /// Reserve space; a length below the end of the file cuts it; [`Outcome::Done`].
    SetAllocation {
        /// The file.
        file: LocalOpen,
        /// Bytes.
        length: u64,
    },
    /// Copy bytes from one open to another; [`Outcome::Copied`].
    CopyRange(CopyPlan),
    /// Make bytes zero, up to the end of the file, which stays; [`Outcome::Zeroed`].
    ZeroRange {
        /// The file.
        file: LocalOpen,
        /// Bytes from the start of the file.
        range: Range<u64>,
    },
    /// Set or clear the attribute SPARSE, which nothing else touches; [`Outcome::Metadata`].
    SetSparse {
        /// The file.
        file: LocalOpen,
        /// Whether bytes that were never written need not take space.
        is_sparse: bool,
    },
    /// Which bytes of a range take space: all, of a file that is not SPARSE; [`Outcome::Ranges`].
    AllocatedRanges {
        /// The file.
        file: LocalOpen,
        /// Bytes from the start of the file.
        range: Range<u64>,
        /// Ranges at most.
        limit: usize,
    },
    /// Put on stable storage; [`Outcome::Done`].
    Flush(LocalOpen),
    /// Give the file another name; [`Outcome::Renamed`].
    Rename {
        /// The file, which keeps its opens.
        file: LocalOpen,
        /// The new name.
        to: SharePath,
        /// Whether a file of that name is replaced.
        replace: bool,
    },
    /// Give the file one more name; [`Outcome::Done`].
    Link {
        /// The file.
        file: LocalOpen,
        /// The further name.
        to: SharePath,
        /// Whether a file of that name is replaced.
        replace: bool,
    },
    /// Remove a name, if it still names this file; [`Outcome::Done`]. The core knows the name: an
    /// open may have been renamed through another one.
    Unlink {
        /// The file.
        file: LocalOpen,
        /// Its name.
        path: SharePath,
    },
    /// Whether a directory holds nothing; [`Outcome::Done`] or DIRECTORY_NOT_EMPTY.
    CheckEmpty(LocalOpen),
    /// Whether this token may delete the file; [`Outcome::Done`], or ACCESS_DENIED, or
    /// CANNOT_DELETE for a file that is READONLY.
    CheckDelete(LocalOpen),
    /// Which file a name stands for, without opening it; [`Outcome::Found`].
    LookUp {
        /// An open of the share, whose token counts.
        file: LocalOpen,
        /// The name.
        path: SharePath,
    },
    /// List a directory from where the last call ended; [`Outcome::Directory`].
    ReadDirectory(DirectoryPlan),
    /// Ask about the file system; [`Outcome::Volume`].
    Volume(LocalOpen),
    /// From now on tell [`LocalEvent`]s of a directory, until it is closed; [`Outcome::Done`].
    /// Where that is not to be had nobody is told anything, which is no failure.
    Watch {
        /// The directory.
        file: LocalOpen,
        /// Whether all that lies below it counts, too.
        is_tree: bool,
    },
}

impl FileOp {
    /// The share that it is for.
    pub fn share(&self) -> ShareId {
        match self {
            Self::Open(plan) => plan.share,
            Self::ReadDirectory(plan) => plan.file.share,
            Self::CopyRange(plan) => plan.target.share,
            Self::Close(file)
            | Self::Stat(file)
            | Self::Flush(file)
            | Self::CheckEmpty(file)
            | Self::CheckDelete(file)
            | Self::Volume(file)
            | Self::Overwrite { file, .. }
            | Self::SetBasic { file, .. }
            | Self::SetMode { file, .. }
            | Self::SetEndOfFile { file, .. }
            | Self::SetAllocation { file, .. }
            | Self::ZeroRange { file, .. }
            | Self::SetSparse { file, .. }
            | Self::AllocatedRanges { file, .. }
            | Self::Rename { file, .. }
            | Self::Link { file, .. }
            | Self::Unlink { file, .. }
            | Self::LookUp { file, .. }
            | Self::Watch { file, .. } => file.share,
        }
    }
}

/// Which files an OpenPlan may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Only one that is there.
    Open,
    /// One that is there, or a new one.
    OpenOrCreate,
    /// Only a new one.
    Create,
}

/// What kind of file an OpenPlan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindWanted {
    /// Whatever is there; a file, where one is made.
    Any,
    /// Not a directory: else FILE_IS_A_DIRECTORY.
    File,
    /// A directory: else NOT_A_DIRECTORY.
    Directory,
}

/// Open or create a file. Never truncates: whether the opens of others allow that is the core's
/// to say once it knows which file the name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPlan {
    /// The share.
    pub share: ShareId,
    /// Whose rights count. Later operations on the open run with them too.
    pub token: Arc<Token>,
    /// The name, found without regard to case.
    pub path: SharePath,
    /// Which rights are asked for: no generic ones, perhaps MAXIMUM_ALLOWED.
    pub access: AccessMask,
    /// Rights without which the open fails, beyond those asked for: an overwrite needs the right
    /// to write. \[MS-SMB2\] 3.3.5.9
    pub implied_access: AccessMask,
    /// Whether it may be there, must or must not.
    pub existing: Existing,
    /// File or directory.
    pub kind: KindWanted,
    /// Attributes of a new file.
    pub attributes: FileAttributes,
    /// Bytes to reserve in a new file.
    pub allocation: u64,
    /// Open a link itself and not what it points to.
    pub open_link: bool,
}

/// Which entries of a directory are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// All.
    All,
    /// Those whose name matches.
    Matching(Pattern),
    /// The one of this name, without regard to case: a look-up, no scan.
    Name(String),
}

/// List a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryPlan {
    /// The directory.
    pub file: LocalOpen,
    /// Start again at the first entry.
    pub restart: bool,
    /// Which entries.
    pub select: Select,
    /// Entries at most. Fewer come only at the end.
    pub limit: u32,
}

/// Copy bytes. The two ranges may overlap: what is copied is what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// Where from: perhaps another share.
    pub source: LocalOpen,
    /// Bytes from the start of the source.
    pub source_offset: u64,
    /// Where to. The operation is for its share, and its token writes.
    pub target: LocalOpen,
    /// Bytes from the start of the target.
    pub target_offset: u64,
    /// Bytes. All of them lie before the end of the source: else INVALID_VIEW_SIZE.
    pub length: u32,
}

/// Times and attributes to change; `None` leaves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasicChanges {
    /// Birth.
    pub created: Option<FileTime>,
    /// Last access.
    pub accessed: Option<FileTime>,
    /// Last write.
    pub written: Option<FileTime>,
    /// Last change of metadata; a file system that cannot set it ignores it.
    pub changed: Option<FileTime>,
    /// DOS attributes.
    pub attributes: Option<FileAttributes>,
}

/// Which file it is, whatever its name: \[MS-FSCC\] 2.4.26 FileInternalInformation and the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileKey {
    /// The device.
    pub volume: u64,
    /// The inode.
    pub file: u64,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FileKind {
    /// Bytes.
    #[default]
    File,
    /// Names.
    Directory,
    /// A link that was not followed.
    Link,
    /// A pipe, socket or device: shown, never opened.
    Special,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Which file.
    pub key: FileKey,
    /// What it is.
    pub kind: FileKind,
    /// DOS attributes; DIRECTORY as the kind says, NORMAL never.
    pub attributes: FileAttributes,
    /// Those of them that are kept with the file: others are shown for its name or kind.
    pub kept: FileAttributes,
    /// Bytes of data; 0 for a directory.
    pub size: u64,
    /// Bytes on disk.
    pub allocation: u64,
    /// Names.
    pub links: u32,
    /// Birth.
    pub created: FileTime,
    /// Last access.
    pub accessed: FileTime,
    /// Last write.
    pub written: FileTime,
    /// Last change of metadata.
    pub changed: FileTime,
    /// Unix type and permissions (st_mode).
    pub mode: u32,
    /// Unix owner.
    pub uid: u32,
    /// Unix group.
    pub gid: u32,
}

impl Metadata {
    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// An entry of a directory; `.` and `..` are among them, first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name.
    pub name: String,
    /// What is known of it.
    pub metadata: Metadata,
}

/// What came of an open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The open.
    pub file: LocalOpen,
    /// Whether the file is new.
    pub created: bool,
    /// The rights asked for, with MAXIMUM_ALLOWED replaced by what it stands for.
    pub granted: AccessMask,
    /// All rights that the token has.
    pub maximal: AccessMask,
    /// What is known of the file.
    pub metadata: Metadata,
    /// The name as the file system spells it.
    pub path: SharePath,
}

/// What is known of a file system. Sizes in units of `block` bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VolumeInfo {
    /// Bytes of an allocation unit.
    pub block: u32,
    /// Units in all.
    pub total: u64,
    /// Units that are free.
    pub free: u64,
    /// Units that this user may still use.
    pub available: u64,
    /// The volume's number.
    pub serial: u64,
    /// UTF-16 units in a name.
    pub max_name: u32,
    /// Whether files can be SPARSE.
    pub has_sparse_files: bool,
    /// Birth of the volume.
    pub created: FileTime,
}

/// What somebody else than the server did in or below a directory that [`FileOp::Watch`] named.
/// The file system tells `Server::local_events`; what the server does itself it does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEvent {
    /// Something happened to a name.
    Change(LocalChange),
    /// Something happened and it is not known what: in the whole share, or below one directory.
    Lost(Option<FileKey>),
    /// The directory itself is gone.
    Gone(FileKey),
}

/// What happened to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalChange {
    /// The directory that is watched.
    pub directory: FileKey,
    /// The path from there, as the file system spells it.
    pub path: SharePath,
    /// What happened. Of a name that changed, the new one follows the old one at once.
    pub action: FileAction,
    /// The filters by which it is seen: one is enough.
    pub filter: CompletionFilter,
}

/// What came of an operation.
#[derive(Debug)]
pub enum Outcome {
    /// It failed.
    Failed(Status),
    /// It is done, and there is nothing to say.
    Done,
    /// Of [`Effect::Read`]. Fewer bytes than asked for come at the end of the file only; no bytes
    /// at all, with a length of 0, are at or past it.
    Read(Payload),
    /// Of [`Effect::Read`] with [`Delivery::Remote`]: so many bytes lie in the client's memory,
    /// and the transport will not touch it again.
    Placed(u32),
    /// The client's memory could not be read or written: its keys were wrong, or the transport
    /// failed. Of a connection that is lost with that, as every one is that RDMA failed on.
    RemoteFailed,
    /// Of [`Effect::Write`]: bytes written.
    Written(u32),
    /// Of [`FileOp::Open`].
    Opened(Opened),
    /// Of [`FileOp::Stat`] and its like.
    Metadata(Metadata),
    /// Of [`FileOp::Rename`]: the name as the file system spells it.
    Renamed(SharePath),
    /// Of [`FileOp::LookUp`]; `None` where there is no such file.
    Found(Option<Metadata>),
    /// Of [`FileOp::ReadDirectory`]. No entries: the end.
    Directory(Vec<DirectoryEntry>),
    /// Of [`FileOp::CopyRange`].
    Copied {
        /// Bytes that were copied, from the start of the range.
        count: u32,
        /// Why no more than these; SUCCESS if these are all.
        status: Status,
    },
    /// Of [`FileOp::ZeroRange`]: up to which byte the range is zero by now. Not to its end where
    /// much has to be written: then the rest is asked for next.
    Zeroed(u64),
    /// Of [`FileOp::AllocatedRanges`]: as many as were asked for, or all.
    Ranges(Vec<Range<u64>>),
    /// Of [`FileOp::Volume`].
    Volume(VolumeInfo),
    /// Of [`Effect::Authenticate`].
    Authenticated(Authenticated),
}

/// One leg of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate {
    /// The login; a new number starts a new one.
    pub conversation: ConversationId,
    /// What the client said: SPNEGO or raw NTLMSSP. Empty asks for the server's first word.
    pub token: Vec<u8>,
}

/// What came of a leg of a login.
#[derive(Debug)]
pub enum Authenticated {
    /// Another leg is needed; this is for the client.
    Continue(Vec<u8>),
    /// The login is done.
    Accepted(Accepted),
    /// The login failed, with the Status for the client and perhaps a token.
    Refused(Status, Vec<u8>),
}

/// A login that is done.
#[derive(Debug)]
pub struct Accepted {
    /// The last word for the client.
    pub token: Vec<u8>,
    /// The whole key of the mechanism; the first 16 bytes are \[MS-SMB2\] Session.SessionKey. Empty
    /// for guest and anonymous, which never sign or seal.
    pub session_key: Vec<u8>,
    /// Who it is.
    pub account: Account,
}

/// What sort of account it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// One that proved who it is.
    Named,
    /// One that is let in without proof.
    Guest,
    /// One that did not even give a name.
    Anonymous,
}

/// Who a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name of the users file; empty for anonymous.
    pub name: String,
    /// What sort of account.
    pub kind: AccountKind,
    /// Whose rights its file operations have.
    pub token: Arc<Token>,
}

/// What one connection tells another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A session that the connection carries is over: it was logged off on another channel, its
    /// user came back elsewhere, or an administrator said so. \[MS-SMB2\] 3.3.5.5.3, 3.3.5.6
    SessionClosed(wire::SessionId),
    /// The opens of a session that a request waits for are closed: so a client that comes back
    /// finds no file that its former self still holds.
    SessionGone(wire::SessionId),
    /// An oplock of an open of a session that this connection carries breaks: its client is to be
    /// told.
    /// \[MS-SMB2\] 3.3.4.6
    BreakOplock {
        /// The session.
        session: wire::SessionId,
        /// The open.
        file_id: wire::FileId,
        /// What the client may hold from now on.
        level: OplockLevel,
    },
    /// An oplock is broken that this operation waited for. The core of the other connection has
    /// made up the number; its driver never saw it.
    OplockBroken(OpId),
    /// A byte-range lock that this operation waited for is granted, or never will be: its open is
    /// closed. The core of the other connection has made up the number; its driver never saw it.
    LockSettled {
        /// What waited.
        op: OpId,
        /// Whether the lock is granted.
        is_granted: bool,
    },
    /// Something happened in a directory that this operation watches, or the watch ended. The
    /// core of the other connection has made up the number; its driver never saw it.
    DirectoryChanged(OpId),
    /// A pipe holds something that this operation waits for, or never will. The core of the other
    /// connection has made up the number; its driver never saw it.
    PipeReadable(OpId),
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Bytes that are no SMB message.
    Malformed(wire::DecodeError),
    /// The first message is not one that opens a connection, or a later one opens it again.
    UnexpectedNegotiate,
    /// Anything but NEGOTIATE on a connection without a dialect.
    NotNegotiated(wire::Command),
    /// A MessageId outside of the window. \[MS-SMB2\] 3.3.5.2.3
    MessageIdOutOfWindow(wire::MessageId),
    /// A frame that is sealed with no session or key to open it, or that does not open.
    /// \[MS-SMB2\] 3.3.5.2.1.1
    Unsealable(wire::SessionId),
    /// A request in the clear where it must be sealed, or a sealed one inside another's seal.
    NotSealed(wire::SessionId),
    /// A tree connect of dialect 3.1.1 that is neither signed nor sealed. \[MS-SMB2\] 3.3.5.7
    NotSigned(wire::SessionId),
    /// What was negotiated is not what the client saw. \[MS-SMB2\] 3.3.5.15.12
    NegotiateTampered,
    /// A command that cannot be.
    UnexpectedMessage(wire::Command),
    /// A frame longer than what is allowed, in bytes.
    FrameTooLong(u64),
    /// Memory that the client named could not be read or written. \[MS-SMBD\] 3.1.6
    RemoteMemory,
    /// The client took too long to log in.
    LoginTimeout,
    /// A limit of the configuration.
    LimitReached(&'static str),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
            Self::UnexpectedNegotiate => f.write_str("unexpected NEGOTIATE"),
            Self::NotNegotiated(command) => write!(f, "{command:?} before NEGOTIATE"),
            Self::MessageIdOutOfWindow(id) => write!(f, "{id:?} is outside the sequence window"),
            Self::Unsealable(session) => write!(f, "sealed frame of {session:?} does not open"),
            Self::NotSealed(session) => write!(f, "request of {session:?} is not sealed"),
            Self::NotSigned(session) => write!(f, "request of {session:?} is not signed"),
            Self::NegotiateTampered => f.write_str("the negotiation was tampered with"),
            Self::UnexpectedMessage(command) => write!(f, "unexpected {command:?}"),
            Self::RemoteMemory => f.write_str("memory of the client cannot be used"),
            Self::FrameTooLong(bytes) => write!(f, "frame of {bytes} bytes is too long"),
            Self::LoginTimeout => f.write_str("the login took too long"),
            Self::LimitReached(limit) => write!(f, "limit reached: {limit}"),
        }
    }
}
