//! The interface between SPNEGO and the mechanisms that it negotiates.

use std::fmt;

use wire::spnego::Oid;
use zeroize::Zeroizing;

use crate::login::{Entropy, FileTime, Refusal, User};

/// The server of one security mechanism, without SPNEGO around its tokens. RFC 2743, 2.2.2
///
/// NTLM implements it. A Kerberos acceptor would take an AP-REQ, return an AP-REP, and be done
/// after one token.
pub trait Mechanism: Send {
    /// The object identifier of the mechanism in SPNEGO.
    fn oid(&self) -> Oid<'static>;

    /// Processes the client's next token, without SPNEGO around it.
    ///
    /// `now` and bytes of `entropy` may go into the server's token. The caller passes fresh random
    /// bytes in every call, and makes no further call after success or refusal.
    fn step(&mut self, token: &[u8], now: FileTime, entropy: &Entropy) -> Progress;

    /// Returns true if the next [`step`](Self::step) may block: on a directory server, a key
    /// distribution center, or a file. By default no step blocks.
    fn may_block(&self) -> bool {
        false
    }
}

/// A mechanism that a server supports in addition to NTLM. All acceptors of the server share it.
pub trait MechanismProvider: fmt::Debug + Send + Sync {
    /// The object identifier of the mechanism in SPNEGO.
    fn oid(&self) -> Oid<'static>;

    /// Makes the server of one authentication.
    fn start(&self) -> Box<dyn Mechanism>;
}

/// The result of [`Mechanism::step`].
pub enum Progress {
    /// The server sends this token and waits for the client's next token.
    Continue(Vec<u8>),
    /// The authentication succeeded.
    Established(Box<Established>),
    /// The authentication failed.
    Refused(Refusal),
}

/// The security context of a mechanism after a successful authentication.
pub struct Established {
    /// The server's last token; `None` for a mechanism without one, such as NTLM.
    pub token: Option<Vec<u8>>,
    /// The authenticated user.
    pub user: User,
    /// Session.FullSessionKey; SMB signs with its first 16 bytes. Zeros for guests and anonymous
    /// users.
    pub full_session_key: Zeroizing<Vec<u8>>,
    /// Signs and verifies the mechListMIC; `None` when the mechanism has no key.
    pub integrity: Option<Box<dyn Integrity>>,
    /// Service principal name of the server ("cifs/server"), as sent by the client.
    pub target_name: Option<String>,
    /// MD5 of the client's gss_channel_bindings_struct; `None` when the client sent none.
    /// RFC 4121, 4.1.1.2
    pub channel_bindings: Option<[u8; 16]>,
    /// The name of the client computer, as sent by the client; for logs only.
    pub workstation: String,
}

/// The client of one security mechanism, without SPNEGO around its tokens. RFC 2743, 2.2.1
///
/// NTLM implements it. A Kerberos initiator would create an AP-REQ and be done after the AP-REP.
pub trait InitiatorMechanism: Send {
    /// The object identifier of the mechanism in SPNEGO.
    fn oid(&self) -> Oid<'static>;

    /// Creates the client's next token. `token` is the server's last token, without SPNEGO around
    /// it; `None` in the first call.
    ///
    /// `now` and bytes of `entropy` may go into the token. The caller passes fresh random bytes in
    /// every call, and makes no further call after success or failure.
    ///
    /// # Errors
    /// The server's token is malformed or not trustworthy, or there is no token for this server.
    fn step(
        &mut self,
        token: Option<&[u8]>,
        now: FileTime,
        entropy: &Entropy,
    ) -> Result<InitiatorProgress, InitiatorError>;

    /// Returns true if the next [`step`](Self::step) may block: on a key distribution center, or a
    /// file. By default no step blocks.
    fn may_block(&self) -> bool {
        false
    }
}

/// Starts the client's side of authentications: one kind of credentials.
pub trait InitiatorProvider: fmt::Debug + Send + Sync {
    /// Makes the client of one authentication with the server of this service principal name
    /// ("cifs/server").
    fn start(&self, target_name: &str) -> Box<dyn InitiatorMechanism>;
}

/// The result of [`InitiatorMechanism::step`].
pub enum InitiatorProgress {
    /// The client sends this token and waits for the server's next token.
    Continue(Vec<u8>),
    /// The mechanism has its keys. The server's last SPNEGO message may still be missing.
    Established(Box<InitiatorContext>),
}

/// The security context of a client's mechanism.
pub struct InitiatorContext {
    /// The client's last token; `None` if the server needs no further token.
    pub token: Option<Vec<u8>>,
    /// Session.SessionKey; `None` for an anonymous client: its key would protect nothing.
    pub session_key: Option<Zeroizing<[u8; 16]>>,
    /// Signs and verifies the mechListMIC; `None` when the mechanism has no key.
    pub integrity: Option<Box<dyn Integrity>>,
}

/// Why a client aborts an authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitiatorError {
    /// The token is not well formed, or not valid in this state of the exchange.
    Malformed,
    /// The server does not grant Unicode, extended session security or target info.
    Downgrade,
    /// The server rejects the authentication, or selects a mechanism that the client did not offer.
    Rejected,
    /// The mechListMIC is wrong or missing: the list of mechanisms may have changed in transit.
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

/// GSS_GetMIC and GSS_VerifyMIC of an established mechanism. RFC 2743, 2.3
pub trait Integrity: Send {
    /// Creates the MIC over `message`. Each call uses the next sequence number.
    fn sign(&mut self, message: &[u8]) -> Vec<u8>;

    /// Whether `mic` is the peer's next MIC over `message`; compares in constant time.
    fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool;
}
