//! The state of a login in progress.

use alloc::vec::Vec;

use crypto::PreauthHash;
use wire::SessionId;

/// A login in progress.
pub(super) struct Login {
    /// SessionId; 0 before the first response.
    pub(super) session_id: SessionId,
    /// Session.PreauthIntegrityHashValue.
    pub(super) preauth: PreauthHash,
    pub(super) step: LoginStep,
}

pub(super) enum LoginStep {
    /// The authenticator generates a token.
    Authenticating,
    /// The server processes a token.
    Waiting,
    /// The server accepted the login, and the authenticator verifies its last token. The bytes of
    /// the response.
    Concluding(Vec<u8>),
}
