//! An exerciser of one file: writes, reads, truncates, copies, makes holes and reopens at random,
//! and compares with the expected bytes.
//!
//! The file is on a [`Storage`]: a mounted file system, or a client's library. A difference ends
//! the run with the last operations; the same seed repeats the same operations.

use std::collections::VecDeque;
use std::ops::Range;

use anyhow::{Context as _, Result, bail, ensure};

use crate::random::Random;

/// The size of a page.
pub const PAGE: u64 = 4096;
/// Number of the last operations that a failure reports.
const HISTORY: usize = 16;

/// The location of the file.
pub trait Storage {
    /// Writes all of `bytes` at `offset`.
    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()>;
    /// Reads `length` bytes at `offset`; fewer only where the file ends.
    fn read(&mut self, length: usize, offset: u64) -> Result<Vec<u8>>;
    /// Gives the file another length.
    fn set_len(&mut self, length: u64) -> Result<()>;
    /// The length of the file that the storage reports, in bytes.
    fn length(&mut self) -> Result<u64>;
    /// Writes all data to stable storage.
    fn sync(&mut self) -> Result<()>;
    /// Closes the file and opens it again.
    fn reopen(&mut self) -> Result<()>;

    /// The bytes of a copy of the whole file of `length` bytes, if the storage can copy.
    fn copied(&mut self, _length: u64) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Whether it makes holes and reports their locations.
    fn has_holes(&self) -> bool {
        false
    }

    /// Makes bytes zero; the end of the file stays.
    fn zero(&mut self, _how: Zeroing, _offset: u64, _length: u64) -> Result<()> {
        bail!("no holes here")
    }

    /// Where the file of `length` bytes holds data; the rest is holes.
    fn data(&mut self, _length: u64) -> Result<Vec<Range<u64>>> {
        bail!("no holes here")
    }
}

/// How bytes become zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeroing {
    /// They become a hole.
    Hole,
    /// They keep their place.
    Zeros,
}

/// How large things are, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The file at most.
    pub file: u64,
    /// One read or write at most.
    pub io: u64,
    /// Offsets and lengths are multiples of this number of bytes.
    pub alignment: u64,
}

impl Sizes {
    /// Many small operations.
    pub const SMALL: Sizes = Sizes {
        file: 1 << 20,
        io: 96 << 10,
        alignment: 1,
    };
    /// Operations that take several messages each.
    pub const LARGE: Sizes = Sizes {
        file: 12 << 20,
        io: 3 << 20,
        alignment: 1,
    };
}

/// A file that is exercised.
#[derive(Debug)]
pub struct Exerciser<S> {
    storage: S,
    sizes: Sizes,
    /// The expected bytes of the file.
    model: Vec<u8>,
    random: Random,
    history: VecDeque<String>,
}

impl<S: Storage> Exerciser<S> {
    /// An exerciser of `storage`, which has an empty file.
    pub fn new(storage: S, sizes: Sizes, seed: u64) -> Exerciser<S> {
        Exerciser {
            storage,
            sizes,
            model: Vec::new(),
            random: Random::new(seed),
            history: VecDeque::new(),
        }
    }

    /// Performs `operations` operations and compares the whole file at the end.
    pub fn run(&mut self, operations: u64) -> Result<()> {
        for number in 0..operations {
            let done = self.step();
            done.with_context(|| self.recent(&format!("operation {number}")))?;
        }
        let compared = self.reopen();
        compared.with_context(|| self.recent("the end"))
    }

    fn recent(&self, when: &str) -> String {
        let last: Vec<_> = self.history.iter().map(String::as_str).collect();
        format!("{when}; the last were:\n  {}", last.join("\n  "))
    }

