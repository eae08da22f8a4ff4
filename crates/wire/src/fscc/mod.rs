//! Information classes: what QUERY_INFO, SET_INFO, QUERY_DIRECTORY and CHANGE_NOTIFY carry.
//! \[MS-FSCC\] 2.4 to 2.7
//!
//! Each structure bears the name of the specification and decodes and encodes itself. Names are
//! UTF-16LE as on the wire; times, sizes and offsets are kept as sent, negative ones too: what a
//! value may be is policy, and not decided here.

mod attribute;
mod chain;
mod directory;
mod directory_entries;
mod ea;
mod name;
mod notify;
mod pipe;
mod rename;
mod single;
mod stream;
mod volume;

pub use attribute::{
    FileAllInformation, FileAttributeTagInformation, FileBasicInformation,
    FileCompressionInformation, FileIdInformation, FileNetworkOpenInformation,
    FileStandardInformation,
};
pub use chain::{Chain, ChainWriter};
pub use directory::{DirectoryEntry, DirectoryWriter};
pub use directory_entries::DirectoryEntries;
pub use ea::{EaFlags, EaNames, EaWriter, Eas, FullEa, put_ea_names};
pub use name::{FileNameInformation, FileShortNameInformation};
pub use notify::{FileAction, FileNotifyInformation, NotifyEntries, NotifyWriter};
pub use pipe::{FilePipeInformation, FilePipeLocalInformation};
pub use rename::{
    FileLinkInformation, FileRenameInformation, FileRenameInformationEx, RenameFlags,
};
pub use single::{
    DispositionFlags, FileAccessInformation, FileAlignmentInformation, FileAllocationInformation,
    FileDispositionInformation, FileDispositionInformationEx, FileEaInformation,
    FileEndOfFileInformation, FileInternalInformation, FileModeInformation,
    FilePositionInformation, FileValidDataLengthInformation, ModeFlags,
};
pub use stream::{FileStreamInformation, StreamWriter, Streams};
pub use volume::{
    ControlFlags, DeviceCharacteristics, DeviceType, FileFsAttributeInformation,
    FileFsControlInformation, FileFsDeviceInformation, FileFsFullSizeInformation,
    FileFsLabelInformation, FileFsObjectIdInformation, FileFsSectorSizeInformation,
    FileFsSizeInformation, FileFsVolumeInformation, FileSystemAttributes, SectorSizeFlags,
};

use crate::open_enum::open_enum;
pub use crate::query_info::InfoType;

