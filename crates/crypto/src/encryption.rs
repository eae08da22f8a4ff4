//! Encryption and decryption of messages. [MS-SMB2] 3.1.4.3
#![forbid(unsafe_code)]

use core::fmt;

use crate::ccm::CcmKey;
use crate::plaintext::{Plaintext, TagMismatch};
use crate::sys::{Direction, Gcm, GcmKey};
use crate::{Cipher, TAG_LEN};

/// A cipher with its expanded key, for any number of messages on any number of threads.
///
/// The caller must never use a nonce twice with one key. This type does not check that.
pub struct EncryptionKey {
    cipher: Cipher,
    key: Key,
}

// Keys live behind an Arc for as long as a session; a second heap object would save nothing.
#[expect(clippy::large_enum_variant)]
enum Key {
    Ccm(CcmKey),
    Gcm(GcmKey),
}

impl EncryptionKey {
    /// Expands `key` for encryption and decryption with `cipher`.
    ///
    /// # Panics
    /// Panics when `key` does not have [`Cipher::key_len`] bytes.
    pub fn new(cipher: Cipher, key: &[u8]) -> Self {
        assert_eq!(key.len(), cipher.key_len());
        let key = match cipher {
            Cipher::Aes128Ccm | Cipher::Aes256Ccm => Key::Ccm(CcmKey::new(key)),
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => Key::Gcm(GcmKey::new(key)),
        };
        Self { cipher, key }
    }

    /// The cipher that this key belongs to.
    pub const fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Encrypts the whole message `data` in place and returns the authentication tag, which is the
    /// Signature of the transform header.
    ///
    /// `aad` is the transform header from its Nonce field to its end (32 bytes). The tag
    /// authenticates these bytes, but they stay unencrypted. [MS-SMB2] 3.1.4.3
    ///
    /// # Panics
    /// Panics when `nonce` does not have [`Cipher::nonce_len`] bytes.
    pub fn encrypt_in_place(&self, nonce: &[u8], aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] {
        self.encrypt_parts(nonce, aad, &mut [data.into()])
    }

    /// Encrypts one message that consists of several buffers of any length, and returns the
    /// authentication tag, which is the Signature of the transform header. `aad` is the transform
    /// header from its Nonce field to its end (32 bytes), which stays unencrypted.
    ///
    /// # Panics
    /// Panics when `nonce` does not have [`Cipher::nonce_len`] bytes, or the two slices of a
    /// [`Plaintext::Into`] differ in length.
    pub fn encrypt_parts(
        &self,
        nonce: &[u8],
        aad: &[u8],
        parts: &mut [Plaintext<'_>],
    ) -> [u8; TAG_LEN] {
        match &self.key {
            Key::Ccm(key) => key.encrypt(sized(nonce), aad, parts),
            Key::Gcm(key) => {
                let mut message = gcm(key, Direction::Encrypt, nonce, aad);
                for part in parts {
                    match part {
                        Plaintext::InPlace(bytes) => message.text(bytes),
                        Plaintext::Into(from, to) => message.text_into(from, to),
                    }
                }
                message.tag()
            }
        }
    }

    /// Decrypts the whole message `data` in place. `aad` is the transform header from its Nonce
    /// field to its end (32 bytes), and `tag` is the Signature field of that header.
    ///
    /// # Errors
    /// [`TagMismatch`] when the tag does not match. The buffer then holds zeros, so that no caller
    /// acts on unauthenticated plaintext.
    ///
    /// # Panics
    /// Panics when `nonce` does not have [`Cipher::nonce_len`] bytes.
    pub fn decrypt_in_place(
        &self,
        nonce: &[u8],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        self.decrypt_parts(nonce, aad, &mut [data], tag)
    }

    /// Decrypts in place one message that consists of several buffers of any length. `aad` is the
    /// transform header from its Nonce field to its end (32 bytes), and `tag` is the Signature
    /// field of that header.
    ///
    /// # Errors
    /// [`TagMismatch`] when the tag does not match. The buffers then hold zeros.
    ///
    /// # Panics
    /// Panics when `nonce` does not have [`Cipher::nonce_len`] bytes.
    pub fn decrypt_parts(
        &self,
        nonce: &[u8],
        aad: &[u8],
        parts: &mut [&mut [u8]],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), TagMismatch> {
        let result = match &self.key {
            Key::Ccm(key) => key.decrypt(sized(nonce), aad, parts, tag),
            Key::Gcm(key) => {
                let mut message = gcm(key, Direction::Decrypt, nonce, aad);
                parts.iter_mut().for_each(|part| message.text(part));
                if message.matches(tag) {
                    Ok(())
                } else {
                    Err(TagMismatch)
                }
            }
        };
        if result.is_err() {
            parts.iter_mut().for_each(|part| part.fill(0));
        }
        result
    }
}

/// Starts a message and adds its associated data.
fn gcm(key: &GcmKey, direction: Direction, nonce: &[u8], aad: &[u8]) -> Gcm {
    let mut message = key.start(direction, sized(nonce));
    message.associated(aad);
    message
}

fn sized<const N: usize>(nonce: &[u8]) -> &[u8; N] {
    nonce
        .try_into()
        .expect("the nonce has the length that its cipher requires")
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionKey")
            .field("cipher", &self.cipher)
            .finish_non_exhaustive()
    }
}
