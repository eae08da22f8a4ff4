//! Inputs and results of an authentication, for both sides.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use zeroize::Zeroizing;

/// Random bytes for one call of `step`. The caller never uses them twice.
pub type Entropy = [u8; 32];

/// Random bytes from the operating system, for the caller of an acceptor or an initiator.
///
/// # Panics
/// Panics when the operating system cannot provide random numbers.
pub fn fresh_entropy() -> Entropy {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).expect("the system has random numbers");
    entropy
}

/// A FILETIME: units of 100 ns since 1601-01-01, UTC. [MS-DTYP] 2.3.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub u64);

/// The user of a successful authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name of the account, as the user file spells it; for a guest, the name that the client
    /// sent; empty for an anonymous user.
    pub name: String,
    /// The domain that the client sent, for logs only.
    pub domain: String,
    /// Unix account for file access; `None` means the default of the share.
    pub unix: Option<String>,
    /// Whether the client proved a password.
    pub kind: UserKind,
}

/// Whether, and how, a user identified itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// The client proved the password of an account.
    Named,
    /// The client sent a name without an account. The session has no key: its messages are neither
    /// signed nor encrypted. [MS-SMB2] 3.3.5.5.3
    Guest,
    /// The client sent no name. The session has no key.
    Anonymous,
}

impl UserKind {
    /// Whether only client and server know the session key, so that it may sign and encrypt.
    pub const fn has_keys(self) -> bool {
        matches!(self, Self::Named)
    }
}

/// The result of a successful authentication.
pub struct Accepted {
    /// The server's last token, for the SESSION_SETUP response; empty when the mechanism has none.
    pub token: Vec<u8>,
    /// Session.SessionKey: the first 16 bytes of the full key. Zeros unless
    /// [`UserKind::has_keys`].
    pub session_key: Zeroizing<[u8; 16]>,
    /// Session.FullSessionKey, for ciphers with 256-bit keys. [MS-SMB2] 3.3.1.8
    pub full_session_key: Zeroizing<Vec<u8>>,
    /// The authenticated user.
    pub user: User,
    /// MsvAvTargetName: the service principal name of the server ("cifs/server") in the client's
    /// view; `None` when the client sent none. [MS-NLMP] 2.2.2.1
    pub target_name: Option<String>,
    /// MsvAvChannelBindings: MD5 of the client's channel bindings; `None` when the client sent
    /// none. [MS-NLMP] 2.2.2.1
    pub channel_bindings: Option<[u8; 16]>,
    /// The name of the client computer, as sent by the client; for logs only.
    pub workstation: String,
}

/// Why the server refused an authentication. The text is for the server's log only; the client
/// receives a status, which is the same for an unknown user and a wrong password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The account does not exist.
    BadUser,
    /// The account exists, but the password is wrong.
    BadPassword,
    /// The password is right, but the account is disabled.
    Disabled,
    /// The client sent LM or NTLMv1.
    NtlmV1,
    /// The client does not offer Unicode and extended session security.
    Downgrade,
    /// The MIC of the AUTHENTICATE is wrong: one of the NTLM messages changed in transit.
    MicMismatch,
    /// The mechListMIC is wrong or missing: the list of mechanisms may have changed in transit.
    MechListMicMismatch,
    /// The client is anonymous, and the server allows no anonymous users.
    Anonymous,
    /// The client offers no mechanism that the server supports.
    NoCommonMechanism,
    /// The token is not well formed, or not valid in this state of the exchange.
    Malformed,
}

impl FileTime {
    /// 100 ns units between 1601 and 1970. [MS-DTYP] 2.3.3
    const UNIX_EPOCH: u64 = 116_444_736_000_000_000;
}

impl From<SystemTime> for FileTime {
    fn from(time: SystemTime) -> Self {
        let since = time
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos()
            / 100;
        Self(Self::UNIX_EPOCH.saturating_add(u64::try_from(since).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadUser => "no such user",
            Self::BadPassword => "wrong password",
            Self::Disabled => "the account is disabled",
            Self::NtlmV1 => "the client sent LM or NTLMv1, only NTLMv2 is accepted",
            Self::Downgrade => "the client offers no extended session security",
            Self::MicMismatch => "the MIC does not match: an NTLM message changed in transit",
            Self::MechListMicMismatch => {
                "the MIC of the list of mechanisms is missing or does not match"
            }
            Self::Anonymous => "anonymous users are not allowed",
            Self::NoCommonMechanism => "the client offers no mechanism that this server supports",
            Self::Malformed => "the token is malformed",
        })
    }
}

impl std::error::Error for Refusal {}
