//! What a client asks for: requests that can be encoded, held back for credits, and sent again.
//!
//! A [`Request`] is one or more steps. Several steps go out as one compound of related requests:
//! a step whose file is [`FileRef::Previous`] works on what the CREATE before it opened.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use wire::access::{
    AccessMask, CreateDisposition, CreateOptions, FileAttributes, OplockLevel, ShareAccess,
};
use wire::change_notify::CompletionFilter;
use wire::fsctl::CtlCode;
use wire::lock::LockElement;
use wire::query_info::InfoType;
use wire::tree_connect::{ShareCapabilities, ShareFlags, ShareType};
use wire::{DecodeError, FileId, FileTime, Guid, Status, TreeId};

/// A request, by the driver's own number: unique within a connection while it is unanswered.
/// The [`PayloadToken`](crate::effect::PayloadToken) of a WRITE that goes out is the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One message or one compound.
#[derive(Clone, Debug)]
pub struct Request {
    /// The tree; `None` for what needs none.
    pub tree: Option<TreeId>,
    /// Whether the share asks for sealing. \[MS-SMB2\] 3.2.4.1.8
    pub seal: bool,
    /// At least one. At most one WRITE: the driver keeps one source for a request. Of many READs
    /// the data come in the frame.
    pub steps: Vec<Step>,
    /// SMB2_FLAGS_REPLAY_OPERATION. The ChannelSequence is the session's.
    pub is_replay: bool,
    /// How often it was sent again.
    pub resent: u8,
    /// Instead of the configuration's; `Some(None)` waits for ever.
    pub timeout: Option<Option<Duration>>,
    /// Sent once that one is answered, if it is on this connection. It is ready by then: nobody has
    /// to be woken first.
    pub behind: Option<RequestId>,
}

/// The file that a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRef {
    /// This one.
    Id(FileId),
    /// What the CREATE in front of it in the compound opens.
    Previous,
}

/// One request message.
#[derive(Clone, Debug)]
pub enum Step {
    /// \[MS-SMB2\] 2.2.9. The share's name alone; the core makes `\\server\share` of it.
    TreeConnect(String),
    /// \[MS-SMB2\] 2.2.11
    TreeDisconnect,
    /// \[MS-SMB2\] 2.2.7
    Logoff,
    /// \[MS-SMB2\] 2.2.28
    Echo,
    /// \[MS-SMB2\] 2.2.13
    Create(Create),
    /// \[MS-SMB2\] 2.2.15
    Close {
        /// The file.
        file: FileRef,
        /// Whether its attributes come with the answer.
        query: bool,
    },
    /// \[MS-SMB2\] 2.2.17
    Flush(FileRef),
    /// \[MS-SMB2\] 2.2.19. The data go to the destination that the driver keeps.
    Read {
        /// The file.
        file: FileRef,
        /// Bytes from its start.
        offset: u64,
        /// Bytes at most; not above Session's max_read.
        length: u32,
        /// Fewer bytes than these are an error, END_OF_FILE.
        minimum: u32,
    },
    /// \[MS-SMB2\] 2.2.21. The data come from the source that the driver keeps: `source` of it.
    Write {
        /// The file.
        file: FileRef,
        /// Bytes from its start.
        offset: u64,
        /// Bytes; not above Session's max_write.
        length: u32,
        /// Whether it is done only when it is on stable storage.
        through: bool,
    },
    /// \[MS-SMB2\] 2.2.33
    QueryDirectory {
        /// The directory.
        file: FileRef,
        /// \[MS-FSCC\] 2.4
        class: u8,
        /// Start again at the first entry.
        restart: bool,
        /// Names to list, `*` for all.
        pattern: String,
        /// Bytes of the answer at most.
        length: u32,
    },
    /// \[MS-SMB2\] 2.2.37
    QueryInfo {
        /// The file.
        file: FileRef,
        /// What kind.
        info_type: InfoType,
        /// \[MS-FSCC\] 2.4, 2.5
        class: u8,
        /// For security: which parts.
        additional: u32,
        /// Bytes of the answer at most.
        length: u32,
    },
    /// \[MS-SMB2\] 2.2.39
    SetInfo {
        /// The file.
        file: FileRef,
        /// What kind.
        info_type: InfoType,
        /// \[MS-FSCC\] 2.4, 2.5
        class: u8,
        /// For security: which parts.
        additional: u32,
        /// As \[MS-FSCC\] lays it out.
        buffer: Vec<u8>,
    },
    /// \[MS-SMB2\] 2.2.35
    ChangeNotify {
        /// The directory.
        file: FileRef,
        /// What is in it and below it, or only in it.
        recursive: bool,
        /// Which changes.
        filter: CompletionFilter,
        /// Bytes of the answer at most.
        length: u32,
    },
    /// \[MS-SMB2\] 2.2.26
    Lock {
        /// The file.
        file: FileRef,
        /// \[MS-SMB2\] 2.2.26, LockSequenceNumber and LockSequenceIndex; 0 for none.
        sequence: u32,
        /// At least one.
        locks: Vec<LockElement>,
    },
    /// \[MS-SMB2\] 2.2.31
    Ioctl {
        /// The file; `None` for what is about the server.
        file: Option<FileRef>,
        /// The function.
        code: CtlCode,
        /// Its input.
        input: Vec<u8>,
        /// Bytes of the output at most.
        max_output: u32,
    },
    /// \[MS-SMB2\] 2.2.24.1
    AcknowledgeOplock {
        /// The open.
        file: FileId,
        /// What is kept.
        level: OplockLevel,
    },
    /// \[MS-SMB2\] 2.2.24.2
    AcknowledgeLease {
        /// The lease.
        key: Guid,
        /// What is kept.
        state: u32,
    },
}

