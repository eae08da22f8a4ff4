//! The reasons why a connection ends.

use core::fmt;

use wire::{Command, DecodeError, MessageId, SessionId, Status};

/// The reason why the client's protocol core ends a connection, such as a malformed message, a
/// wrong signature, a refused login or a passed time limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The peer or the network closed the transport connection.
    Closed,
    /// The driver closed the connection with [`Connection::close`](super::Connection::close).
    Asked,
    /// The server sent bytes that are not an SMB2 message.
    Malformed(DecodeError),
    /// The server sent a response with this MessageId, which no request has.
    UnknownMessageId(MessageId),
    /// The server sent a response with another command than its request.
    WrongCommand {
        /// Command of the request that has this MessageId.
        asked: Command,
        /// Command in the response of the server.
        came: Command,
    },
    /// The required signature of a message of this session is missing or wrong.
    BadSignature(SessionId),
    /// A frame of this session cannot be decrypted, or lacks the required encryption.
    NotEncrypted(SessionId),
    /// The server chose a parameter that the client did not offer, or its confirmation of NEGOTIATE
    /// differs from its response: description of the difference.
    NegotiateTampered(&'static str),
    /// The server refuses NEGOTIATE with this status.
    Refused(Status),
    /// The server refuses the login or the binding: wrong password or expired password, for
    /// example.
    LoginRefused(Status),
    /// The server's proof in the login is wrong, or the login grants less than required (guest):
    /// description of the fault.
    LoginUntrusted(&'static str),
    /// The server sent nothing within the time limit, also after an ECHO.
    TimedOut,
    /// The server reports that the session no longer exists: USER_SESSION_DELETED or
    /// NETWORK_SESSION_EXPIRED.
    SessionGone(Status),
    /// The server misuses registered memory, or reports an impossible RDMA transfer: description of
    /// the fault.
    RemoteMemory(&'static str),
    /// The server exceeds a limit of the client: description of the limit.
    LimitReached(&'static str),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Asked => f.write_str("the connection was closed"),
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
            Self::UnknownMessageId(id) => {
                write!(f, "the server responded to {id:?}, which is not pending")
            }
            Self::WrongCommand { asked, came } => {
                write!(f, "the server responded to {asked:?} with {came:?}")
            }
            Self::BadSignature(session) => {
                write!(f, "a message of {session:?} has a bad signature")
            }
            Self::NotEncrypted(session) => {
                write!(f, "a message of {session:?} is not encrypted correctly")
            }
            Self::NegotiateTampered(what) => write!(f, "the negotiation cannot be trusted: {what}"),
            Self::Refused(status) => write!(f, "the server refuses to negotiate: {status:?}"),
            Self::LoginRefused(status) => write!(f, "the server refuses the login: {status:?}"),
            Self::LoginUntrusted(what) => write!(f, "the login cannot be trusted: {what}"),
            Self::TimedOut => f.write_str("the server does not answer"),
            Self::SessionGone(status) => write!(f, "the server ended the session: {status:?}"),
            Self::RemoteMemory(what) => write!(f, "the server misuses registered memory: {what}"),
            Self::LimitReached(limit) => write!(f, "the server exceeds a limit: {limit}"),
        }
    }
}

pub(super) fn invalid(field: &'static str, value: u64) -> Violation {
    Violation::Malformed(DecodeError::Invalid { field, value })
}
