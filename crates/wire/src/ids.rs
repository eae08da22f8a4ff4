//! The identifiers of the protocol, each with its own type.

use core::fmt;

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($int:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    };
}

id! {
    /// Position of a request in the command sequence of its connection. \[MS-SMB2\] 2.2.1.2
    MessageId(u64)
}
id! {
    /// Identifier of a session, which belongs to one user of a client. \[MS-SMB2\] 2.2.1.2
    SessionId(u64)
}
id! {
    /// Identifier of a tree connect within a session. \[MS-SMB2\] 2.2.1.2
    TreeId(u32)
}
id! {
    /// Identifier of a request that the server completes asynchronously. \[MS-SMB2\] 2.2.1.1
    AsyncId(u64)
}

impl MessageId {
    /// MessageId (all ones) of a message that the server sends without a request, such as an oplock
    /// break. \[MS-SMB2\] 2.2.23.1
    pub const UNSOLICITED: Self = Self(u64::MAX);
}

impl TreeId {
    /// TreeId of all ones: a related request of a compound uses the tree connect of the request
    /// before it. \[MS-SMB2\] 3.2.4.1.4
    pub const RELATED: Self = Self(u32::MAX);
}

impl SessionId {
    /// SessionId of all ones: a related request of a compound uses the session of the request
    /// before it. \[MS-SMB2\] 3.2.4.1.4
    pub const RELATED: Self = Self(u64::MAX);
}

/// The server's identifier of an open file, directory or pipe, from the CREATE response.
/// \[MS-SMB2\] 2.2.14.1
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FileId {
    /// The half of the identifier that stays the same when a client reconnects to a durable open.
    pub persistent: u64,
    /// The half of the identifier that changes when a client reconnects to a durable open.
    pub volatile: u64,
}

impl FileId {
    /// FileId of all ones: a related request of a compound uses the open of the request before it.
    /// \[MS-SMB2\] 3.3.5.2.7.2
    pub const RELATED: Self = Self {
        persistent: u64::MAX,
        volatile: u64::MAX,
    };
}

/// A 16-byte globally unique identifier, with the bytes in wire order. \[MS-DTYP\] 2.3.4
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub [u8; 16]);

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i, rest @ ..] = self.0;
        let first = u32::from_le_bytes([a, b, c, d]);
        let second = u16::from_le_bytes([e, g]);
        let third = u16::from_le_bytes([h, i]);
        write!(
            f,
            "{first:08x}-{second:04x}-{third:04x}-{:02x}{:02x}-",
            rest[0], rest[1]
        )?;
        rest[2..]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
