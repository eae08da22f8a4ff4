//! The seam between SPNEGO and the mechanisms that it negotiates.

use wire::spnego::Oid;
use zeroize::Zeroizing;

use crate::realm::{Entropy, FileTime, Refusal, User};

/// The server's side of one mechanism: its raw tokens in, its raw tokens out. RFC 2743, 2.2.2
///
/// NTLM is one. Kerberos will be another: AP-REQ in, AP-REP out, done after one token.
pub trait Mechanism: Send {
    /// What SPNEGO calls it.
    fn oid(&self) -> Oid<'static>;

    /// Takes the peer's next token.
    fn step(&mut self, token: &[u8], now: FileTime, entropy: &Entropy) -> Progress;
}

/// What a mechanism makes of a token.
pub enum Progress {
    /// Send this, more is to come.
    Continue(Vec<u8>),
    /// The peer is who it says.
    Established(Box<Established>),
    /// It is not, or cannot say.
    Refused(Refusal),
}

/// What a mechanism knows in the end.
pub struct Established {
    /// The last token to send; NTLM has none.
    pub token: Option<Vec<u8>>,
    /// Who the peer is.
    pub user: User,
    /// Everything that was agreed on; SMB signs with its first 16 bytes. Zeros for a guest and
    /// for nobody.
    pub full_session_key: Zeroizing<Vec<u8>>,
    /// Signatures for the mechListMIC; `None` when there is no key to sign with.
    pub integrity: Option<Box<dyn Integrity>>,
    /// Service that the client meant to reach, as it wrote it ("cifs/server").
    pub target_name: Option<String>,
    /// MD5 of the gss_channel_bindings_struct that the client saw; `None` when it saw none.
    /// RFC 4121, 4.1.1.2
    pub channel_bindings: Option<[u8; 16]>,
    /// The client's name for itself, for logs only.
    pub workstation: String,
}

/// GSS_GetMIC and GSS_VerifyMIC of an established mechanism. RFC 2743, 2.3
pub trait Integrity: Send {
    /// The MIC over `message`.
    fn sign(&mut self, message: &[u8]) -> Vec<u8>;

    /// Whether `mic` is the peer's MIC over `message`; compares in constant time.
    fn verify(&mut self, message: &[u8], mic: &[u8]) -> bool;
}
