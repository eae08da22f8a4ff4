//! NTSTATUS values of SMB. \[MS-ERREF\] 2.3

use crate::open_enum::open_enum;

open_enum! {
    /// An NTSTATUS: the result of a request. \[MS-ERREF\] 2.3
    #[must_use]
    Status(u32) {
        /// The request succeeded.
        SUCCESS = 0x0000_0000,
        /// The request is pending; the final response follows.
        PENDING = 0x0000_0103,
        /// The changes do not fit the buffer; the client must list the directory again.
        NOTIFY_ENUM_DIR = 0x0000_010C,
        /// A close completed the CHANGE_NOTIFY.
        NOTIFY_CLEANUP = 0x0000_010B,
        /// The buffer is too small for all data, and holds the first part.
        BUFFER_OVERFLOW = 0x8000_0005,
        /// The listing has no further entries.
        NO_MORE_FILES = 0x8000_0006,
        /// The list of extended attributes is inconsistent.
        EA_LIST_INCONSISTENT = 0x8000_0014,
        /// The path has a symbolic link in it that the client must resolve.
        STOPPED_ON_SYMLINK = 0x8000_002D,
        /// The request failed for a reason that has no specific status.
        UNSUCCESSFUL = 0xC000_0001,
        /// The server does not implement the function.
        NOT_IMPLEMENTED = 0xC000_0002,
        /// The information class is not valid.
        INVALID_INFO_CLASS = 0xC000_0003,
        /// The length of the buffer does not fit the information class.
        INFO_LENGTH_MISMATCH = 0xC000_0004,
        /// The open does not exist.
        INVALID_HANDLE = 0xC000_0008,
        /// A parameter is not valid.
        INVALID_PARAMETER = 0xC000_000D,
        /// The device does not exist.
        NO_SUCH_DEVICE = 0xC000_000E,
        /// No file matches.
        NO_SUCH_FILE = 0xC000_000F,
        /// The function does not apply to this kind of object.
        INVALID_DEVICE_REQUEST = 0xC000_0010,
        /// The offset is at or past the end of the file.
        END_OF_FILE = 0xC000_0011,
        /// The authentication requires a further SESSION_SETUP.
        MORE_PROCESSING_REQUIRED = 0xC000_0016,
        /// The source range of a copy ends after the end of the file.
        INVALID_VIEW_SIZE = 0xC000_001F,
        /// The server is out of memory.
        NO_MEMORY = 0xC000_0017,
        /// The user does not have the required access rights.
        ACCESS_DENIED = 0xC000_0022,
        /// The buffer is too small for the fixed part.
        BUFFER_TOO_SMALL = 0xC000_0023,
        /// The object has another type than the requested one.
        OBJECT_TYPE_MISMATCH = 0xC000_0024,
        /// The name is not valid.
        OBJECT_NAME_INVALID = 0xC000_0033,
        /// The name does not exist.
        OBJECT_NAME_NOT_FOUND = 0xC000_0034,
        /// The name already exists.
        OBJECT_NAME_COLLISION = 0xC000_0035,
        /// The path is not valid.
        OBJECT_PATH_INVALID = 0xC000_0039,
        /// A directory of the path does not exist.
        OBJECT_PATH_NOT_FOUND = 0xC000_003A,
        /// The syntax of the path is not valid.
        OBJECT_PATH_SYNTAX_BAD = 0xC000_003B,
        /// The share modes of another open do not permit the access.
        SHARING_VIOLATION = 0xC000_0043,
        /// An extended attribute is too large.
        EA_TOO_LARGE = 0xC000_0050,
        /// The file system does not support extended attributes.
        EAS_NOT_SUPPORTED = 0xC000_004F,
        /// The file has no extended attributes.
        NO_EAS_ON_FILE = 0xC000_0052,
        /// A lock of another open covers the range.
        FILE_LOCK_CONFLICT = 0xC000_0054,
        /// The server did not grant the lock.
        LOCK_NOT_GRANTED = 0xC000_0055,
        /// The file has a pending deletion.
        DELETE_PENDING = 0xC000_0056,
        /// The user may not set this owner.
        INVALID_OWNER = 0xC000_005A,
        /// The user does not have a required privilege.
        PRIVILEGE_NOT_HELD = 0xC000_0061,
        /// The end of the range is past the largest offset.
        INVALID_LOCK_RANGE = 0xC000_01A1,
        /// The open has no lock of this range.
        RANGE_NOT_LOCKED = 0xC000_007E,
        /// The user does not exist. A server sends LOGON_FAILURE instead.
        NO_SUCH_USER = 0xC000_0064,
        /// The password is wrong. A server sends LOGON_FAILURE instead.
        WRONG_PASSWORD = 0xC000_006A,
        /// The user name or the password is wrong.
        LOGON_FAILURE = 0xC000_006D,
        /// A restriction of the account prevents the logon.
        ACCOUNT_RESTRICTION = 0xC000_006E,
        /// The user may not log on at this time.
        INVALID_LOGON_HOURS = 0xC000_006F,
        /// The user may not log on from this computer.
        INVALID_WORKSTATION = 0xC000_0070,
        /// The password has expired.
        PASSWORD_EXPIRED = 0xC000_0071,
        /// The account is disabled.
        ACCOUNT_DISABLED = 0xC000_0072,
        /// The server could map none of the names or SIDs.
        NONE_MAPPED = 0xC000_0073,
        /// The security descriptor is not valid.
        INVALID_SECURITY_DESCR = 0xC000_0079,
        /// The disk is full.
        DISK_FULL = 0xC000_007F,
        /// The server lacks the resources for the request.
        INSUFFICIENT_RESOURCES = 0xC000_009A,
        /// The volume is dismounted.
        VOLUME_DISMOUNTED = 0xC000_026E,
        /// The disk or share is read-only.
        MEDIA_WRITE_PROTECTED = 0xC000_00A2,
        /// The impersonation level does not permit the request.
        BAD_IMPERSONATION_LEVEL = 0xC000_00A5,
        /// No instance of the pipe is available.
        INSTANCE_NOT_AVAILABLE = 0xC000_00AB,
        /// No instance of the pipe is available.
        PIPE_NOT_AVAILABLE = 0xC000_00AC,
        /// The pipe is busy.
        PIPE_BUSY = 0xC000_00AE,
        /// The peer has closed the pipe.
        PIPE_DISCONNECTED = 0xC000_00B0,
        /// The pipe is closed.
        PIPE_BROKEN = 0xC000_014B,
        /// The timeout of the request has expired.
        IO_TIMEOUT = 0xC000_00B5,
        /// The object is a directory, but the request requires a file.
        FILE_IS_A_DIRECTORY = 0xC000_00BA,
        /// The request is not supported.
        NOT_SUPPORTED = 0xC000_00BB,
        /// The share no longer exists, or the connection to it has ended.
        NETWORK_NAME_DELETED = 0xC000_00C9,
        /// The user may not access the share.
        NETWORK_ACCESS_DENIED = 0xC000_00CA,
        /// The share does not exist.
        BAD_NETWORK_NAME = 0xC000_00CC,
        /// The client has too many sessions.
        TOO_MANY_SESSIONS = 0xC000_00CE,
        /// The server does not accept further connections to the share.
        REQUEST_NOT_ACCEPTED = 0xC000_00D0,
        /// Source and target are on different file systems.
        NOT_SAME_DEVICE = 0xC000_00D4,
        /// The server did not grant the oplock.
        OPLOCK_NOT_GRANTED = 0xC000_00E2,
        /// The acknowledgment does not match a break in progress.
        INVALID_OPLOCK_PROTOCOL = 0xC000_00E3,
        /// The server has an internal error.
        INTERNAL_ERROR = 0xC000_00E5,
        /// The directory is not empty.
        DIRECTORY_NOT_EMPTY = 0xC000_0101,
        /// The object is a file, but the request requires a directory.
        NOT_A_DIRECTORY = 0xC000_0103,
        /// The name is too long.
        NAME_TOO_LONG = 0xC000_0106,
        /// Too many files are open.
        TOO_MANY_OPENED_FILES = 0xC000_011F,
        /// The request was canceled.
        CANCELLED = 0xC000_0120,
        /// The file cannot be deleted.
        CANNOT_DELETE = 0xC000_0121,
        /// The file was deleted.
        FILE_DELETED = 0xC000_0123,
        /// The file was closed.
        FILE_CLOSED = 0xC000_0128,
        /// The device reports an error.
        IO_DEVICE_ERROR = 0xC000_0185,
        /// The account may not log on over the network.
        LOGON_TYPE_NOT_GRANTED = 0xC000_015B,
        /// Only DFS can resolve the path.
        PATH_NOT_COVERED = 0xC000_0257,
        /// A file system driver is required.
        FS_DRIVER_REQUIRED = 0xC000_019C,
        /// The session does not exist.
        USER_SESSION_DELETED = 0xC000_0203,
        /// The server lacks the resources for the request.
        INSUFF_SERVER_RESOURCES = 0xC000_0205,
        /// The length of the buffer is not valid.
        INVALID_BUFFER_SIZE = 0xC000_0206,
        /// The user must change the password before the first logon.
        PASSWORD_MUST_CHANGE = 0xC000_0224,
        /// The account has expired.
        ACCOUNT_EXPIRED = 0xC000_0193,
        /// The account is locked after too many wrong passwords.
        ACCOUNT_LOCKED_OUT = 0xC000_0234,
        /// The object does not exist.
        NOT_FOUND = 0xC000_0225,
        /// The client already uses this identifier for another object.
        DUPLICATE_OBJECTID = 0xC000_022A,
        /// The client should send the request again.
        RETRY = 0xC000_022D,
        /// The file has too many hard links.
        TOO_MANY_LINKS = 0xC000_0265,
        /// The authentication of the session has expired.
        NETWORK_SESSION_EXPIRED = 0xC000_035C,
        /// The file has no reparse point.
        NOT_A_REPARSE_POINT = 0xC000_0275,
        /// The request is not valid in the present state of the exchange.
        REQUEST_OUT_OF_SEQUENCE = 0xC000_042A,
        /// The file is temporarily not available.
        FILE_NOT_AVAILABLE = 0xC000_0467,
        /// The peers have no common hash algorithm. \[MS-SMB2\] 3.3.5.4
        SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xC05D_0000,
        /// The client requires another version of the cluster dialect.
        SMB_BAD_CLUSTER_DIALECT = 0xC05D_0001,
        /// The message is not a valid SMB message.
        INVALID_SMB = 0x0001_0002,
        /// The user identifier is not valid.
        SMB_BAD_UID = 0x005B_0002,
        /// The tree identifier is not valid.
        SMB_BAD_TID = 0x0005_0002,
    }
}

impl Status {
    /// Whether the severity bits indicate an error. \[MS-ERREF\] 2.3
    pub const fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }
}
