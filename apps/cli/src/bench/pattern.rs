//! The data that a bench writes and expects. Every word of every file is different, so the data
//! cannot be compressed or deduplicated, and a wrong block is detected.

use anyhow::{Result, bail};

/// Length of a word in bytes.
const WORD: usize = 8;

/// The data of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    file: u64,
}

impl Pattern {
    /// The data of the file with this number.
    pub(crate) fn of(file: u64) -> Self {
        Self { file }
    }

    /// Fills `buffer` with the data at `offset`, a multiple of 8 bytes.
    pub(crate) fn fill(self, offset: u64, buffer: &mut [u8]) {
        let words = buffer.chunks_mut(WORD).zip(offset / WORD as u64..);
        for (bytes, index) in words {
            let word = self.word(index).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }

    /// Fails unless `data` is the data at `offset`, a multiple of 8 bytes.
    pub(crate) fn check(self, offset: u64, data: &[u8]) -> Result<()> {
        let words = data.chunks(WORD).zip(offset / WORD as u64..);
        for (bytes, index) in words {
            let word = self.word(index).to_le_bytes();
            if *bytes != word[..bytes.len()] {
                bail!("wrong data at byte {}", index * WORD as u64);
            }
        }
        Ok(())
    }

    /// The finalizer of SplitMix64, applied to the file number and the index of the word.
    fn word(self, index: u64) -> u64 {
        let mut word = index
            .wrapping_add(self.file << 40)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ (word >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_checks_at_its_place_only() {
        let pattern = Pattern::of(3);
        let mut data = [0; 100];
        pattern.fill(4096, &mut data);
        pattern.check(4096, &data).expect("given");
        pattern.check(4104, &data[8..]).expect("given");
        assert!(pattern.check(4104, &data).is_err());
        assert!(Pattern::of(4).check(4096, &data).is_err());
        data[99] ^= 1;
        let error = pattern.check(4096, &data).expect_err("wrong").to_string();
        assert_eq!(error, "wrong data at byte 4192");
    }
}
