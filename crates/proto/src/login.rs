//! Logins: the vocabulary of authentication between the core and its driver.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::Status;

use crate::token::Token;

/// Identifies a login in progress: the legs of one SPNEGO exchange. Unique within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(pub u64);

/// One leg of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate {
    /// The login; a new number starts a new login.
    pub conversation: ConversationId,
    /// The client's security token: SPNEGO or raw NTLMSSP. An empty token asks for the initial
    /// token of the server.
    pub token: Vec<u8>,
}

/// The outcome of one leg of a login.
#[derive(Debug)]
pub enum Authenticated {
    /// The login needs another leg. The value is the security token for the client.
    Continue(Vec<u8>),
    /// The login succeeded.
    Accepted(Accepted),
    /// The login failed, with the status and the security token for the client. The token may be
    /// empty.
    Refused(Status, Vec<u8>),
}

/// A login that succeeded.
#[derive(Debug)]
pub struct Accepted {
    /// The final security token for the client.
    pub token: Vec<u8>,
    /// The whole key of the mechanism; the first 16 bytes are \[MS-SMB2\] Session.SessionKey. Empty
    /// for guest and anonymous, which neither sign nor encrypt.
    pub session_key: Vec<u8>,
    /// The account of the user.
    pub account: Account,
}

/// The kind of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// The user proved the identity with a password or a key.
    Named,
    /// The server accepted the user as a guest, without proof.
    Guest,
    /// The user gave no name.
    Anonymous,
}

/// The account that a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name in the users file; empty for anonymous.
    pub name: String,
    /// The kind of the account.
    pub kind: AccountKind,
    /// The identity with which file operations of the session run.
    pub token: Arc<Token>,
}
