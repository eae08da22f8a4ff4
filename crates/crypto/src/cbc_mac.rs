//! CBC-MAC over pieces of any length, which CMAC and CCM share, and CMAC itself.
//!
//! The CMAC of aws-lc calls the cipher once a block through two tables of pointers. Chaining whole
//! runs of blocks is about three times as fast.
#![forbid(unsafe_code)]

use zeroize::Zeroize;

use crate::sys::{AesKey, BLOCK};

/// A MAC in progress. It holds the last block back, because CMAC masks that block.
pub(crate) struct CbcMac<'k> {
    key: &'k AesKey,
    state: [u8; BLOCK],
    tail: [u8; BLOCK],
    tail_len: usize,
}

impl<'k> CbcMac<'k> {
    pub(crate) fn new(key: &'k AesKey) -> Self {
        Self {
            key,
            state: [0; BLOCK],
            tail: [0; BLOCK],
            tail_len: 0,
        }
    }

    /// Adds bytes. Afterwards the tail holds 1 to 16 bytes, unless all input so far was empty.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(BLOCK - self.tail_len));
        self.tail[self.tail_len..self.tail_len + first.len()].copy_from_slice(first);
        self.tail_len += first.len();
        if rest.is_empty() {
            return;
        }
        self.key.cbc_mac(&mut self.state, &self.tail);
        let tail_len = (rest.len() - 1) % BLOCK + 1;
        let (blocks, last) = rest.split_at(rest.len() - tail_len);
        self.key.cbc_mac(&mut self.state, blocks);
        self.tail[..tail_len].copy_from_slice(last);
        self.tail_len = tail_len;
    }

    /// Fills the tail with zeros to a whole block and chains it. CCM separates its fields so.
    pub(crate) fn pad(&mut self) {
        if self.tail_len > 0 {
            self.tail[self.tail_len..].fill(0);
            self.key.cbc_mac(&mut self.state, &self.tail);
            self.tail_len = 0;
        }
    }

    /// The chaining value after [`pad`](Self::pad).
    pub(crate) fn state(&self) -> [u8; BLOCK] {
        assert_eq!(self.tail_len, 0);
        self.state
    }
}

impl Drop for CbcMac<'_> {
    fn drop(&mut self) {
        self.state.zeroize();
        self.tail.zeroize();
    }
}

/// A key of AES-128-CMAC. RFC 4493
pub(crate) struct CmacKey {
    aes: AesKey,
    whole: [u8; BLOCK],
    padded: [u8; BLOCK],
}

impl CmacKey {
    pub(crate) fn new(key: &[u8; 16]) -> Self {
        let aes = AesKey::new(key);
        let mut zero = [0; BLOCK];
        aes.encrypt_block(&mut zero);
        let whole = double(zero);
        Self {
            aes,
            whole,
            padded: double(whole),
        }
    }

    pub(crate) fn mac<'m>(&self, pieces: impl Iterator<Item = &'m [u8]>) -> [u8; BLOCK] {
        let mut mac = CbcMac::new(&self.aes);
        for piece in pieces {
            mac.update(piece);
        }
        let mask = if mac.tail_len == BLOCK {
            &self.whole
        } else {
            &self.padded
        };
        if mac.tail_len < BLOCK {
            mac.tail[mac.tail_len..].fill(0);
            mac.tail[mac.tail_len] = 0x80;
        }
        for (byte, mask) in mac.tail.iter_mut().zip(mask) {
            *byte ^= mask;
        }
        mac.tail_len = BLOCK;
        mac.pad();
        mac.state()
    }
}

impl Drop for CmacKey {
    fn drop(&mut self) {
        self.whole.zeroize();
        self.padded.zeroize();
    }
}

/// Doubles in GF(2^128), in constant time. RFC 4493, 2.3
fn double(block: [u8; BLOCK]) -> [u8; BLOCK] {
    let value = u128::from_be_bytes(block);
    let carry = 0_u128.wrapping_sub(value >> 127) & 0x87;
    ((value << 1) ^ carry).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 4493, section 4.
    const KEY: u128 = 0x2b7e1516_28aed2a6_abf71588_09cf4f3c;
    const MESSAGE: [u128; 4] = [
        0x6bc1bee2_2e409f96_e93d7e11_7393172a,
        0xae2d8a57_1e03ac9c_9eb76fac_45af8e51,
        0x30c81c46_a35ce411_e5fbc119_1a0a52ef,
        0xf69f2445_df4f9b17_ad2b417b_e66c3710,
    ];
    const MACS: [(usize, u128); 4] = [
        (0, 0xbb1d6929_e9593728_7fa37d12_9b756746),
        (16, 0x070a16b4_6b4d4144_f79bdd9d_d04a287c),
        (40, 0xdfa66747_de9ae630_30ca3261_1497c827),
        (64, 0x51f0bebf_7e3b9d92_fc497417_79363cfe),
    ];

    #[test]
    fn cmac_matches_the_vectors_of_rfc_4493_for_every_cut_of_the_message() {
        let key = CmacKey::new(&KEY.to_be_bytes());
        let message = MESSAGE.map(u128::to_be_bytes).concat();
        for (len, mac) in MACS {
            for cut in 0..=len {
                let pieces = [&message[..cut], &message[cut..len]];
                assert_eq!(u128::from_be_bytes(key.mac(pieces.into_iter())), mac);
            }
        }
    }

    #[test]
    fn doubling_carries_into_the_polynomial() {
        assert_eq!(
            double((1_u128 << 127).to_be_bytes()),
            0x87_u128.to_be_bytes()
        );
        assert_eq!(double(3_u128.to_be_bytes()), 6_u128.to_be_bytes());
    }
}
