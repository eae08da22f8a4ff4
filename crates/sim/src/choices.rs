//! The source of decisions: a seed, or the bytes of a fuzzer.

use std::collections::VecDeque;

/// A deterministic source of random decisions for a simulation, from a seed or from the bytes of a
/// fuzzer. Two sources with the same seed or the same bytes make the same decisions.
#[derive(Clone, Debug)]
pub struct Choices {
    state: u64,
    /// The bytes of a fuzzer that are left.
    script: VecDeque<u8>,
    is_scripted: bool,
}

impl Choices {
    /// Returns a source of pseudorandom decisions that follow from the number `seed`.
    pub fn from_seed(seed: u64) -> Self {
        Self {
            state: seed,
            script: VecDeque::new(),
            is_scripted: false,
        }
    }

    /// Returns a source that takes each decision from one byte or more of a fuzzer. After the last
    /// byte, [`Self::is_exhausted`] returns true and all decisions are zero.
    pub fn from_script(script: &[u8]) -> Self {
        Self {
            state: 0,
            script: script.iter().copied().collect(),
            is_scripted: true,
        }
    }

    /// Returns a new source with decisions that follow from this one, for one part of a simulation.
    /// A change in the number of decisions of that part does not change those of other parts.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::from_seed(self.number())
    }

    /// Returns whether all bytes of a fuzzer are used; always false for a source with a seed.
    pub fn is_exhausted(&self) -> bool {
        self.is_scripted && self.script.is_empty()
    }

    /// Returns a pseudorandom number from the whole range of `u64`.
    pub fn number(&mut self) -> u64 {
        if self.is_scripted {
            return u64::from_le_bytes(std::array::from_fn(|_| {
                self.script.pop_front().unwrap_or(0)
            }));
        }
        // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014 (SplitMix64).
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a pseudorandom number from 0 to `bound - 1`. `bound` must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is something to choose from");
        if self.is_scripted && bound <= 256 {
            return u64::from(self.script.pop_front().unwrap_or(0)) % bound;
        }
        self.number() % bound
    }

    /// Returns a pseudorandom index from 0 to `len - 1`. `len` must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true with a probability of `chance` per mille.
    pub fn per_mille(&mut self, chance: u16) -> bool {
        chance > 0 && self.below(1000) < u64::from(chance)
    }

    /// Returns one of the values in `among`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.index(among.len())]
    }

    /// Returns 32 pseudorandom bytes.
    pub fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes());
        }
        bytes
    }
}
