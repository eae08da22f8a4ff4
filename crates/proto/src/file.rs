//! Files: the vocabulary between the core and a file system.
//!
//! The core requests a [`FileOp`]; the file system answers it with an [`Outcome`] or with the
//! status with which it failed.

mod outcome;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use wire::FileTime;
use wire::access::{AccessMask, FileAttributes};
use wire::change_notify::CompletionFilter;
use wire::fscc::FileAction;
use wire::posix::PosixFileType;
use wire::reparse::ReparseTag;
use wire::security::{SecurityDescriptor, SecurityInformation};

use crate::disk_quota::{QuotaLimits, QuotaSelection, QuotaState};
use crate::ea::Ea;
use crate::path::{SharePath, StreamName};
use crate::pattern::Pattern;
use crate::token::Token;
pub use outcome::Outcome;

/// Identifies the file system of a share of the server. The driver chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId(pub u32);

/// Identifies an open file or directory of a file system. The value is valid in the whole process,
/// so that several threads can use one open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalOpen {
    /// The share on which the file is.
    pub share: ShareId,
    /// Number by which the file system of the share finds the open in its table of open files. The
    /// file system assigns it when it opens the file, and never assigns it to another open, also
    /// after a close. The protocol core does not interpret it.
    pub slot: u64,
}

/// A request of the protocol core to the file system of a share: open a file, open it again by its
/// handle, or run an operation on an open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Opens or creates a file. The file system answers with [`Outcome::Opened`].
    Open(OpenPlan),
    /// Opens an existing file by its handle, without its name. The file system answers with
    /// [`Outcome::Opened`], with OBJECT_NAME_NOT_FOUND if the file no longer exists, and with
    /// NOT_SUPPORTED if the file system has no handles.
    Reopen(ReopenPlan),
    /// Checks that the root directory of a share exists: a disk may not be mounted yet, or no
    /// longer. Answered with [`Outcome::Done`], or BAD_NETWORK_NAME if it does not exist.
    FindRoot {
        /// The share.
        share: ShareId,
        /// The identity that looks the directory up. A directory that exists is found with any
        /// identity.
        token: Arc<Token>,
    },
    /// Finds the reparse point on a path on which an open stopped with STOPPED_ON_SYMLINK. Answered
    /// with [`Outcome::Link`].
    FindLink {
        /// The share.
        share: ShareId,
        /// The identity that looks the path up.
        token: Arc<Token>,
        /// The path of the open, from the root of the share.
        path: SharePath,
    },
    /// Runs an operation on an open, with the token that the file was opened with.
    OnOpen(LocalOpen, Operation),
}

impl FileOp {
    /// Returns the share with the file of the request, so that the I/O driver can choose the file
    /// system that runs it.
    pub fn share(&self) -> ShareId {
        match self {
            Self::Open(plan) => plan.share,
            Self::Reopen(plan) => plan.share,
            Self::FindRoot { share, .. } | Self::FindLink { share, .. } => *share,
            Self::OnOpen(file, _) => file.share,
        }
    }
}

