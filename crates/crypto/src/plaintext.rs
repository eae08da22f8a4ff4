//! The input of an encryption, and the error of a decryption.
#![forbid(unsafe_code)]

use core::fmt;

/// One buffer of a message that
/// [`EncryptionKey::encrypt_parts`](crate::EncryptionKey::encrypt_parts) encrypts.
#[derive(Debug)]
pub enum Plaintext<'a> {
    /// This buffer holds the plaintext, and the ciphertext replaces it.
    InPlace(&'a mut [u8]),
    /// The first slice holds the plaintext and stays unchanged. The ciphertext goes into the second
    /// slice, which must have the same length.
    Into(&'a [u8], &'a mut [u8]),
}

/// The error of a decryption: the authentication tag does not match the message. The message
/// changed after its encryption, or another key encrypted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagMismatch;

impl Plaintext<'_> {
    /// Length of the buffer's plaintext in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::InPlace(bytes) => bytes.len(),
            Self::Into(from, _) => from.len(),
        }
    }

    /// Returns true if the buffer has no bytes.
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
