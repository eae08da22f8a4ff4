//! Dialects, and the security mode and capabilities that the peers exchange in NEGOTIATE.

use core::fmt;

use crate::open_enum::{open_enum, open_flags};

open_enum! {
    /// A dialect of the SMB2 protocol, by its number on the wire. \[MS-SMB2\] 2.2.3
    Dialect(u16) {
        /// SMB 2.0.2, introduced with Windows Vista.
        SMB_2_0_2 = 0x0202,
        /// SMB 2.1, introduced with Windows 7.
        SMB_2_1 = 0x0210,
        /// SMB 3.0, introduced with Windows 8.
        SMB_3_0 = 0x0300,
        /// SMB 3.0.2, introduced with Windows 8.1.
        SMB_3_0_2 = 0x0302,
        /// SMB 3.1.1, introduced with Windows 10.
        SMB_3_1_1 = 0x0311,
        /// "SMB 2.???": the server's response to an SMB1 NEGOTIATE that offers SMB2. The client
        /// then sends an SMB2 NEGOTIATE.
        WILDCARD = 0x02FF,
    }
}

/// Displays the number by which people know the dialect: `3.1.1`.
impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::SMB_2_0_2 => "2.0.2",
            Self::SMB_2_1 => "2.1",
            Self::SMB_3_0 => "3.0",
            Self::SMB_3_0_2 => "3.0.2",
            Self::SMB_3_1_1 => "3.1.1",
            Self(other) => return write!(f, "{other:#06x}"),
        };
        f.pad(name)
    }
}

open_flags! {
    /// The signing requirement of a peer, in NEGOTIATE and SESSION_SETUP; SESSION_SETUP contains
    /// the low byte only. \[MS-SMB2\] 2.2.3
    SecurityMode(u16) {
        /// The peer can sign messages.
        SIGNING_ENABLED = 0x0001,
        /// The peer requires signed messages.
        SIGNING_REQUIRED = 0x0002,
    }
}

open_flags! {
    /// The features that a peer announces in NEGOTIATE. \[MS-SMB2\] 2.2.3
    Capabilities(u32) {
        /// The peer supports the Distributed File System (DFS).
        DFS = 0x0000_0001,
        /// The peer supports leases, in dialect 2.1 and later.
        LEASING = 0x0000_0002,
        /// The peer supports requests that consume more than one credit, in dialect 2.1 and later.
        LARGE_MTU = 0x0000_0004,
        /// The peer supports several connections for one session, in dialect 3.0 and later.
        MULTI_CHANNEL = 0x0000_0008,
        /// The peer supports persistent opens, in dialect 3.0 and later.
        PERSISTENT_HANDLES = 0x0000_0010,
        /// The peer supports leases on directories, in dialect 3.0 and later.
        DIRECTORY_LEASING = 0x0000_0020,
        /// The peer supports encryption in dialects 3.0 and 3.0.2; dialect 3.1.1 uses a negotiate
        /// context.
        ENCRYPTION = 0x0000_0040,
        /// The peer supports notifications from server to client, in dialect 3.1.1.
        NOTIFICATIONS = 0x0000_0080,
    }
}
