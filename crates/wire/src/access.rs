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
        /// Delete files and subdirectories of the directory, regardless of the rights on them.
        FILE_DELETE_CHILD = 0x0000_0040,
        /// Read DOS attributes, times and sizes.
        FILE_READ_ATTRIBUTES = 0x0000_0080,
        /// Change DOS attributes and times.
        FILE_WRITE_ATTRIBUTES = 0x0000_0100,
        /// Delete or rename the file or directory.
        DELETE = 0x0001_0000,
        /// Read owner, group and discretionary access control list (DACL).
        READ_CONTROL = 0x0002_0000,
        /// Change the discretionary access control list (DACL).
        WRITE_DAC = 0x0004_0000,
        /// Change owner and group.
        WRITE_OWNER = 0x0008_0000,
        /// Wait on the handle until the system signals it. Servers ignore the right.
        SYNCHRONIZE = 0x0010_0000,
        /// Read and change the system access control list (SACL), which configures auditing.
        ACCESS_SYSTEM_SECURITY = 0x0100_0000,
        /// A request for every right that the security descriptor grants to the user.
        MAXIMUM_ALLOWED = 0x0200_0000,
        /// A request for every right; the server maps it to the specific rights of a file or
        /// directory.
        GENERIC_ALL = 0x1000_0000,
        /// A request to execute; the server maps it to specific rights of a file or directory.
        GENERIC_EXECUTE = 0x2000_0000,
        /// A request to write; the server maps it to specific rights of a file or directory.
        GENERIC_WRITE = 0x4000_0000,
        /// A request to read; the server maps it to specific rights of a file or directory.
        GENERIC_READ = 0x8000_0000,
    }
}

open_flags! {
    /// Share modes: the access that other opens may have while this open exists. \[MS-SMB2\] 2.2.13
    ShareAccess(u32) {
        /// Other opens may read the data of the file.
        READ = 0x0000_0001,
        /// Other opens may write data to the file.
        WRITE = 0x0000_0002,
        /// Other opens may delete or rename the file.
        DELETE = 0x0000_0004,
    }
}

open_enum! {
    /// The server's action in a CREATE when the file exists, and when it does not. \[MS-SMB2\]
    /// 2.2.13
    CreateDisposition(u32) {
        /// Replace an existing file with a new one, or create the file if it does not exist.
        SUPERSEDE = 0,
        /// Open an existing file; fail if it does not exist.
        OPEN = 1,
        /// Create the file; fail if it exists.
        CREATE = 2,
        /// Open an existing file, or create the file if it does not exist.
        OPEN_IF = 3,
        /// Truncate an existing file; fail if it does not exist.
        OVERWRITE = 4,
        /// Truncate an existing file, or create the file if it does not exist.
        OVERWRITE_IF = 5,
    }
}

