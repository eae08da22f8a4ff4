//! The interface between SPNEGO and the mechanisms that it negotiates.

use std::fmt;

use wire::spnego::Oid;
use zeroize::Zeroizing;

use crate::login::{Claim, Entropy, FileTime, Refusal, User};

/// The server's state for one authentication with one security mechanism, such as NTLM or Kerberos.
/// Its tokens have no SPNEGO around them. RFC 2743, 2.2.2
///
/// NTLM implements it. A Kerberos acceptor would take an AP-REQ, return an AP-REP, and finish after
/// one token.
pub trait Mechanism: Send {
    /// The object identifier that names the mechanism in SPNEGO.
    fn oid(&self) -> Oid<'static>;

    /// Processes the client's next token, without SPNEGO around it. The result is the server's next
    /// token, the security context, or the reason of the failure.
    ///
    /// `now` is the current time and `entropy` is random; both may go into the server's token. The
    /// caller passes fresh random bytes in every call, and makes no further call after success or
    /// refusal.
    fn step(&mut self, token: &[u8], now: FileTime, entropy: &Entropy) -> Progress;

    /// Returns the identity that the client's next token claims, without SPNEGO around it, before
    /// [`step`](Self::step) checks its proof. `None` when the token claims no identity. The default
    /// implementation returns `None`: the server does not limit guesses of the mechanism.
    fn claim(&self, _token: &[u8]) -> Option<Claim> {
        None
    }

    /// Returns true if the next call of [`step`](Self::step) may block the thread on a directory
    /// server, a key distribution center, or a file. The default implementation returns false.
    fn may_block(&self) -> bool {
        false
    }
}

/// A factory for one security mechanism that a server supports in addition to NTLM. All acceptors
/// of the server share it.
pub trait MechanismProvider: fmt::Debug + Send + Sync {
    /// The object identifier that names the mechanism in SPNEGO.
    fn oid(&self) -> Oid<'static>;

    /// Creates the server's state for one new authentication.
    fn start(&self) -> Box<dyn Mechanism>;
}

/// The result of [`Mechanism::step`] for one token of the client: a token for the client, or the
/// end of the authentication.
pub enum Progress {
    /// The authentication needs another exchange. The server sends this token, without SPNEGO
    /// around it, and waits for the client's next token.
    Continue(Vec<u8>),
    /// The authentication succeeded, with this security context.
    Established(Box<Established>),
    /// The authentication failed for this reason. The reason is for the server's log only.
    Refused(Refusal),
}

/// The server's security context after a successful authentication with one [`Mechanism`]: the user
/// and the keys.
pub struct Established {
    /// The server's last token, without SPNEGO around it; `None` for a mechanism without one, such
    /// as NTLM.
    pub token: Option<Vec<u8>>,
    /// The user that the server has authenticated, or a guest or anonymous user.
    pub user: User,
    /// Session.FullSessionKey: the whole key of the authentication, usually 16 or 32 bytes. SMB
    /// uses its first 16 bytes as Session.SessionKey. Zeros for guests and anonymous users.
    pub full_session_key: Zeroizing<Vec<u8>>,
    /// Creates and verifies the mechListMIC, which authenticates the list of SPNEGO mechanisms;
    /// `None` when the mechanism has no key.
    pub integrity: Option<Box<dyn Integrity>>,
    /// Service principal name ("cifs/server") of the server that the client meant to reach, as sent
    /// by the client; `None` when the client sent none.
    pub target_name: Option<String>,
    /// MD5 of the client's gss_channel_bindings_struct, which ties the authentication to a TLS
    /// channel; `None` when the client sent none. RFC 4121, 4.1.1.2
    pub channel_bindings: Option<[u8; 16]>,
    /// The name of the client computer, as sent by the client; for logs only.
    pub workstation: String,
}

