//! Dialects, and the security mode and capabilities that the peers exchange in NEGOTIATE.

use crate::open_enum::{open_enum, open_flags};

open_enum! {
    /// A dialect of SMB2. \[MS-SMB2\] 2.2.3
    Dialect(u16) {
        /// SMB 2.0.2: Windows Vista.
        SMB_2_0_2 = 0x0202,
        /// SMB 2.1: Windows 7.
        SMB_2_1 = 0x0210,
        /// SMB 3.0: Windows 8.
        SMB_3_0 = 0x0300,
        /// SMB 3.0.2: Windows 8.1.
        SMB_3_0_2 = 0x0302,
        /// SMB 3.1.1: Windows 10.
        SMB_3_1_1 = 0x0311,
        /// "SMB 2.???": the server's response to a multi-protocol negotiate. A second NEGOTIATE
        /// follows.
        WILDCARD = 0x02FF,
    }
}

open_flags! {
    /// The signing requirement of a peer. SESSION_SETUP contains the low byte only. \[MS-SMB2\]
    /// 2.2.3
    SecurityMode(u16) {
        /// The peer supports signing.
        SIGNING_ENABLED = 0x0001,
        /// The peer requires signing.
        SIGNING_REQUIRED = 0x0002,
    }
}

open_flags! {
    /// The features that a peer supports. \[MS-SMB2\] 2.2.3
    Capabilities(u32) {
        /// Distributed File System (DFS).
        DFS = 0x0000_0001,
        /// Leases.
        LEASING = 0x0000_0002,
        /// Requests that consume more than one credit.
        LARGE_MTU = 0x0000_0004,
        /// Several connections for one session.
        MULTI_CHANNEL = 0x0000_0008,
        /// Persistent opens.
        PERSISTENT_HANDLES = 0x0000_0010,
        /// Leases on directories.
        DIRECTORY_LEASING = 0x0000_0020,
        /// Encryption by dialects 3.0 and 3.0.2; dialect 3.1.1 uses a negotiate context.
        ENCRYPTION = 0x0000_0040,
        /// Server-to-client notifications.
        NOTIFICATIONS = 0x0000_0080,
    }
}
