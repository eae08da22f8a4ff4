//! Requests of a client and their replies.
//!
//! A [`Request`] has one or more steps. The client sends several steps as one compound of related
//! requests: a step whose file is [`FileRef::Previous`] acts on the file that the CREATE before it
//! opened.

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

/// The driver's number of a request, unique within a connection while the request is pending. The
/// [`PayloadToken`](crate::effect::PayloadToken) of a WRITE is the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// One message or one compound.
#[derive(Clone, Debug)]
pub struct Request {
    /// Tree; `None` for requests outside of a tree.
    pub tree: Option<TreeId>,
    /// Whether the share requires encryption. \[MS-SMB2\] 3.2.4.1.8
    pub encrypt: bool,
    /// Steps; at least one, and at most one WRITE, because the driver holds one source for a
    /// request.
    /// The data of several READs arrive in the frame.
    pub steps: Vec<Step>,
    /// Whether the request has SMB2_FLAGS_REPLAY_OPERATION.
    pub is_replay: bool,
    /// Count of repetitions on other channels.
    pub resent: u8,
    /// Time limit that replaces the one of the configuration; `Some(None)` for no limit.
    pub timeout: Option<Option<Duration>>,
    /// Request whose answer this one waits for, if it is on the same connection. The client sends
    /// this one at once then, without waking a thread first.
    pub behind: Option<RequestId>,
}

/// The file of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRef {
    /// An open file.
    Id(FileId),
    /// The file that the preceding CREATE of the compound opens.
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
        /// Whether the response has the attributes.
        query: bool,
    },
    /// \[MS-SMB2\] 2.2.17
    Flush(FileRef),
    /// \[MS-SMB2\] 2.2.19. The driver holds the destination.
    Read {
        /// The file.
        file: FileRef,
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes, at most [`Session::max_read`](super::Session::max_read).
        length: u32,
        /// Smallest count of bytes; fewer are the error END_OF_FILE.
        minimum: u32,
    },
    /// \[MS-SMB2\] 2.2.21. The driver holds the source.
    Write {
        /// The file.
        file: FileRef,
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes, at most [`Session::max_write`](super::Session::max_write).
        length: u32,
        /// Whether the response waits until the bytes are on stable storage.
        through: bool,
    },
    /// \[MS-SMB2\] 2.2.33
    QueryDirectory {
        /// The directory.
        file: FileRef,
        /// \[MS-FSCC\] 2.4
        class: u8,
        /// Whether the listing restarts at the first entry.
        restart: bool,
        /// Pattern of names; `*` for all.
        pattern: String,
        /// Largest response in bytes.
        length: u32,
    },
    /// \[MS-SMB2\] 2.2.37
    QueryInfo {
        /// The file.
        file: FileRef,
        /// Kind of information.
        info_type: InfoType,
        /// \[MS-FSCC\] 2.4, 2.5
        class: u8,
        /// Parts of a security descriptor.
        additional: u32,
        /// Largest response in bytes.
        length: u32,
    },
    /// \[MS-SMB2\] 2.2.39
    SetInfo {
        /// The file.
        file: FileRef,
        /// Kind of information.
        info_type: InfoType,
        /// \[MS-FSCC\] 2.4, 2.5
        class: u8,
        /// Parts of a security descriptor.
        additional: u32,
        /// Value in the layout of \[MS-FSCC\].
        buffer: Vec<u8>,
    },
    /// \[MS-SMB2\] 2.2.35
    ChangeNotify {
        /// The directory.
        file: FileRef,
        /// Whether the watch includes subdirectories.
        recursive: bool,
        /// Kinds of changes.
        filter: CompletionFilter,
        /// Largest response in bytes.
        length: u32,
    },
    /// \[MS-SMB2\] 2.2.26
    Lock {
        /// The file.
        file: FileRef,
        /// \[MS-SMB2\] 2.2.26, LockSequenceNumber and LockSequenceIndex; 0 for none.
        sequence: u32,
        /// Ranges; at least one.
        locks: Vec<LockElement>,
    },
    /// \[MS-SMB2\] 2.2.31
    Ioctl {
        /// The file; `None` for a function of the server.
        file: Option<FileRef>,
        /// Function code.
        code: CtlCode,
        /// Input.
        input: Vec<u8>,
        /// Largest output in bytes.
        max_output: u32,
    },
    /// \[MS-SMB2\] 2.2.24.1
    AcknowledgeOplock {
        /// The open.
        file: FileId,
        /// New oplock level.
        level: OplockLevel,
    },
    /// \[MS-SMB2\] 2.2.24.2
    AcknowledgeLease {
        /// The lease.
        key: Guid,
        /// New lease state.
        state: u32,
    },
}

