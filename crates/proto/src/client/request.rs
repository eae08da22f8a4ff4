//! Requests of a client and their replies.
//!
//! A [`Request`] has one or more steps. The client sends several steps as one compound of related
//! requests: a step whose file is [`FileRef::Previous`] acts on the file that the CREATE before it
//! opened.

use alloc::boxed::Box;
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
use wire::posix::PosixCreateResponse;
use wire::query_info::InfoType;
use wire::tree_connect::{ShareCapabilities, ShareFlags, ShareType};
use wire::{DecodeError, FileId, FileTime, Guid, Status, TreeId};

/// The number that the I/O driver gives to a request, unique within a connection while the request
/// is pending. A [`PayloadToken`](crate::effect::PayloadToken) with the same number stands for the
/// data of a WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A request from the I/O driver to the client's protocol core: one SMB2 message, or a compound of
/// several.
#[derive(Clone, Debug)]
pub struct Request {
    /// TreeId of the share that the request applies to; `None` for requests outside of a share,
    /// such as LOGOFF.
    pub tree: Option<TreeId>,
    /// Whether the share requires encryption, so that the protocol core must encrypt the request.
    /// \[MS-SMB2\] 3.2.4.1.8
    pub encrypt: bool,
    /// The messages of the compound in order (one for a single message). At least one, and at most
    /// one WRITE, because the I/O driver has one source of data for a request.
    pub steps: Vec<Step>,
    /// Whether the messages have the flag SMB2_FLAGS_REPLAY_OPERATION: the client repeats a request
    /// of a lost connection.
    pub is_replay: bool,
    /// Number of times that the client sent the request again on another connection; at most
    /// [`RESENDS_MAX`](super::replay::RESENDS_MAX).
    pub resent: u8,
    /// Time limit of the response that replaces the limit of the configuration. `None` uses the
    /// configuration; `Some(None)` waits without a limit.
    pub timeout: Option<Option<Duration>>,
    /// Number of another request on the same connection; the client sends this request only after
    /// the answer to that one. `None` if this request need not wait.
    pub behind: Option<RequestId>,
}

/// The file that a step of a request acts on: an open file, or the file that the CREATE before it
/// in the same compound opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRef {
    /// An open file, by the FileId that CREATE returned.
    Id(FileId),
    /// The file that the preceding CREATE of the compound opens.
    Previous,
}

