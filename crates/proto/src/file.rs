//! Files: the vocabulary between the core and a file system.
//!
//! The core requests a [`FileOp`]; the file system answers it with an [`Outcome`] or with the
//! status with which it failed.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use wire::access::{AccessMask, FileAttributes};
use wire::change_notify::CompletionFilter;
use wire::fscc::FileAction;
use wire::{FileTime, Status};

use crate::path::SharePath;
use crate::pattern::Pattern;
use crate::token::Token;

/// Identifies a share: its index in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId(pub u32);

/// Identifies an open file of a file system. Valid in the whole process, so that channels on
/// several workers can use one open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalOpen {
    /// The share of the file system.
    pub share: ShareId,
    /// The slot in the table of the file system.
    pub slot: u64,
}

/// A request of the core to a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Opens or creates a file. Answered with [`Outcome::Opened`].
    Open(OpenPlan),
    /// Opens an existing file by its handle. Answered with [`Outcome::Opened`];
    /// OBJECT_NAME_NOT_FOUND if the file no longer exists, NOT_SUPPORTED if the file system has no
    /// handles.
    Reopen(ReopenPlan),
    /// Runs an operation on an open, with the token that the file was opened with.
    OnOpen(LocalOpen, Operation),
}

impl FileOp {
    /// Returns the share of the file system that runs the request.
    pub fn share(&self) -> ShareId {
        match self {
            Self::Open(plan) => plan.share,
            Self::Reopen(plan) => plan.share,
            Self::OnOpen(file, _) => file.share,
        }
    }
}

/// An operation on an open file or directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Closes the open. Answered with [`Outcome::Done`]. Never fails, even if the open does not
    /// exist.
    Close,
    /// Reads the metadata. Answered with [`Outcome::Metadata`].
    Stat,
    /// Truncates the file to 0 bytes and replaces its attributes, as CREATE with an overwriting
    /// disposition does. Answered with [`Outcome::Metadata`].
    Overwrite {
        /// The new attributes. The file system adds ARCHIVE.
        attributes: FileAttributes,
        /// Space to reserve in bytes.
        allocation: u64,
    },
    /// Changes times and attributes. Answered with [`Outcome::Metadata`].
    SetBasic(BasicChanges),
    /// Sets the Unix permissions (chmod), which alone decide about access. Answered with
    /// [`Outcome::Metadata`].
    SetMode {
        /// The nine permission bits. The other bits of st_mode do not change.
        mode: u32,
    },
    /// Sets the length of the file. Answered with [`Outcome::Done`].
    SetEndOfFile {
        /// New length of the file in bytes.
        length: u64,
    },
    /// Reserves space. A length below the end of the file truncates it. Answered with
    /// [`Outcome::Done`].
    SetAllocation {
        /// Space to reserve in bytes.
        length: u64,
    },
    /// Copies bytes from another open into this open. Answered with [`Outcome::Copied`].
    CopyRange(CopyPlan),
    /// Replaces bytes with zeros. The end of the file limits the range and does not move. Answered
    /// with [`Outcome::Zeroed`].
    ZeroRange {
        /// Range in bytes from the start of the file.
        range: Range<u64>,
    },
    /// Sets or clears the attribute SPARSE; no other operation changes it. Answered with
    /// [`Outcome::Metadata`].
    SetSparse {
        /// Whether unwritten ranges need no disk space.
        is_sparse: bool,
    },
    /// Lists the allocated ranges within a range. In a file that is not SPARSE, all bytes are
    /// allocated. Answered with [`Outcome::Ranges`].
    AllocatedRanges {
        /// Range in bytes from the start of the file.
        range: Range<u64>,
        /// Maximum number of ranges in the answer.
        limit: usize,
    },
    /// Writes cached data to stable storage. Answered with [`Outcome::Done`].
    Flush,
    /// Renames the file; its opens stay valid. Answered with [`Outcome::Renamed`].
    Rename {
        /// The new name.
        to: SharePath,
        /// Whether to replace an existing file of that name.
        replace: bool,
    },
    /// Creates a hard link. Answered with [`Outcome::Done`].
    Link {
        /// The additional name.
        to: SharePath,
        /// Whether to replace an existing file of that name.
        replace: bool,
    },
    /// Removes a name if it still names this file. Answered with [`Outcome::Done`]. The core passes
    /// the name because a rename through another open may have changed it.
    Unlink {
        /// The current name of the file.
        path: SharePath,
    },
    /// Checks that a directory is empty. Answered with [`Outcome::Done`] or DIRECTORY_NOT_EMPTY.
    CheckEmpty,
    /// Checks that the token may delete the file. Answered with [`Outcome::Done`], ACCESS_DENIED,
    /// or CANNOT_DELETE for a READONLY file.
    CheckDelete,
    /// Finds the file that a name stands for, without opening it. The open supplies the share and
    /// the token. Answered with [`Outcome::Found`].
    LookUp {
        /// The name.
        path: SharePath,
    },
    /// Lists a directory from the position where the previous call ended. Answered with
    /// [`Outcome::Directory`].
    ReadDirectory(DirectoryPlan),
    /// Reads the handle of the file. Answered with [`Outcome::Handle`]; NOT_SUPPORTED if the file
    /// system has no handles.
    ReadHandle,
    /// Reads the properties of the file system. Answered with [`Outcome::Volume`].
    Volume,
    /// Reports [`LocalEvent`]s of a directory until it is closed. Answered with [`Outcome::Done`],
    /// also by a file system that cannot report events.
    Watch {
        /// Whether to report events in subdirectories at all depths too.
        is_tree: bool,
    },
}

