//! Reports: events that the driver logs for administrators.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use wire::Status;
use wire::access::AccessMask;

use crate::file::ShareId;
use crate::login::Account;
use crate::path::SharePath;
use crate::token::Token;

/// An event that an administrator wants to know. The driver logs it; no client receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A login succeeded: from now on the connection carries a session of this account. The session
    /// can be a new or a renewed one, or one of another connection.
    LoggedIn(Account),
    /// A user logged in to this account, and the server refuses the session for this reason.
    LoginRefused(Account, LoginRefusal),
    /// The server refuses to connect a session of the account to the share of this name.
    ShareRefused(Account, String, ShareRefusal),
    /// The file system refused an operation of a session with ACCESS_DENIED.
    AccessDenied(AccessDenied),
}

/// The reason why the server refuses the session of a user that has proved its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginRefusal {
    /// Sessions must be signed, and a guest has no key.
    GuestCannotSign,
    /// Sessions must be encrypted, and a guest has no key.
    GuestCannotEncrypt,
    /// Sessions must be encrypted, and the client did not negotiate a cipher: its dialect is older
    /// than 3.0, or it does not support encryption.
    ClientCannotEncrypt,
    /// The account was removed, disabled or changed during the login. See `Server::end_account`.
    AccountChanged,
    /// The session does not exist any more, the connection must not use it, or a limit is reached.
    /// The client receives this status.
    Unusable(Status),
}

impl LoginRefusal {
    /// Returns the status for the client.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::GuestCannotSign | Self::GuestCannotEncrypt | Self::ClientCannotEncrypt => {
                Status::ACCESS_DENIED
            }
            Self::AccountChanged => Status::LOGON_FAILURE,
            Self::Unusable(status) => status,
        }
    }
}

impl From<Status> for LoginRefusal {
    fn from(status: Status) -> Self {
        Self::Unusable(status)
    }
}

impl fmt::Display for LoginRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GuestCannotSign => f.write_str("a guest cannot sign"),
            Self::GuestCannotEncrypt => f.write_str("a guest cannot encrypt"),
            Self::ClientCannotEncrypt => f.write_str("the client negotiated no encryption"),
            Self::AccountChanged => f.write_str("the account changed during the login"),
            Self::Unusable(status) => write!(f, "the session cannot be used: {status:?}"),
        }
    }
}

/// The reason why the server refuses to connect a session to a share. The client receives
/// ACCESS_DENIED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareRefusal {
    /// The share has a list of users, and the user is not in it.
    NotListed,
    /// The share has a list of users that may not connect, and the user is in it.
    InvalidUser,
    /// The share does not admit guests.
    NoGuests,
    /// The share does not admit clients with the address of this client.
    Host,
    /// The user logged in with an app password for other shares.
    AppPassword,
    /// The share requires encryption, and the session cannot encrypt.
    CannotEncrypt,
}

impl fmt::Display for ShareRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotListed => "the user is not in the list of the share",
            Self::InvalidUser => "the user is in the list of users that the share refuses",
            Self::NoGuests => "the share does not admit guests",
            Self::Host => "the share does not admit clients with this address",
            Self::AppPassword => "the app password of the login is for other shares",
            Self::CannotEncrypt => "the session cannot encrypt",
        })
    }
}

/// A file operation that the file system refused with ACCESS_DENIED.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessDenied {
    /// Account of the session.
    pub account: Account,
    /// The identity of the operation: that of the account, or that of all operations on the share.
    pub token: Arc<Token>,
    /// The share with the file.
    pub share: ShareId,
    /// The accesses that the operation needs, each to a path from the root of the share. The file
    /// system refused one of them.
    pub needs: Vec<(SharePath, NeededAccess)>,
}

/// An access that a file operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededAccess {
    /// Open the file with these rights, or create it.
    Open(AccessMask),
    /// Add the name to its directory.
    Add,
    /// Remove the name from its directory.
    Remove,
}
