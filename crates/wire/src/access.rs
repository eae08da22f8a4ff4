//! What a CREATE asks for: rights, sharing, disposition, options, attributes.
//! \[MS-SMB2\] 2.2.13

use crate::open_enum::{open_enum, open_flags};

open_flags! {
    /// Rights. The low bits have one name for files and pipes, another for directories.
    /// \[MS-SMB2\] 2.2.13.1
    AccessMask(u32) {
        /// Read from the file.
        FILE_READ_DATA = 0x0000_0001,
        /// List the directory.
        FILE_LIST_DIRECTORY = 0x0000_0001,
        /// Write to the file.
        FILE_WRITE_DATA = 0x0000_0002,
        /// Create a file in the directory.
        FILE_ADD_FILE = 0x0000_0002,
        /// Write to the end of the file.
        FILE_APPEND_DATA = 0x0000_0004,
        /// Create a directory in the directory.
        FILE_ADD_SUBDIRECTORY = 0x0000_0004,
        /// Read extended attributes.
        FILE_READ_EA = 0x0000_0008,
        /// Write extended attributes.
        FILE_WRITE_EA = 0x0000_0010,
        /// Execute the file.
        FILE_EXECUTE = 0x0000_0020,
        /// Pass through the directory.
        FILE_TRAVERSE = 0x0000_0020,
        /// Delete what the directory holds, whatever its own rights.
        FILE_DELETE_CHILD = 0x0000_0040,
        /// Read attributes and times.
        FILE_READ_ATTRIBUTES = 0x0000_0080,
        /// Write attributes and times.
        FILE_WRITE_ATTRIBUTES = 0x0000_0100,
        /// Delete or rename.
        DELETE = 0x0001_0000,
        /// Read owner, group and DACL.
        READ_CONTROL = 0x0002_0000,
        /// Write the DACL.
        WRITE_DAC = 0x0004_0000,
        /// Write owner and group.
        WRITE_OWNER = 0x0008_0000,
        /// Wait on the object.
        SYNCHRONIZE = 0x0010_0000,
        /// Read and write the SACL.
        ACCESS_SYSTEM_SECURITY = 0x0100_0000,
        /// Whatever the user may do.
        MAXIMUM_ALLOWED = 0x0200_0000,
        /// Everything, by the mapping of the object.
        GENERIC_ALL = 0x1000_0000,
        /// Execute, by the mapping of the object.
        GENERIC_EXECUTE = 0x2000_0000,
        /// Write, by the mapping of the object.
        GENERIC_WRITE = 0x4000_0000,
        /// Read, by the mapping of the object.
        GENERIC_READ = 0x8000_0000,
    }
}

open_flags! {
    /// What others may do while this open lasts. \[MS-SMB2\] 2.2.13
    ShareAccess(u32) {
        /// Read.
        READ = 0x0000_0001,
        /// Write.
        WRITE = 0x0000_0002,
        /// Delete and rename.
        DELETE = 0x0000_0004,
    }
}

open_enum! {
    /// What to do if the file exists, and if it does not. \[MS-SMB2\] 2.2.13
    CreateDisposition(u32) {
        /// Replace it; or create it.
        SUPERSEDE = 0,
        /// Open it; or fail.
        OPEN = 1,
        /// Fail; or create it.
        CREATE = 2,
        /// Open it; or create it.
        OPEN_IF = 3,
        /// Truncate it; or fail.
        OVERWRITE = 4,
        /// Truncate it; or create it.
        OVERWRITE_IF = 5,
    }
}

