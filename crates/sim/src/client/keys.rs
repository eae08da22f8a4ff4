//! The client's keys of a session: signing, verification, encryption, decryption.

use std::collections::BTreeSet;

use crypto::derive::{KeySchedule, session_keys};
use crypto::{Cipher, EncryptionKey, PreauthHash, SigningAlgorithm, SigningKey, SigningNonce};
use wire::dialect::Dialect;
use wire::header::SIGNATURE;
use wire::transform::{self, FLAG_ENCRYPTED, Transform};
use wire::{Command, Header, SessionId};

use crate::check::{Check, ensure};

/// The result of the negotiation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    pub(crate) dialect: Dialect,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) signing: SigningAlgorithm,
    pub(crate) has_large_mtu: bool,
    /// Whether both ends have the SMB3 POSIX extensions.
    pub(crate) has_posix: bool,
}

/// The keys of a session.
pub(crate) struct Keys {
    signing: SigningKey,
    /// Keys for frames to the server and from it.
    encryption: Option<(EncryptionKey, EncryptionKey)>,
    next_nonce: u64,
    /// Nonces of the server: each must be unique.
    seen: BTreeSet<[u8; 16]>,
}

impl Keys {
    pub(crate) fn derive(agreed: &Agreed, preauth: &PreauthHash, key: &[u8; 16]) -> Self {
        let schedule = match agreed.dialect {
            Dialect::SMB_3_1_1 => KeySchedule::Smb311(preauth),
            dialect if dialect >= Dialect::SMB_3_0 => KeySchedule::Smb30,
            _ => KeySchedule::Smb2,
        };
        let keys = session_keys(schedule, key, key, agreed.cipher);
        let encryption = agreed
            .cipher
            .zip(keys.encryption.as_ref())
            .map(|(cipher, keys)| {
                let out = EncryptionKey::new(cipher, keys.client_to_server.as_bytes());
                (
                    out,
                    EncryptionKey::new(cipher, keys.server_to_client.as_bytes()),
                )
            });
        Self {
            signing: SigningKey::new(agreed.signing, &keys.signing),
            encryption,
            next_nonce: 1,
            seen: BTreeSet::new(),
        }
    }

    pub(crate) fn can_encrypt(&self) -> bool {
        self.encryption.is_some()
    }

    /// Signs a message that has the SIGNED flag.
    pub(crate) fn sign(&self, header: &Header, message: &mut [u8]) {
        let signature = self.signing.sign(nonce(header), &[message]);
        message[SIGNATURE].copy_from_slice(&signature);
    }

    pub(crate) fn verify(&self, header: &Header, message: &[u8]) -> bool {
        (self.signing).verify(nonce(header), &[message], &header.signature)
    }

    /// Encrypts a frame.
    pub(crate) fn encrypt(&mut self, session: SessionId, mut frame: Vec<u8>) -> Vec<u8> {
        let (key, _) = self
            .encryption
            .as_ref()
            .expect("`can_encrypt` returned true");
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.next_nonce.to_le_bytes());
        self.next_nonce += 1;
        let mut header = Transform {
            signature: [0; 16],
            nonce,
            original_message_size: u32::try_from(frame.len()).expect("a frame has a limit"),
            flags: FLAG_ENCRYPTED,
            session_id: session,
        };
        let guarded = header.encode();
        let nonce = &nonce[..key.cipher().nonce_len()];
        let guarded = &guarded[transform::ASSOCIATED_DATA];
        header.signature = key.encrypt_in_place(nonce, guarded, &mut frame);
        let mut encrypted = header.encode().to_vec();
        encrypted.extend(frame);
        encrypted
    }

    /// Decrypts a frame.
    pub(crate) fn open(&mut self, frame: &mut [u8]) -> Check<Vec<u8>> {
        let parts =
            transform::split(frame).map_err(|error| format!("a bad transform header: {error}"))?;
        let (_, key) = self
            .encryption
            .as_ref()
            .ok_or("an encrypted frame without a key")?;
        let nonce = parts.header.nonce;
        ensure(self.seen.insert(nonce), || {
            format!("the nonce {nonce:x?} is used twice")
        })?;
        let nonce = &nonce[..key.cipher().nonce_len()];
        let tag = &parts.header.signature;
        key.decrypt_in_place(nonce, parts.associated_data, parts.ciphertext, tag)
            .map_err(|_| "an encrypted response cannot be decrypted")?;
        Ok(parts.ciphertext.to_vec())
    }
}

fn nonce(header: &Header) -> SigningNonce {
    SigningNonce {
        message_id: header.message_id.0,
        from_server: header.is_response(),
        is_cancel: header.command == Command::CANCEL,
    }
}
