//! Signatures: a key of AES-GMAC never signs two messages with one nonce, over all connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use crypto::{SigningAlgorithm, SigningKey, SigningNonce};
use proto::encryption::Sign;
use proto::server::GmacChannels;
use wire::header::HEADER_LEN;
use wire::{Command, Flags, Header};

use super::{Check, ensure};

/// Index of a key, MessageId, whether the server sends, whether it is a CANCEL.
type Use = (usize, u64, bool, bool);

/// The signatures of AES-GMAC that both peers have sent.
#[derive(Default)]
pub(crate) struct SigningNonces {
    keys: Vec<Arc<SigningKey>>,
    used: BTreeMap<Use, [u8; 16]>,
    /// Whether the policy of the server permits reuse.
    is_off: bool,
}

impl SigningNonces {
    /// Checks every message, unless the server permits reuse.
    pub(crate) fn for_policy(policy: GmacChannels) -> Self {
        Self {
            is_off: policy == GmacChannels::Allow,
            ..Self::default()
        }
    }

    /// Records a message. `sign` is `None` if the core has signed it, or if it is not signed.
    pub(crate) fn record(&mut self, sign: Option<&Sign>, message: &[&[u8]]) -> Check {
        if self.is_off {
            return Ok(());
        }
        let Some(header) = message[0].get(..HEADER_LEN) else {
            return Ok(());
        };
        let Ok(header) = Header::decode(header) else {
            return Ok(());
        };
        let (key, nonce) = match sign {
            Some(sign) => (self.index(&sign.key), sign.nonce),
            None if header.flags.contains(Flags::SIGNED) => {
                let nonce = nonce(&header);
                (self.signer(nonce, message, &header.signature), nonce)
            }
            None => (None, nonce(&header)),
        };
        match key {
            Some(key) => self.check(key, nonce, header.signature),
            None => Ok(()),
        }
    }

    /// Equal messages have equal signatures, and different ones do not.
    fn check(&mut self, key: usize, nonce: SigningNonce, signature: [u8; 16]) -> Check {
        let place = (key, nonce.message_id, nonce.from_server, nonce.is_cancel);
        let first = *self.used.entry(place).or_insert(signature);
        ensure(first == signature, || {
            format!("{nonce:?} signs two messages with one key of AES-GMAC")
        })
    }

    /// The index of a key of AES-GMAC.
    fn index(&mut self, key: &Arc<SigningKey>) -> Option<usize> {
        if key.algorithm() != SigningAlgorithm::AesGmac {
            return None;
        }
        // The two peers have a separate object each for a key. They never use the same nonce.
        let known = self.keys.iter().position(|known| Arc::ptr_eq(known, key));
        Some(known.unwrap_or_else(|| {
            self.keys.push(Arc::clone(key));
            self.keys.len() - 1
        }))
    }

    /// The key that has signed a message.
    fn signer(
        &self,
        nonce: SigningNonce,
        message: &[&[u8]],
        signature: &[u8; 16],
    ) -> Option<usize> {
        let mut keys = self.keys.iter();
        keys.position(|key| key.verify(nonce, message, signature))
    }
}

fn nonce(header: &Header) -> SigningNonce {
    SigningNonce {
        message_id: header.message_id.0,
        from_server: header.flags.contains(Flags::SERVER_TO_REDIR),
        is_cancel: header.command == Command::CANCEL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: u8, text: u8) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN + 2];
        bytes[..6].copy_from_slice(&[0xfe, b'S', b'M', b'B', 64, 0]);
        bytes[24] = id;
        bytes[HEADER_LEN] = text;
        bytes
    }

    fn signed(key: &Arc<SigningKey>, bytes: &mut [u8]) -> Sign {
        let header = Header::decode(&bytes[..HEADER_LEN]).expect("a header");
        let sign = Sign {
            key: Arc::clone(key),
            nonce: nonce(&header),
        };
        sign.apply(bytes, &[], 0);
        sign
    }

    #[test]
    fn a_second_message_with_a_nonce_is_found() {
        let key = |algorithm| Arc::new(SigningKey::new(algorithm, &[7; 16]));
        for (algorithm, is_found) in [
            (SigningAlgorithm::AesGmac, true),
            (SigningAlgorithm::AesCmac, false),
        ] {
            let (key, mut nonces) = (key(algorithm), SigningNonces::default());
            let mut record = |id, text| {
                let mut bytes = message(id, text);
                let sign = signed(&key, &mut bytes);
                nonces.record(Some(&sign), &[&bytes])
            };
            assert_eq!(record(1, 1), Ok(()));
            assert_eq!(record(2, 2), Ok(()));
            assert_eq!(record(1, 1), Ok(()));
            assert_eq!(record(1, 2).is_err(), is_found);
        }
    }

    #[test]
    fn a_message_that_the_core_has_signed_is_found() {
        let key = Arc::new(SigningKey::new(SigningAlgorithm::AesGmac, &[7; 16]));
        let mut nonces = SigningNonces::default();
        let mut first = message(1, 1);
        let sign = signed(&key, &mut first);
        nonces
            .record(Some(&sign), &[&first])
            .expect("the first one");
        let mut second = message(1, 2);
        second[16] |= Flags::SIGNED.0 as u8;
        signed(&key, &mut second);
        nonces.record(None, &[&second]).expect_err("the same nonce");
    }
}
