//! The blocks of files that the operations of a run read or write.

use std::cell::Cell;

/// The start of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Index of the file.
    pub(crate) file: usize,
    /// Offset of the block in the file, in bytes.
    pub(crate) offset: u64,
}

/// An endless sequence of the blocks of several files of equal length, in order or at random.
#[derive(Debug)]
pub(crate) struct BlockSequence {
    files: u64,
    blocks_per_file: u64,
    block_bytes: u64,
    random: Option<Cell<u64>>,
    next: Cell<u64>,
}

impl BlockSequence {
    /// A sequence over `files` files of `blocks_per_file` blocks of `block_bytes` bytes each. None
    /// of the three is 0.
    pub(crate) fn new(files: u64, blocks_per_file: u64, block_bytes: u64) -> Self {
        assert!(
            files > 0 && blocks_per_file > 0 && block_bytes > 0,
            "there is something to choose from"
        );
        Self {
            files,
            blocks_per_file,
            block_bytes,
            random: None,
            next: Cell::new(0),
        }
    }

    /// Returns the blocks at random instead of in order. The same `seed` gives the same sequence.
    pub(crate) fn shuffled(mut self, seed: u64) -> Self {
        // The state of xorshift must not be 0.
        self.random = Some(Cell::new(seed | 1));
        self
    }

    /// Returns the next block.
    pub(crate) fn next(&self) -> Block {
        let blocks = self.files * self.blocks_per_file;
        let number = match &self.random {
            Some(state) => step(state) % blocks,
            None => self.next.replace((self.next.get() + 1) % blocks),
        };
        Block {
            file: usize::try_from(number / self.blocks_per_file).expect("a file has an index"),
            offset: number % self.blocks_per_file * self.block_bytes,
        }
    }

    /// Returns a number from 0 to 99, which decides whether an operation of `rw` reads or writes.
    pub(crate) fn percent(&self) -> u8 {
        let number = match &self.random {
            Some(state) => step(state) % 100,
            // 61 and 100 have no common factor, so 100 consecutive operations get each number once.
            None => self.next.get().wrapping_mul(61) % 100,
        };
        u8::try_from(number).expect("a remainder is small")
    }
}

/// xorshift64*: fast, and random enough for offsets.
fn step(state: &Cell<u64>) -> u64 {
    let mut word = state.get();
    word ^= word >> 12;
    word ^= word << 25;
    word ^= word >> 27;
    state.set(word);
    word.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn block(file: usize, offset: u64) -> Block {
        Block { file, offset }
    }

    #[test]
    fn one_after_the_other_goes_over_all_files_and_starts_again() {
        let sequence = BlockSequence::new(2, 2, 4096);
        let seen: Vec<Block> = (0..5).map(|_| sequence.next()).collect();
        let expected = [
            block(0, 0),
            block(0, 4096),
            block(1, 0),
            block(1, 4096),
            block(0, 0),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn at_random_every_block_comes_sooner_or_later() {
        let sequence = BlockSequence::new(3, 5, 512).shuffled(7);
        let seen: BTreeSet<_> = (0..1000)
            .map(|_| sequence.next())
            .map(|block| (block.file, block.offset))
            .collect();
        assert_eq!(seen.len(), 15);
        assert_eq!(seen.last(), Some(&(2, 4 * 512)));
    }

    #[test]
    fn a_hundred_choices_are_the_hundred_numbers() {
        let sequence = BlockSequence::new(1, 1000, 1);
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            sequence.next();
            seen.insert(sequence.percent());
        }
        assert_eq!(seen.len(), 100);
    }
}
