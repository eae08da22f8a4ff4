//! Signing and sealing of what is sent.

use alloc::sync::Arc;
use core::fmt;

use crypto::{SealingKey, SigningKey, SigningNonce};
use wire::SessionId;

/// How to sign a message. The driver calls [`Sign::apply`] once the payload is in memory.
#[derive(Clone)]
pub struct Sign {
    /// The key of the session or channel.
    pub key: Arc<SigningKey>,
    /// What AES-GMAC needs beside the key.
    pub nonce: SigningNonce,
}

/// How to seal a frame. The driver calls [`Seal::apply`] once every payload is in memory.
#[derive(Clone)]
pub struct Seal {
    /// The key of the session for this direction.
    pub key: Arc<SealingKey>,
    /// Never used twice with one key; as many bytes of it as the cipher takes.
    pub nonce: [u8; 16],
    /// The session.
    pub session_id: SessionId,
}

impl fmt::Debug for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sign")
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal({:?})", self.session_id)
    }
}
