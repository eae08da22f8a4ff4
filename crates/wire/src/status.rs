//! How a request went: the NTSTATUS values that SMB uses. \[MS-ERREF\] 2.3

use crate::open_enum::open_enum;

open_enum! {
    /// An NTSTATUS. \[MS-ERREF\] 2.3
    #[must_use]
    Status(u32) {
        /// It went well.
        SUCCESS = 0x0000_0000,
        /// An answer will follow.
        PENDING = 0x0000_0103,
        /// More changes than fit: list the directory again.
        NOTIFY_ENUM_DIR = 0x0000_010C,
        /// The notification was ended by a close.
        NOTIFY_CLEANUP = 0x0000_010B,
        /// The buffer holds less than there is.
        BUFFER_OVERFLOW = 0x8000_0005,
        /// Nothing more to list.
        NO_MORE_FILES = 0x8000_0006,
        /// The list of extended attributes is inconsistent.
        EA_LIST_INCONSISTENT = 0x8000_0014,
        /// The path went through a link that the client must follow.
        STOPPED_ON_SYMLINK = 0x8000_002D,
        /// It did not go well, and there is no better word for it.
        UNSUCCESSFUL = 0xC000_0001,
        /// The server does not know how.
        NOT_IMPLEMENTED = 0xC000_0002,
        /// No such information class.
        INVALID_INFO_CLASS = 0xC000_0003,
        /// The buffer has not the length of the information class.
        INFO_LENGTH_MISMATCH = 0xC000_0004,
        /// No such open.
        INVALID_HANDLE = 0xC000_0008,
        /// A parameter is wrong.
        INVALID_PARAMETER = 0xC000_000D,
        /// There is no such device.
        NO_SUCH_DEVICE = 0xC000_000E,
        /// No file matches.
        NO_SUCH_FILE = 0xC000_000F,
        /// Not for this kind of object.
        INVALID_DEVICE_REQUEST = 0xC000_0010,
        /// A read at or past the end.
        END_OF_FILE = 0xC000_0011,
        /// The login needs another leg.
        MORE_PROCESSING_REQUIRED = 0xC000_0016,
        /// A range that is to be copied does not end within the file.
        INVALID_VIEW_SIZE = 0xC000_001F,
        /// Not enough memory.
        NO_MEMORY = 0xC000_0017,
        /// Not allowed.
        ACCESS_DENIED = 0xC000_0022,
        /// The buffer cannot hold the fixed part.
        BUFFER_TOO_SMALL = 0xC000_0023,
        /// Of another type than asked for.
        OBJECT_TYPE_MISMATCH = 0xC000_0024,
        /// Not a name.
        OBJECT_NAME_INVALID = 0xC000_0033,
        /// No such name.
        OBJECT_NAME_NOT_FOUND = 0xC000_0034,
        /// The name is taken.
        OBJECT_NAME_COLLISION = 0xC000_0035,
        /// The path is not one.
        OBJECT_PATH_INVALID = 0xC000_0039,
        /// A directory of the path does not exist.
        OBJECT_PATH_NOT_FOUND = 0xC000_003A,
        /// The path is not of the expected syntax.
        OBJECT_PATH_SYNTAX_BAD = 0xC000_003B,
        /// Another open does not share.
        SHARING_VIOLATION = 0xC000_0043,
        /// An extended attribute is too large.
        EA_TOO_LARGE = 0xC000_0050,
        /// The file system has no extended attributes.
        EAS_NOT_SUPPORTED = 0xC000_004F,
        /// The file has no extended attributes.
        NO_EAS_ON_FILE = 0xC000_0052,
        /// A locked range is in the way.
        FILE_LOCK_CONFLICT = 0xC000_0054,
        /// The lock was not granted.
        LOCK_NOT_GRANTED = 0xC000_0055,
        /// The file is about to be deleted.
        DELETE_PENDING = 0xC000_0056,
        /// May not be the owner.
        INVALID_OWNER = 0xC000_005A,
        /// A privilege is needed that the user does not have.
        PRIVILEGE_NOT_HELD = 0xC000_0061,
        /// The range goes beyond the last offset.
        INVALID_LOCK_RANGE = 0xC000_01A1,
        /// No such range is locked.
        RANGE_NOT_LOCKED = 0xC000_007E,
        /// The user is not known. Not told to a client: LOGON_FAILURE is.
        NO_SUCH_USER = 0xC000_0064,
        /// The password is wrong. Not told to a client: LOGON_FAILURE is.
        WRONG_PASSWORD = 0xC000_006A,
        /// User or password are wrong.
        LOGON_FAILURE = 0xC000_006D,
        /// The account may not log in this way.
        ACCOUNT_RESTRICTION = 0xC000_006E,
        /// The user may not log in at this time.
        INVALID_LOGON_HOURS = 0xC000_006F,
        /// The user may not log in from here.
        INVALID_WORKSTATION = 0xC000_0070,
        /// The password is too old.
        PASSWORD_EXPIRED = 0xC000_0071,
        /// The account is switched off.
        ACCOUNT_DISABLED = 0xC000_0072,
        /// There is nothing to say about it.
        NONE_MAPPED = 0xC000_0073,
        /// Not a security descriptor.
        INVALID_SECURITY_DESCR = 0xC000_0079,
        /// The disk is full.
        DISK_FULL = 0xC000_007F,
        /// The server has not got what it needs.
        INSUFFICIENT_RESOURCES = 0xC000_009A,
        /// The volume is gone.
        VOLUME_DISMOUNTED = 0xC000_026E,
        /// The disk or share is not to be written.
        MEDIA_WRITE_PROTECTED = 0xC000_00A2,
        /// The server may not act for the user in this way.
        BAD_IMPERSONATION_LEVEL = 0xC000_00A5,
        /// No pipe instance is free.
        INSTANCE_NOT_AVAILABLE = 0xC000_00AB,
        /// No instance of the pipe is free.
        PIPE_NOT_AVAILABLE = 0xC000_00AC,
        /// The pipe is busy.
        PIPE_BUSY = 0xC000_00AE,
        /// The other end of the pipe is gone.
        PIPE_DISCONNECTED = 0xC000_00B0,
        /// The pipe is closed.
        PIPE_BROKEN = 0xC000_014B,
        /// It took too long.
        IO_TIMEOUT = 0xC000_00B5,
        /// A file was asked for, there is a directory.
        FILE_IS_A_DIRECTORY = 0xC000_00BA,
        /// The request is not supported.
        NOT_SUPPORTED = 0xC000_00BB,
        /// The network name was deleted.
        NETWORK_NAME_DELETED = 0xC000_00C9,
        /// The network access is denied.
        NETWORK_ACCESS_DENIED = 0xC000_00CA,
        /// No such share.
        BAD_NETWORK_NAME = 0xC000_00CC,
        /// Too many sessions.
        TOO_MANY_SESSIONS = 0xC000_00CE,
        /// The request was not accepted.
        REQUEST_NOT_ACCEPTED = 0xC000_00D0,
        /// Not on the same device.
        NOT_SAME_DEVICE = 0xC000_00D4,
        /// The oplock was not granted.
        OPLOCK_NOT_GRANTED = 0xC000_00E2,
        /// The acknowledgement is not one.
        INVALID_OPLOCK_PROTOCOL = 0xC000_00E3,
        /// Something is wrong inside.
        INTERNAL_ERROR = 0xC000_00E5,
        /// The directory holds something.
        DIRECTORY_NOT_EMPTY = 0xC000_0101,
        /// A directory was asked for, there is a file.
        NOT_A_DIRECTORY = 0xC000_0103,
        /// The name is too long.
        NAME_TOO_LONG = 0xC000_0106,
        /// Too many files are open.
        TOO_MANY_OPENED_FILES = 0xC000_011F,
        /// The request was cancelled.
        CANCELLED = 0xC000_0120,
        /// The file cannot be deleted.
        CANNOT_DELETE = 0xC000_0121,
        /// The file was deleted.
        FILE_DELETED = 0xC000_0123,
        /// The file was closed.
        FILE_CLOSED = 0xC000_0128,
        /// Device error.
        IO_DEVICE_ERROR = 0xC000_0185,
        /// Logins of this kind are not allowed.
        LOGON_TYPE_NOT_GRANTED = 0xC000_015B,
        /// A path that only DFS knows.
        PATH_NOT_COVERED = 0xC000_0257,
        /// The driver for the file system is needed.
        FS_DRIVER_REQUIRED = 0xC000_019C,
        /// There is no such session.
        USER_SESSION_DELETED = 0xC000_0203,
        /// Not enough room on the server.
        INSUFF_SERVER_RESOURCES = 0xC000_0205,
        /// The buffer is not of an allowed size.
        INVALID_BUFFER_SIZE = 0xC000_0206,
        /// The password must be changed before anything else.
        PASSWORD_MUST_CHANGE = 0xC000_0224,
        /// The account was valid for a time that is over.
        ACCOUNT_EXPIRED = 0xC000_0193,
        /// Too many wrong passwords: the account is locked for a while.
        ACCOUNT_LOCKED_OUT = 0xC000_0234,
        /// No such object.
        NOT_FOUND = 0xC000_0225,
        /// The client's name for an object is taken.
        DUPLICATE_OBJECTID = 0xC000_022A,
        /// Nothing to retry with.
        RETRY = 0xC000_022D,
        /// Too many links.
        TOO_MANY_LINKS = 0xC000_0265,
        /// The session's ticket ran out.
        NETWORK_SESSION_EXPIRED = 0xC000_035C,
        /// There is no such object id or reparse point.
        NOT_A_REPARSE_POINT = 0xC000_0275,
        /// The request does not fit what was agreed on before.
        REQUEST_OUT_OF_SEQUENCE = 0xC000_042A,
        /// The file is not available.
        FILE_NOT_AVAILABLE = 0xC000_0467,
        /// No hash algorithm in common. \[MS-SMB2\] 3.3.5.4
        SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xC05D_0000,
        /// The client asks for another version of a context.
        SMB_BAD_CLUSTER_DIALECT = 0xC05D_0001,
        /// The request is not a valid SMB.
        INVALID_SMB = 0x0001_0002,
        /// The user id is not a session's.
        SMB_BAD_UID = 0x005B_0002,
        /// The tree id is not one.
        SMB_BAD_TID = 0x0005_0002,
    }
}

impl Status {
    /// Whether the two severity bits say error. \[MS-ERREF\] 2.3
    pub const fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }
}
