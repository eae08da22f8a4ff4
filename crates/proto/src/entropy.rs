//! Unpredictable numbers, from a secret seed of the driver.

use core::fmt;

use crypto::PreauthHash;

/// A hash chain: repeated SHA-512 over a secret seed. Each link yields at most half of its bytes,
/// so that the next link cannot be computed from sent numbers.
pub(crate) struct Entropy(PreauthHash);

impl Entropy {
    /// Starts a chain from a seed. The seed must be secret and random.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let mut chain = PreauthHash::new();
        chain.update(seed);
        Self(chain)
    }

    /// Returns 32 new bytes, such as the salt of the preauthentication integrity.
    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        self.0.update(b"next");
        *self
            .0
            .as_bytes()
            .first_chunk()
            .expect("a link has 64 bytes")
    }

    /// Returns a new number.
    pub(crate) fn number(&mut self) -> u64 {
        let bytes = self.bytes();
        u64::from_le_bytes(*bytes.first_chunk().expect("there are 32 bytes"))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}
