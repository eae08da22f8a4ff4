//! Why a connection ends.

use core::fmt;

use wire::{Command, DecodeError, MessageId, SessionId, Status};

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The driver was told that the transport is gone.
    Closed,
    /// The driver asked for it.
    Asked,
    /// Bytes that are no SMB2 message.
    Malformed(DecodeError),
    /// An answer to nothing that was asked.
    UnknownMessageId(MessageId),
    /// An answer of another command than the request.
    WrongCommand {
        /// What was asked.
        asked: Command,
        /// What came.
        came: Command,
    },
    /// A message that must be signed is not, or wrongly.
    BadSignature(SessionId),
    /// A frame that is sealed and does not open, or is not sealed where it must be.
    NotSealed(SessionId),
    /// The server chose what was not offered, or a dialect below what it said before.
    NegotiateTampered(&'static str),
    /// The server refuses NEGOTIATE.
    Refused(Status),
    /// The server refuses the login or the binding: wrong password, expired password, ...
    LoginRefused(Status),
    /// The server's proof in the login is wrong, or the login is for less than was asked (guest).
    LoginUntrusted(&'static str),
    /// Nothing came for too long.
    TimedOut,
    /// The session is over: the server says USER_SESSION_DELETED or NETWORK_SESSION_EXPIRED.
    SessionGone(Status),
    /// What the server says of memory that was named for it cannot be.
    RemoteMemory(&'static str),
    /// More credits or bytes than a server can mean.
    LimitReached(&'static str),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Asked => f.write_str("the connection was closed"),
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
            Self::UnknownMessageId(id) => write!(f, "an answer to {id:?}, which was not asked"),
            Self::WrongCommand { asked, came } => write!(f, "{came:?} answers {asked:?}"),
            Self::BadSignature(session) => write!(f, "bad signature in {session:?}"),
            Self::NotSealed(session) => write!(f, "a message of {session:?} is not sealed right"),
            Self::NegotiateTampered(what) => write!(f, "the negotiation was tampered with: {what}"),
            Self::Refused(status) => write!(f, "the server refuses to negotiate: {status:?}"),
            Self::LoginRefused(status) => write!(f, "the server refuses the login: {status:?}"),
            Self::LoginUntrusted(what) => write!(f, "the login is not to be trusted: {what}"),
            Self::TimedOut => f.write_str("the server does not answer"),
            Self::SessionGone(status) => write!(f, "the session is over: {status:?}"),
            Self::RemoteMemory(what) => write!(f, "misuse of memory: {what}"),
            Self::LimitReached(limit) => write!(f, "limit reached: {limit}"),
        }
    }
}

pub(super) fn invalid(field: &'static str, value: u64) -> Violation {
    Violation::Malformed(DecodeError::Invalid { field, value })
}
