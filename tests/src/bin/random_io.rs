//! Exercises one file of a mounted file system and compares it with the expected bytes.
//!
//! usage: `random_io FILE SEED OPERATIONS [holes] [large] [direct] [one-open] [started=PATH]
//! [until=PATH]`. It runs on any mounted file system; the kernel guests run it on cifs mounts.
//! `holes`: make some. `large`: megabytes at once. `direct`: past the page cache, in whole pages.
//! `started`: create PATH once the file is open. `until`: repeat the operations until PATH exists,
//! and once more; the server may be lost meanwhile. `one-open`: before the PATH of `until` exists,
//! no file is opened but to repeat a request that meets a lost connection.
#![forbid(unsafe_code)]

use std::env;
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{
    Advice, FallocateFlags, OFlags, SeekFrom, copy_file_range, fadvise, fallocate, fsync,
    ftruncate, seek,
};
use rustix::io::Errno;
use smbeam_tests::exercise::{Exerciser, PAGE, Sizes, Storage, Zeroing};

const USAGE: &str = "usage: random_io FILE SEED OPERATIONS [holes] [large] [direct] [one-open] \
    [started=PATH] [until=PATH]";

struct Mounted {
    path: PathBuf,
    file: File,
    /// Whether the file system makes holes.
    has_holes: bool,
    /// Whether the page cache is left out.
    direct: bool,
    /// Operations open no file before this path exists.
    opens_from: Option<PathBuf>,
    /// Whether the server may be lost meanwhile.
    reconnects: bool,
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
    let [path, seed, operations, options @ ..] = arguments.as_slice() else {
        bail!(USAGE);
    };
    let known = |option: &String| match option.split_once('=') {
        Some((name, _)) => ["started", "until"].contains(&name),
        None => ["holes", "large", "direct", "one-open"].contains(&option.as_str()),
    };
    ensure!(options.iter().all(known), USAGE);
    let value = |name| options.iter().find_map(|option| option.strip_prefix(name));
    let (started, end) = (value("started="), value("until="));
    let has = |name| options.iter().any(|option| option == name);
    let mut sizes = if has("large") {
        Sizes::LARGE
    } else {
        Sizes::SMALL
    };
    if has("direct") {
        sizes.alignment = PAGE;
    }
    let (seed, operations) = (seed.parse()?, operations.parse::<u64>()?);
    let file = open(Path::new(path), true, has("direct"))?;
    if let Some(started) = started {
        fs::write(started, "").with_context(|| format!("cannot create {started}"))?;
    }
    let mounted = Mounted {
        path: path.into(),
        file,
        has_holes: has("holes"),
        direct: has("direct"),
        opens_from: end.filter(|_| has("one-open")).map(PathBuf::from),
        reconnects: end.is_some(),
    };
    let mut exerciser = Exerciser::new(mounted, sizes, seed);
    let mut rounds = 0;
    loop {
        let is_last = end.is_none_or(|path| Path::new(path).exists());
        let done = exerciser.run(operations);
        done.with_context(|| format!("seed {seed}, round {rounds}"))?;
        rounds += 1;
        if is_last {
            break;
        }
    }
    let total = operations * rounds;
    println!("random_io: {total} operations with seed {seed}: no difference");
    Ok(())
}

impl Mounted {
    fn may_open(&self) -> bool {
        self.opens_from.as_ref().is_none_or(|path| path.exists())
    }

    /// The result of a request. One that meets a lost connection is repeated with the file opened
    /// again: the cifs of Linux 7.2 itself does so only for reads and writes.
    fn retried<T>(
        &mut self,
        mut request: impl FnMut(&File) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match request(&self.file) {
            Err(Errno::BADF) if self.reconnects => {
                self.file = open(&self.path, false, self.direct).map_err(|_| Errno::BADF)?;
                request(&self.file)
            }
            result => result,
        }
    }
}

