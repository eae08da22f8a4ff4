//! What an acceptor knows before a client comes, and what it tells afterwards.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use zeroize::Zeroizing;

use crate::users::Users;

/// Random bytes for one step; never the same twice.
pub type Entropy = [u8; 32];

/// Random bytes of the system, for whoever drives an acceptor or an initiator.
///
/// # Panics
/// When the system has no random numbers: nothing is secure then.
pub fn fresh_entropy() -> Entropy {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).expect("the system has random numbers");
    entropy
}

/// Units of 100 ns since 1601, UTC. [MS-DTYP] 2.3.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub u64);

/// Who may come in, and under what names the server answers. Shared by all connections.
#[derive(Debug)]
pub struct Realm {
    /// The server's names.
    pub names: TargetNames,
    /// The accounts.
    pub users: Arc<Users>,
    /// Whether nobody in particular may come in.
    pub allows_anonymous: bool,
    /// Whether a name that has no account comes in as guest. A wrong password never does.
    pub allows_guest: bool,
}

/// The server's names, as target info tells them. [MS-NLMP] 2.2.2.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetNames {
    /// At most 15 characters, upper case.
    pub netbios_computer: String,
    /// The workgroup or domain; a server without one repeats its own name.
    pub netbios_domain: String,
    /// The host name.
    pub dns_computer: String,
    /// The host's domain; may be empty.
    pub dns_domain: String,
}

/// Who came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The account's name as the file of users spells it; empty for nobody.
    pub name: String,
    /// The domain that the client named, for logs only.
    pub domain: String,
    /// The Unix account to act as; `None` lets the share decide.
    pub unix: Option<String>,
    /// How far to trust the rest.
    pub kind: UserKind,
}

/// Whether the user proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// It did.
    Named,
    /// It has no account. Its session has no key: it neither signs nor seals.
    /// [MS-SMB2] 3.3.5.5.3
    Guest,
    /// It did not even say. Its session has no key either.
    Anonymous,
}

impl UserKind {
    /// Whether the session key is known to the two sides only, so that it may sign and seal.
    pub const fn has_keys(self) -> bool {
        matches!(self, Self::Named)
    }
}

/// A successful authentication.
pub struct Accepted {
    /// The last token to send; empty when the client expects none.
    pub token: Vec<u8>,
    /// Session.SessionKey: the first 16 bytes of the full key. Zeros unless
    /// [`UserKind::has_keys`].
    pub session_key: Zeroizing<[u8; 16]>,
    /// Session.FullSessionKey, for ciphers of 256 bits. [MS-SMB2] 3.3.1.8
    pub full_session_key: Zeroizing<Vec<u8>>,
    /// Who.
    pub user: User,
    /// Service that the client meant to reach ("cifs/server"), if it said.
    pub target_name: Option<String>,
    /// MD5 of the channel bindings that the client saw, if it saw any.
    pub channel_bindings: Option<[u8; 16]>,
    /// The client's name for itself, for logs only.
    pub workstation: String,
}

/// Why a client was refused. For logs: the client learns only that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such account.
    BadUser,
    /// The account exists, the password is another.
    BadPassword,
    /// The password is right, the account is disabled.
    Disabled,
    /// The client sent LM or NTLMv1.
    NtlmV1,
    /// The client does not offer Unicode and extended session security.
    Downgrade,
    /// The MIC of the AUTHENTICATE is wrong: somebody changed one of the messages.
    MicMismatch,
    /// The mechListMIC is wrong or missing: somebody changed the list of mechanisms.
    MechListMicMismatch,
    /// Nobody in particular may not come in.
    Anonymous,
    /// The client offers no mechanism that we have.
    NoCommonMechanism,
    /// The token is not what belongs here, or not well formed.
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
            Self::MicMismatch => "the MIC does not match: a message was changed on its way",
            Self::MechListMicMismatch => "the list of mechanisms was changed on its way",
            Self::Anonymous => "anonymous users are not allowed",
            Self::NoCommonMechanism => "the client offers no mechanism that this server has",
            Self::Malformed => "the token is malformed",
        })
    }
}

impl std::error::Error for Refusal {}
