//! Files: the vocabulary between the core and a file system.

use alloc::string::String;
use alloc::sync::Arc;
use core::ops::Range;

use wire::FileTime;
use wire::access::{AccessMask, FileAttributes};
use wire::change_notify::CompletionFilter;
use wire::fscc::FileAction;

use crate::path::SharePath;
use crate::pattern::Pattern;
use crate::token::Token;

/// Identifies a share: its index in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId(pub u32);

/// An open file in the world: a share and a slot in its file system's table. Process-wide, so
/// that channels on several workers can use one open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalOpen {
    /// The share whose file system knows the slot.
    pub share: ShareId,
    /// The file system's own number.
    pub slot: u64,
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
