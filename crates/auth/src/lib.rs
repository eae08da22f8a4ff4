//! SPNEGO and NTLM for both sides of a connection, and the user file.
//!
//! - [`Acceptor`] is the server of one authentication, [`Initiator`] the client. Both take a token
//!   and return a token. Neither reads a clock or a random number: time and entropy are arguments.
//! - [`Mechanism`] and [`InitiatorMechanism`] are the interface between SPNEGO and NTLM, or later
//!   Kerberos. A mechanism may block: its steps then run on a thread ([`Acceptor::may_block`],
//!   [`Initiator::may_block`]).
//! - [`Users`] is the table of accounts, [`UserFile`] the file that stores it. An account may have
//!   app passwords ([`AppPassword`]) and be in groups ([`Group`]).
//!
//! NTLM means NTLMv2 with extended session security. The acceptor refuses LM and NTLMv1.
//! [MS-NLMP] 3.3.2
#![forbid(unsafe_code)]

mod acceptor;
mod app_password;
mod config;
mod groups;
mod initiator;
mod login;
mod mechanism;
mod names;
mod ntlm;
mod password_rules;
mod smbpasswd;
mod user_file;
mod users;

pub use acceptor::{Acceptor, Step, TOKEN_LEN_MAX, server_hint};
pub use app_password::{APP_PASSWORDS_MAX, AppPassword, random_password};
pub use config::{AcceptorConfig, GuestLogins, TargetNames};
pub use groups::{GROUPS_MAX, Group};
pub use initiator::{Framing, Initiator, InitiatorStep};
pub use login::{
    Accepted, AppPasswordRights, Claim, Entropy, FileTime, Refusal, User, UserKind, fresh_entropy,
};
pub use mechanism::{
    Established, InitiatorContext, InitiatorError, InitiatorMechanism, InitiatorProgress,
    InitiatorProvider, Integrity, Mechanism, MechanismProvider, Progress,
};
pub use names::{APP_PASSWORD_SHARES_MAX, NameError, PASSWORD_LEN_MAX, USER_NAME_LEN_MAX};
pub use ntlm::initiator::Credentials;
pub use ntlm::keys::NtHash;
pub use password_rules::{CLASSES_MAX, PasswordRules};
pub use smbpasswd::{Imported, SmbpasswdEntry, SmbpasswdError, parse_smbpasswd};
pub use user_file::{UserFile, UserFileError};
pub use users::{Account, AccountChange, ChangedLogins, USERS_MAX, Users};