open_flags! {
    /// Options of a CREATE request, which say how the client uses the file. \[MS-SMB2\] 2.2.13
    CreateOptions(u32) {
        /// The opened or created object must be a directory; otherwise the CREATE fails.
        DIRECTORY_FILE = 0x0000_0001,
        /// Every write completes only when the data are on stable storage.
        WRITE_THROUGH = 0x0000_0002,
        /// A hint: the application reads the file from start to end.
        SEQUENTIAL_ONLY = 0x0000_0004,
        /// The server must not cache the data of the file.
        NO_INTERMEDIATE_BUFFERING = 0x0000_0008,
        /// Local I/O mode of the client: waits can be alerted. Servers ignore it.
        SYNCHRONOUS_IO_ALERT = 0x0000_0010,
        /// Local I/O mode of the client: waits cannot be alerted. Servers ignore it.
        SYNCHRONOUS_IO_NONALERT = 0x0000_0020,
        /// The opened or created object must not be a directory; otherwise the CREATE fails.
        NON_DIRECTORY_FILE = 0x0000_0040,
        /// Local option of the client: complete although an oplock break is pending. Servers ignore
        /// it.
        COMPLETE_IF_OPLOCKED = 0x0000_0100,
        /// The application does not understand extended attributes.
        NO_EA_KNOWLEDGE = 0x0000_0200,
        /// Reserved option to open a remote file. Servers ignore it.
        OPEN_REMOTE_INSTANCE = 0x0000_0400,
        /// A hint: the application reads the file at random offsets.
        RANDOM_ACCESS = 0x0000_0800,
        /// The server deletes the file when the last open to it closes.
        DELETE_ON_CLOSE = 0x0000_1000,
        /// The Name field contains a binary file identifier instead of a path.
        OPEN_BY_FILE_ID = 0x0000_2000,
        /// Open for backup or restore: the server grants access by the user's backup and restore
        /// privileges.
        OPEN_FOR_BACKUP_INTENT = 0x0000_4000,
        /// The file system must not compress the new file.
        NO_COMPRESSION = 0x0000_8000,
        /// Local option of the client: take an oplock together with the open. Servers ignore it.
        OPEN_REQUIRING_OPLOCK = 0x0001_0000,
        /// Fail with STATUS_ACCESS_DENIED when the open shares no read access and its user has no
        /// permission to write the file.
        DISALLOW_EXCLUSIVE = 0x0002_0000,
        /// Obsolete option to reserve a filter oplock. Servers refuse it.
        RESERVE_OPFILTER = 0x0010_0000,
        /// Open the reparse point itself, such as a symbolic link, and not its target.
        OPEN_REPARSE_POINT = 0x0020_0000,
        /// Do not recall the data of the file from offline storage.
        OPEN_NO_RECALL = 0x0040_0000,
        /// Open the file only to query the free space that the user has on the volume.
        OPEN_FOR_FREE_SPACE_QUERY = 0x0080_0000,
    }
}

open_flags! {
    /// DOS attributes of a file. \[MS-FSCC\] 2.6
    FileAttributes(u32) {
        /// The file is read-only: neither written nor deleted.
        READONLY = 0x0000_0001,
        /// Directory listings omit the file, unless the user asks for hidden files.
        HIDDEN = 0x0000_0002,
        /// The operating system uses the file.
        SYSTEM = 0x0000_0004,
        /// The file is a directory.
        DIRECTORY = 0x0000_0010,
        /// The file has changed since the last backup.
        ARCHIVE = 0x0000_0020,
        /// The file has no other attribute. Valid only alone.
        NORMAL = 0x0000_0080,
        /// The file is temporary: the file system may keep its data in memory only.
        TEMPORARY = 0x0000_0100,
        /// The file is sparse: ranges without data take no space on disk.
        SPARSE_FILE = 0x0000_0200,
        /// The file has a reparse point, such as a symbolic link.
        REPARSE_POINT = 0x0000_0400,
        /// The file system compresses the data of the file.
        COMPRESSED = 0x0000_0800,
        /// The data of the file are in offline storage, so reading them is slow.
        OFFLINE = 0x0000_1000,
        /// The content indexing service skips the file.
        NOT_CONTENT_INDEXED = 0x0000_2000,
        /// The file system stores the data of the file encrypted on disk.
        ENCRYPTED = 0x0000_4000,
        /// The file system protects the data of the file with checksums (ReFS integrity streams).
        INTEGRITY_STREAM = 0x0000_8000,
        /// The data integrity scanner skips the file.
        NO_SCRUB_DATA = 0x0002_0000,
        /// The file is a placeholder: opening it recalls its data from remote storage.
        RECALL_ON_OPEN = 0x0004_0000,
        /// The user wants the data of the file to stay on local storage.
        PINNED = 0x0008_0000,
        /// The data of the file may move to remote storage and leave a placeholder.
        UNPINNED = 0x0010_0000,
        /// The file is a placeholder: reading its data recalls them from remote storage.
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
    /// The caching of a file that an oplock allows to a client. \[MS-SMB2\] 2.2.13
    OplockLevel(u8) {
        /// No oplock: the client must not cache.
        NONE = 0x00,
        /// Read caching. Several clients may have this level at the same time.
        II = 0x01,
        /// Read and write caching. Only one client may have this level.
        EXCLUSIVE = 0x08,
        /// Read, write and handle caching. Only one client may have this level.
        BATCH = 0x09,
        /// A lease replaces the oplock: the lease create context of the message defines the
        /// caching.
        LEASE = 0xFF,
    }
}