impl Storage for Mounted {
    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        let mut buffer = Buffer::new(bytes.len());
        buffer.bytes().copy_from_slice(bytes);
        Ok(self.file.write_all_at(buffer.bytes(), offset)?)
    }

    fn read(&mut self, length: usize, offset: u64) -> Result<Vec<u8>> {
        read(&self.file, length, offset)
    }

    fn set_len(&mut self, length: u64) -> Result<()> {
        Ok(self.retried(|file| ftruncate(file, length))?)
    }

    fn length(&mut self) -> Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Linux 7.2 reports a write that meets a lost connection at the next fsync, with smbd too.
    fn sync(&mut self) -> Result<()> {
        match self.retried(|file| fsync(file)) {
            Err(Errno::IO) if self.reconnects => {
                eprintln!("random_io: fsync reports {}", Errno::IO);
                Ok(self.retried(|file| fsync(file))?)
            }
            result => Ok(result?),
        }
    }

    /// Where the server may be lost, the data are read from the server again.
    fn reopen(&mut self) -> Result<()> {
        if self.reconnects {
            self.sync()?;
            fadvise(&self.file, 0, None, Advice::DontNeed)?;
        }
        if self.may_open() {
            self.file = open(&self.path, false, self.direct)?;
        }
        Ok(())
    }

    /// Copies the whole file to a new one. Not into a part of a file: there the cifs of Linux 7.2
    /// reads zeros afterwards, from Samba, too.
    fn copied(&mut self, length: u64) -> Result<Option<Vec<u8>>> {
        if !self.may_open() {
            return Ok(None);
        }
        let path = self.path.with_added_extension("copy");
        let copy = open(&path, true, false)?;
        let mut left = usize::try_from(length)?;
        let (mut from, mut to) = (0, 0);
        while left > 0 {
            let part = self
                .retried(|file| copy_file_range(file, Some(&mut from), &copy, Some(&mut to), left));
            match part? {
                0 => bail!("{left} bytes are not copied"),
                count => left -= count,
            }
        }
        drop(copy);
        let copy = open(&path, false, false)?;
        let found = read(&copy, usize::try_from(length)? + 1, 0)?;
        fs::remove_file(&path)?;
        Ok(Some(found))
    }

    fn has_holes(&self) -> bool {
        self.has_holes
    }

    fn zero(&mut self, how: Zeroing, offset: u64, length: u64) -> Result<()> {
        let flags = match how {
            Zeroing::Hole => FallocateFlags::PUNCH_HOLE,
            Zeroing::Zeros => FallocateFlags::ZERO_RANGE,
        };
        let flags = flags | FallocateFlags::KEEP_SIZE;
        Ok(self.retried(|file| fallocate(file, flags, offset, length))?)
    }

    fn data(&mut self, length: u64) -> Result<Vec<Range<u64>>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < length {
            let start = match self.retried(|file| seek(file, SeekFrom::Data(at))) {
                Ok(start) => start,
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(errno).context("SEEK_DATA"),
            };
            let end = self.retried(|file| seek(file, SeekFrom::Hole(start)));
            let end = end.context("SEEK_HOLE")?;
            ensure!(end > start, "a hole at {end}, before the data at {start}");
            found.push(start..end);
            at = end;
        }
        Ok(found)
    }
}

/// Bytes that begin where a page does, as reads and writes past the page cache want them.
struct Buffer {
    room: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    fn new(length: usize) -> Buffer {
        let page = PAGE as usize;
        let room = vec![0; length + page];
        let start = room.as_ptr().align_offset(page);
        Buffer {
            room,
            start,
            length,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.start + self.length]
    }
}

fn read(file: &File, length: usize, offset: u64) -> Result<Vec<u8>> {
    // Whole pages: the part of a page behind the end of the file does not count.
    let mut buffer = Buffer::new(length.next_multiple_of(PAGE as usize));
    let mut count = 0;
    while count < length {
        match file.read_at(&mut buffer.bytes()[count..], offset + count as u64)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(buffer.bytes()[..count.min(length)].to_vec())
}

fn open(path: &Path, fresh: bool, direct: bool) -> Result<File> {
    let flags = match direct {
        true => OFlags::DIRECT.bits(),
        false => 0,
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(fresh)
        .truncate(fresh)
        .custom_flags(flags.cast_signed())
        .open(path);
    file.with_context(|| format!("cannot open {}", path.display()))
}