/// Selects whether [`OpenPlan`] opens an existing file or creates one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Open an existing file; fail if it does not exist.
    Open,
    /// Open an existing file, or create one.
    OpenOrCreate,
    /// Create a file; fail if it exists.
    Create,
}

/// The kind of file that [`OpenPlan`] accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindWanted {
    /// An existing file of any kind; if the open creates one, it is a regular file.
    Any,
    /// A file that is not a directory; otherwise FILE_IS_A_DIRECTORY.
    File,
    /// A directory; otherwise NOT_A_DIRECTORY.
    Directory,
}

/// Opens or creates a file. Never truncates it: the core decides whether other opens permit that
/// once it knows which file the name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPlan {
    /// The share.
    pub share: ShareId,
    /// The identity for the access check. Later operations on the open run with it too.
    pub token: Arc<Token>,
    /// The name. The file system compares names without regard to case.
    pub path: SharePath,
    /// The requested access: no generic rights; may contain MAXIMUM_ALLOWED.
    pub access: AccessMask,
    /// Additional rights without which the open fails: an overwrite requires the right to write.
    /// \[MS-SMB2\] 3.3.5.9
    pub implied_access: AccessMask,
    /// Whether the file may, must or must not exist.
    pub existing: Existing,
    /// File or directory.
    pub kind: KindWanted,
    /// Attributes of a new file.
    pub attributes: FileAttributes,
    /// Space to reserve in a new file in bytes.
    pub allocation: u64,
    /// Whether to open a symbolic link itself instead of its target.
    pub open_link: bool,
}

/// Identifies a file to its file system, independently of its names. A handle stays valid after a
/// rename and after a restart of the server, until the file is deleted. Only the file system that
/// made it can interpret the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHandle(pub Vec<u8>);

/// Maximum length of a [`FileHandle`] in bytes: the four bytes of the type, then MAX_HANDLE_SZ of
/// Linux.
pub const FILE_HANDLE_MAX: usize = 4 + 128;

/// Opens an existing file by its handle: a file that was open before a disconnection or a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReopenPlan {
    /// The share.
    pub share: ShareId,
    /// The identity for the access check. Later operations on the open run with it too.
    pub token: Arc<Token>,
    /// The handle. It comes from the file system, never from a client.
    pub handle: FileHandle,
    /// The last known name. The file system tries it if it cannot open the handle itself.
    pub path: SharePath,
    /// The requested access, as in [`OpenPlan::access`].
    pub access: AccessMask,
}

/// Selects entries of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// All entries.
    All,
    /// Entries with a matching name.
    Matching(Pattern),
    /// The entry with this name, compared without regard to case. A lookup without a scan.
    Name(String),
}

/// Lists a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryPlan {
    /// Whether to start at the first entry again.
    pub restart: bool,
    /// The entries to return.
    pub select: Select,
    /// Maximum number of entries in the answer. Fewer entries mean the end of the directory.
    pub limit: u32,
}

/// Copies bytes into an open. The two ranges may overlap: the target receives the bytes that the
/// source held before the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// The open to copy from. It may belong to another share.
    pub source: LocalOpen,
    /// Offset in the source in bytes.
    pub source_offset: u64,
    /// Offset in the target in bytes.
    pub target_offset: u64,
    /// Number of bytes. The range must end before the end of the source; otherwise
    /// INVALID_VIEW_SIZE.
    pub length: u32,
}