/// An operation on an open file or directory, such as a rename or a query of its metadata. The
/// protocol core requests it from a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Closes the open. Answered with [`Outcome::Done`]. Never fails, even if the open does not
    /// exist.
    Close,
    /// Queries the metadata of the file. Answered with [`Outcome::Metadata`].
    Stat,
    /// Truncates the file or stream to 0 bytes and replaces its attributes, as CREATE with an
    /// overwriting disposition does. A file loses its named streams. Answered with
    /// [`Outcome::Metadata`].
    Overwrite {
        /// The new DOS attributes. The file system adds ARCHIVE.
        attributes: FileAttributes,
        /// Disk space to reserve in bytes.
        allocation: u64,
    },
    /// Changes times and DOS attributes of the file. Answered with [`Outcome::Metadata`].
    SetBasic(BasicChanges),
    /// Sets the Unix permissions of the file (chmod), which alone decide about access from then on.
    /// Answered with [`Outcome::Metadata`].
    SetMode {
        /// The new values of the bits in `mask`.
        mode: u32,
        /// The bits of st_mode that change: permissions (0o777), or also set-user-id, set-group-id
        /// and sticky bit (0o7777).
        mask: u32,
    },
    /// Queries the whole security descriptor of the file: the stored one, or one that stands for
    /// the Unix permissions. Answered with [`Outcome::Security`].
    QuerySecurity,
    /// Replaces parts of the security descriptor of the file. Answered with [`Outcome::Done`],
    /// ACCESS_DENIED if the Unix permissions of the identity do not permit the change, and
    /// INVALID_OWNER for an owner or group that the identity cannot give to the file.
    SetSecurity(Box<SecurityChange>),
    /// Sets the length of the file. Answered with [`Outcome::Done`].
    SetEndOfFile {
        /// New length of the file in bytes.
        length: u64,
    },
    /// Reserves disk space for the file. A length below the end of the file truncates it. Answered
    /// with [`Outcome::Done`].
    SetAllocation {
        /// Disk space to reserve in bytes, from the start of the file.
        length: u64,
    },
    /// Copies bytes from another open into this open. Answered with [`Outcome::Copied`].
    CopyRange(CopyPlan),
    /// Makes a range of this open share the extents of another open of the share. Answered with
    /// [`Outcome::Done`], or INVALID_DEVICE_REQUEST if the file system cannot do that.
    CloneRange(ClonePlan),
    /// Replaces the bytes of a range with zeros. The length of the file does not change: the end of
    /// the file limits the range. Answered with [`Outcome::Zeroed`].
    ZeroRange {
        /// Range of offsets in bytes from the start of the file.
        range: Range<u64>,
    },
    /// Discards the data of a range, which then reads as zeros or as before. The length of the file
    /// does not change, and only a SPARSE file loses the disk space. Answered with
    /// [`Outcome::Done`], also by a file system that cannot do it, and INVALID_PARAMETER for a
    /// COMPRESSED file.
    Trim {
        /// Range of offsets in bytes from the start of the file.
        range: Range<u64>,
    },
    /// Sets or clears the attribute SPARSE; no other operation changes it. Answered with
    /// [`Outcome::Metadata`].
    SetSparse {
        /// Whether unwritten ranges need no disk space.
        is_sparse: bool,
    },
    /// Switches the compression of the file on or off; no other operation changes the attribute
    /// COMPRESSED. Answered with [`Outcome::Metadata`], or NOT_SUPPORTED if the file system
    /// compresses nothing.
    SetCompression {
        /// Whether the file system compresses the data that are written from now on.
        is_compressed: bool,
    },
    /// Lists the parts of a range that have allocated disk space. In a file that is not SPARSE, all
    /// bytes are allocated. Answered with [`Outcome::Ranges`].
    AllocatedRanges {
        /// Range of offsets in bytes from the start of the file.
        range: Range<u64>,
        /// Maximum number of ranges in the answer.
        limit: usize,
    },
    /// Writes the cached data of the file to stable storage. Answered with [`Outcome::Done`].
    Flush,
    /// Renames the file; its opens stay valid. Answered with [`Outcome::Renamed`].
    Rename {
        /// The new name, as a path from the root of the share.
        to: SharePath,
        /// Which existing file of that name to replace.
        replace: Replace,
    },
    /// Creates a hard link: a further name of the file. Answered with [`Outcome::Done`].
    Link {
        /// The additional name, as a path from the root of the share.
        to: SharePath,
        /// Whether to replace an existing file of that name.
        replace: bool,
    },
    /// Gives another name to the named stream that is open. Its opens stay valid. Answered with
    /// [`Outcome::Done`], or with OBJECT_NAME_COLLISION if a stream of that name exists.
    RenameStream {
        /// The new name of the stream.
        to: StreamName,
        /// Whether to replace an existing stream of that name.
        replace: bool,
    },
    /// Lists the data streams of the file: the unnamed one, which a directory lacks, and the named
    /// ones. Answered with [`Outcome::Streams`].
    ListStreams,
    /// Reads the reparse point of the file. Answered with [`Outcome::Reparse`], or with
    /// NOT_A_REPARSE_POINT.
    ReadReparse,
    /// Makes the file a reparse point. Answered with [`Outcome::Done`], with
    /// IO_REPARSE_TAG_MISMATCH if the file has a reparse point with another tag, and with
    /// DIRECTORY_NOT_EMPTY.
    SetReparse {
        /// The tag of the reparse point, which is also in `data`.
        tag: ReparseTag,
        /// The encoded reparse point (REPARSE_DATA_BUFFER).
        data: Vec<u8>,
    },
    /// Removes the reparse point of the file. Answered with [`Outcome::Done`], or with
    /// NOT_A_REPARSE_POINT or IO_REPARSE_TAG_MISMATCH.
    RemoveReparse {
        /// The tag that the reparse point must have.
        tag: ReparseTag,
    },
    /// Removes a name from its directory if it still names this file. Answered with
    /// [`Outcome::Done`]. The core passes the name because a rename through another open may have
    /// changed it. A path with a stream removes that stream of the open's file.
    Unlink {
        /// The current name of the file, as a path from the root of the share.
        path: SharePath,
    },
    /// Checks that a directory is empty. Answered with [`Outcome::Done`] or DIRECTORY_NOT_EMPTY.
    CheckEmpty,
    /// Checks that the identity of the open may delete the file. Answered with [`Outcome::Done`],
    /// ACCESS_DENIED, or CANNOT_DELETE for a READONLY file.
    CheckDelete,
    /// Finds the file that a name stands for, without opening it. The open, which may be any,
    /// supplies the share and the identity. Answered with [`Outcome::Found`].
    LookUp {
        /// The name to look up, as a path from the root of the share.
        path: SharePath,
    },
    /// Lists a directory from the position where the previous call ended. Answered with
    /// [`Outcome::Directory`].
    ReadDirectory(DirectoryPlan),
    /// Queries the [`FileHandle`] of the file. Answered with [`Outcome::Handle`], or with
    /// NOT_SUPPORTED if the file system has no handles.
    ReadHandle,
    /// Reads the extended attributes of the file that clients may see, with any rights of the open.
    /// Answered with [`Outcome::Eas`]. A file system without extended attributes returns none.
    QueryEas,
    /// Sets or deletes extended attributes of the file, one after the other; the core has checked
    /// the right. Answered with [`Outcome::Metadata`], EAS_NOT_SUPPORTED, EA_TOO_LARGE, or
    /// ACCESS_DENIED for a name that the file system keeps for itself.
    SetEas {
        /// The attributes with their new values. An empty value deletes the attribute, if there is
        /// one.
        eas: Vec<Ea>,
    },
    /// Queries disk quotas of the file system that holds the file, with the rights of the user:
    /// only root may query those of others. Answered with [`Outcome::Quotas`], NOT_SUPPORTED if the
    /// file system counts no disk space, or ACCESS_DENIED.
    QueryQuotas(QuotaSelection),
    /// Sets the limits of accounts on the file system that holds the file, one after the other.
    /// Answered with [`Outcome::Done`], and as [`Operation::QueryQuotas`].
    SetQuotas {
        /// The accounts with their new limits.
        quotas: Vec<QuotaLimits>,
    },
    /// Reads the properties of the file system that holds the file: with file systems mounted below
    /// the root of the share, it is not always that of the root. Answered with [`Outcome::Volume`].
    Volume,
    /// Starts to report changes in a directory by other processes, as [`LocalEvent`]s, until the
    /// directory is closed. Answered with [`Outcome::Done`], also by a file system that cannot
    /// report events.
    Watch {
        /// Whether to report changes in subdirectories at all depths too.
        is_tree: bool,
    },
}