/// CREATE. \[MS-SMB2\] 2.2.13
#[derive(Clone, Debug)]
pub struct Create {
    /// Path relative to the share; `\` separates components, without a leading one.
    pub name: String,
    /// Requested oplock level; LEASE if `lease` is set.
    pub oplock: OplockLevel,
    /// Requested access rights.
    pub access: AccessMask,
    /// Attributes of a new file.
    pub attributes: FileAttributes,
    /// Access that other opens may have.
    pub share: ShareAccess,
    /// Handling of existing and missing files.
    pub disposition: CreateDisposition,
    /// Create options.
    pub options: CreateOptions,
    /// Lease: key and requested state.
    pub lease: Option<(Guid, u32)>,
    /// CreateGuid of SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2, by which a server recognizes a CREATE
    /// that is sent again. Only sent in dialects 3.x.
    pub create_guid: Option<Guid>,
    /// Allocation size in bytes.
    pub allocation: Option<u64>,
    /// Whether the request has SMB2_CREATE_QUERY_MAXIMAL_ACCESS_REQUEST.
    pub query_maximal_access: bool,
    /// Whether the driver acknowledges breaks, with [`Step::AcknowledgeOplock`] and
    /// [`Step::AcknowledgeLease`]. Otherwise the core acknowledges them at once.
    pub driver_acknowledges: bool,
}

/// The result of a successful step of a request, by command.
#[derive(Clone, Debug)]
pub enum Reply {
    /// TREE_CONNECT. \[MS-SMB2\] 2.2.10
    TreeConnected {
        /// TreeId.
        tree: TreeId,
        /// Type of the share.
        share_type: ShareType,
        /// Flags of the share: caching, encryption.
        flags: ShareFlags,
        /// Capabilities of the share: DFS, continuous availability.
        capabilities: ShareCapabilities,
        /// Maximal access of the user.
        maximal_access: AccessMask,
    },
    /// CREATE.
    Created(Created),
    /// CLOSE, with the attributes if they were requested.
    Closed(Option<Attributes>),
    /// READ: the location of the data.
    Read(ReadData),
    /// WRITE: count of written bytes, at most the length of the request.
    Written(u32),
    /// QUERY_DIRECTORY, QUERY_INFO, CHANGE_NOTIFY: the output buffer, and whether it is truncated
    /// (BUFFER_OVERFLOW).
    Output(Vec<u8>, bool),
    /// IOCTL: its output, and whether it is truncated (BUFFER_OVERFLOW).
    Ioctl(Vec<u8>, bool),
    /// Success of any other step.
    Done,
}

/// Location of the data of a READ. They are at most as long as the request allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadData {
    /// The driver received them into the destination: count of bytes at its start.
    Placed(u32),
    /// In the decrypted frame of the current call; the driver copies them.
    Inbound(Range<usize>),
    /// In the registered memory: count of bytes at its start.
    Remote(u32),
    /// The bytes themselves, if the responses to a compound arrived in several frames.
    Held(Vec<u8>),
}

/// The open of a CREATE. \[MS-SMB2\] 2.2.14
#[derive(Clone, Debug)]
pub struct Created {
    /// FileId.
    pub file_id: FileId,
    /// Granted oplock level.
    pub oplock: OplockLevel,
    /// Granted lease state, if a lease was requested.
    pub lease_state: Option<u32>,
    /// \[MS-SMB2\] 2.2.14, CreateAction: 1 opened, 2 created, 3 overwritten.
    pub action: u32,
    /// Attributes of the file.
    pub attributes: Attributes,
    /// Maximal access, if it was requested and the server supports that.
    pub maximal_access: Option<AccessMask>,
}

/// Attributes of a file in the responses to CREATE and CLOSE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Time of creation.
    pub created: FileTime,
    /// Time of the last access.
    pub accessed: FileTime,
    /// Time of the last write.
    pub written: FileTime,
    /// Time of the last change of metadata.
    pub changed: FileTime,
    /// Allocated bytes on the disk.
    pub allocation: u64,
    /// Length in bytes.
    pub size: u64,
    /// DOS attributes.
    pub attributes: FileAttributes,
}

impl Request {
    /// A new request of these steps.
    pub fn new(tree: Option<TreeId>, steps: Vec<Step>) -> Self {
        Self {
            tree,
            encrypt: false,
            steps,
            is_replay: false,
            resent: 0,
            timeout: None,
            behind: None,
        }
    }
}

/// The reason why the connection or a request of the client failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server returned this status.
    Status(Status),
    /// The server returned this status with data: the limits of a copy, the required length of a
    /// buffer, the target of a link. \[MS-SMB2\] 2.2.2
    StatusWith(Status, Vec<u8>),
    /// The response is malformed.
    Malformed(DecodeError),
    /// The response has more than the request asked for.
    Excess(&'static str),
    /// The time limit passed, and the client sent a CANCEL. The driver may still be sending the
    /// data of a WRITE.
    TimedOut,
    /// The driver canceled it.
    Cancelled,
    /// The client cannot send it: the buffer is longer than the server accepts, it needs more
    /// credits than the server grants, or the session cannot encrypt.
    Unsendable(&'static str),
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}
