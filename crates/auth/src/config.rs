//! The identity of a server in authentications, and the accounts that may log in.

use std::sync::Arc;

use crate::mechanism::MechanismProvider;
use crate::users::Users;

/// The configuration of a server's authentications: the names of the server, its accounts, and the
/// kinds of clients that may log in. All [`Acceptor`](crate::Acceptor)s of the server share it.
#[derive(Debug)]
pub struct AcceptorConfig {
    /// NetBIOS and DNS names of the server, which the NTLM CHALLENGE message sends to the client.
    pub names: TargetNames,
    /// The accounts that can log in with NTLM.
    pub users: Arc<Users>,
    /// Whether a client that sends no user name may log in as an anonymous user.
    pub allows_anonymous: bool,
    /// The clients that log in as guest. A wrong password for a known name always fails.
    pub guests: GuestLogins,
    /// SPNEGO mechanisms that the server accepts in addition to NTLM; empty when NTLM is the only
    /// one.
    pub mechanisms: Vec<Arc<dyn MechanismProvider>>,
}

/// The clients that a server accepts as guests, without a proof of their identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestLogins {
    /// None.
    Refused,
    /// Clients with the user name `guest` or an empty one, if no account has that name.
    ByName,
    /// Those, and clients with any user name that no account has. The answer to a login then shows
    /// which accounts exist.
    ByUnknownName,
}

/// The server's names, which the target info of the NTLM CHALLENGE message carries. [MS-NLMP]
/// 2.2.2.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetNames {
    /// NetBIOS name of the server: at most 15 characters, upper case.
    pub netbios_computer: String,
    /// NetBIOS name of the workgroup or domain; a server without one sets its own NetBIOS name.
    pub netbios_domain: String,
    /// Fully qualified DNS name of the server, such as `nas.example.org`.
    pub dns_computer: String,
    /// DNS domain of the server, such as `example.org`; may be empty.
    pub dns_domain: String,
}
