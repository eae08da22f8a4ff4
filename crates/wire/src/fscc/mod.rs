//! Information classes: the structures in QUERY_INFO, SET_INFO, QUERY_DIRECTORY and CHANGE_NOTIFY.
//! \[MS-FSCC\] 2.4 to 2.7
//!
//! Each structure has the name of the specification, and decodes and encodes itself. Names are
//! UTF-16LE as on the wire. Times, sizes and offsets keep every value that the peer sent, including
//! negative ones: the caller decides which values are valid.

mod attribute;
mod chain;
mod directory;
mod directory_entries;
mod ea;
mod name;
mod notify;
mod pipe;
mod quota;
mod rename;
mod single;
mod stat;
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
pub use ea::{EaFlags, EaNames, EaWriter, Eas, FullEa, is_valid_ea_name, put_ea_names};
pub use name::{FileNameInformation, FileShortNameInformation};
pub use notify::{FileAction, FileNotifyInformation, NotifyEntries, NotifyWriter};
pub use pipe::{FilePipeInformation, FilePipeLocalInformation};
pub use quota::{
    FileQuotaInformation, QuotaQuery, QuotaSids, QuotaWriter, Quotas, QuotasOf, quota_sids,
};
pub use rename::{
    FileLinkInformation, FileLinkInformationEx, FileRenameInformation, FileRenameInformationEx,
    RenameFlags,
};
pub use single::{
    CaseSensitiveFlags, DispositionFlags, FileAccessInformation, FileAlignmentInformation,
    FileAllocationInformation, FileCaseSensitiveInformation, FileDispositionInformation,
    FileDispositionInformationEx, FileEaInformation, FileEndOfFileInformation,
    FileInternalInformation, FileModeInformation, FilePositionInformation,
    FileValidDataLengthInformation, ModeFlags,
};
pub use stat::{FileStatInformation, FileStatLxInformation, LxFlags};
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
    /// An information class of a file or directory: the number that selects a structure in
    /// QUERY_INFO, SET_INFO and QUERY_DIRECTORY. \[MS-FSCC\] 2.4
    FileInfoClass(u8) {
        /// Directory listing: names, times, sizes and attributes. \[MS-FSCC\] 2.4.10
        DIRECTORY = 1,
        /// Directory listing: names, times, sizes, attributes and length of the extended
        /// attributes. \[MS-FSCC\] 2.4.17
        FULL_DIRECTORY = 2,
        /// Directory listing: the fields of FULL_DIRECTORY and the 8.3 names. \[MS-FSCC\] 2.4.8
        BOTH_DIRECTORY = 3,
        /// Times and DOS attributes of a file. \[MS-FSCC\] 2.4.7
        BASIC = 4,
        /// Sizes, link count and type of a file. \[MS-FSCC\] 2.4.47
        STANDARD = 5,
        /// 64-bit identifier of a file, unique on its volume. \[MS-FSCC\] 2.4.27
        INTERNAL = 6,
        /// Length in bytes of the extended attributes of a file. \[MS-FSCC\] 2.4.13
        EA = 7,
        /// Access rights that the server granted to an open. \[MS-FSCC\] 2.4.1
        ACCESS = 8,
        /// The path of a file. \[MS-FSCC\] 2.4.32
        NAME = 9,
        /// SET_INFO: rename the file. \[MS-FSCC\] 2.4.42
        RENAME = 10,
        /// SET_INFO: create a hard link. \[MS-FSCC\] 2.4.28
        LINK = 11,
        /// Directory listing: names only. \[MS-FSCC\] 2.4.33
        NAMES = 12,
        /// SET_INFO: mark the file for deletion when its last open closes, or clear the mark.
        /// \[MS-FSCC\] 2.4.11
        DISPOSITION = 13,
        /// Byte offset that an open stores for the client. \[MS-FSCC\] 2.4.40
        POSITION = 14,
        /// Names and values of the extended attributes of a file. \[MS-FSCC\] 2.4.16
        FULL_EA = 15,
        /// I/O mode of an open, such as write-through. \[MS-FSCC\] 2.4.31
        MODE = 16,
        /// Alignment of buffers in memory that the device requires. \[MS-FSCC\] 2.4.3
        ALIGNMENT = 17,
        /// The classes BASIC, STANDARD, INTERNAL, EA, ACCESS, POSITION, MODE, ALIGNMENT and NAME in
        /// one structure. \[MS-FSCC\] 2.4.2
        ALL = 18,
        /// SET_INFO: the space allocated to the file, in bytes. \[MS-FSCC\] 2.4.4
        ALLOCATION = 19,
        /// SET_INFO: the length of the file in bytes. \[MS-FSCC\] 2.4.14
        END_OF_FILE = 20,
        /// The 8.3 name of a file. \[MS-FSCC\] 2.4.5
        ALTERNATE_NAME = 21,
        /// The named streams of a file. \[MS-FSCC\] 2.4.49
        STREAM = 22,
        /// Read mode and completion mode of a named pipe. \[MS-FSCC\] 2.4.37
        PIPE = 23,
        /// Type, state and buffer sizes of a named pipe. \[MS-FSCC\] 2.4.38
        PIPE_LOCAL = 24,
        /// Limits for data that the client end of a named pipe collects before it sends them to the
        /// server: maximum size in bytes, and maximum time (FilePipeRemoteInformation). \[MS-FSCC\]
        /// 2.4.39
        PIPE_REMOTE = 25,
        /// Compression format and compressed size of a file. \[MS-FSCC\] 2.4.9
        COMPRESSION = 28,
        /// Object identifier (a GUID) of a file. \[MS-FSCC\] 2.4.36
        OBJECT_ID = 29,
        /// Disk quotas of users on the volume. \[MS-FSCC\] 2.4.41
        QUOTA = 32,
        /// The reparse tag of a file. \[MS-FSCC\] 2.4.44
        REPARSE_POINT = 33,
        /// Times, sizes and DOS attributes of a file. \[MS-FSCC\] 2.4.34
        NETWORK_OPEN = 34,
        /// DOS attributes and reparse tag of a file. \[MS-FSCC\] 2.4.6
        ATTRIBUTE_TAG = 35,
        /// Directory listing: the fields of BOTH_DIRECTORY and 64-bit file identifiers. \[MS-FSCC\]
        /// 2.4.20
        ID_BOTH_DIRECTORY = 37,
        /// Directory listing: the fields of FULL_DIRECTORY and 64-bit file identifiers. \[MS-FSCC\]
        /// 2.4.21
        ID_FULL_DIRECTORY = 38,
        /// SET_INFO: the valid data length, after which the file reads as zeros. \[MS-FSCC\] 2.4.50
        VALID_DATA_LENGTH = 39,
        /// SET_INFO: the 8.3 name of the file. \[MS-FSCC\] 2.4.46
        SHORT_NAME = 40,
        /// The path of a file, in which no component is an 8.3 name. \[MS-FSCC\] 2.4.35
        NORMALIZED_NAME = 48,
        /// Volume serial number and 128-bit identifier of a file. \[MS-FSCC\] 2.4.26
        ID = 59,
        /// Directory listing: the fields of FULL_DIRECTORY and 128-bit file identifiers.
        /// \[MS-FSCC\] 2.4.22
        ID_EXTD_DIRECTORY = 60,
        /// SET_INFO: delete the file, with flags such as POSIX semantics. \[MS-FSCC\] 2.4.12
        DISPOSITION_EX = 64,
        /// SET_INFO: rename the file, with flags such as POSIX semantics. \[MS-FSCC\] 2.4.43
        RENAME_EX = 65,
        /// Identifier, times, sizes, attributes and effective access of a file
        /// (FileStatInformation).
        STAT = 68,
        /// The data of STAT, and Unix owner, group and mode of a file (FileStatLxInformation).
        STAT_LX = 70,
        /// SET_INFO: create a hard link to the file, with flags such as POSIX semantics.
        /// \[MS-FSCC\] 2.4.28
        LINK_EX = 72,
        /// Whether names in a directory are compared with regard to case. \[MS-FSCC\] 2.4
        CASE_SENSITIVE = 71,
        /// Directory listing: the fields of FULL_DIRECTORY, the reparse tag and 64-bit file
        /// identifiers (FileId64ExtdDirectoryInformation).
        ID_64_EXTD_DIRECTORY = 78,
        /// Directory listing: the fields of ID_64_EXTD_DIRECTORY and the 8.3 names
        /// (FileId64ExtdBothDirectoryInformation).
        ID_64_EXTD_BOTH_DIRECTORY = 79,
        /// Directory listing: the fields of ID_64_EXTD_DIRECTORY and 128-bit file identifiers
        /// (FileIdAllExtdDirectoryInformation).
        ID_ALL_EXTD_DIRECTORY = 80,
        /// Directory listing: the fields of ID_ALL_EXTD_DIRECTORY and the 8.3 names
        /// (FileIdAllExtdBothDirectoryInformation).
        ID_ALL_EXTD_BOTH_DIRECTORY = 81,
        /// Unix attributes of a file, in a directory listing with its name. Part of the SMB3 POSIX
        /// extensions.
        POSIX = 100,
    }
}