open_flags! {
    /// How to open or create. \[MS-SMB2\] 2.2.13
    CreateOptions(u32) {
        /// Must be a directory.
        DIRECTORY_FILE = 0x0000_0001,
        /// A write is done when it is on stable storage.
        WRITE_THROUGH = 0x0000_0002,
        /// Will be read from the start to the end.
        SEQUENTIAL_ONLY = 0x0000_0004,
        /// Leave it out of caches.
        NO_INTERMEDIATE_BUFFERING = 0x0000_0008,
        /// Local meaning only; ignored.
        SYNCHRONOUS_IO_ALERT = 0x0000_0010,
        /// Local meaning only; ignored.
        SYNCHRONOUS_IO_NONALERT = 0x0000_0020,
        /// Must not be a directory.
        NON_DIRECTORY_FILE = 0x0000_0040,
        /// Local meaning only; ignored.
        COMPLETE_IF_OPLOCKED = 0x0000_0100,
        /// The application knows nothing of extended attributes.
        NO_EA_KNOWLEDGE = 0x0000_0200,
        /// Local meaning only; ignored.
        OPEN_REMOTE_INSTANCE = 0x0000_0400,
        /// Will be read here and there.
        RANDOM_ACCESS = 0x0000_0800,
        /// Delete it when the last open of it is closed.
        DELETE_ON_CLOSE = 0x0000_1000,
        /// The name is a file id.
        OPEN_BY_FILE_ID = 0x0000_2000,
        /// For backup: rights that the user's privileges give.
        OPEN_FOR_BACKUP_INTENT = 0x0000_4000,
        /// Do not compress the new file.
        NO_COMPRESSION = 0x0000_8000,
        /// Ignored.
        OPEN_REQUIRING_OPLOCK = 0x0001_0000,
        /// Fail where another open does not allow FILE_READ_DATA.
        DISALLOW_EXCLUSIVE = 0x0002_0000,
        /// Not supported by any server.
        RESERVE_OPFILTER = 0x0010_0000,
        /// Open the reparse point, not what it leads to.
        OPEN_REPARSE_POINT = 0x0020_0000,
        /// Do not recall the data from remote storage.
        OPEN_NO_RECALL = 0x0040_0000,
        /// Open for the quantity of free space the user has.
        OPEN_FOR_FREE_SPACE_QUERY = 0x0080_0000,
    }
}

open_flags! {
    /// Attributes of a file. \[MS-FSCC\] 2.6
    FileAttributes(u32) {
        /// Not to be written or deleted.
        READONLY = 0x0000_0001,
        /// Not listed by default.
        HIDDEN = 0x0000_0002,
        /// Of the operating system.
        SYSTEM = 0x0000_0004,
        /// A directory.
        DIRECTORY = 0x0000_0010,
        /// Wants to be archived.
        ARCHIVE = 0x0000_0020,
        /// No other attribute is set.
        NORMAL = 0x0000_0080,
        /// Temporary.
        TEMPORARY = 0x0000_0100,
        /// Has holes.
        SPARSE_FILE = 0x0000_0200,
        /// Has a reparse point.
        REPARSE_POINT = 0x0000_0400,
        /// Is compressed.
        COMPRESSED = 0x0000_0800,
        /// The data are elsewhere.
        OFFLINE = 0x0000_1000,
        /// Not to be indexed.
        NOT_CONTENT_INDEXED = 0x0000_2000,
        /// Is encrypted on disk.
        ENCRYPTED = 0x0000_4000,
        /// Guarded by integrity streams.
        INTEGRITY_STREAM = 0x0000_8000,
        /// Not to be read by the scrubber.
        NO_SCRUB_DATA = 0x0002_0000,
        /// Opening it recalls it from remote storage.
        RECALL_ON_OPEN = 0x0004_0000,
        /// To be kept at hand.
        PINNED = 0x0008_0000,
        /// Need not be kept at hand.
        UNPINNED = 0x0010_0000,
        /// Reading it recalls it from remote storage.
        RECALL_ON_DATA_ACCESS = 0x0040_0000,
    }
}

open_enum! {
    /// What the server may do in the name of the user. \[MS-SMB2\] 2.2.13
    ImpersonationLevel(u32) {
        /// Not know who it is.
        ANONYMOUS = 0,
        /// Know who it is.
        IDENTIFICATION = 1,
        /// Act as the user on this machine.
        IMPERSONATION = 2,
        /// Act as the user anywhere.
        DELEGATE = 3,
    }
}

open_enum! {
    /// What a client may cache. \[MS-SMB2\] 2.2.13
    OplockLevel(u8) {
        /// Nothing.
        NONE = 0x00,
        /// Reads.
        II = 0x01,
        /// Reads and writes.
        EXCLUSIVE = 0x08,
        /// Reads, writes and the open itself.
        BATCH = 0x09,
        /// As a lease says.
        LEASE = 0xFF,
    }
}
