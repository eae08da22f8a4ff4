//! The identity of a server in authentications, and the accounts that may log in.

use std::sync::Arc;

use crate::mechanism::MechanismProvider;
use crate::users::Users;

/// The identity of a server in authentications, and the accounts that may log in. All acceptors of
/// the server share it.
#[derive(Debug)]
pub struct AcceptorConfig {
    /// The server's names, which the NTLM challenge carries.
    pub names: TargetNames,
    /// The accounts of NTLM.
    pub users: Arc<Users>,
    /// Whether an anonymous client may log in.
    pub allows_anonymous: bool,
    /// Whether a client with an unknown user name logs in as guest. A wrong password for a known
    /// name always fails.
    pub allows_guest: bool,
    /// Mechanisms of SPNEGO in addition to NTLM, which is built in.
    pub mechanisms: Vec<Arc<dyn MechanismProvider>>,
}

/// The server's names in the target info of a CHALLENGE. [MS-NLMP] 2.2.2.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetNames {
    /// NetBIOS name of the server: at most 15 characters, upper case.
    pub netbios_computer: String,
    /// NetBIOS name of the workgroup or domain; a server without one repeats its own name.
    pub netbios_domain: String,
    /// Fully qualified host name of the server.
    pub dns_computer: String,
    /// DNS domain of the host; may be empty.
    pub dns_domain: String,
}