impl FileInfoClass {
    /// Returns the minimum length in bytes of a buffer for this information class, in a query and
    /// in SET_INFO. A server fails a request with a shorter buffer with
    /// STATUS_INFO_LENGTH_MISMATCH.
    ///
    /// For a class with a name or list at its end, it is the length of the structure with one
    /// character, padded to its alignment. `None` when any length is valid, and for classes that
    /// list a directory, which have [`FileInfoClass::entry_len`]. \[MS-FSA\] 2.1.5.12
    pub const fn fixed_len(self) -> Option<usize> {
        match self {
            Self::BASIC => Some(FileBasicInformation::LEN),
            Self::STANDARD => Some(FileStandardInformation::LEN),
            Self::INTERNAL => Some(FileInternalInformation::LEN),
            Self::EA => Some(FileEaInformation::LEN),
            Self::ACCESS => Some(FileAccessInformation::LEN),
            Self::NAME | Self::ALTERNATE_NAME | Self::NORMALIZED_NAME => Some(8),
            Self::RENAME | Self::RENAME_EX | Self::LINK | Self::LINK_EX => {
                Some(FileRenameInformation::LEN)
            }
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
            Self::STAT => Some(FileStatInformation::LEN),
            Self::STAT_LX => Some(FileStatLxInformation::LEN),
            Self::CASE_SENSITIVE => Some(FileCaseSensitiveInformation::LEN),
            Self::POSIX => Some(crate::posix::FilePosixInformation::FIXED_LEN),
            _ => None,
        }
    }
}

