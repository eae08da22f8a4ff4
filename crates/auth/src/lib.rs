//! SPNEGO and NTLM: token in, token out; and the file of users.
//!
//! - [`Acceptor`] is the server's side of one authentication, [`Initiator`] the client's. Neither
//!   reads a clock or a random number: time and entropy are arguments.
//! - [`Mechanism`] is the seam where Kerberos will join NTLM.
//! - [`Users`] is the table of accounts, [`UserFile`] the file it lives in.
//!
//! NTLM means NTLMv2 with extended session security. LM and NTLMv1 are refused. [MS-NLMP] 3.3.2
#![forbid(unsafe_code)]

mod acceptor;
mod initiator;
mod mechanism;
mod ntlm;
mod realm;
mod user_file;
mod users;

pub use acceptor::{Acceptor, Step, TOKEN_LEN_MAX, server_hint};
pub use initiator::{Framing, Initiator, InitiatorError, InitiatorStep};
pub use mechanism::{Established, Integrity, Mechanism, Progress};
pub use ntlm::initiator::Credentials;
pub use ntlm::keys::NtHash;
pub use realm::{
    Accepted, Entropy, FileTime, Realm, Refusal, TargetNames, User, UserKind, fresh_entropy,
};
pub use user_file::{UserFile, UserFileError};
pub use users::{Account, NameError, PASSWORD_LEN_MAX, USER_NAME_LEN_MAX, USERS_MAX, Users};