/// Times and attributes to change. `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasicChanges {
    /// Creation time.
    pub created: Option<FileTime>,
    /// Last access time.
    pub accessed: Option<FileTime>,
    /// Last write time.
    pub written: Option<FileTime>,
    /// Last change of metadata. A file system that cannot set this time ignores it.
    pub changed: Option<FileTime>,
    /// DOS attributes.
    pub attributes: Option<FileAttributes>,
}

/// Identifies a stream of a file independently of the names of the file: \[MS-FSCC\] 2.4.26
/// FileInternalInformation, the volume and the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileKey {
    /// Device number.
    pub volume: u64,
    /// Inode number.
    pub file: u64,
    /// The stream within the file.
    pub stream: StreamId,
}

/// Identifies a stream within its file. The file system assigns the number when it opens the
/// stream, and does not assign it to another stream of the file while the stream is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The unnamed data stream. A directory has no other stream than this.
    pub const DATA: Self = Self(0);
}

impl FileKey {
    /// The key of the unnamed data stream of the file, which stands for the file.
    #[must_use]
    pub fn of_file(self) -> Self {
        self.with_stream(StreamId::DATA)
    }

    /// The key of another stream of the file.
    #[must_use]
    pub fn with_stream(self, stream: StreamId) -> Self {
        Self { stream, ..self }
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FileKind {
    /// A regular file.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link that was not followed.
    Link,
    /// A pipe, socket or device. Listings show it; an open fails.
    Special,
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Identity of the file.
    pub key: FileKey,
    /// Kind of the file.
    pub kind: FileKind,
    /// DOS attributes. DIRECTORY agrees with the kind; NORMAL is never set.
    pub attributes: FileAttributes,
    /// The subset of the attributes that the file system stores with the file. The others follow
    /// from its name or kind.
    pub stored: FileAttributes,
    /// Length of the data in bytes; 0 for a directory.
    pub size: u64,
    /// Space on disk in bytes.
    pub allocation: u64,
    /// Number of hard links.
    pub links: u32,
    /// Creation time.
    pub created: FileTime,
    /// Last access time.
    pub accessed: FileTime,
    /// Last write time.
    pub written: FileTime,
    /// Last change of metadata.
    pub changed: FileTime,
    /// Unix type and permissions (st_mode).
    pub mode: u32,
    /// User ID of the Unix owner.
    pub uid: u32,
    /// Group ID of the Unix group.
    pub gid: u32,
}

impl Metadata {
    /// Returns whether the file is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// An entry of a directory. A listing starts with `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Name of the entry.
    pub name: String,
    /// Metadata of the file.
    pub metadata: Metadata,
}

/// The result of a successful open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The open.
    pub file: LocalOpen,
    /// Whether the open created the file.
    pub created: bool,
    /// The requested rights; MAXIMUM_ALLOWED is replaced with the rights that it stands for.
    pub granted: AccessMask,
    /// All rights of the token on the file.
    pub maximal: AccessMask,
    /// Metadata of the file.
    pub metadata: Metadata,
    /// The name as the file system spells it.
    pub path: SharePath,
}

/// The properties of a file system. Sizes are in units of `block` bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VolumeInfo {
    /// Size of an allocation unit in bytes.
    pub block: u32,
    /// Number of units in total.
    pub total: u64,
    /// Number of free units.
    pub free: u64,
    /// Number of units that this user may still allocate.
    pub available: u64,
    /// Serial number of the volume.
    pub serial: u64,
    /// Maximum length of a name in UTF-16 units.
    pub max_name: u32,
    /// Whether files can be SPARSE.
    pub has_sparse_files: bool,
    /// Creation time of the volume.
    pub created: FileTime,
}

/// A change that another process made in or below a directory that [`Operation::Watch`] named. The
/// driver passes it to `Server::local_events`. Changes by the server itself are not reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEvent {
    /// A name changed.
    Change(LocalChange),
    /// Events were lost: below this directory, or in the whole share if `None`.
    Lost(Option<FileKey>),
    /// The directory itself was removed.
    Removed(FileKey),
}

/// A change of a name in a watched directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalChange {
    /// The watched directory.
    pub directory: FileKey,
    /// The path relative to that directory, as the file system spells it.
    pub path: SharePath,
    /// The kind of change. The new name of a renamed file follows the old name immediately.
    pub action: FileAction,
    /// The filters that match the change. A watch receives it if it has at least one of them.
    pub filter: CompletionFilter,
}

