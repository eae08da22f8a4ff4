//! Dialects, and what both sides say of themselves when they agree on one.

use crate::open_enum::{open_enum, open_flags};

open_enum! {
    /// A revision of the protocol. \[MS-SMB2\] 2.2.3
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
        /// "SMB 2.???": the answer to a multi-protocol negotiate; another NEGOTIATE follows.
        WILDCARD = 0x02FF,
    }
}

open_flags! {
    /// What a side wants of signing. SESSION_SETUP holds the low byte only. \[MS-SMB2\] 2.2.3
    SecurityMode(u16) {
        /// Can sign.
        SIGNING_ENABLED = 0x0001,
        /// Insists on signing.
        SIGNING_REQUIRED = 0x0002,
    }
}

open_flags! {
    /// What a side can do. \[MS-SMB2\] 2.2.3
    Capabilities(u32) {
        /// The distributed file system.
        DFS = 0x0000_0001,
        /// Leases.
        LEASING = 0x0000_0002,
        /// Requests of more than one credit.
        LARGE_MTU = 0x0000_0004,
        /// Sessions of several connections.
        MULTI_CHANNEL = 0x0000_0008,
        /// Persistent opens.
        PERSISTENT_HANDLES = 0x0000_0010,
        /// Leases on directories.
        DIRECTORY_LEASING = 0x0000_0020,
        /// Encryption, by the rules of dialects 3.0 and 3.0.2.
        ENCRYPTION = 0x0000_0040,
        /// Notifications from the server.
        NOTIFICATIONS = 0x0000_0080,
    }
}
