//! Which bytes the next operation is about.

use std::cell::Cell;

/// Where an operation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which of the files.
    pub(crate) file: usize,
    /// Bytes from its start.
    pub(crate) offset: u64,
}

/// Gives out the blocks of some files of one length, one after the other or at random, for ever.
#[derive(Debug)]
pub(crate) struct Places {
    files: u64,
    blocks_per_file: u64,
    block: u64,
    random: Option<Cell<u64>>,
    next: Cell<u64>,
}

impl Places {
    /// Blocks of `block` bytes in `files` files of `blocks_per_file` each; none of them is 0.
    pub(crate) fn new(files: u64, blocks_per_file: u64, block: u64) -> Self {
        assert!(
            files > 0 && blocks_per_file > 0 && block > 0,
            "there is something to choose from"
        );
        Self {
            files,
            blocks_per_file,
            block,
            random: None,
            next: Cell::new(0),
        }
    }

    /// The same at random.
    pub(crate) fn shuffled(mut self, seed: u64) -> Self {
        // A generator of this kind never leaves zero.
        self.random = Some(Cell::new(seed | 1));
        self
    }

    /// The next one.
    pub(crate) fn next(&self) -> Place {
        let blocks = self.files * self.blocks_per_file;
        let number = match &self.random {
            Some(state) => step(state) % blocks,
            None => self.next.replace((self.next.get() + 1) % blocks),
        };
        Place {
            file: usize::try_from(number / self.blocks_per_file).expect("a file has an index"),
            offset: number % self.blocks_per_file * self.block,
        }
    }

    /// A number below 100, for a choice beside the place.
    pub(crate) fn percent(&self) -> u8 {
        let number = match &self.random {
            Some(state) => step(state) % 100,
            // Spread evenly over the hundred, whatever the share that is asked for.
            None => self.next.get().wrapping_mul(61) % 100,
        };
        u8::try_from(number).expect("a remainder is small")
    }
}

/// xorshift64*: good enough to be somewhere else each time.
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

    fn place(file: usize, offset: u64) -> Place {
        Place { file, offset }
    }

    #[test]
    fn one_after_the_other_goes_over_all_files_and_starts_again() {
        let places = Places::new(2, 2, 4096);
        let seen: Vec<Place> = (0..5).map(|_| places.next()).collect();
        let expected = [
            place(0, 0),
            place(0, 4096),
            place(1, 0),
            place(1, 4096),
            place(0, 0),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn at_random_every_block_comes_sooner_or_later() {
        let places = Places::new(3, 5, 512).shuffled(7);
        let seen: BTreeSet<_> = (0..1000)
            .map(|_| places.next())
            .map(|place| (place.file, place.offset))
            .collect();
        assert_eq!(seen.len(), 15);
        assert_eq!(seen.last(), Some(&(2, 4 * 512)));
    }

    #[test]
    fn a_hundred_choices_are_the_hundred_numbers() {
        let places = Places::new(1, 1000, 1);
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            places.next();
            seen.insert(places.percent());
        }
        assert_eq!(seen.len(), 100);
    }
}