/// The result of a successful [`FileOp`].
///
/// The `expect_` functions return the value of one variant.
///
/// # Panics
///
/// The `expect_` functions panic if the file system answered with another variant. That is a bug of
/// the file system or of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation is complete and has no value.
    Done,
    /// Answers [`FileOp::Open`] and [`FileOp::Reopen`].
    Opened(Opened),
    /// Answers [`Operation::Stat`] and the operations that change metadata.
    Metadata(Metadata),
    /// Answers [`Operation::Rename`]: the new name as the file system spells it.
    Renamed(SharePath),
    /// Answers [`Operation::LookUp`]: the metadata, or `None` if the file does not exist.
    Found(Option<Metadata>),
    /// Answers [`Operation::ReadDirectory`]. No entries mean the end of the directory.
    Directory(Vec<DirectoryEntry>),
    /// Answers [`Operation::CopyRange`].
    Copied {
        /// Number of copied bytes from the start of the range.
        count: u32,
        /// The reason why the count is less than the requested length; SUCCESS for a full copy.
        status: Status,
    },
    /// Answers [`Operation::ZeroRange`]: the offset up to which the range is zero. The file system
    /// may stop before the end of a long range; the core then requests the rest.
    Zeroed(u64),
    /// Answers [`Operation::AllocatedRanges`]: all ranges, or the first ones up to the limit.
    Ranges(Vec<Range<u64>>),
    /// Answers [`Operation::ReadHandle`].
    Handle(FileHandle),
    /// Answers [`Operation::Volume`].
    Volume(VolumeInfo),
}

impl Outcome {
    /// Checks that the outcome is `Done`.
    pub fn expect_done(self) {
        let Self::Done = self else {
            panic!("the operation has no value, the driver answered {self:?}");
        };
    }

    /// Returns the value of [`Outcome::Opened`]. Panics for another variant: a bug of the driver.
    pub fn expect_opened(self) -> Opened {
        let Self::Opened(opened) = self else {
            panic!("an open expects Opened, the driver answered {self:?}");
        };
        opened
    }

    /// Returns the value of [`Outcome::Metadata`]. Panics for another variant: a bug of the driver.
    pub fn expect_metadata(self) -> Metadata {
        let Self::Metadata(metadata) = self else {
            panic!("the operation expects Metadata, the driver answered {self:?}");
        };
        metadata
    }

    /// Returns the value of [`Outcome::Renamed`]. Panics for another variant: a bug of the driver.
    pub fn expect_renamed(self) -> SharePath {
        let Self::Renamed(path) = self else {
            panic!("a rename expects Renamed, the driver answered {self:?}");
        };
        path
    }

    /// Returns the value of [`Outcome::Found`]. Panics for another variant: a bug of the driver.
    pub fn expect_found(self) -> Option<Metadata> {
        let Self::Found(found) = self else {
            panic!("a lookup expects Found, the driver answered {self:?}");
        };
        found
    }

    /// Returns the value of [`Outcome::Directory`]. Panics for another variant: a bug of the
    /// driver.
    pub fn expect_directory(self) -> Vec<DirectoryEntry> {
        let Self::Directory(entries) = self else {
            panic!("a listing expects Directory, the driver answered {self:?}");
        };
        entries
    }

    /// Returns the values of [`Outcome::Copied`]: the count and the status. Panics for another
    /// variant.
    pub fn expect_copied(self) -> (u32, Status) {
        let Self::Copied { count, status } = self else {
            panic!("a copy expects Copied, the driver answered {self:?}");
        };
        (count, status)
    }

    /// Returns the value of [`Outcome::Zeroed`]. Panics for another variant: a bug of the driver.
    pub fn expect_zeroed(self) -> u64 {
        let Self::Zeroed(end) = self else {
            panic!("zeroing expects Zeroed, the driver answered {self:?}");
        };
        end
    }

    /// Returns the value of [`Outcome::Ranges`]. Panics for another variant: a bug of the driver.
    pub fn expect_ranges(self) -> Vec<Range<u64>> {
        let Self::Ranges(ranges) = self else {
            panic!("the operation expects Ranges, the driver answered {self:?}");
        };
        ranges
    }

    /// Returns the value of [`Outcome::Handle`]. Panics for another variant: a bug of the driver.
    pub fn expect_handle(self) -> FileHandle {
        let Self::Handle(handle) = self else {
            panic!("the operation expects Handle, the driver answered {self:?}");
        };
        handle
    }

    /// Returns the value of [`Outcome::Volume`]. Panics for another variant: a bug of the driver.
    pub fn expect_volume(self) -> VolumeInfo {
        let Self::Volume(volume) = self else {
            panic!("the operation expects Volume, the driver answered {self:?}");
        };
        volume
    }
}
