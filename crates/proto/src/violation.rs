//! Reasons to end a connection.

use core::fmt;

/// The reason why the server's protocol core ends a connection, such as a malformed message or a
/// used MessageId. A request that only fails gets a `Status` instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The frame contains bytes that are not an SMB message.
    Malformed(wire::DecodeError),
    /// The first message of the connection is not a NEGOTIATE, or a later message is one.
    UnexpectedNegotiate,
    /// The client sent this command before NEGOTIATE.
    NotNegotiated(wire::Command),
    /// The MessageId of a request is outside the sequence window: the client has no credit for it,
    /// or used it before. \[MS-SMB2\] 3.3.5.2.3
    MessageIdOutOfWindow(wire::MessageId),
    /// The server cannot decrypt a frame of this session: the session or its key does not exist, or
    /// the authentication tag is wrong. \[MS-SMB2\] 3.3.5.2.1.1
    CannotDecrypt(wire::SessionId),
    /// A request of this session is not encrypted although it must be, or an encrypted frame
    /// contains another encrypted frame.
    NotEncrypted(wire::SessionId),
    /// A TREE_CONNECT of this session in dialect 3.1.1 is neither signed nor encrypted. \[MS-SMB2\]
    /// 3.3.5.7
    NotSigned(wire::SessionId),
    /// VALIDATE_NEGOTIATE_INFO shows that the client received a different negotiation.
    /// \[MS-SMB2\] 3.3.5.15.12
    NegotiateTampered,
    /// The client sent a message with this command, which is not valid in a request.
    UnexpectedMessage(wire::Command),
    /// The frame is longer than the limit. The value is the length of the frame in bytes.
    FrameTooLong(u64),
    /// An RDMA operation on registered memory of the client failed. \[MS-SMBD\] 3.1.6
    RemoteMemory,
    /// The client did not log in within the time limit.
    LoginTimeout,
    /// The connection reached a limit of the configuration. The value is the name of the limit.
    LimitReached(&'static str),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
            Self::UnexpectedNegotiate => f.write_str("unexpected NEGOTIATE"),
            Self::NotNegotiated(command) => write!(f, "{command:?} before NEGOTIATE"),
            Self::MessageIdOutOfWindow(id) => write!(f, "{id:?} is outside the sequence window"),
            Self::CannotDecrypt(session) => write!(f, "cannot decrypt a frame of {session:?}"),
            Self::NotEncrypted(session) => write!(f, "request of {session:?} is not encrypted"),
            Self::NotSigned(session) => write!(f, "request of {session:?} is not signed"),
            Self::NegotiateTampered => f.write_str("the negotiation was tampered with"),
            Self::UnexpectedMessage(command) => write!(f, "unexpected {command:?}"),
            Self::RemoteMemory => f.write_str("memory of the client cannot be used"),
            Self::FrameTooLong(bytes) => write!(f, "frame of {bytes} bytes is too long"),
            Self::LoginTimeout => f.write_str("the login took too long"),
            Self::LimitReached(limit) => write!(f, "limit reached: {limit}"),
        }
    }
}
