//! Reads, writes, truncates and reopens one file at random and compares it with what it must hold.
//!
//! usage: `random_io FILE SEED OPERATIONS`. It runs on any mounted file system; the kernel guest
//! runs it on a cifs mount. A difference ends it with the operations that led there.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::env;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::random::Random;

/// The largest size the file may have.
const FILE_LIMIT_BYTES: u64 = 1 << 20;
/// The largest single read or write.
const IO_LIMIT_BYTES: u64 = 96 * 1024;
/// How many of the last operations a failure tells.
const HISTORY: usize = 16;

struct Checker {
    path: PathBuf,
    file: File,
    /// What the file must hold.
    model: Vec<u8>,
    random: Random,
    history: VecDeque<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("random_io: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, seed, operations] = arguments.as_slice() else {
        bail!("usage: random_io FILE SEED OPERATIONS");
    };
    let (seed, operations) = (seed.parse()?, operations.parse::<u64>()?);
    let mut checker = Checker::new(Path::new(path), seed)?;
    for number in 0..operations {
        checker.step().with_context(|| {
            let last: Vec<_> = checker.history.iter().map(String::as_str).collect();
            format!(
                "seed {seed}, operation {number}; the last were:\n  {}",
                last.join("\n  ")
            )
        })?;
    }
    checker.compare_whole()?;
    println!("random_io: {operations} operations with seed {seed}: no difference");
    Ok(())
}

impl Checker {
    fn new(path: &Path, seed: u64) -> Result<Checker> {
        Ok(Checker {
            path: path.into(),
            file: open(path, true)?,
            model: Vec::new(),
            random: Random::new(seed),
            history: VecDeque::new(),
        })
    }

    fn step(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..=39 => self.write(),
            40..=79 => self.read(),
            80..=89 => self.truncate(),
            90..=93 => self.sync(),
            94..=97 => self.check_length(),
            _ => self.reopen(),
        }
    }

    fn write(&mut self) -> Result<()> {
        let offset = self.random.below(FILE_LIMIT_BYTES - IO_LIMIT_BYTES);
        let mut bytes = vec![0; usize::try_from(self.length())?];
        self.random.fill(&mut bytes);
        self.note(format!("write {} at {offset}", bytes.len()));
        self.file.write_all_at(&bytes, offset)?;
        let start = usize::try_from(offset)?;
        let end = start + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[start..end].copy_from_slice(&bytes);
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let offset = self.random.below(FILE_LIMIT_BYTES);
        let length = self.length();
        self.note(format!("read {length} at {offset}"));
        self.compare(offset, usize::try_from(length)?)
    }

    fn truncate(&mut self) -> Result<()> {
        let length = self.random.below(FILE_LIMIT_BYTES);
        self.note(format!("truncate to {length}"));
        self.file.set_len(length)?;
        self.model.resize(usize::try_from(length)?, 0);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.note("sync".into());
        Ok(self.file.sync_all()?)
    }

    fn check_length(&mut self) -> Result<()> {
        self.note("ask for the length".into());
        let length = self.file.metadata()?.len();
        ensure!(
            length == self.model.len() as u64,
            "{length} instead of {}",
            self.model.len()
        );
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.note("close, open and compare".into());
        self.file = open(&self.path, false)?;
        self.compare_whole()
    }

    fn compare_whole(&mut self) -> Result<()> {
        self.compare(0, usize::try_from(FILE_LIMIT_BYTES)?)
    }

    fn compare(&self, offset: u64, length: usize) -> Result<()> {
        let start = usize::try_from(offset)?.min(self.model.len());
        let expected = &self.model[start..self.model.len().min(start + length)];
        let mut found = vec![0; length];
        let mut count = 0;
        while count < length {
            match self
                .file
                .read_at(&mut found[count..], offset + count as u64)?
            {
                0 => break,
                more => count += more,
            }
        }
        ensure!(
            count == expected.len(),
            "{count} bytes instead of {}",
            expected.len()
        );
        if let Some(index) = expected
            .iter()
            .zip(&found)
            .position(|(one, other)| one != other)
        {
            let (wanted, found) = (expected[index], found[index]);
            bail!(
                "byte {} is {found:#04x} instead of {wanted:#04x}",
                start + index
            );
        }
        Ok(())
    }

    /// A length; small ones and multiples of a page are as likely as any.
    fn length(&mut self) -> u64 {
        match self.random.below(3) {
            0 => 1 + self.random.below(512),
            1 => 4096 * (1 + self.random.below(IO_LIMIT_BYTES / 4096)),
            _ => 1 + self.random.below(IO_LIMIT_BYTES),
        }
    }

    fn note(&mut self, what: String) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(what);
    }
}

fn open(path: &Path, fresh: bool) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(fresh)
        .truncate(fresh)
        .open(path);
    file.with_context(|| format!("cannot open {}", path.display()))
}