open_enum! {
    /// An information class of a volume: the number that selects a structure in QUERY_INFO and
    /// SET_INFO. \[MS-FSCC\] 2.5
    FsInfoClass(u8) {
        /// Label, serial number and creation time of the volume. \[MS-FSCC\] 2.5.9
        VOLUME = 1,
        /// SET_INFO: the label of the volume. \[MS-FSCC\] 2.5.5
        LABEL = 2,
        /// Free and total space of the volume. \[MS-FSCC\] 2.5.8
        SIZE = 3,
        /// Type of the device that the volume is on. \[MS-FSCC\] 2.5.10
        DEVICE = 4,
        /// Features of the file system. \[MS-FSCC\] 2.5.1
        ATTRIBUTE = 5,
        /// Default disk quotas of the volume and their enforcement. \[MS-FSCC\] 2.5.2
        CONTROL = 6,
        /// Free and total space of the volume, within the user's quota and in all. \[MS-FSCC\]
        /// 2.5.4
        FULL_SIZE = 7,
        /// Object identifier (a GUID) of the volume. \[MS-FSCC\] 2.5.6
        OBJECT_ID = 8,
        /// Logical and physical sector sizes of the volume. \[MS-FSCC\] 2.5.7
        SECTOR_SIZE = 11,
        /// The data of statvfs(3). Part of the SMB3 POSIX extensions.
        POSIX = 100,
    }
}

impl FsInfoClass {
    /// Returns the minimum length in bytes of a buffer for a query of this information class of a
    /// volume; `None` when any length is valid. A server fails a query with a shorter buffer with
    /// STATUS_INFO_LENGTH_MISMATCH. \[MS-FSA\] 2.1.5.13
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
