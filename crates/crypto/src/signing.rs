//! Signing and verification of messages. [MS-SMB2] 3.1.4.1, 3.1.5.1
#![forbid(unsafe_code)]

use core::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use crate::cbc_mac::CmacKey;
use crate::sys::{Direction, GcmKey};
use crate::{SigningAlgorithm, TAG_LEN};

/// Length of the SMB2 header in bytes. [MS-SMB2] 2.2.1
const HEADER_LEN: usize = 64;

/// Offset of Signature in the header, in bytes; it ends with the header. [MS-SMB2] 2.2.1
const SIGNATURE_OFFSET: usize = 48;

/// A signing algorithm with its expanded key, for any number of messages on any number of threads.
pub struct SigningKey {
    algorithm: SigningAlgorithm,
    key: Key,
}

// Keys live behind an Arc for as long as a session; a second heap object would save nothing.
#[expect(clippy::large_enum_variant)]
enum Key {
    Hmac(hmac::Key),
    Cmac(CmacKey),
    Gmac(GcmKey),
}

/// The fields of a message from which AES-GMAC forms its nonce. The other signing algorithms ignore
/// them. [MS-SMB2] 3.1.4.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigningNonce {
    /// MessageId field of the SMB2 header of the message.
    pub message_id: u64,
    /// Whether the server sends the message (SMB2_FLAGS_SERVER_TO_REDIR).
    pub from_server: bool,
    /// Whether the command is CANCEL, which shares its MessageId with the request that it cancels.
    pub is_cancel: bool,
}

impl SigningKey {
    /// Makes the signing key of a channel from its 16 key bytes (Channel.SigningKey), which key
    /// derivation has computed already. `algorithm` is the signing algorithm that NEGOTIATE
    /// selected. The constructor computes the key schedule once, for all messages.
    pub fn new(algorithm: SigningAlgorithm, key: &[u8; 16]) -> Self {
        let key = match algorithm {
            SigningAlgorithm::HmacSha256 => Key::Hmac(hmac::Key::new(hmac::HMAC_SHA256, key)),
            SigningAlgorithm::AesCmac => Key::Cmac(CmacKey::new(key)),
            SigningAlgorithm::AesGmac => Key::Gmac(GcmKey::new(key)),
        };
        Self { algorithm, key }
    }

    /// The signing algorithm that this key belongs to.
    pub const fn algorithm(&self) -> SigningAlgorithm {
        self.algorithm
    }

    /// Computes the 16-byte signature of one message. In a compound, each member with its padding
    /// counts as one message.
    ///
    /// The parts are the buffers of the message in their order. The first begins with the whole
    /// 64-byte SMB2 header; its Signature field counts as zeros, with any content. The division of
    /// the rest into parts does not change the result.
    ///
    /// # Panics
    /// Panics when no part is given, or the first part is shorter than an SMB2 header.
    pub fn sign(&self, nonce: SigningNonce, message_parts: &[&[u8]]) -> [u8; TAG_LEN] {
        let pieces = pieces(message_parts);
        match &self.key {
            Key::Hmac(key) => hmac_sha256(key, pieces),
            Key::Cmac(key) => key.mac(pieces),
            Key::Gmac(key) => gmac(key, nonce, pieces),
        }
    }

    /// Returns true if `signature` is the signature of the message with these parts, as
    /// [`sign`](Self::sign) computes it. The comparison takes constant time.
    ///
    /// # Panics
    /// Panics when no part is given, or the first part is shorter than an SMB2 header.
    pub fn verify(
        &self,
        nonce: SigningNonce,
        message_parts: &[&[u8]],
        signature: &[u8; TAG_LEN],
    ) -> bool {
        verify_slices_are_equal(&self.sign(nonce, message_parts), signature).is_ok()
    }
}

impl SigningNonce {
    /// The nonce: MessageId, one bit for the sender's role, one for CANCEL, zeros.
    /// [MS-SMB2] 3.1.4.1
    fn to_bytes(self) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.message_id.to_le_bytes());
        nonce[8] = u8::from(self.from_server) | u8::from(self.is_cancel) << 1;
        nonce
    }
}

/// The bytes that the signature covers: the message with zeros in place of its Signature.
fn pieces<'m>(parts: &'m [&'m [u8]]) -> impl Iterator<Item = &'m [u8]> {
    let (first, rest) = parts.split_first().expect("a message has a header");
    assert!(first.len() >= HEADER_LEN);
    [
        &first[..SIGNATURE_OFFSET],
        &[0; HEADER_LEN - SIGNATURE_OFFSET],
        &first[HEADER_LEN..],
    ]
    .into_iter()
    .chain(rest.iter().copied())
}

fn hmac_sha256<'m>(key: &hmac::Key, pieces: impl Iterator<Item = &'m [u8]>) -> [u8; TAG_LEN] {
    let mut context = hmac::Context::with_key(key);
    pieces.for_each(|piece| context.update(piece));
    let tag = context.sign();
    *tag.as_ref().first_chunk().expect("SHA-256 has 32 bytes")
}

fn gmac<'m>(
    key: &GcmKey,
    nonce: SigningNonce,
    pieces: impl Iterator<Item = &'m [u8]>,
) -> [u8; TAG_LEN] {
    let mut message = key.start(Direction::Encrypt, &nonce.to_bytes());
    pieces.for_each(|piece| message.associated(piece));
    message.tag()
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}