/// New parts of a security descriptor. \[MS-SMB2\] 2.2.39
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityChange {
    /// The parts to replace: owner, group, DACL and SACL. Other parts have no effect.
    pub parts: SecurityInformation,
    /// The descriptor with the new parts.
    pub descriptor: SecurityDescriptor,
}

/// Which existing file a rename replaces if it has the new name. Only [`Posix`](Self::Posix)
/// replaces a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// None: the rename fails with OBJECT_NAME_COLLISION.
    Nothing,
    /// A file without the attribute READONLY; the rename fails with ACCESS_DENIED for another one.
    Writable,
    /// Any file, also one with the attribute READONLY.
    Any,
    /// What rename(2) replaces: a file by a file, an empty directory by a directory. Fails with
    /// FILE_IS_A_DIRECTORY, NOT_A_DIRECTORY or DIRECTORY_NOT_EMPTY otherwise. Two names of one file
    /// stay as they are.
    Posix,
}

impl From<bool> for Replace {
    /// Returns the meaning of ReplaceIfExists, which does not include READONLY files.
    fn from(is_replacing: bool) -> Self {
        match is_replacing {
            true => Self::Writable,
            false => Self::Nothing,
        }
    }
}

/// Whether the plan to open a file ([`OpenPlan`]) requires that the file exists, allows both, or
/// requires that it does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Open an existing file; fail if it does not exist.
    Open,
    /// Open an existing file, or create one.
    OpenOrCreate,
    /// Create a file; fail if it exists.
    Create,
}

