//! Reads, writes, truncates, copies and reopens one file at random, makes holes in it if told, and
//! compares it with what it must hold.
//!
//! usage: `random_io FILE SEED OPERATIONS [holes]`. It runs on any mounted file system; the kernel
//! guest runs it on a cifs mount. A difference ends it with the operations that led there.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{FallocateFlags, SeekFrom, copy_file_range, fallocate, seek};
use rustix::io::Errno;
use smbeam_tests::random::Random;

/// The largest size the file may have.
const FILE_LIMIT_BYTES: u64 = 1 << 20;
/// The largest single read or write.
const IO_LIMIT_BYTES: u64 = 96 * 1024;
/// The size of a page.
const PAGE: u64 = 4096;
/// How many of the last operations a failure tells.
const HISTORY: usize = 16;

struct Checker {
    path: PathBuf,
    file: File,
    /// What the file must hold.
    model: Vec<u8>,
    /// Whether the file system makes holes.
    has_holes: bool,
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
    let (arguments, has_holes) = match arguments.as_slice() {
        [before @ .., last] if last == "holes" => (before, true),
        all => (all, false),
    };
    let [path, seed, operations] = arguments else {
        bail!("usage: random_io FILE SEED OPERATIONS [holes]");
    };
    let (seed, operations) = (seed.parse()?, operations.parse::<u64>()?);
    let mut checker = Checker::new(Path::new(path), seed, has_holes)?;
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
    fn new(path: &Path, seed: u64, has_holes: bool) -> Result<Checker> {
        Ok(Checker {
            path: path.into(),
            file: open(path, true)?,
            model: Vec::new(),
            has_holes,
            random: Random::new(seed),
            history: VecDeque::new(),
        })
    }

    fn step(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..=34 => self.write(),
            35..=69 => self.read(),
            70..=75 => self.truncate(),
            76..=80 => self.zero("punch a hole of", FallocateFlags::PUNCH_HOLE),
            81..=83 => self.zero("zero", FallocateFlags::ZERO_RANGE),
            84..=86 => self.check_holes(),
            87..=89 => self.copy(),
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
        self.expect(usize::try_from(offset)?, &bytes);
        Ok(())
    }

    /// From now on the file holds these bytes there.
    fn expect(&mut self, start: usize, bytes: &[u8]) {
        let end = start + bytes.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[start..end].copy_from_slice(bytes);
    }

    /// Bytes become zero; the end of the file stays.
    fn zero(&mut self, what: &str, flags: FallocateFlags) -> Result<()> {
        if !self.has_holes {
            return Ok(());
        }
        let offset = self.random.below(FILE_LIMIT_BYTES);
        let length = 2 * self.length();
        self.note(format!("{what} {length} at {offset}"));
        fallocate(
            &self.file,
            flags | FallocateFlags::KEEP_SIZE,
            offset,
            length,
        )?;
        let len = self.model.len();
        let start = usize::try_from(offset)?.min(len);
        let end = usize::try_from(offset + length)?.min(len);
        self.model[start..end].fill(0);
        Ok(())
    }

    /// Copies the whole file to a new one, which holds the same then. Not into a part of a file:
    /// there the cifs of Linux 7.2 reads zeros afterwards, from Samba, too.
    fn copy(&mut self) -> Result<()> {
        self.note("copy the file and compare".into());
        let path = self.path.with_added_extension("copy");
        let copy = open(&path, true)?;
        let mut left = self.model.len();
        let (mut from, mut to) = (0, 0);
        while left > 0 {
            let (from, to) = (Some(&mut from), Some(&mut to));
            match copy_file_range(&self.file, from, &copy, to, left)? {
                0 => bail!("{left} bytes are not copied"),
                count => left -= count,
            }
        }
        drop(copy);
        self.compare(&open(&path, false)?, 0, usize::try_from(FILE_LIMIT_BYTES)?)?;
        Ok(fs::remove_file(&path)?)
    }

    /// What is said to be a hole is zero.
    fn check_holes(&mut self) -> Result<()> {
        self.note("ask for the holes".into());
        let mut at = 0;
        while at < self.model.len() {
            let data = match seek(&self.file, SeekFrom::Data(at as u64)) {
                Ok(data) => usize::try_from(data)?,
                Err(Errno::NXIO) => self.model.len(),
                Err(errno) => return Err(errno).context("SEEK_DATA"),
            };
            ensure!(data >= at, "data at {data}, before {at}");
            let hole = &self.model[at..data.min(self.model.len())];
            ensure!(
                hole.iter().all(|byte| *byte == 0),
                "the hole from {at} to {data} is none"
            );
            if data >= self.model.len() {
                break;
            }
            at = usize::try_from(seek(&self.file, SeekFrom::Hole(data as u64))?)?;
            ensure!(at > data, "a hole at {at}, before the data at {data}");
        }
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let offset = self.random.below(FILE_LIMIT_BYTES);
        let length = self.length();
        self.note(format!("read {length} at {offset}"));
        self.compare(&self.file, offset, usize::try_from(length)?)
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
        self.compare(&self.file, 0, usize::try_from(FILE_LIMIT_BYTES)?)
    }

    /// Compares a part of a file with what this one must hold there.
    fn compare(&self, file: &File, offset: u64, length: usize) -> Result<()> {
        let start = usize::try_from(offset)?.min(self.model.len());
        let expected = &self.model[start..self.model.len().min(start + length)];
        let mut found = vec![0; length];
        let mut count = 0;
        while count < length {
            match file.read_at(&mut found[count..], offset + count as u64)? {
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
            1 => PAGE * (1 + self.random.below(IO_LIMIT_BYTES / PAGE)),
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
