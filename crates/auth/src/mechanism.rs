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

/// GSS_GetMIC and GSS_VerifyMIC of an established mechanism. RFC 2743, 2.3
pub trait Integrity: Send {
    /// Creates the MIC over `message`. Each call uses the next sequence number.
    fn sign(&mut self, message: &[u8]) -> Vec<u8>;

    /// Whether `mic` is the peer's next MIC over `message`; compares in constant time.
    fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool;
}