/// The kind of file that the plan to open a file ([`OpenPlan`]) requires: any kind, not a
/// directory, or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindWanted {
    /// An existing file of any kind. If the open creates a file, the kind is regular.
    Any,
    /// A file that is not a directory; an existing directory is the error FILE_IS_A_DIRECTORY.
    File,
    /// A directory; another existing file is the error NOT_A_DIRECTORY.
    Directory,
}

/// A plan to open or create a file, which the protocol core hands to a file system. The open never
/// truncates the file: the core decides about that later, when it knows the other opens of the
/// file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPlan {
    /// The share on which the file is.
    pub share: ShareId,
    /// The user identity for the access check. Later operations on the open run with it too.
    pub token: Arc<Token>,
    /// The name of the file, as a path from the root of the share. The file system compares names
    /// without regard to case. A path with a stream opens or creates that stream; the file is
    /// created too if it does not exist and `existing` permits a new stream. A stream has the
    /// rights, times and attributes of its file.
    pub path: SharePath,
    /// The access rights that the client requests: no generic rights; may contain MAXIMUM_ALLOWED,
    /// which stands for all rights of the identity.
    pub access: AccessMask,
    /// Further access rights without which the open fails: a disposition that overwrites the file
    /// requires the right to write. \[MS-SMB2\] 3.3.5.9
    pub implied_access: AccessMask,
    /// Whether the file may, must or must not exist.
    pub existing: Existing,
    /// The kind of file that the client requires: any, not a directory, or a directory. For a named
    /// stream it is the kind of the file.
    pub kind: KindWanted,
    /// DOS attributes that the file receives if the open creates it.
    pub attributes: FileAttributes,
    /// Disk space in bytes that the file system reserves for a new file.
    pub allocation: u64,
    /// The security descriptor that the client sends for a new file. Its parts replace those that
    /// the file inherits. \[MS-SMB2\] 2.2.13.2.2
    pub security: Option<Arc<SecurityDescriptor>>,
    /// Whether the open is for a symbolic link itself, if the name is one, instead of its target.
    /// The server follows links of Unix within the share. Without this flag, an open with a path
    /// that leads through another reparse point, or to one, fails with STOPPED_ON_SYMLINK. One of a
    /// pipe, socket or device of Unix fails with IO_REPARSE_TAG_NOT_HANDLED.
    pub open_link: bool,
    /// Makes it an open of the SMB3 POSIX extensions; `None` for other opens.
    pub posix: Option<PosixOpen>,
}

/// The properties of an open of the SMB3 POSIX extensions. It differs from other opens:
///
/// - The file system compares names exactly, in the open and in its later operations.
/// - It does not follow the symbolic link that the path names, with any `open_link`.
/// - The open gives a new file the mode, and no DOS attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PosixOpen {
    /// The permission bits of a new file (`st_mode & 07777`). The umask of the server and the
    /// default list of the directory apply.
    pub mode: u32,
}

/// Identifies a file to its file system, independently of its names. A handle stays valid after a
/// rename and a restart of the server, until the file is deleted. Only the file system that made it
/// can interpret the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHandle(pub Vec<u8>);

/// Maximum length of a [`FileHandle`] in bytes: 8 for the serial number of the file system, 4 for
/// the type of the handle, and MAX_HANDLE_SZ (128) of Linux.
pub const FILE_HANDLE_MAX: usize = 8 + 4 + 128;

/// A plan to open an existing file by its handle, for a file that was open before a disconnection
/// or a restart of the server. The protocol core hands it to a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReopenPlan {
    /// The share on which the file is.
    pub share: ShareId,
    /// The user identity for the access check. Later operations on the open run with it too.
    pub token: Arc<Token>,
    /// The handle of the file, which the file system returned while the file was open. It never
    /// comes from a client.
    pub handle: FileHandle,
    /// The last known name of the file, as a path from the root of the share. The file system uses
    /// this name if it cannot open the handle itself.
    pub path: SharePath,
    /// The access rights that the client requests, without generic rights. MAXIMUM_ALLOWED stands
    /// for all rights of the identity.
    pub access: AccessMask,
}

