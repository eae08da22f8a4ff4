//! The state of a login in progress.

use alloc::vec::Vec;

use crypto::PreauthHash;
use wire::SessionId;

/// A login under way.
pub(super) struct Login {
    /// The server's name for the session; 0 before it gave it one.
    pub(super) session_id: SessionId,
    /// Session.PreauthIntegrityHashValue.
    pub(super) preauth: PreauthHash,
    pub(super) step: LoginStep,
}

pub(super) enum LoginStep {
    /// The authenticator makes a token.
    Thinking,
    /// A token is with the server.
    Asking,
    /// The server let us in; the authenticator says whether it was the right one. The answer, as
    /// it came.
    Concluding(Vec<u8>),
}