open_enum! {
    /// An information class of a file or directory. \[MS-FSCC\] 2.4
    FileInfoClass(u8) {
        /// List: names, times, sizes. \[MS-FSCC\] 2.4.10
        DIRECTORY = 1,
        /// List: and the size of the extended attributes. \[MS-FSCC\] 2.4.17
        FULL_DIRECTORY = 2,
        /// List: and the 8.3 name. \[MS-FSCC\] 2.4.8
        BOTH_DIRECTORY = 3,
        /// Times and attributes. \[MS-FSCC\] 2.4.7
        BASIC = 4,
        /// Sizes, links, what kind. \[MS-FSCC\] 2.4.47
        STANDARD = 5,
        /// The number of the file. \[MS-FSCC\] 2.4.27
        INTERNAL = 6,
        /// The size of the extended attributes. \[MS-FSCC\] 2.4.13
        EA = 7,
        /// The access that the open has. \[MS-FSCC\] 2.4.1
        ACCESS = 8,
        /// The path. \[MS-FSCC\] 2.4.32
        NAME = 9,
        /// Set: another name. \[MS-FSCC\] 2.4.42
        RENAME = 10,
        /// Set: one more name. \[MS-FSCC\] 2.4.28
        LINK = 11,
        /// List: names only. \[MS-FSCC\] 2.4.33
        NAMES = 12,
        /// Set: delete on close, or not. \[MS-FSCC\] 2.4.11
        DISPOSITION = 13,
        /// The position of the open. \[MS-FSCC\] 2.4.40
        POSITION = 14,
        /// Extended attributes. \[MS-FSCC\] 2.4.16
        FULL_EA = 15,
        /// How the open does its I/O. \[MS-FSCC\] 2.4.31
        MODE = 16,
        /// The alignment that the device asks for. \[MS-FSCC\] 2.4.3
        ALIGNMENT = 17,
        /// Nine of the others in one. \[MS-FSCC\] 2.4.2
        ALL = 18,
        /// Set: the size on disk. \[MS-FSCC\] 2.4.4
        ALLOCATION = 19,
        /// Set: the size. \[MS-FSCC\] 2.4.14
        END_OF_FILE = 20,
        /// The 8.3 name. \[MS-FSCC\] 2.4.5
        ALTERNATE_NAME = 21,
        /// The streams. \[MS-FSCC\] 2.4.49
        STREAM = 22,
        /// How a pipe reads and completes. \[MS-FSCC\] 2.4.37
        PIPE = 23,
        /// The near end of a pipe. \[MS-FSCC\] 2.4.38
        PIPE_LOCAL = 24,
        /// The far end of a pipe. \[MS-FSCC\] 2.4.39
        PIPE_REMOTE = 25,
        /// How the file is compressed. \[MS-FSCC\] 2.4.9
        COMPRESSION = 28,
        /// The object id. \[MS-FSCC\] 2.4.36
        OBJECT_ID = 29,
        /// Quotas. \[MS-FSCC\] 2.4.41
        QUOTA = 32,
        /// The reparse tag of a file. \[MS-FSCC\] 2.4.44
        REPARSE_POINT = 33,
        /// Times, sizes and attributes. \[MS-FSCC\] 2.4.34
        NETWORK_OPEN = 34,
        /// Attributes and reparse tag. \[MS-FSCC\] 2.4.6
        ATTRIBUTE_TAG = 35,
        /// List: BOTH_DIRECTORY and file ids. \[MS-FSCC\] 2.4.20
        ID_BOTH_DIRECTORY = 37,
        /// List: FULL_DIRECTORY and file ids. \[MS-FSCC\] 2.4.21
        ID_FULL_DIRECTORY = 38,
        /// Set: how much of the file was written. \[MS-FSCC\] 2.4.50
        VALID_DATA_LENGTH = 39,
        /// Set: the 8.3 name. \[MS-FSCC\] 2.4.46
        SHORT_NAME = 40,
        /// The path with no short names in it. \[MS-FSCC\] 2.4.35
        NORMALIZED_NAME = 48,
        /// Volume serial number and 128-bit file id. \[MS-FSCC\] 2.4.26
        ID = 59,
        /// List: 128-bit file ids. \[MS-FSCC\] 2.4.22
        ID_EXTD_DIRECTORY = 60,
        /// Set: delete, with flags. \[MS-FSCC\] 2.4.12
        DISPOSITION_EX = 64,
        /// Set: another name, with flags. \[MS-FSCC\] 2.4.43
        RENAME_EX = 65,
        /// POSIX attributes; in a listing POSIX attributes and names. SMB3 POSIX extensions.
        POSIX = 100,
    }
}