/// The entries of a directory that a listing returns: all, those that match a pattern, or one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    /// All entries of the directory.
    All,
    /// The entries with a name that matches this pattern.
    Matching(Pattern),
    /// The entry with this name, compared without regard to case. The file system looks it up
    /// without a scan of the directory.
    Name(String),
}

/// A plan to list the next entries of an open directory, which the protocol core hands to a file
/// system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryPlan {
    /// Whether the listing restarts at the first entry; otherwise it continues after the entry
    /// where the previous listing of the same open ended.
    pub restart: bool,
    /// The entries that the answer may contain: all, those that match a pattern, or one name.
    pub select: Select,
    /// Maximum number of entries in the answer. An answer with fewer entries ends the directory.
    pub limit: u32,
}

/// A plan to copy bytes from one open file into another. The two ranges may overlap: the target
/// receives the bytes that the source held before the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// The open file from which the file system copies. It may belong to another share.
    pub source: LocalOpen,
    /// Offset of the copied range in the source file in bytes.
    pub source_offset: u64,
    /// Offset of the copied range in the target file in bytes.
    pub target_offset: u64,
    /// Number of bytes to copy. If the range ends after the end of the source file, the copy fails
    /// with INVALID_VIEW_SIZE.
    pub length: u32,
}

/// A plan to make a range of a file share the extents of another file of the same file system.
/// Offsets and length are multiples of the block size, unless the range ends with the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClonePlan {
    /// The open file that owns the extents. It belongs to the same share, and may be the same file.
    pub source: LocalOpen,
    /// Offset of the range in the source file in bytes.
    pub source_offset: u64,
    /// Offset of the range in the target file in bytes.
    pub target_offset: u64,
    /// Length of the range in bytes; not 0. The range is within both files, and does not overlap
    /// itself.
    pub length: u64,
}

/// The times and DOS attributes of a file that an operation sets. `None` leaves a value unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BasicChanges {
    /// New creation time of the file; `None` leaves it unchanged.
    pub created: Option<FileTime>,
    /// New time of the last access; `None` leaves it unchanged.
    pub accessed: Option<FileTime>,
    /// New time of the last write; `None` leaves it unchanged.
    pub written: Option<FileTime>,
    /// New time of the last change of metadata; `None` leaves it unchanged. A file system that
    /// cannot set this time ignores it.
    pub changed: Option<FileTime>,
    /// New DOS attributes of the file; `None` leaves them unchanged.
    pub attributes: Option<FileAttributes>,
}

/// Identifies a data stream of a file: by volume, file and stream, independently of the names of
/// the file. \[MS-FSCC\] 2.4.26
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileKey {
    /// Device number of the volume (st_dev).
    pub volume: u64,
    /// Inode number of the file (st_ino).
    pub file: u64,
    /// Number of the stream within the file; [`StreamId::DATA`] for the content of the file.
    pub stream: StreamId,
}

/// Identifies a file system of a share, as clients see it. A share has several if others are
/// mounted below its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct VolumeId {
    /// Serial number of the file system: f_fsid of statfs(2), or the device number if it has none.
    /// It is the VolumeSerialNumber of FileIdInformation; FileFsVolumeInformation has its lower
    /// half.
    pub serial: u64,
    /// The number that distinguishes the files of this file system from those of the other ones of
    /// the share (see [`file_id`](Self::file_id)); 0 for the file system of the root.
    pub tag: u64,
}

impl VolumeId {
    /// Returns the 64-bit number by which clients identify the file with this inode number in the
    /// share: the inode number on the file system of the root, the inode number XOR `tag` on
    /// others. Two files never share a number while all inode numbers are below 2^48; with larger
    /// ones, a hash in the tag makes it improbable.
    pub fn file_id(&self, inode: u64) -> u64 {
        inode ^ self.tag
    }
}

/// Identifies a stream within its file. The file system assigns the number when it opens the
/// stream, and does not assign it to another stream of the file while the stream is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamId(pub u64);

impl StreamId {
    /// The number of the unnamed data stream, which is the content of the file. A directory has no
    /// other stream.
    pub const DATA: Self = Self(0);
}

impl FileKey {
    /// Returns the key of the unnamed data stream of the same file, which stands for the file as a
    /// whole.
    #[must_use]
    pub fn of_file(self) -> Self {
        self.with_stream(StreamId::DATA)
    }

