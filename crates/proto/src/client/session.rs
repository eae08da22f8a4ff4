//! What the channels of one login share. \[MS-SMB2\] 3.2.1.3

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use crypto::{Cipher, SealingKey, SigningAlgorithm};

use wire::dialect::{Capabilities, Dialect};
use wire::{Guid, SessionId};

/// A session that is logged in. Never changes but for its counter, and is used by channels on any
/// thread.
pub struct Session {
    /// The server's name for it.
    pub id: SessionId,
    /// What was negotiated on the first connection; further channels must agree.
    pub negotiated: Negotiated,
    /// Whether the server made a guest of us: no keys, nothing is signed.
    pub is_guest: bool,
    /// Whether everything is signed.
    pub signing_required: bool,
    /// Whether everything is sealed.
    pub encrypt: bool,
    /// Session.SessionKey: further channels prove with it that they belong here. Empty for a guest.
    pub(crate) session_key: Vec<u8>,
    /// Session.EncryptionKey and Session.DecryptionKey.
    pub(crate) sealing: Option<SealingPair>,
    /// Counts the nonces of what we seal, over all channels: never one twice.
    pub(crate) next_nonce: AtomicU64,
}

/// What NEGOTIATE brought. \[MS-SMB2\] 3.2.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The dialect.
    pub dialect: Dialect,
    /// The server's.
    pub capabilities: Capabilities,
    /// Who the server is.
    pub server_guid: Guid,
    /// None where nothing can be sealed.
    pub cipher: Option<Cipher>,
    /// How messages are signed.
    pub signing_algorithm: SigningAlgorithm,
    /// Bytes of one READ at most, not above the configuration's max_io.
    pub max_read: u32,
    /// The same of a WRITE.
    pub max_write: u32,
    /// The same of everything else.
    pub max_transact: u32,
}

/// The keys of a session's seals.
pub(crate) struct SealingPair {
    /// Opens what the server sealed.
    pub(crate) inbound: Arc<SealingKey>,
    /// Seals what we send.
    pub(crate) outbound: Arc<SealingKey>,
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("negotiated", &self.negotiated)
            .finish_non_exhaustive()
    }
}