    fn step(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..=34 => self.write(),
            35..=69 => self.read(),
            70..=75 => self.truncate(),
            76..=80 => self.zero(Zeroing::Hole),
            81..=83 => self.zero(Zeroing::Zeros),
            84..=86 => self.check_holes(),
            87..=89 => self.copy(),
            90..=93 => self.sync(),
            94..=97 => self.check_length(),
            _ => self.reopen(),
        }
    }

    fn write(&mut self) -> Result<()> {
        let offset = self.place(self.sizes.file - self.sizes.io);
        let mut bytes = vec![0; usize::try_from(self.amount())?];
        self.random.fill(&mut bytes);
        self.note(format!("write {} at {offset}", bytes.len()));
        self.storage.write(&bytes, offset)?;
        let start = usize::try_from(offset)?;
        let end = start + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[start..end].copy_from_slice(&bytes);
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let offset = self.place(self.sizes.file);
        let length = self.amount();
        self.note(format!("read {length} at {offset}"));
        let found = self.storage.read(usize::try_from(length)?, offset)?;
        self.compare(&found, offset, length)
    }

    fn truncate(&mut self) -> Result<()> {
        let length = self.place(self.sizes.file);
        self.note(format!("truncate to {length}"));
        self.storage.set_len(length)?;
        self.model.resize(usize::try_from(length)?, 0);
        Ok(())
    }

    fn zero(&mut self, how: Zeroing) -> Result<()> {
        if !self.storage.has_holes() {
            return Ok(());
        }
        let offset = self.place(self.sizes.file);
        let length = 2 * self.amount();
        self.note(format!("make {length} at {offset} zero: {how:?}"));
        self.storage.zero(how, offset, length)?;
        let len = self.model.len();
        let start = usize::try_from(offset)?.min(len);
        let end = usize::try_from(offset + length)?.min(len);
        self.model[start..end].fill(0);
        Ok(())
    }

    /// Checks that reported holes contain zeros.
    fn check_holes(&mut self) -> Result<()> {
        if !self.storage.has_holes() {
            return Ok(());
        }
        self.note("ask for the holes".into());
        let length = self.model.len() as u64;
        let mut at = 0;
        let mut data = self.storage.data(length)?;
        data.push(length..length);
        for range in data {
            ensure!(range.start >= at, "data at {}, before {at}", range.start);
            let (start, end) = (usize::try_from(at)?, usize::try_from(range.start)?);
            let hole = &self.model[start..end.min(self.model.len())];
            ensure!(
                hole.iter().all(|byte| *byte == 0),
                "the hole from {start} to {end} is none"
            );
            at = range.end;
        }
        Ok(())
    }

    fn copy(&mut self) -> Result<()> {
        self.note("copy the file and compare".into());
        match self.storage.copied(self.model.len() as u64)? {
            Some(found) => self.compare(&found, 0, self.sizes.file),
            None => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<()> {
        self.note("sync".into());
        self.storage.sync()
    }

    fn check_length(&mut self) -> Result<()> {
        self.note("ask for the length".into());
        let (length, expected) = (self.storage.length()?, self.model.len());
        ensure!(length == expected as u64, "{length} instead of {expected}");
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.note("close, open and compare".into());
        self.storage.reopen()?;
        let found = self.storage.read(usize::try_from(self.sizes.file)?, 0)?;
        self.compare(&found, 0, self.sizes.file)
    }

    /// Compares the bytes of a read with the expected ones.
    fn compare(&self, found: &[u8], offset: u64, length: u64) -> Result<()> {
        let len = self.model.len();
        let start = usize::try_from(offset)?.min(len);
        let end = usize::try_from(offset + length)?.min(len);
        let expected = &self.model[start..end];
        let (count, wanted) = (found.len(), expected.len());
        ensure!(count == wanted, "{count} bytes instead of {wanted}");
        if expected == found {
            return Ok(());
        }
        let pairs = expected.iter().zip(found);
        if let Some(index) = pairs.clone().position(|(one, other)| one != other) {
            let different = pairs.filter(|(one, other)| one != other).count();
            let (wanted, found) = (expected[index], found[index]);
            bail!(
                "byte {} is {found:#04x} instead of {wanted:#04x}, {different} differ",
                start + index
            );
        }
        Ok(())
    }

    /// An offset below `limit`.
    fn place(&mut self, limit: u64) -> u64 {
        let place = self.random.below(limit);
        place - place % self.sizes.alignment
    }

    /// A length; small ones and multiples of a page are as likely as any.
    fn amount(&mut self) -> u64 {
        let amount = match self.random.below(3) {
            0 => 1 + self.random.below(512),
            1 => PAGE * (1 + self.random.below(self.sizes.io / PAGE)),
            _ => 1 + self.random.below(self.sizes.io),
        };
        amount.next_multiple_of(self.sizes.alignment)
    }

    fn note(&mut self, what: String) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(what);
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::{Exerciser, Sizes, Storage};

    /// A file in memory, which loses one byte of a write if a test sets that.
    #[derive(Default)]
    struct Memory {
        bytes: Vec<u8>,
        writes: u32,
        forgets: Option<u32>,
    }

    impl Storage for Memory {
        fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
            let start = usize::try_from(offset)?;
            let end = start + bytes.len();
            if self.bytes.len() < end {
                self.bytes.resize(end, 0);
            }
            self.bytes[start..end].copy_from_slice(bytes);
            self.writes += 1;
            if self.forgets == Some(self.writes) {
                self.bytes[start] ^= 1;
            }
            Ok(())
        }

        fn read(&mut self, length: usize, offset: u64) -> Result<Vec<u8>> {
            let len = self.bytes.len();
            let start = usize::try_from(offset)?.min(len);
            Ok(self.bytes[start..len.min(start + length)].to_vec())
        }

        fn set_len(&mut self, length: u64) -> Result<()> {
            self.bytes.resize(usize::try_from(length)?, 0);
            Ok(())
        }

        fn length(&mut self) -> Result<u64> {
            Ok(self.bytes.len() as u64)
        }

        fn sync(&mut self) -> Result<()> {
            Ok(())
        }

        fn reopen(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_keeps_everything_passes() {
        let mut exerciser = Exerciser::new(Memory::default(), Sizes::SMALL, 1);
        exerciser.run(200).expect("memory keeps everything");
    }

    #[test]
    fn a_lost_byte_is_found() {
        let memory = Memory {
            forgets: Some(3),
            ..Memory::default()
        };
        let lost = Exerciser::new(memory, Sizes::SMALL, 1).run(20);
        let error = format!("{:#}", lost.expect_err("a byte is lost"));
        assert!(
            error.contains("instead of") && error.contains("write"),
            "{error}"
        );
    }
}
