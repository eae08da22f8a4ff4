//! Signing and encryption of outbound messages. \[MS-SMB2\] 3.1.4.1, 3.1.4.3

use alloc::sync::Arc;
use core::fmt;

pub use crypto::Plaintext;
use crypto::{EncryptionKey, SigningKey, SigningNonce};
use wire::SessionId;
use wire::header::SIGNATURE;
use wire::transform::{ASSOCIATED_DATA, FLAG_ENCRYPTED, TRANSFORM_LEN, Transform};

/// Key and nonce with which the I/O driver signs one message. The driver calls [`Sign::apply`] once
/// the data of the message are in memory.
#[derive(Clone)]
pub struct Sign {
    /// The signing key of the session; on a further connection (channel), the key of that channel.
    pub key: Arc<SigningKey>,
    /// The nonce of the signature, unique for the key. Only the algorithm AES-GMAC uses it.
    pub nonce: SigningNonce,
}

/// Key, nonce and session id with which the I/O driver encrypts one frame. The driver calls
/// [`FrameEncryption::apply`] once the data of all messages of the frame are in memory.
#[derive(Clone)]
pub struct FrameEncryption {
    /// The key of the session that encrypts frames to the peer.
    pub key: Arc<EncryptionKey>,
    /// The nonce, unique for the key. The cipher uses the first [`crypto::Cipher::nonce_len`]
    /// bytes.
    pub nonce: [u8; 16],
    /// The SessionId in the transform header, by which the peer finds the key for decryption.
    pub session_id: SessionId,
}

/// The padding of a message in a compound; at most 7 bytes of it are used. \[MS-SMB2\] 3.3.4.1.3
const PADDING: [u8; 8] = [0; 8];

impl Sign {
    /// Computes the signature of a message and writes it into the SMB2 header at the start of
    /// `head`. The message consists of `head`, the bytes `payload`, and `padding` zero bytes, 0 to
    /// 7. \[MS-SMB2\] 3.1.4.1
    ///
    /// # Panics
    /// When `head` is shorter than a header or `padding` longer than 7 bytes.
    pub fn apply(&self, head: &mut [u8], payload: &[u8], padding: u8) {
        let padding = &PADDING[..usize::from(padding)];
        let signature = self.key.sign(self.nonce, &[head, payload, padding]);
        head[SIGNATURE].copy_from_slice(&signature);
    }
}

impl FrameEncryption {
    /// Encrypts a frame in place. `parts` are the messages of the frame in order, each with its
    /// data and padding. Returns the transform header, which the I/O driver sends before them.
    /// \[MS-SMB2\] 3.1.4.3
    ///
    /// # Panics
    /// When the frame has 4 GiB or more: the length field of a transform header has 32 bits.
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

impl fmt::Debug for FrameEncryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameEncryption({:?})", self.session_id)
    }
}
