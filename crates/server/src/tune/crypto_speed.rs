//! The speed of signing and encryption on one core, measured.

use std::time::{Duration, Instant};

use crypto::{Cipher, EncryptionKey, SigningAlgorithm, SigningKey, SigningNonce};
use serde::{Deserialize, Serialize};

/// Bytes of a measured message: those of a usual large READ.
const MESSAGE_BYTES: usize = 1 << 20;
/// Shortest measurement of an algorithm.
const TIME_MIN: Duration = Duration::from_millis(20);

/// The speed of an algorithm on one core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CryptoSpeed {
    /// Name of the algorithm, such as `AES-128-GCM`.
    pub algorithm: String,
    /// 10^9 bytes per second.
    pub gb_per_second: f64,
}

/// Measures each algorithm of signing and encryption with messages of 1 MiB, about 20 ms each.
pub fn measure() -> Vec<CryptoSpeed> {
    let mut message = vec![0x5A; MESSAGE_BYTES];
    let mut speeds = Vec::new();
    let signing = [
        SigningAlgorithm::HmacSha256,
        SigningAlgorithm::AesCmac,
        SigningAlgorithm::AesGmac,
    ];
    for algorithm in signing {
        let key = SigningKey::new(algorithm, &[1; 16]);
        let nonce = SigningNonce {
            message_id: 1,
            from_server: true,
            is_cancel: false,
        };
        speeds.push(timed(algorithm.name(), || {
            key.sign(nonce, &[&message]);
        }));
    }
    let ciphers = [
        Cipher::Aes128Gcm,
        Cipher::Aes256Gcm,
        Cipher::Aes128Ccm,
        Cipher::Aes256Ccm,
    ];
    for cipher in ciphers {
        let key = EncryptionKey::new(cipher, &vec![1; cipher.key_len()]);
        let nonce = vec![2; cipher.nonce_len()];
        speeds.push(timed(cipher.name(), || {
            key.encrypt_in_place(&nonce, &[0; 32], &mut message);
        }));
    }
    speeds
}

fn timed(algorithm: &str, mut run: impl FnMut()) -> CryptoSpeed {
    run();
    let (start, mut rounds) = (Instant::now(), 0_u32);
    while start.elapsed() < TIME_MIN {
        run();
        rounds += 1;
    }
    let bytes = f64::from(rounds) * MESSAGE_BYTES as f64;
    CryptoSpeed {
        algorithm: algorithm.to_owned(),
        gb_per_second: bytes / start.elapsed().as_secs_f64() / 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_algorithms_have_a_speed() {
        let speeds = measure();
        assert_eq!(speeds.len(), 7);
        assert!(speeds.iter().all(|speed| speed.gb_per_second > 0.0));
        assert_eq!(speeds[3].algorithm, "AES-128-GCM");
    }
}
