//! Measures the throughput of every algorithm on one core, for several message sizes.
//!
//! `cargo run --release -p smbeam-crypto --example throughput`

use std::hint::black_box;
use std::time::{Duration, Instant};

use smbeam_crypto::{
    CIPHER_PREFERENCE, EncryptionKey, SIGNING_PREFERENCE, SigningKey, SigningNonce,
};

const SIZES: [usize; 4] = [128, 4 << 10, 64 << 10, 1 << 20];
const TIME_PER_CELL: Duration = Duration::from_millis(300);

fn main() {
    println!(
        "{:<24}{:>12}{:>12}{:>12}{:>12}   GB/s, with a separate 64-byte header",
        "", "128", "4Ki", "64Ki", "1Mi"
    );
    for algorithm in SIGNING_PREFERENCE {
        let key = SigningKey::new(algorithm, &[7; 16]);
        row(&format!("sign {algorithm:?}"), |head, payload, count| {
            let nonce = SigningNonce {
                message_id: count,
                from_server: true,
                is_cancel: false,
            };
            black_box(key.sign(nonce, &[head, payload]));
        });
    }
    for cipher in CIPHER_PREFERENCE {
        let key = EncryptionKey::new(cipher, &[7; 32][..cipher.key_len()]);
        row(&format!("encrypt {cipher:?}"), |head, payload, count| {
            let mut nonce = [0; 12];
            nonce[..8].copy_from_slice(&count.to_le_bytes());
            let nonce = &nonce[..cipher.nonce_len()];
            black_box(key.encrypt_parts(nonce, &[0; 32], &mut [head.into(), payload.into()]));
        });
    }
}

fn row(name: &str, mut work: impl FnMut(&mut [u8], &mut [u8], u64)) {
    print!("{name:<24}");
    let mut head = [0; 64];
    for size in SIZES {
        let mut payload = vec![0; size];
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < TIME_PER_CELL {
            for _ in 0..16 {
                work(&mut head, &mut payload, count);
                count += 1;
            }
        }
        let bytes = count as f64 * (size + head.len()) as f64;
        print!("{:>12.2}", bytes / start.elapsed().as_secs_f64() / 1e9);
    }
    println!();
}