    /// Returns the key of another stream of the same file.
    #[must_use]
    pub fn with_stream(self, stream: StreamId) -> Self {
        Self { stream, ..self }
    }
}

/// The kind of an object in a file system: regular file, directory, symbolic link or special file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FileKind {
    /// A regular file with data.
    #[default]
    File,
    /// A directory of files.
    Directory,
    /// A symbolic link that was not followed.
    Link,
    /// A pipe, socket or device. Clients see it as a reparse point.
    Special,
}

/// The metadata of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Identity of the file (volume, inode and stream), independent of its names.
    pub key: FileKey,
    /// The file system of the share on which the file is, as clients see it.
    pub volume: VolumeId,
    /// Kind of the object: file, directory, link or special file.
    pub kind: FileKind,
    /// DOS attributes of the file. DIRECTORY is set exactly for a directory; NORMAL is never set.
    pub attributes: FileAttributes,
    /// The DOS attributes that the file system stores with the file: a subset of `attributes`. The
    /// other attributes follow from the name or kind of the file.
    pub stored: FileAttributes,
    /// Length of the data in bytes; 0 for a directory.
    pub size: u64,
    /// Disk space that the file occupies, in bytes.
    pub allocation: u64,
    /// Number of hard links (names) of the file.
    pub links: u32,
    /// Time at which the file was created.
    pub created: FileTime,
    /// Time of the last access to the data.
    pub accessed: FileTime,
    /// Time of the last write to the data.
    pub written: FileTime,
    /// Time of the last change of metadata.
    pub changed: FileTime,
    /// Unix type and permissions (st_mode).
    pub mode: u32,
    /// The type that clients of the SMB3 POSIX extensions see. A stored reparse point can make a
    /// regular file a link or a special file for them.
    pub posix_type: PosixFileType,
    /// User ID of the Unix owner.
    pub uid: u32,
    /// Group ID of the Unix group.
    pub gid: u32,
    /// The tag of the reparse point of the file; NONE for a file without one. A file with one has
    /// the attribute REPARSE_POINT.
    pub reparse_tag: ReparseTag,
}

impl Metadata {
    /// Returns the 64-bit number by which clients identify the file, unique within its share:
    /// FileInternalInformation.IndexNumber and the FileId of listings. \[MS-FSCC\] 2.4.26, 2.1.9
    pub fn file_id(&self) -> u64 {
        self.volume.file_id(self.key.file)
    }

    /// Returns the 128-bit number by which clients identify the file, unique within its share:
    /// FileIdInformation.FileId. Its lower half is [`file_id`](Self::file_id), its upper half
    /// identifies the file system. \[MS-FSCC\] 2.1.10
    pub fn file_id_128(&self) -> u128 {
        u128::from(self.volume.tag) << 64 | u128::from(self.file_id())
    }

    /// Returns whether the file is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// An entry of a directory listing: a name and the metadata of its file. A listing starts with the
/// entries `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Name of the entry within the directory.
    pub name: String,
    /// Metadata of the file with this name.
    pub metadata: Metadata,
}

/// A data stream of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// The name of the stream; `None` for the unnamed data stream.
    pub name: Option<StreamName>,
    /// Length of its data in bytes.
    pub size: u64,
    /// Space that it occupies, in bytes.
    pub allocation: u64,
}

/// A reparse point on a path, on which an open stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLink {
    /// Number of components of the path up to the reparse point, with its own name.
    pub depth: usize,
    /// The encoded reparse point (REPARSE_DATA_BUFFER).
    pub data: Vec<u8>,
}

/// The result of a successful open: the file, its access rights and its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The open file, for further operations.
    pub file: LocalOpen,
    /// Whether the open created the file.
    pub created: bool,
    /// The granted access rights: the requested ones, with MAXIMUM_ALLOWED replaced by all rights
    /// of the identity.
    pub granted: AccessMask,
    /// All access rights that the user identity of the open has on the file.
    pub maximal: AccessMask,
    /// Metadata of the file after the open.
    pub metadata: Metadata,
    /// The path of the file from the root of the share, in the upper and lower case that the file
    /// system stores.
    pub path: SharePath,
}

