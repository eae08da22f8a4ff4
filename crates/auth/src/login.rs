//! Inputs and results of an authentication, for both sides.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use zeroize::Zeroizing;

/// Random bytes for one call of [`Acceptor::step`](crate::Acceptor::step),
/// [`Initiator::start`](crate::Initiator::start) or [`Initiator::step`](crate::Initiator::step).
/// The caller never uses the same bytes twice.
pub type Entropy = [u8; 32];

/// Returns 32 random bytes from the operating system: the `entropy` argument for the next call of
/// an [`Acceptor`](crate::Acceptor) or [`Initiator`](crate::Initiator).
///
/// # Panics
/// Panics when the operating system cannot provide random numbers.
pub fn fresh_entropy() -> Entropy {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).expect("the system has random numbers");
    entropy
}

/// A time as FILETIME: number of intervals of 100 ns since 1601-01-01, UTC. [MS-DTYP] 2.3.3
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub u64);

/// The identity that a client claims in a security token. The client may send any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The user name, without a domain; empty for an anonymous user.
    pub user: String,
    /// The name of the client computer; may be empty.
    pub workstation: String,
    /// Whether the server checks a password. It does not for an anonymous user or a guest. It does
    /// for a name without an account, so that the check does not show which accounts exist.
    pub needs_password: bool,
}

/// The user that a client has authenticated as: an account, a guest or an anonymous user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name of the account, as the user file spells it; for a guest, the name that the client
    /// sent; empty for an anonymous user.
    pub name: String,
    /// The domain that the client sent; may be empty. It is for logs only, because the server does
    /// not check it.
    pub domain: String,
    /// Name of the Unix account for file access; `None` means the default account of the share.
    pub unix: Option<String>,
    /// How the client identified itself: with a password, with an unknown name, or without a name.
    pub kind: UserKind,
    /// The app password that the client proved; `None` for the main password of the account, and
    /// for logins without a password.
    pub app_password: Option<AppPasswordRights>,
}

/// The name of an app password, and the rights of the logins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppPasswordRights {
    /// Name of the password, such as that of a device. Unique within the account, with respect to
    /// the case.
    pub name: String,
    /// Names of the shares that the password admits to; empty for all shares of the account.
    pub shares: Vec<String>,
    /// Whether the password admits to reading only.
    pub read_only: bool,
}

/// How a user identified itself: with a password, with an unknown name, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserKind {
    /// The client proved the password of an account.
    Named,
    /// The client sent a user name that has no account, and the server allows guests. The session
    /// has no key: its messages are neither signed nor encrypted. [MS-SMB2] 3.3.5.5.3
    Guest,
    /// The client sent no user name, and the server allows anonymous users. The session has no key:
    /// its messages are neither signed nor encrypted.
    Anonymous,
}

impl UserKind {
    /// Returns true for [`Named`](Self::Named): only the client and the server know the session
    /// key, so the session can sign and encrypt. The keys of other users are public constants.
    pub const fn has_keys(self) -> bool {
        matches!(self, Self::Named)
    }
}

/// The result of a successful authentication, which the server stores in the session.
pub struct Accepted {
    /// The server's last security token, for the SESSION_SETUP response; empty when the mechanism
    /// has none.
    pub token: Vec<u8>,
    /// Session.SessionKey: the first 16 bytes of `full_session_key`, padded with zeros. All zeros
    /// when [`UserKind::has_keys`] returns false for the user.
    pub session_key: Zeroizing<[u8; 16]>,
    /// Session.FullSessionKey: the whole key of the authentication, from which keys for 256-bit
    /// ciphers derive. NTLM gives 16 bytes; other mechanisms may give more. [MS-SMB2] 3.3.1.8
    pub full_session_key: Zeroizing<Vec<u8>>,
    /// The user that the client has proved to be (by a password or a Kerberos ticket), or a guest
    /// or anonymous user.
    pub user: User,
    /// MsvAvTargetName: the service principal name ("cifs/server") of the server that the client
    /// meant to reach; `None` when the client sent none. [MS-NLMP] 2.2.2.1
    pub target_name: Option<String>,
    /// MsvAvChannelBindings: an MD5 hash that ties the authentication to a TLS channel; `None` when
    /// the client sent none or only zeros. [MS-NLMP] 2.2.2.1
    pub channel_bindings: Option<[u8; 16]>,
    /// The name of the client computer, as sent by the client; for logs only.
    pub workstation: String,
}

/// Why the server refused an authentication. The text is for the server's log only; the client
/// receives a status, which is the same for an unknown user and a wrong password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No account has the name that the client sent, and the server does not allow guests.
    BadUser,
    /// The account exists, but the password is wrong.
    BadPassword,
    /// The password is right, but the account is disabled.
    Disabled,
    /// The client proved an app password that has expired.
    Expired,
    /// The client sent an LM or NTLMv1 response. The server accepts only NTLMv2.
    NtlmV1,
    /// The client lacks a required NTLM capability: a known character set (Unicode or OEM), or
    /// extended session security.
    Downgrade,
    /// The MIC (message integrity code) of the client's NTLM AUTHENTICATE message is wrong or
    /// missing: one of the NTLM messages changed in transit.
    MicMismatch,
    /// The mechListMIC, which authenticates the client's list of SPNEGO mechanisms, is wrong or
    /// missing: the list may have changed in transit.
    MechListMicMismatch,
    /// The client sent no user name, and the server allows no anonymous users.
    Anonymous,
    /// The client offers no mechanism that the server supports.
    NoCommonMechanism,
    /// The client's security token is not well formed, is too long, or is not valid in the present
    /// state of the authentication.
    Malformed,
}

impl Refusal {
    /// Returns true if the refusal shows that the password is wrong, or that no account has the
    /// name: the login is a failed guess.
    pub const fn is_failed_guess(self) -> bool {
        matches!(self, Self::BadUser | Self::BadPassword)
    }
}

impl FileTime {
    /// 100 ns units between 1601 and 1970. [MS-DTYP] 2.3.3
    const UNIX_EPOCH: u64 = 116_444_736_000_000_000;
    /// 100 ns units of a second.
    const SECOND: u64 = 10_000_000;

    /// Makes the time of a number of seconds since 1970, UTC. Earlier times than 1970 count as
    /// 1970.
    pub fn from_unix(seconds: i64) -> Self {
        let seconds = u64::try_from(seconds).unwrap_or(0);
        Self(Self::UNIX_EPOCH.saturating_add(seconds.saturating_mul(Self::SECOND)))
    }

    /// Returns the number of whole seconds since 1970, UTC; negative before 1970.
    pub fn to_unix(self) -> i64 {
        let since = i128::from(self.0) - i128::from(Self::UNIX_EPOCH);
        let seconds = since.div_euclid(i128::from(Self::SECOND));
        i64::try_from(seconds).expect("2^64 intervals of 100 ns have fewer seconds")
    }
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
            Self::Expired => "the app password has expired",
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
