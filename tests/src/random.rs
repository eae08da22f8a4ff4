//! Numbers that look random and depend on a seed alone.

/// A generator (xorshift64*); good enough for test data, for nothing else.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator for `seed`.
    pub fn new(seed: u64) -> Random {
        // Any state but zero; neighbouring seeds are spread far apart.
        Random {
            state: (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1,
        }
    }

    /// The next number of the sequence.
    pub fn number(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`, which must not be zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "nothing is below zero");
        self.number() % limit
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for word in words {
            *word = self.number().to_le_bytes();
        }
        if !rest.is_empty() {
            let last = self.number().to_le_bytes();
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_is_a_sequence() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.number(), random.number(), random.below(10)]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7)[2] < 10);
    }
}
