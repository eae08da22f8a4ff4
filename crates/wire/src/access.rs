//! The parameters of a CREATE: access mask, share access, disposition, options, attributes, oplock
//! level. \[MS-SMB2\] 2.2.13

use crate::open_enum::{open_enum, open_flags};

open_flags! {
    /// Access rights to a file, pipe or directory. Some bits have one name for files and pipes and
    /// another for directories. \[MS-SMB2\] 2.2.13.1
    AccessMask(u32) {
        /// Read data from the file.
        FILE_READ_DATA = 0x0000_0001,
        /// List the directory.
        FILE_LIST_DIRECTORY = 0x0000_0001,
        /// Write data to the file.
        FILE_WRITE_DATA = 0x0000_0002,
        /// Create a file in the directory.
        FILE_ADD_FILE = 0x0000_0002,
        /// Append data to the file.
        FILE_APPEND_DATA = 0x0000_0004,
        /// Create a directory in the directory.
        FILE_ADD_SUBDIRECTORY = 0x0000_0004,
        /// Read extended attributes.
        FILE_READ_EA = 0x0000_0008,
        /// Write extended attributes.
        FILE_WRITE_EA = 0x0000_0010,
        /// Execute the file.
        FILE_EXECUTE = 0x0000_0020,
        /// Traverse the directory.
        FILE_TRAVERSE = 0x0000_0020,
        /// Delete files in the directory, regardless of the rights on the files.
        FILE_DELETE_CHILD = 0x0000_0040,
        /// Read attributes and times.
        FILE_READ_ATTRIBUTES = 0x0000_0080,
        /// Write attributes and times.
        FILE_WRITE_ATTRIBUTES = 0x0000_0100,
        /// Delete or rename the file.
        DELETE = 0x0001_0000,
        /// Read owner, group and DACL.
        READ_CONTROL = 0x0002_0000,
        /// Change the DACL.
        WRITE_DAC = 0x0004_0000,
        /// Change owner and group.
        WRITE_OWNER = 0x0008_0000,
        /// Wait for the object to become signaled.
        SYNCHRONIZE = 0x0010_0000,
        /// Read and change the SACL.
        ACCESS_SYSTEM_SECURITY = 0x0100_0000,
        /// All rights that the security descriptor grants to the user.
        MAXIMUM_ALLOWED = 0x0200_0000,
        /// All rights; the object type defines them.
        GENERIC_ALL = 0x1000_0000,
        /// The rights to execute; the object type defines them.
        GENERIC_EXECUTE = 0x2000_0000,
        /// The rights to write; the object type defines them.
        GENERIC_WRITE = 0x4000_0000,
        /// The rights to read; the object type defines them.
        GENERIC_READ = 0x8000_0000,
    }
}

open_flags! {
    /// Share modes: the access that other opens may have while this open exists. \[MS-SMB2\] 2.2.13
    ShareAccess(u32) {
        /// Other opens may read.
        READ = 0x0000_0001,
        /// Other opens may write.
        WRITE = 0x0000_0002,
        /// Other opens may delete and rename.
        DELETE = 0x0000_0004,
    }
}

open_enum! {
    /// The action when the file exists, and when it does not. \[MS-SMB2\] 2.2.13
    CreateDisposition(u32) {
        /// Replace an existing file, or create it.
        SUPERSEDE = 0,
        /// Open an existing file, or fail.
        OPEN = 1,
        /// Create the file, or fail if it exists.
        CREATE = 2,
        /// Open an existing file, or create it.
        OPEN_IF = 3,
        /// Truncate an existing file, or fail.
        OVERWRITE = 4,
        /// Truncate an existing file, or create it.
        OVERWRITE_IF = 5,
    }
}