/// Size, free space and properties of the file system of a share. Sizes are in allocation units of
/// `block` bytes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VolumeInfo {
    /// Size of an allocation unit in bytes.
    pub block: u32,
    /// Size of the file system in allocation units.
    pub total: u64,
    /// Number of free allocation units.
    pub free: u64,
    /// Number of free allocation units that the user may still use, for example within a quota.
    pub available: u64,
    /// Size in bytes of the logical sectors of the disk, by which software addresses it: a power of
    /// two.
    pub sector: u32,
    /// Size in bytes of the physical sectors of the disk, each of which a write replaces as a
    /// whole: a power of two, at least `sector`.
    pub physical_sector: u32,
    /// Serial number of the file system, the same as [`VolumeId::serial`].
    pub serial: u64,
    /// Maximum length of one component of a path in UTF-16 units.
    pub max_name: u32,
    /// The kind of the file system; its name in the terms of Windows is NTFS, FAT32, exFAT, CDFS or
    /// UDF.
    pub kind: VolumeKind,
    /// Whether the file system is mounted read-only on the server.
    pub is_read_only: bool,
    /// Whether the file system can store sparse files (attribute SPARSE): unwritten ranges need no
    /// disk space.
    pub has_sparse_files: bool,
    /// Whether files can have named data streams.
    pub has_named_streams: bool,
    /// Whether the file system can store extended attributes.
    pub has_extended_attributes: bool,
    /// Whether files can share extents ([`Operation::CloneRange`]).
    pub has_shared_extents: bool,
    /// Whether the file system can compress files (attribute COMPRESSED).
    pub has_compression: bool,
    /// Whether the file system counts and limits the disk space of users.
    pub quotas: QuotaState,
    /// Creation time of the volume.
    pub created: FileTime,
    /// Number of files that the file system can have; 0 if it has no limit.
    pub total_files: u64,
    /// Number of further files that the file system can have; 0 if it has no limit.
    pub free_files: u64,
}

/// The kind of a file system, by the name that Windows uses for it: NTFS, FAT32, exFAT, CDFS or
/// UDF. Clients derive features from the name, such as access control lists only from NTFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum VolumeKind {
    /// A file system with permissions, hard links and names that differ in case: "NTFS".
    #[default]
    Full,
    /// FAT with 12, 16 or 32 bits: "FAT32". No permissions, no hard links, no distinction of case.
    Fat,
    /// "exFAT". The same features as [`Fat`](Self::Fat).
    ExFat,
    /// ISO 9660: "CDFS".
    Iso9660,
    /// "UDF".
    Udf,
}

impl VolumeKind {
    /// Returns the name of the kind that clients receive, such as "NTFS". \[MS-FSCC\] 2.5.1
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "NTFS",
            Self::Fat => "FAT32",
            Self::ExFat => "exFAT",
            Self::Iso9660 => "CDFS",
            Self::Udf => "UDF",
        }
    }

    /// Returns whether two names in a directory can differ in case alone.
    pub fn is_case_sensitive(self) -> bool {
        !matches!(self, Self::Fat | Self::ExFat)
    }

    /// Returns whether a file can have several names (hard links).
    pub fn has_hard_links(self) -> bool {
        matches!(self, Self::Full | Self::Udf)
    }

    /// Returns whether the file system stores Unix permissions.
    pub fn has_permissions(self) -> bool {
        matches!(self, Self::Full)
    }
}

/// A change that another process made in or below a watched directory (see [`Operation::Watch`]).
/// The I/O driver passes it to `Server::local_events`. The file system does not report changes by
/// the server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalEvent {
    /// A name in the directory was created, deleted, renamed or changed.
    Change(LocalChange),
    /// The file system lost events: below this directory, or in the whole share if the value is
    /// `None`.
    Lost(Option<FileKey>),
    /// This directory itself was removed.
    Removed(FileKey),
}

/// A change of a name in or below a watched directory (see [`Operation::Watch`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalChange {
    /// Identity of the watched directory in or below which the name changed.
    pub directory: FileKey,
    /// The path of the changed name, relative to the watched directory, in the upper and lower case
    /// that the file system stores.
    pub path: SharePath,
    /// The kind of change: added, removed, modified, or the old or new name of a rename. The new
    /// name follows the old name immediately.
    pub action: FileAction,
    /// The categories of the change, as CHANGE_NOTIFY requests select them. A client that watches
    /// the directory receives the change if it requested at least one of them.
    pub filter: CompletionFilter,
}
