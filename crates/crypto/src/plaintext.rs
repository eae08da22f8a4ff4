//! The input of an encryption, and the error of a decryption.
#![forbid(unsafe_code)]

use core::fmt;

/// One part of a message, as input of
/// [`EncryptionKey::encrypt_parts`](crate::EncryptionKey::encrypt_parts).
#[derive(Debug)]
pub enum Plaintext<'a> {
    /// The ciphertext replaces the plaintext.
    InPlace(&'a mut [u8]),
    /// The plaintext stays unchanged; the ciphertext goes into the second slice, which must have
    /// the same length.
    Into(&'a [u8], &'a mut [u8]),
}

/// The authentication tag does not match the message: the message changed after its encryption,
/// or another key encrypted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagMismatch;

impl Plaintext<'_> {
    /// Length of the part in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::InPlace(bytes) => bytes.len(),
            Self::Into(from, _) => from.len(),
        }
    }

    /// Whether the part has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a mut [u8]> for Plaintext<'a> {
    fn from(bytes: &'a mut [u8]) -> Self {
        Self::InPlace(bytes)
    }
}

impl fmt::Display for TagMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the authentication tag does not match the message")
    }
}

impl core::error::Error for TagMismatch {}
