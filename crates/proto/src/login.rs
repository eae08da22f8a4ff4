//! Logins: the vocabulary of authentication between the core and its driver.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::Status;

use crate::token::Token;

/// Number of a login in progress, which may need several security tokens of client and server.
/// Unique within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(pub u64);

/// One step of a login: a security token of the client that the driver passes to its authenticator,
/// the code that verifies credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticate {
    /// Number of the login that the token belongs to; a new number starts a new login.
    pub conversation: ConversationId,
    /// The client's security token: SPNEGO or raw NTLMSSP. An empty token requests the initial
    /// token of the server.
    pub token: Vec<u8>,
}

/// The result of one security token of a login: the login continues, has succeeded or has failed.
#[derive(Debug)]
pub enum Authenticated {
    /// The login needs a further security token of the client. The value is the security token for
    /// the client.
    Continue(Vec<u8>),
    /// The login succeeded, for this account.
    Accepted(Accepted),
    /// The login failed, with the status and the security token for the client. That token may be
    /// empty.
    Refused(Status, Vec<u8>),
}

/// The result of a login that succeeded: the account, the session key, and a token for the client.
#[derive(Debug)]
pub struct Accepted {
    /// The final security token for the client; may be empty.
    pub token: Vec<u8>,
    /// The whole session key of the mechanism; its first 16 bytes are Session.SessionKey
    /// (\[MS-SMB2\] 3.3.1.8). Empty for a guest and for an anonymous login, which neither sign nor
    /// encrypt.
    pub session_key: Vec<u8>,
    /// The account that the session belongs to.
    pub account: Account,
}

/// The kind of the account of a session: a named user, the guest, or anonymous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKind {
    /// The user proved the identity with a password or a key.
    Named,
    /// The server accepted the user as a guest, without proof.
    Guest,
    /// The user gave no name.
    Anonymous,
}

/// A version of the driver's table of accounts. The driver uses a greater number after each change
/// of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountsRevision(pub u64);

/// The account that a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Name of the account in the user file; empty for an anonymous login.
    pub name: String,
    /// Kind of the account: named, guest or anonymous.
    pub kind: AccountKind,
    /// User identity (Unix credentials and SIDs) with which file operations of the session run.
    pub token: Arc<Token>,
    /// The version of the table of accounts in which the authenticator found the account. The
    /// server refuses the login if `Server::end_account` names a later one.
    pub revision: AccountsRevision,
    /// Names of the groups of the account, for the lists of users of shares. Empty for guests and
    /// anonymous users.
    pub groups: Arc<[String]>,
    /// The app password with which the user logged in; `None` for the main password and for other
    /// mechanisms.
    pub app_password: Option<Arc<AppPassword>>,
}

/// An additional password of an account, such as that of one device, which may have fewer rights
/// than the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppPassword {
    /// Name of the app password, unique within its account.
    pub name: String,
    /// Names of the shares that it admits to, beside IPC$; empty if it admits to all shares of the
    /// account. Comparisons ignore the case.
    pub shares: Vec<String>,
    /// Whether it admits to reading only, even if the account may write.
    pub read_only: bool,
}

/// The logins that a change of an account concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoginScope<'a> {
    /// All logins to the account of this name.
    Account(&'a str),
    /// The logins to the account of the first name with the app password of the second name.
    AppPassword(&'a str, &'a str),
}

impl LoginScope<'_> {
    /// Returns true if the scope has the login of this named account. Comparisons respect the case.
    pub(crate) fn has(self, account: &Account) -> bool {
        match self {
            Self::Account(name) => account.name == name,
            Self::AppPassword(name, password) => {
                let of_login = account.app_password.as_ref();
                account.name == name && of_login.is_some_and(|used| used.name == password)
            }
        }
    }
}