/// One SMB2 request message of a client: a command, such as CREATE or READ, with its fields.
#[derive(Clone, Debug)]
pub enum Step {
    /// TREE_CONNECT: connect to a share. The value is the name of the share alone; the core makes
    /// `\\server\share` of it. \[MS-SMB2\] 2.2.9
    TreeConnect(String),
    /// TREE_DISCONNECT: disconnect the tree of the request. \[MS-SMB2\] 2.2.11
    TreeDisconnect,
    /// LOGOFF: end the session. \[MS-SMB2\] 2.2.7
    Logoff,
    /// ECHO: test the connection. \[MS-SMB2\] 2.2.28
    Echo,
    /// CREATE: open or create a file. \[MS-SMB2\] 2.2.13
    Create(Create),
    /// CLOSE: close an open file. \[MS-SMB2\] 2.2.15
    Close {
        /// The open file that the CLOSE closes.
        file: FileRef,
        /// Whether the response must have the attributes of the file.
        query: bool,
    },
    /// FLUSH: write the cached data of the file to stable storage. \[MS-SMB2\] 2.2.17
    Flush(FileRef),
    /// READ: read a range of a file. The driver has the destination. \[MS-SMB2\] 2.2.19
    Read {
        /// The open file that the READ reads.
        file: FileRef,
        /// Offset in the file in bytes.
        offset: u64,
        /// Length of the range in bytes, at most [`Session::max_read`](super::Session::max_read).
        length: u32,
        /// Smallest number of bytes to read; if the file has fewer, the server returns END_OF_FILE.
        minimum: u32,
    },
    /// WRITE: write a range of a file. The driver has the source. \[MS-SMB2\] 2.2.21
    Write {
        /// The open file that the WRITE changes.
        file: FileRef,
        /// Offset in the file in bytes.
        offset: u64,
        /// Length of the data in bytes, at most [`Session::max_write`](super::Session::max_write).
        length: u32,
        /// Whether the server responds only when the bytes are on stable storage.
        through: bool,
    },
    /// QUERY_DIRECTORY: list a directory. \[MS-SMB2\] 2.2.33
    QueryDirectory {
        /// The open directory that the request lists.
        file: FileRef,
        /// Number of the information class, which is the layout of the entries. \[MS-FSCC\] 2.4
        class: u8,
        /// Whether the listing restarts at the first entry.
        restart: bool,
        /// Pattern that the names must match; `*` for all.
        pattern: String,
        /// Maximum length of the list in the response in bytes.
        length: u32,
    },
    /// QUERY_INFO: query information about a file or its volume. \[MS-SMB2\] 2.2.37
    QueryInfo {
        /// The file that the query is about.
        file: FileRef,
        /// Kind of information: file, file system, security or quota.
        info_type: InfoType,
        /// Number of the information class within the kind. \[MS-FSCC\] 2.4, 2.5
        class: u8,
        /// AdditionalInformation: the requested parts of a security descriptor as a bit mask; 0
        /// otherwise.
        additional: u32,
        /// Maximum length of the information in the response in bytes.
        length: u32,
    },
    /// SET_INFO: change information about a file or its volume. \[MS-SMB2\] 2.2.39
    SetInfo {
        /// The open file or volume that the request changes.
        file: FileRef,
        /// Kind of information: file, file system, security or quota.
        info_type: InfoType,
        /// Number of the information class within the kind. \[MS-FSCC\] 2.4, 2.5
        class: u8,
        /// AdditionalInformation: the parts of a security descriptor to set as a bit mask; 0
        /// otherwise.
        additional: u32,
        /// The new value, in the layout of the information class. \[MS-FSCC\]
        buffer: Vec<u8>,
    },
    /// CHANGE_NOTIFY: wait for changes in a directory. \[MS-SMB2\] 2.2.35
    ChangeNotify {
        /// The open directory that the client watches.
        file: FileRef,
        /// Whether the watch includes subdirectories.
        recursive: bool,
        /// Kinds of changes that the response reports.
        filter: CompletionFilter,
        /// Maximum length of the list of changes in the response in bytes.
        length: u32,
    },
    /// LOCK: lock or unlock byte ranges of a file. \[MS-SMB2\] 2.2.26
    Lock {
        /// The file with the ranges.
        file: FileRef,
        /// LockSequenceNumber and LockSequenceIndex, by which the server recognizes a LOCK that is
        /// sent again; 0 for none. \[MS-SMB2\] 2.2.26
        sequence: u32,
        /// The ranges, each with flags for lock or unlock; at least one.
        locks: Vec<LockElement>,
    },
    /// IOCTL: run a control function (FSCTL) on a file or on the server. \[MS-SMB2\] 2.2.31
    Ioctl {
        /// The file; `None` for a function that concerns no file.
        file: Option<FileRef>,
        /// Code of the control function.
        code: CtlCode,
        /// Input of the function, in the layout that the code defines.
        input: Vec<u8>,
        /// Maximum length of the output in the response in bytes.
        max_output: u32,
    },
    /// OPLOCK_BREAK: acknowledge the break of an oplock. \[MS-SMB2\] 2.2.24.1
    AcknowledgeOplock {
        /// FileId of the open that held the oplock.
        file: FileId,
        /// Oplock level that the client keeps.
        level: OplockLevel,
    },
    /// OPLOCK_BREAK: acknowledge the break of a lease. \[MS-SMB2\] 2.2.24.2
    AcknowledgeLease {
        /// Key of the lease (LeaseKey), which the client chose in its CREATE.
        key: Guid,
        /// State that the client keeps, as a bit mask: read, handle and write caching.
        state: u32,
    },
}

