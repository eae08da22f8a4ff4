//! AES-CCM with the sizes of SMB: a nonce of 11 bytes, a tag of 16. RFC 3610, [MS-SMB2] 3.1.4.3
//!
//! CBC-MAC and counter mode together, both of which use the AES instructions. This CCM accepts
//! scattered buffers and is faster than the block-by-block CCM of aws-lc.
#![forbid(unsafe_code)]

use aws_lc_rs::constant_time::verify_slices_are_equal;

use crate::cbc_mac::CbcMac;
use crate::plaintext::{Plaintext, TagMismatch};
use crate::sys::{AesKey, BLOCK, Counter};

/// Length of the nonce in bytes. [MS-SMB2] 2.2.41
pub(crate) const NONCE_LEN: usize = 11;

/// Bytes of one pass of MAC and encryption: few enough for the level-1 cache, and whole blocks.
const STRIDE: usize = 4096;

/// Length in bytes of the length field, L in RFC 3610: 15 less the nonce.
const LENGTH_LEN: usize = 15 - NONCE_LEN;

/// A key of AES-CCM.
pub(crate) struct CcmKey(AesKey);

impl CcmKey {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(AesKey::new(key))
    }

    pub(crate) fn encrypt(
        &self,
        nonce: &[u8; NONCE_LEN],
        associated: &[u8],
        parts: &mut [Plaintext<'_>],
    ) -> [u8; 16] {
        let len = total_len(parts.iter().map(Plaintext::len));
        let (mut mac, mut counter, mask) = self.start(nonce, associated, len);
        let mut encrypt = |chunk: &mut [u8]| {
            mac.update(chunk);
            self.0.counter_mode(&mut counter, chunk);
        };
        for part in parts {
            match part {
                Plaintext::InPlace(bytes) => bytes.chunks_mut(STRIDE).for_each(&mut encrypt),
                Plaintext::Into(from, to) => {
                    assert_eq!(from.len(), to.len());
                    for (from, to) in from.chunks(STRIDE).zip(to.chunks_mut(STRIDE)) {
                        to.copy_from_slice(from);
                        encrypt(to);
                    }
                }
            }
        }
        finish(mac, mask)
    }

    pub(crate) fn decrypt(
        &self,
        nonce: &[u8; NONCE_LEN],
        associated: &[u8],
        parts: &mut [&mut [u8]],
        tag: &[u8; 16],
    ) -> Result<(), TagMismatch> {
        let len = total_len(parts.iter().map(|part| part.len()));
        let (mut mac, mut counter, mask) = self.start(nonce, associated, len);
        for chunk in parts.iter_mut().flat_map(|part| part.chunks_mut(STRIDE)) {
            self.0.counter_mode(&mut counter, chunk);
            mac.update(chunk);
        }
        verify_slices_are_equal(&finish(mac, mask), tag).map_err(|_| TagMismatch)
    }

    /// Starts a message: the MAC over the first block and the associated data, the counter stream
    /// for the text, and the block that masks the tag. RFC 3610, 2.2 and 2.3
    fn start(
        &self,
        nonce: &[u8; NONCE_LEN],
        associated: &[u8],
        text_len: u32,
    ) -> (CbcMac<'_>, Counter, [u8; BLOCK]) {
        const TAG_BITS: u8 = ((16 - 2) / 2) << 3;
        let associated_bit = u8::from(!associated.is_empty()) << 6;
        let mut mac = CbcMac::new(&self.0);
        mac.update(&block(
            associated_bit | TAG_BITS | LENGTH_BITS,
            nonce,
            text_len,
        ));
        if !associated.is_empty() {
            let len = u16::try_from(associated.len())
                .expect("the associated data is an SMB2 transform header");
            assert!(len < 0xff00);
            mac.update(&len.to_be_bytes());
            mac.update(associated);
        }
        mac.pad();
        let mut mask = block(LENGTH_BITS, nonce, 0);
        self.0.encrypt_block(&mut mask);
        (mac, Counter::new(block(LENGTH_BITS, nonce, 1)), mask)
    }
}

/// L - 1, which is in the flags of every block. RFC 3610, 2.2 and 2.3
const LENGTH_BITS: u8 = LENGTH_LEN as u8 - 1;

fn block(flags: u8, nonce: &[u8; NONCE_LEN], number: u32) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[0] = flags;
    block[1..=NONCE_LEN].copy_from_slice(nonce);
    block[1 + NONCE_LEN..].copy_from_slice(&number.to_be_bytes());
    block
}

fn total_len(parts: impl Iterator<Item = usize>) -> u32 {
    u32::try_from(parts.sum::<usize>()).expect("an SMB message is shorter than 16 MiB")
}

fn finish(mut mac: CbcMac<'_>, mut mask: [u8; BLOCK]) -> [u8; 16] {
    mac.pad();
    for (byte, state) in mask.iter_mut().zip(mac.state()) {
        *byte ^= state;
    }
    mask
}