/// CREATE. \[MS-SMB2\] 2.2.13
#[derive(Clone, Debug)]
pub struct Create {
    /// Relative to the share, `\` between components, no `\` in front.
    pub name: String,
    /// The oplock asked for; LEASE where `lease` is given.
    pub oplock: OplockLevel,
    /// Rights.
    pub access: AccessMask,
    /// Attributes of a new file.
    pub attributes: FileAttributes,
    /// What others may do meanwhile.
    pub share: ShareAccess,
    /// Open, create, overwrite.
    pub disposition: CreateDisposition,
    /// Directory, write-through, delete on close, ...
    pub options: CreateOptions,
    /// A lease: its key and the state asked for.
    pub lease: Option<(Guid, u32)>,
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2's CreateGuid: by it a server knows a CREATE that is
    /// sent again. Only sent in dialects 3.x.
    pub create_guid: Option<Guid>,
    /// Bytes to reserve.
    pub allocation: Option<u64>,
    /// Whether the maximal access is asked for (MxAc).
    pub query_maximal_access: bool,
    /// Whether the driver acknowledges breaks of oplock and lease, with
    /// [`Step::AcknowledgeOplock`] and [`Step::AcknowledgeLease`]. Else the core does at once.
    pub driver_acknowledges: bool,
}

/// A step's good answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// TREE_CONNECT. \[MS-SMB2\] 2.2.10
    TreeConnected {
        /// The tree.
        tree: TreeId,
        /// Disk, pipe or printer.
        share_type: ShareType,
        /// Caching, sealing ...
        flags: ShareFlags,
        /// DFS, continuous availability ...
        capabilities: ShareCapabilities,
        /// What we may do.
        maximal_access: AccessMask,
    },
    /// CREATE.
    Created(Created),
    /// CLOSE, with the attributes where they were asked for.
    Closed(Option<Attributes>),
    /// READ: bytes, and where they are.
    Read(ReadData),
    /// WRITE: bytes that were written, never more than asked for.
    Written(u32),
    /// QUERY_DIRECTORY, QUERY_INFO, CHANGE_NOTIFY: the output buffer. The second tells that there
    /// is more (BUFFER_OVERFLOW).
    Output(Vec<u8>, bool),
    /// IOCTL: its output, and whether there is more (BUFFER_OVERFLOW, as pipes say).
    Ioctl(Vec<u8>, bool),
    /// Everything else that is done.
    Done,
}

/// Where the data of a READ are. Never more than asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadData {
    /// Received straight into the destination: so many bytes at its start.
    Placed(u32),
    /// In the inbound frame of this very call, unsealed: the driver copies them.
    Inbound(Range<usize>),
    /// In the memory that was named: so many bytes at its start.
    Remote(u32),
    /// Here: the answers to a compound came in several frames, and the one with the data is gone.
    Held(Vec<u8>),
}

/// What a CREATE opened. \[MS-SMB2\] 2.2.14
#[derive(Clone, Debug)]
pub struct Created {
    /// The open.
    pub file_id: FileId,
    /// What of the oplock asked for was granted.
    pub oplock: OplockLevel,
    /// The lease state granted, where one was asked for.
    pub lease_state: Option<u32>,
    /// \[MS-SMB2\] 2.2.14, CreateAction: 1 opened, 2 created, 3 overwritten.
    pub action: u32,
    /// What is known of the file.
    pub attributes: Attributes,
    /// MxAc, where it was asked for and answered.
    pub maximal_access: Option<AccessMask>,
}

/// What CREATE and CLOSE tell of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Birth.
    pub created: FileTime,
    /// Last access.
    pub accessed: FileTime,
    /// Last write.
    pub written: FileTime,
    /// Last change of metadata.
    pub changed: FileTime,
    /// Bytes on disk.
    pub allocation: u64,
    /// Bytes.
    pub size: u64,
    /// DOS attributes.
    pub attributes: FileAttributes,
}

impl Request {
    /// A request of these steps, sent for the first time.
    pub fn new(tree: Option<TreeId>, steps: Vec<Step>) -> Self {
        Self {
            tree,
            seal: false,
            steps,
            is_replay: false,
            resent: 0,
            timeout: None,
            behind: None,
        }
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server says so.
    Status(Status),
    /// The same, and it gave more than a status: the right limits of a copy, the length that a
    /// buffer needs, where a link points. \[MS-SMB2\] 2.2.2
    StatusWith(Status, Vec<u8>),
    /// The answer is not what this request can have brought: what is wrong with it.
    Malformed(DecodeError),
    /// The answer says more than was asked for.
    Excess(&'static str),
    /// It took longer than the configuration allows; a CANCEL was sent. The data of a WRITE may
    /// still be on their way out.
    TimedOut,
    /// The driver cancelled it.
    Cancelled,
    /// It was never sent, since it cannot be: a buffer longer than the server takes, more credits
    /// than it grants, a seal where nothing can be sealed.
    Unsendable(&'static str),
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}