/// The fields of a CREATE request, which opens or creates a file. \[MS-SMB2\] 2.2.13
#[derive(Clone, Debug)]
pub struct Create {
    /// Path relative to the share; `\` separates components, without a leading one. Empty for the
    /// root of the share.
    pub name: String,
    /// Oplock level that the client requests; must be LEASE if `lease` is set.
    pub oplock: OplockLevel,
    /// Access rights that the client requests for the open.
    pub access: AccessMask,
    /// DOS attributes of the file if the CREATE creates it.
    pub attributes: FileAttributes,
    /// Access that other opens of the file may have while this open exists (the share mode).
    pub share: ShareAccess,
    /// Whether the file must, may or must not exist, and whether the server overwrites an existing
    /// file.
    pub disposition: CreateDisposition,
    /// Create options, such as "must be a directory" or "delete on close".
    pub options: CreateOptions,
    /// Lease that the client requests. `None` for no lease.
    pub lease: Option<LeaseRequest>,
    /// CreateGuid of SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2, by which the server recognizes a
    /// repeated CREATE, and a durable open of version 2. `None`, and dialects before 3.0, omit the
    /// context.
    pub create_guid: Option<Guid>,
    /// Whether the CREATE requests a durable open, or reconnects to one.
    pub durable: Durability,
    /// Disk space in bytes that the server reserves for a new file; `None` reserves none.
    pub allocation: Option<u64>,
    /// Whether the response must have the maximal access rights of the user
    /// (SMB2_CREATE_QUERY_MAXIMAL_ACCESS_REQUEST).
    pub query_maximal_access: bool,
    /// Permission bits (`st_mode & 07777`) of a file that a CREATE of the SMB3 POSIX extensions
    /// creates; the name is then the exact name of the file, with `/` between components. `None`
    /// for a CREATE without the extensions. Only if they are
    /// [negotiated](super::Negotiated::posix).
    pub posix_mode: Option<u32>,
    /// Whether the I/O driver acknowledges breaks of the oplock or lease, by the requests
    /// [`Step::AcknowledgeOplock`] and [`Step::AcknowledgeLease`]. Otherwise the protocol core
    /// acknowledges them at once.
    pub driver_acknowledges: bool,
}

/// The lease that a CREATE requests: the permission to cache a file, which all opens with the same
/// key share. \[MS-SMB2\] 2.2.13.2.8, 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// LeaseKey: the identifier of the lease, which the client chooses, one for each file.
    pub key: Guid,
    /// Requested caching (read, handle, write) as the bit mask of \[MS-SMB2\] 2.2.13.2.8.
    pub state: u32,
    /// Key of the lease of the client on the parent directory; `None` for no such lease. Dialects
    /// 3.x only.
    pub parent: Option<Guid>,
    /// Epoch of the lease as the client knows it; 0 for a new lease. Dialects 3.x only.
    pub epoch: u16,
}

impl LeaseRequest {
    /// Makes the request for a new lease with the key `key`. `state` is the requested caching as
    /// the bit mask of \[MS-SMB2\] 2.2.13.2.8.
    pub fn new(key: Guid, state: u32) -> Self {
        Self {
            key,
            state,
            parent: None,
            epoch: 0,
        }
    }
}

/// Whether a CREATE concerns a durable open: an open that the server preserves for some time
/// without a connection. \[MS-SMB2\] 3.2.4.3.5, 3.2.4.4
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The CREATE requests no durable open. A CREATE with a `create_guid` has the context of one
    /// nevertheless (DH2Q): the server recognizes the repeated CREATE by it.
    #[default]
    None,
    /// The CREATE requests a durable open, of version 2 (DH2Q) with dialects 3.x and a
    /// `create_guid`, else of version 1 (DHnQ).
    Request,
    /// The CREATE reconnects to the durable open with this FileId after the loss of its connection:
    /// by DH2C with dialects 3.x and the `create_guid` of that open, else by DHnC. The lease must
    /// have the key of that open.
    Reconnect(FileId),
}

/// The durable open that a server granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurableGrant {
    /// Time in ms that the server preserves the open without a connection; 0 if the server does not
    /// report it, as in version 1.
    pub timeout_ms: u32,
}

/// The result of a successful step of a request, such as the opened file of a CREATE. The variant
/// depends on the command of the step.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Result of TREE_CONNECT: the client is connected to a share. \[MS-SMB2\] 2.2.10
    TreeConnected {
        /// TreeId, which identifies the tree connect in further requests.
        tree: TreeId,
        /// Type of the share: disk, pipe or printer.
        share_type: ShareType,
        /// Flags of the share: caching, encryption.
        flags: ShareFlags,
        /// Capabilities of the share: DFS, continuous availability.
        capabilities: ShareCapabilities,
        /// Maximal access rights of the user on the root of the share.
        maximal_access: AccessMask,
    },
    /// Result of CREATE: the file is open.
    Created(Created),
    /// Result of CLOSE. The value has times, sizes and DOS attributes of the file; `None` if the
    /// request did not ask for them.
    Closed(Option<Attributes>),
    /// Result of READ: the location and length of the data.
    Read(ReadData),
    /// Result of WRITE: number of written bytes, at most the length of the request.
    Written(u32),
    /// Result of QUERY_DIRECTORY, QUERY_INFO or CHANGE_NOTIFY: the output buffer, and whether it is
    /// truncated (BUFFER_OVERFLOW).
    Output(Vec<u8>, bool),
    /// Result of IOCTL: the output of the function, and whether it is truncated (BUFFER_OVERFLOW).
    Ioctl(Vec<u8>, bool),
    /// Success of a step without a further result.
    Done,
}