open_flags! {
    /// Options of a CREATE. \[MS-SMB2\] 2.2.13
    CreateOptions(u32) {
        /// The file must be a directory.
        DIRECTORY_FILE = 0x0000_0001,
        /// A write completes when the data are on stable storage.
        WRITE_THROUGH = 0x0000_0002,
        /// The application reads the file from start to end.
        SEQUENTIAL_ONLY = 0x0000_0004,
        /// Do not cache the data.
        NO_INTERMEDIATE_BUFFERING = 0x0000_0008,
        /// Ignored on the network.
        SYNCHRONOUS_IO_ALERT = 0x0000_0010,
        /// Ignored on the network.
        SYNCHRONOUS_IO_NONALERT = 0x0000_0020,
        /// The file must not be a directory.
        NON_DIRECTORY_FILE = 0x0000_0040,
        /// Ignored on the network.
        COMPLETE_IF_OPLOCKED = 0x0000_0100,
        /// The application does not understand extended attributes.
        NO_EA_KNOWLEDGE = 0x0000_0200,
        /// Ignored on the network.
        OPEN_REMOTE_INSTANCE = 0x0000_0400,
        /// The application reads the file at random offsets.
        RANDOM_ACCESS = 0x0000_0800,
        /// Delete the file when its last open closes.
        DELETE_ON_CLOSE = 0x0000_1000,
        /// The name is a file id instead of a path.
        OPEN_BY_FILE_ID = 0x0000_2000,
        /// Open for backup: grant access by the privileges of the user.
        OPEN_FOR_BACKUP_INTENT = 0x0000_4000,
        /// Do not compress the new file.
        NO_COMPRESSION = 0x0000_8000,
        /// Ignored.
        OPEN_REQUIRING_OPLOCK = 0x0001_0000,
        /// Fail where another open does not allow FILE_READ_DATA.
        DISALLOW_EXCLUSIVE = 0x0002_0000,
        /// Not supported by any known server.
        RESERVE_OPFILTER = 0x0010_0000,
        /// Open the reparse point itself, not its target.
        OPEN_REPARSE_POINT = 0x0020_0000,
        /// Do not recall the data from offline storage.
        OPEN_NO_RECALL = 0x0040_0000,
        /// Open the file to query the free space that the user has.
        OPEN_FOR_FREE_SPACE_QUERY = 0x0080_0000,
    }
}

open_flags! {
    /// DOS attributes of a file. \[MS-FSCC\] 2.6
    FileAttributes(u32) {
        /// The file is read-only: neither written nor deleted.
        READONLY = 0x0000_0001,
        /// Directory listings omit the file by default.
        HIDDEN = 0x0000_0002,
        /// The operating system uses the file.
        SYSTEM = 0x0000_0004,
        /// The file is a directory.
        DIRECTORY = 0x0000_0010,
        /// The file has changed since the last backup.
        ARCHIVE = 0x0000_0020,
        /// The file has no other attribute.
        NORMAL = 0x0000_0080,
        /// The file is temporary.
        TEMPORARY = 0x0000_0100,
        /// The file is sparse.
        SPARSE_FILE = 0x0000_0200,
        /// The file has a reparse point.
        REPARSE_POINT = 0x0000_0400,
        /// The file is compressed.
        COMPRESSED = 0x0000_0800,
        /// The data are in offline storage.
        OFFLINE = 0x0000_1000,
        /// The content indexing service skips the file.
        NOT_CONTENT_INDEXED = 0x0000_2000,
        /// The file is encrypted on disk.
        ENCRYPTED = 0x0000_4000,
        /// Integrity streams protect the file.
        INTEGRITY_STREAM = 0x0000_8000,
        /// The data integrity scanner skips the file.
        NO_SCRUB_DATA = 0x0002_0000,
        /// Opening the file recalls its data from remote storage.
        RECALL_ON_OPEN = 0x0004_0000,
        /// The data stay on local storage.
        PINNED = 0x0008_0000,
        /// The data may move to remote storage.
        UNPINNED = 0x0010_0000,
        /// Reading the data recalls them from remote storage.
        RECALL_ON_DATA_ACCESS = 0x0040_0000,
    }
}

open_enum! {
    /// The degree to which the server may act as the user. \[MS-SMB2\] 2.2.13
    ImpersonationLevel(u32) {
        /// The server may not identify the user.
        ANONYMOUS = 0,
        /// The server may identify the user, but not act as the user.
        IDENTIFICATION = 1,
        /// The server may act as the user on its own machine.
        IMPERSONATION = 2,
        /// The server may act as the user on other machines as well.
        DELEGATE = 3,
    }
}

open_enum! {
    /// The caching that an oplock grants to a client. \[MS-SMB2\] 2.2.13
    OplockLevel(u8) {
        /// No caching.
        NONE = 0x00,
        /// Read caching, which clients may share.
        II = 0x01,
        /// Read and write caching for one client.
        EXCLUSIVE = 0x08,
        /// Read, write and handle caching for one client.
        BATCH = 0x09,
        /// The lease in the create context defines the caching.
        LEASE = 0xFF,
    }
}
