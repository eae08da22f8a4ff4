//! Numbers that nobody guesses, from a seed that the driver gives.

use core::fmt;

use crypto::PreauthHash;

/// A chain of SHA-512 over a secret seed. What comes out of a link is no more than half of it, so
/// that the next link cannot be computed from what went over the wire.
pub(crate) struct Entropy(PreauthHash);

impl Entropy {
    /// From the seed.
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        let mut chain = PreauthHash::new();
        chain.update(seed);
        Self(chain)
    }

    /// 32 bytes, such as the salt of the preauthentication integrity.
    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        self.0.update(b"next");
        *self
            .0
            .as_bytes()
            .first_chunk()
            .expect("a link has 64 bytes")
    }

    /// A number.
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