/// Location of the data of a READ: the destination of the READ, registered memory, the received
/// frame or a vector. The data are at most as long as the request allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadData {
    /// In the destination of the READ, where the driver received them: number of bytes from its
    /// start.
    Placed(u32),
    /// In this range of the decrypted frame of the current call into the core. The driver copies
    /// the bytes before it reuses the frame.
    Inbound(Range<usize>),
    /// In the registered memory of the READ, where the server wrote them by RDMA: number of bytes
    /// from its start.
    Remote(u32),
    /// In this vector, if the responses to a compound arrived in several frames.
    Held(Vec<u8>),
}

/// The result of a CREATE: the file that the server opened, with its attributes. \[MS-SMB2\] 2.2.14
#[derive(Clone, Debug)]
pub struct Created {
    /// FileId, by which further requests name the open file.
    pub file_id: FileId,
    /// Oplock level that the server granted.
    pub oplock: OplockLevel,
    /// Lease state (read, handle and write caching) that the server granted, as the bit mask of
    /// \[MS-SMB2\] 2.2.13.2.8; `None` if the client requested no lease.
    pub lease_state: Option<u32>,
    /// Epoch of the lease: the number of its state changes modulo 65,536. `None` without a lease
    /// and in dialects before 3.0.
    pub lease_epoch: Option<u16>,
    /// Whether a break of the lease is in progress: `lease_state` has the rights before it.
    /// \[MS-SMB2\] 2.2.14.2.10
    pub is_lease_breaking: bool,
    /// The durable open that the server granted; `None` if the server preserves nothing after a
    /// loss of the connection. A reconnect returns `None`, and the open stays durable.
    pub durable: Option<DurableGrant>,
    /// The action of the server (CreateAction): 0 superseded, 1 opened, 2 created, 3 overwrote the
    /// file. \[MS-SMB2\] 2.2.14
    pub action: u32,
    /// Times, sizes and DOS attributes of the file.
    pub attributes: Attributes,
    /// Maximal access rights of the user on the file; `None` if the client did not request them or
    /// the server does not support that.
    pub maximal_access: Option<AccessMask>,
    /// Unix attributes of the file; `None` if the CREATE did not use the SMB3 POSIX extensions.
    pub posix: Option<Box<PosixCreateResponse>>,
}

/// Times, sizes and DOS attributes of a file in the responses to CREATE and CLOSE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Time at which the file was created.
    pub created: FileTime,
    /// Time of the last access to the data.
    pub accessed: FileTime,
    /// Time of the last write to the data.
    pub written: FileTime,
    /// Time of the last change of metadata.
    pub changed: FileTime,
    /// Disk space that is allocated for the file, in bytes.
    pub allocation: u64,
    /// Length of the file in bytes.
    pub size: u64,
    /// DOS attributes of the file, such as READONLY and DIRECTORY.
    pub attributes: FileAttributes,
}

impl Request {
    /// Makes a request of these steps for a share (`None` outside of a share). The other fields
    /// have defaults: no encryption, no replay, time limit of the configuration, no request to wait
    /// for.
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

/// The reason why a request of the client failed, such as an error status of the server or a passed
/// time limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server returned this error status.
    Status(Status),
    /// The server returned this status with data: the limits of a copy, the required length of a
    /// buffer, or the target of a link. \[MS-SMB2\] 2.2.2
    StatusWith(Status, Vec<u8>),
    /// The response of the server cannot be decoded.
    Malformed(DecodeError),
    /// The response of the server has more data than the request asked for: description of the
    /// excess.
    Excess(&'static str),
    /// The time limit of the request passed, and the client sent a CANCEL. The driver may still be
    /// sending the data of a WRITE.
    TimedOut,
    /// The driver canceled the request.
    Cancelled,
    /// The client cannot send the request: a buffer is longer than the server accepts, the request
    /// needs more credits than the server grants, or the session cannot encrypt.
    Unsendable(&'static str),
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}
