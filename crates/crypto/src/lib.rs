//! Signing, encryption and key derivation for SMB: functions over slices.
//!
//! Nothing here reads a clock, a socket or a random number: keys, nonces and bytes are arguments,
//! tags are results. A message may consist of several buffers, so the caller signs or encrypts a
//! READ payload in the buffer that received it and never copies it next to its header.
//!
//! - [`SigningKey`] signs and verifies: HMAC-SHA256, AES-CMAC, AES-GMAC. [MS-SMB2] 3.1.4.1
//! - [`EncryptionKey`] encrypts and decrypts: AES-GCM and AES-CCM, 128 and 256 bits.
//!   [MS-SMB2] 3.1.4.3
//! - [`PreauthHash`] chains the messages before authentication. [MS-SMB2] 3.3.5.4
//! - [`sha256`] hashes the permissions of files, beside stored security descriptors.
//! - [`mod@derive`] derives the keys of a session from its session key. [MS-SMB2] 3.1.4.2
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

mod algorithm;
mod cbc_mac;
mod ccm;
pub mod derive;
mod encryption;
mod plaintext;
mod preauth;
mod signing;
// The only module with `unsafe` code: the AES functions that aws-lc-rs does not offer.
#[allow(unsafe_code)]
mod sys;

pub use algorithm::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm, TAG_LEN};
pub use encryption::EncryptionKey;
pub use plaintext::{Plaintext, TagMismatch};
pub use preauth::PreauthHash;
pub use signing::{SigningKey, SigningNonce};

/// Returns the SHA-256 hash of a byte string.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut hash = [0; 32];
    hash.copy_from_slice(digest.as_ref());
    hash
}

/// Returns true if two byte strings are equal. The run time depends on the lengths only, never on
/// the contents.
pub fn fixed_time_eq(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn sha256_is_that_of_fips_180() {
        let hash = super::sha256(b"abc");
        assert_eq!(hash[..4], [0xBA, 0x78, 0x16, 0xBF]);
        assert_eq!(hash[28..], [0xF2, 0x00, 0x15, 0xAD]);
    }
}