/// The client's state for one authentication with one security mechanism, such as NTLM or Kerberos.
/// Its tokens have no SPNEGO around them. RFC 2743, 2.2.1
///
/// NTLM implements it. A Kerberos initiator would create an AP-REQ and finish after the AP-REP.
pub trait InitiatorMechanism: Send {
    /// The object identifier that names the mechanism in SPNEGO.
    fn oid(&self) -> Oid<'static>;

    /// Creates the client's next token, or ends the authentication. `token` is the server's last
    /// token, without SPNEGO around it; `None` in the first call.
    ///
    /// `now` is the current time and `entropy` is random; both may go into the client's token. The
    /// caller passes fresh random bytes in every call, and makes no further call after success or
    /// failure.
    ///
    /// # Errors
    /// Fails when the server's token is malformed or lacks a required capability, or when the
    /// mechanism cannot create a token for this server.
    fn step(
        &mut self,
        token: Option<&[u8]>,
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<InitiatorProgress, InitiatorError>;

    /// Returns true if the next call of [`step`](Self::step) may block the thread on a key
    /// distribution center or a file. The default implementation returns false.
    fn may_block(&self) -> bool {
        false
    }
}

/// A factory for the client's side of authentications with one set of credentials, such as a user
/// name and a password hash.
pub trait InitiatorProvider: fmt::Debug + Send + Sync {
    /// Creates the client's state for one new authentication. `target_name` is the service
    /// principal name of the server ("cifs/server").
    fn start(&self, target_name: &str) -> Box<dyn InitiatorMechanism>;
}

/// The result of [`InitiatorMechanism::step`] for one token of the server.
pub enum InitiatorProgress {
    /// The authentication needs another exchange. The client sends this token, without SPNEGO
    /// around it, and waits for the server's next token.
    Continue(Vec<u8>),
    /// The mechanism has its keys, in this security context. The server's last SPNEGO message may
    /// still be missing.
    Established(Box<InitiatorContext>),
}

/// The client's security context at the end of an authentication with one [`InitiatorMechanism`].
pub struct InitiatorContext {
    /// The client's last token, without SPNEGO around it; `None` if the server needs no further
    /// token.
    pub token: Option<Vec<u8>>,
    /// The 16-byte Session.SessionKey; `None` for an anonymous client, because a key from public
    /// constants would protect nothing.
    pub session_key: Option<Zeroizing<[u8; 16]>>,
    /// Creates and verifies the mechListMIC, which authenticates the list of SPNEGO mechanisms;
    /// `None` when the mechanism has no key.
    pub integrity: Option<Box<dyn Integrity>>,
}

/// Reason why the client's end of an authentication ends without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitiatorError {
    /// The server's security token is not well formed, or is not valid in the present state of the
    /// authentication.
    Malformed,
    /// The server does not grant a required NTLM capability: Unicode, extended session security or
    /// target info.
    Downgrade,
    /// The server rejects the authentication, ends it without ACCEPT_COMPLETED, or selects a
    /// mechanism that the client did not offer.
    Rejected,
    /// The mechListMIC, which authenticates the client's list of SPNEGO mechanisms, is wrong or
    /// missing: the list may have changed in transit.
    MechListMicMismatch,
}

impl fmt::Display for InitiatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the server's token is malformed",
            Self::Downgrade => "the server grants no extended session security",
            Self::Rejected => "the server refuses the authentication mechanism of the client",
            Self::MechListMicMismatch => {
                "the MIC of the list of mechanisms is missing or does not match"
            }
        })
    }
}

impl std::error::Error for InitiatorError {}

/// Message integrity codes (MICs) of an established mechanism, in both directions: GSS_GetMIC and
/// GSS_VerifyMIC. SPNEGO protects its list of mechanisms with them. RFC 2743, 2.3
pub trait Integrity: Send {
    /// Creates the MIC over `message`, which the peer verifies. Each call uses the next sequence
    /// number of the outbound direction.
    fn sign(&mut self, message: &[u8]) -> Vec<u8>;

    /// Returns true if `mic` is the peer's next MIC over `message`. The comparison takes constant
    /// time. Each call uses the next sequence number of the inbound direction.
    fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool;
}