impl FileInfoClass {
    /// Bytes of the smallest buffer that a query of this class takes, and of the smallest that
    /// sets it; a smaller one is STATUS_INFO_LENGTH_MISMATCH. Where a name or list follows, this
    /// is the structure with one character of it, padded to its alignment, as \[MS-FSA\]
    /// 2.1.5.12 has it. `None` where any length may do, and for classes that list a directory:
    /// see [`FileInfoClass::entry_len`].
    pub const fn fixed_len(self) -> Option<usize> {
        match self {
            Self::BASIC => Some(FileBasicInformation::LEN),
            Self::STANDARD => Some(FileStandardInformation::LEN),
            Self::INTERNAL => Some(FileInternalInformation::LEN),
            Self::EA => Some(FileEaInformation::LEN),
            Self::ACCESS => Some(FileAccessInformation::LEN),
            Self::NAME | Self::ALTERNATE_NAME | Self::NORMALIZED_NAME => Some(8),
            Self::RENAME | Self::RENAME_EX | Self::LINK => Some(FileRenameInformation::LEN),
            Self::DISPOSITION => Some(FileDispositionInformation::LEN),
            Self::POSITION => Some(FilePositionInformation::LEN),
            Self::MODE => Some(FileModeInformation::LEN),
            Self::ALIGNMENT => Some(FileAlignmentInformation::LEN),
            Self::ALL => Some(104),
            Self::ALLOCATION => Some(FileAllocationInformation::LEN),
            Self::END_OF_FILE => Some(FileEndOfFileInformation::LEN),
            Self::STREAM => Some(32),
            Self::PIPE => Some(FilePipeInformation::LEN),
            Self::PIPE_LOCAL => Some(FilePipeLocalInformation::LEN),
            Self::COMPRESSION => Some(FileCompressionInformation::LEN),
            Self::NETWORK_OPEN => Some(FileNetworkOpenInformation::LEN),
            Self::ATTRIBUTE_TAG => Some(FileAttributeTagInformation::LEN),
            Self::VALID_DATA_LENGTH => Some(FileValidDataLengthInformation::LEN),
            Self::ID => Some(FileIdInformation::LEN),
            Self::DISPOSITION_EX => Some(FileDispositionInformationEx::LEN),
            Self::POSIX => Some(crate::posix::FilePosixInformation::FIXED_LEN),
            _ => None,
        }
    }
}

open_enum! {
    /// An information class of a volume. \[MS-FSCC\] 2.5
    FsInfoClass(u8) {
        /// Label, serial number, birth. \[MS-FSCC\] 2.5.9
        VOLUME = 1,
        /// Set: the label. \[MS-FSCC\] 2.5.5
        LABEL = 2,
        /// Free and total space. \[MS-FSCC\] 2.5.8
        SIZE = 3,
        /// What kind of device. \[MS-FSCC\] 2.5.10
        DEVICE = 4,
        /// What the file system can do. \[MS-FSCC\] 2.5.1
        ATTRIBUTE = 5,
        /// Default quotas. \[MS-FSCC\] 2.5.2
        CONTROL = 6,
        /// Free and total space, for the caller and for all. \[MS-FSCC\] 2.5.4
        FULL_SIZE = 7,
        /// The object id of the volume. \[MS-FSCC\] 2.5.6
        OBJECT_ID = 8,
        /// Sector sizes. \[MS-FSCC\] 2.5.7
        SECTOR_SIZE = 11,
        /// What statvfs tells. SMB3 POSIX extensions.
        POSIX = 100,
    }
}

impl FsInfoClass {
    /// Bytes of the smallest buffer that a query of this class takes; a smaller one is
    /// STATUS_INFO_LENGTH_MISMATCH. Counted as in [`FileInfoClass::fixed_len`].
    /// \[MS-FSA\] 2.1.5.13
    pub const fn fixed_len(self) -> Option<usize> {
        match self {
            Self::VOLUME => Some(24),
            Self::LABEL => Some(FileFsLabelInformation::FIXED_LEN),
            Self::SIZE => Some(FileFsSizeInformation::LEN),
            Self::DEVICE => Some(FileFsDeviceInformation::LEN),
            Self::ATTRIBUTE => Some(16),
            Self::CONTROL => Some(FileFsControlInformation::LEN),
            Self::FULL_SIZE => Some(FileFsFullSizeInformation::LEN),
            Self::OBJECT_ID => Some(FileFsObjectIdInformation::LEN),
            Self::SECTOR_SIZE => Some(FileFsSectorSizeInformation::LEN),
            Self::POSIX => Some(crate::posix::FsPosixInformation::LEN),
            _ => None,
        }
    }
}
