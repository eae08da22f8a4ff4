//! Derivation of the signing, encryption and application keys of an SMB session from the key of its
//! authentication. [MS-SMB2] 3.1.4.2
#![forbid(unsafe_code)]

use core::fmt;

use aws_lc_rs::kdf::{KbkdfCtrHmacAlgorithmId, get_kbkdf_ctr_hmac_algorithm, kbkdf_ctr_hmac};
use zeroize::Zeroize;

use crate::{Cipher, PreauthHash};

/// The rules by which a dialect derives the keys of a session: its labels and contexts. [MS-SMB2]
/// 3.1.4.2
#[derive(Clone, Copy, Debug)]
pub enum KeySchedule<'a> {
    /// Dialects 2.0.2 and 2.1: the signing key is the session key itself, and encryption does not
    /// exist.
    Smb2,
    /// Dialects 3.0 and 3.0.2: the derivation uses constant contexts.
    Smb30,
    /// Dialect 3.1.1: the context of the derivation is this preauthentication hash. It is the hash
    /// of the session, or for a further channel, of the SESSION_SETUP that bound the channel.
    Smb311(&'a PreauthHash),
}

/// The keys of one session. Drop overwrites them with zeros.
pub struct SessionKeys {
    /// Channel.SigningKey, which signs the messages of the first channel of the session. Further
    /// channels have separate keys.
    pub signing: [u8; 16],
    /// The two keys that encrypt messages; `None` when the dialect or the connection has no cipher.
    pub encryption: Option<CipherKeys>,
    /// Session.ApplicationKey, for protocols above SMB, such as RPC. In dialects 2.0.2 and 2.1, it
    /// is the session key itself.
    pub application: [u8; 16],
}

/// The two keys that encrypt the messages of a session, one for each direction. All channels of the
/// session share them.
#[derive(Debug)]
pub struct CipherKeys {
    /// The key with which the client encrypts and the server decrypts (Session.DecryptionKey of the
    /// server).
    pub client_to_server: CipherKey,
    /// The key with which the server encrypts and the client decrypts (Session.EncryptionKey of the
    /// server).
    pub server_to_client: CipherKey,
}

/// A key for one [`Cipher`], of 16 or 32 bytes as [`Cipher::key_len`] says. Drop overwrites it with
/// zeros.
pub struct CipherKey {
    bytes: [u8; 32],
    len: usize,
}

/// Derives every key of a session. [MS-SMB2] 3.3.5.5.3, 3.2.5.3
///
/// `full_session_key` is the whole key of the authentication; only 256-bit ciphers use it.
/// `session_key` consists of its first 16 bytes, padded with zeros. Without a `cipher`, the result
/// has no encryption keys.
pub fn session_keys(
    schedule: KeySchedule<'_>,
    session_key: &[u8; 16],
    full_session_key: &[u8],
    cipher: Option<Cipher>,
) -> SessionKeys {
    SessionKeys {
        signing: channel_signing_key(schedule, session_key),
        encryption: cipher
            .and_then(|cipher| encryption_keys(schedule, session_key, full_session_key, cipher)),
        application: application_key(schedule, session_key),
    }
}

/// Derives Channel.SigningKey, with which one further channel of a session signs its messages.
/// [MS-SMB2] 3.3.5.5.3
///
/// `session_key` is the key of the authentication that bound the channel. In dialect 3.1.1,
/// `schedule` carries the preauthentication hash of that binding.
pub fn channel_signing_key(schedule: KeySchedule<'_>, session_key: &[u8; 16]) -> [u8; 16] {
    match schedule {
        KeySchedule::Smb2 => *session_key,
        KeySchedule::Smb30 => key_128(session_key, b"SMB2AESCMAC\0", b"SmbSign\0"),
        KeySchedule::Smb311(hash) => key_128(session_key, b"SMBSigningKey\0", hash.as_bytes()),
    }
}

fn application_key(schedule: KeySchedule<'_>, session_key: &[u8; 16]) -> [u8; 16] {
    match schedule {
        KeySchedule::Smb2 => *session_key,
        KeySchedule::Smb30 => key_128(session_key, b"SMB2APP\0", b"SmbRpc\0"),
        KeySchedule::Smb311(hash) => key_128(session_key, b"SMBAppKey\0", hash.as_bytes()),
    }
}

fn encryption_keys(
    schedule: KeySchedule<'_>,
    session_key: &[u8; 16],
    full_session_key: &[u8],
    cipher: Cipher,
) -> Option<CipherKeys> {
    let len = cipher.key_len();
    let key = if len == 32 {
        full_session_key
    } else {
        session_key
    };
    let (c2s, s2c): (Purpose<'_>, Purpose<'_>) = match &schedule {
        KeySchedule::Smb2 => return None,
        KeySchedule::Smb30 => (
            (b"SMB2AESCCM\0", b"ServerIn \0"),
            (b"SMB2AESCCM\0", b"ServerOut\0"),
        ),
        KeySchedule::Smb311(hash) => (
            (b"SMBC2SCipherKey\0", hash.as_bytes()),
            (b"SMBS2CCipherKey\0", hash.as_bytes()),
        ),
    };
    Some(CipherKeys {
        client_to_server: CipherKey::derive(key, c2s, len),
        server_to_client: CipherKey::derive(key, s2c, len),
    })
}

/// Label and context. The zero that ends a string is part of it.
type Purpose<'a> = (&'a [u8], &'a [u8]);

fn key_128(key: &[u8], label: &[u8], context: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    kdf(key, (label, context), &mut out);
    out
}

/// SP800-108 in counter mode with HMAC-SHA256, r = 32. [MS-SMB2] 3.1.4.2
fn kdf(key: &[u8], (label, context): Purpose<'_>, out: &mut [u8]) {
    const FIXED_MAX: usize = 16 + 1 + 64 + 4; // The longest label, 0x00, a preauth hash, L.
    let bits = u32::try_from(out.len() * 8)
        .expect("keys have 128 or 256 bits")
        .to_be_bytes();
    let mut fixed = [0_u8; FIXED_MAX];
    let mut len = 0;
    for piece in [label, &[0], context, &bits] {
        fixed[len..len + piece.len()].copy_from_slice(piece);
        len += piece.len();
    }
    let hmac_sha256 = get_kbkdf_ctr_hmac_algorithm(KbkdfCtrHmacAlgorithmId::Sha256)
        .expect("aws-lc has KBKDF with SHA-256");
    kbkdf_ctr_hmac(hmac_sha256, key, &fixed[..len], out)
        .expect("KBKDF fails only for an empty or an oversized output");
}

impl CipherKey {
    fn derive(key: &[u8], purpose: Purpose<'_>, len: usize) -> Self {
        let mut derived = Self {
            bytes: [0; 32],
            len,
        };
        kdf(key, purpose, &mut derived.bytes[..len]);
        derived
    }

    /// The bytes of the key: 16 or 32.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl fmt::Debug for CipherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CipherKey({} bytes)", self.len)
    }
}

impl fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKeys")
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}

impl Drop for CipherKey {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl Drop for SessionKeys {
    fn drop(&mut self) {
        self.signing.zeroize();
        self.application.zeroize();
    }
}
