//! Signing and sealing of what is sent.

use alloc::sync::Arc;
use core::fmt;

pub use crypto::Plaintext;
use crypto::{EncryptionKey, SigningKey, SigningNonce};
use wire::SessionId;
use wire::header::SIGNATURE;
use wire::transform::{ASSOCIATED_DATA, FLAG_ENCRYPTED, TRANSFORM_LEN, Transform};

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
    pub key: Arc<EncryptionKey>,
    /// Never used twice with one key; as many bytes of it as the cipher takes.
    pub nonce: [u8; 16],
    /// The session.
    pub session_id: SessionId,
}

/// What pads a message: at most 7 bytes. \[MS-SMB2\] 3.3.4.1.3
const PADDING: [u8; 8] = [0; 8];

impl Sign {
    /// Writes the signature into the header at the start of `head`. The parts are those of an
    /// [`crate::effect::OutMessage`], in the order in which they are sent. \[MS-SMB2\] 3.1.4.1
    ///
    /// # Panics
    /// When `head` is shorter than a header or `padding` longer than 7 bytes.
    pub fn apply(&self, head: &mut [u8], payload: &[u8], padding: u8) {
        let padding = &PADDING[..usize::from(padding)];
        let signature = self.key.sign(self.nonce, &[head, payload, padding]);
        head[SIGNATURE].copy_from_slice(&signature);
    }
}

impl Seal {
    /// Seals a frame: all its messages, each with payload and padding, in the order in
    /// which they are sent. Returns the header to send in front. \[MS-SMB2\] 3.1.4.3
    ///
    /// # Panics
    /// When the frame is longer than a transform header can tell, 4 GiB.
    #[must_use]
    pub fn apply(&self, parts: &mut [Plaintext<'_>]) -> [u8; TRANSFORM_LEN] {
        let len: usize = parts.iter().map(Plaintext::len).sum();
        let mut transform = Transform {
            signature: [0; 16],
            nonce: self.nonce,
            original_message_size: u32::try_from(len).expect("a frame is shorter than 4 GiB"),
            flags: FLAG_ENCRYPTED,
            session_id: self.session_id,
        };
        let header = transform.encode();
        let nonce = &self.nonce[..self.key.cipher().nonce_len()];
        transform.signature = self
            .key
            .encrypt_parts(nonce, &header[ASSOCIATED_DATA], parts);
        transform.encode()
    }
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
