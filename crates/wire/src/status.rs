//! NTSTATUS values of SMB. \[MS-ERREF\] 2.3

use crate::open_enum::open_enum;

open_enum! {
    /// An NTSTATUS: the result of a request, in the header of the response. \[MS-ERREF\] 2.3
    #[must_use]
    Status(u32) {
        /// The request succeeded.
        SUCCESS = 0x0000_0000,
        /// The request is pending; the final response follows.
        PENDING = 0x0000_0103,
        /// Some of the names or SIDs have no translation.
        SOME_NOT_MAPPED = 0x0000_0107,
        /// The changes of a watched directory do not fit the buffer; the client must list the
        /// directory again.
        NOTIFY_ENUM_DIR = 0x0000_010C,
        /// A watch of a directory (CHANGE_NOTIFY) ended, because the client closed the directory.
        NOTIFY_CLEANUP = 0x0000_010B,
        /// The data do not fit the client's buffer, which holds the first part of them.
        BUFFER_OVERFLOW = 0x8000_0005,
        /// The directory listing has no further entries.
        NO_MORE_FILES = 0x8000_0006,
        /// A query of extended attributes has returned all of them.
        NO_MORE_EAS = 0x8000_0012,
        /// A query of disk quotas has returned all of them.
        NO_MORE_ENTRIES = 0x8000_001A,
        /// The name of an extended attribute is not valid.
        INVALID_EA_NAME = 0x8000_0013,
        /// The list of extended attributes is inconsistent.
        EA_LIST_INCONSISTENT = 0x8000_0014,
        /// The path has a symbolic link in it that the client must resolve.
        STOPPED_ON_SYMLINK = 0x8000_002D,
        /// The request failed for a reason that has no specific status.
        UNSUCCESSFUL = 0xC000_0001,
        /// The server does not implement the function.
        NOT_IMPLEMENTED = 0xC000_0002,
        /// The server does not support the information class of the request.
        INVALID_INFO_CLASS = 0xC000_0003,
        /// The length of the buffer does not fit the information class.
        INFO_LENGTH_MISMATCH = 0xC000_0004,
        /// The server has no open with this FileId.
        INVALID_HANDLE = 0xC000_0008,
        /// A field of the request has a value that is not valid.
        INVALID_PARAMETER = 0xC000_000D,
        /// The device does not exist.
        NO_SUCH_DEVICE = 0xC000_000E,
        /// No file in the directory matches the search pattern.
        NO_SUCH_FILE = 0xC000_000F,
        /// The operation does not apply to this kind of object.
        INVALID_DEVICE_REQUEST = 0xC000_0010,
        /// The offset of a read is at or past the end of the file.
        END_OF_FILE = 0xC000_0011,
        /// The authentication requires a further SESSION_SETUP.
        MORE_PROCESSING_REQUIRED = 0xC000_0016,
        /// The source range of a copy extends past the end of the source file.
        INVALID_VIEW_SIZE = 0xC000_001F,
        /// The server is out of memory.
        NO_MEMORY = 0xC000_0017,
        /// The user does not have the required access rights.
        ACCESS_DENIED = 0xC000_0022,
        /// The client's buffer is too small for the fixed part of the information.
        BUFFER_TOO_SMALL = 0xC000_0023,
        /// The object has another type than the requested one.
        OBJECT_TYPE_MISMATCH = 0xC000_0024,
        /// The name of a file has characters that are not valid.
        OBJECT_NAME_INVALID = 0xC000_0033,
        /// No file has this name, but its directory exists.
        OBJECT_NAME_NOT_FOUND = 0xC000_0034,
        /// A file with this name already exists.
        OBJECT_NAME_COLLISION = 0xC000_0035,
        /// The path has a component that is not valid.
        OBJECT_PATH_INVALID = 0xC000_0039,
        /// A directory in the path does not exist.
        OBJECT_PATH_NOT_FOUND = 0xC000_003A,
        /// The syntax of the path is not valid.
        OBJECT_PATH_SYNTAX_BAD = 0xC000_003B,
        /// The share modes of another open do not permit the access.
        SHARING_VIOLATION = 0xC000_0043,
        /// An extended attribute is too large for the file system.
        EA_TOO_LARGE = 0xC000_0050,
        /// The file system does not support extended attributes.
        EAS_NOT_SUPPORTED = 0xC000_004F,
        /// The file has no extended attribute with the requested index.
        NONEXISTENT_EA_ENTRY = 0xC000_0051,
        /// The file has no extended attributes.
        NO_EAS_ON_FILE = 0xC000_0052,
        /// A lock of another open covers the range of a read or write.
        FILE_LOCK_CONFLICT = 0xC000_0054,
        /// Another open has a lock in the range of the requested lock.
        LOCK_NOT_GRANTED = 0xC000_0055,
        /// Another open has deleted the file, which still exists until all opens close.
        DELETE_PENDING = 0xC000_0056,
        /// The user may not set this owner.
        INVALID_OWNER = 0xC000_005A,
        /// The user does not have a required privilege.
        PRIVILEGE_NOT_HELD = 0xC000_0061,
        /// The server has closed the open for an application instance on another client.
        FILE_FORCED_CLOSED = 0xC000_00B6,
        /// The end of the range to lock is past the largest 64-bit offset.
        INVALID_LOCK_RANGE = 0xC000_01A1,
        /// The open has no lock of the range to unlock.
        RANGE_NOT_LOCKED = 0xC000_007E,
        /// The user does not exist. Servers send LOGON_FAILURE instead, which does not reveal it.
        NO_SUCH_USER = 0xC000_0064,
        /// The password is wrong. Servers send LOGON_FAILURE instead, which does not reveal it.
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
        /// The server knows none of the names or SIDs in the request.
        NONE_MAPPED = 0xC000_0073,
        /// The access control list is not valid.
        INVALID_ACL = 0xC000_0077,
        /// The security descriptor is not valid.
        INVALID_SECURITY_DESCR = 0xC000_0079,
        /// The disk is full.
        DISK_FULL = 0xC000_007F,
        /// The sum of two fields of the request is too large for its type.
        INTEGER_OVERFLOW = 0xC000_0095,
        /// A file or stream would be larger than the file system permits.
        ALLOTTED_SPACE_EXCEEDED = 0xC000_0099,
        /// The server lacks the resources for the request.
        INSUFFICIENT_RESOURCES = 0xC000_009A,
        /// The volume that the open is on is no longer mounted.
        VOLUME_DISMOUNTED = 0xC000_026E,
        /// The disk or share is read-only.
        MEDIA_WRITE_PROTECTED = 0xC000_00A2,
        /// The impersonation level does not permit the request.
        BAD_IMPERSONATION_LEVEL = 0xC000_00A5,
        /// All instances of the named pipe are in use.
        INSTANCE_NOT_AVAILABLE = 0xC000_00AB,
        /// The named pipe has no instance that a client can use now.
        PIPE_NOT_AVAILABLE = 0xC000_00AC,
        /// All instances of the named pipe are busy.
        PIPE_BUSY = 0xC000_00AE,
        /// The peer has disconnected the named pipe.
        PIPE_DISCONNECTED = 0xC000_00B0,
        /// The peer has closed its end of the named pipe.
        PIPE_BROKEN = 0xC000_014B,
        /// The server did not complete the request within its timeout.
        IO_TIMEOUT = 0xC000_00B5,
        /// The object is a directory, but the request requires a file.
        FILE_IS_A_DIRECTORY = 0xC000_00BA,
        /// The server does not support the operation.
        NOT_SUPPORTED = 0xC000_00BB,
        /// The share no longer exists, or the connection to it has ended.
        NETWORK_NAME_DELETED = 0xC000_00C9,
        /// The user may not access the share.
        NETWORK_ACCESS_DENIED = 0xC000_00CA,
        /// The share does not exist.
        BAD_NETWORK_NAME = 0xC000_00CC,
        /// The client has too many sessions.
        TOO_MANY_SESSIONS = 0xC000_00CE,
        /// The server does not accept further connections to the share, because it has reached a
        /// limit.
        REQUEST_NOT_ACCEPTED = 0xC000_00D0,
        /// Source and target of a rename or link are on different file systems.
        NOT_SAME_DEVICE = 0xC000_00D4,
        /// The server did not grant the oplock.
        OPLOCK_NOT_GRANTED = 0xC000_00E2,
        /// The client acknowledged a break of an oplock or lease that is not in progress.
        INVALID_OPLOCK_PROTOCOL = 0xC000_00E3,
        /// The server has an internal error.
        INTERNAL_ERROR = 0xC000_00E5,
        /// The directory to delete has entries.
        DIRECTORY_NOT_EMPTY = 0xC000_0101,
        /// The object is a file, but the request requires a directory.
        NOT_A_DIRECTORY = 0xC000_0103,
        /// The name is too long.
        NAME_TOO_LONG = 0xC000_0106,
        /// The client or the server has too many files open.
        TOO_MANY_OPENED_FILES = 0xC000_011F,
        /// The client canceled the request, or the server did, because its open or session closed.
        CANCELLED = 0xC000_0120,
        /// The file cannot be deleted, for example because it is read-only.
        CANNOT_DELETE = 0xC000_0121,
        /// The file was deleted.
        FILE_DELETED = 0xC000_0123,
        /// The open has been closed while the request was pending.
        FILE_CLOSED = 0xC000_0128,
        /// The storage device reports an error.
        IO_DEVICE_ERROR = 0xC000_0185,
        /// The account may not log on over the network.
        LOGON_TYPE_NOT_GRANTED = 0xC000_015B,
        /// The path is not on this server; the client must resolve it with DFS.
        PATH_NOT_COVERED = 0xC000_0257,
        /// The operation requires a file system driver that the server does not have.
        FS_DRIVER_REQUIRED = 0xC000_019C,
        /// The server has no session with this SessionId.
        USER_SESSION_DELETED = 0xC000_0203,
        /// The server lacks the resources for the request.
        INSUFF_SERVER_RESOURCES = 0xC000_0205,
        /// The length of a buffer in the request is not valid.
        INVALID_BUFFER_SIZE = 0xC000_0206,
        /// The user must change the password before the first logon.
        PASSWORD_MUST_CHANGE = 0xC000_0224,
        /// The account has expired.
        ACCOUNT_EXPIRED = 0xC000_0193,
        /// The account is locked after too many wrong passwords.
        ACCOUNT_LOCKED_OUT = 0xC000_0234,
        /// The object that the request names does not exist.
        NOT_FOUND = 0xC000_0225,
        /// The client already uses the identifier, such as a lease key, for another object.
        DUPLICATE_OBJECTID = 0xC000_022A,
        /// The operation did not complete for a temporary reason; the client should send the
        /// request again.
        RETRY = 0xC000_022D,
        /// The file has too many hard links.
        TOO_MANY_LINKS = 0xC000_0265,
        /// The authentication of the session has expired; the client must authenticate again.
        NETWORK_SESSION_EXPIRED = 0xC000_035C,
        /// The file has no reparse point.
        NOT_A_REPARSE_POINT = 0xC000_0275,
        /// The tag of a reparse point is reserved.
        IO_REPARSE_TAG_INVALID = 0xC000_0276,
        /// The file has a reparse point with another tag.
        IO_REPARSE_TAG_MISMATCH = 0xC000_0277,
        /// The data of a reparse point are not valid.
        IO_REPARSE_DATA_INVALID = 0xC000_0278,
        /// The file has a reparse point that only its client can interpret: the client must open
        /// the reparse point itself.
        IO_REPARSE_TAG_NOT_HANDLED = 0xC000_0279,
        /// The request is not valid in the present state of the authentication or session.
        REQUEST_OUT_OF_SEQUENCE = 0xC000_042A,
        /// The file is temporarily not available.
        FILE_NOT_AVAILABLE = 0xC000_0467,
        /// The server supports none of the client's preauthentication hash algorithms. \[MS-SMB2\]
        /// 3.3.5.4
        SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP = 0xC05D_0000,
        /// The client must connect with another dialect to use the cluster.
        SMB_BAD_CLUSTER_DIALECT = 0xC05D_0001,
        /// The message is not a valid SMB1 message. SMB1 error code.
        INVALID_SMB = 0x0001_0002,
        /// The user identifier is not valid. SMB1 error code.
        SMB_BAD_UID = 0x005B_0002,
        /// The tree identifier is not valid. SMB1 error code.
        SMB_BAD_TID = 0x0005_0002,
    }
}

impl Status {
    /// Returns true if the severity bits of the NTSTATUS indicate an error. Success, information
    /// and warning are not errors. \[MS-ERREF\] 2.3
    pub const fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }
}
