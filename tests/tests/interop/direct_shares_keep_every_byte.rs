//! A share with large reads and writes past the page cache holds all written data, also if other
//! users go through the page cache meanwhile: another share of the same directory, a local
//! process, requests that are too small or not aligned.

use std::env;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use smbeam_client::{Client, Credentials, File, OpenOptions, Options, Protection, Session, Wait};
use smbeam_tests::direct::port::rdma_directory;
use smbeam_tests::exercise::{Exerciser, Sizes, Storage};
use smbeam_tests::harness::Test;
use smbeam_tests::random::Random;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Share, Subject, TRANSPORTS};

/// Bytes of a file of which every request is aligned.
const EVEN_BYTES: usize = 8 << 20;
/// A length that is no multiple of any alignment.
const ODD_BYTES: usize = 4321;
const OPERATIONS: u64 = 250;
/// A file system that has no O_DIRECT, or does not say how to align.
const MEMORY: &str = "/dev/shm";

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = vec![
        Test::new("every_byte_encrypted", || every_byte("encrypted", "auto")),
        Test::new("every_byte_without_a_ring", || every_byte("tcp", "epoll")),
        Test::new("encrypted_transfers_pass_the_cache", || {
            passes_by("encrypted")
        }),
        Test::new("the_cache_does_where_it_must", the_cache_does_where_it_must),
    ];
    for way in TRANSPORTS {
        tests.push(Test::over("every_byte", way, move || {
            every_byte(way, "auto")
        }));
        tests.push(Test::over("transfers_pass_the_cache", way, move || {
            passes_by(way)
        }));
    }
    tests
}

struct Rig {
    server: Server,
    directory: PathBuf,
    _scratch: Scratch,
}

impl Rig {
    /// The same directory twice: `data` goes past the page cache and `cached` through it.
    fn below(parent: &Path, io: &str) -> Result<Self> {
        let scratch = Scratch::below(parent, "direct")?;
        let directory = scratch.open_directory("share")?;
        let data = Share {
            direct: true,
            ..Share::new("data", &directory)
        };
        let plan = Plan {
            shares: vec![data, Share::new("cached", &directory)],
            io: Some(io.into()),
            ..Plan::default()
        };
        let server = Server::start_as(Subject::Smbeam, None, None, plan)?;
        Ok(Self {
            server,
            directory,
            _scratch: scratch,
        })
    }

    /// On a disk.
    fn new(io: &str) -> Result<Self> {
        let program = env::current_exe()?;
        let parent = program.parent().context("a program is in a directory")?;
        // Every user may enter it.
        match parent.starts_with("/root") || parent.starts_with("/home") {
            true => Self::below(&env::temp_dir(), io),
            false => Self::below(parent, io),
        }
    }

    fn connect(&self, way: &str) -> Result<Session> {
        let (transport, protection) = match way {
            "encrypted" => ("tcp", Protection::Encrypt),
            _ => (way, Protection::AsAsked),
        };
        let mut options = Options::default()
            .transports(transport.parse::<smbeam_client::Endpoints>()?)
            .protection(protection)
            .rdma(smbeam_client::RdmaChoice::Emulated(rdma_directory()));
        options.tls.trust = smbeam_client::tls::Trust::Anything;
        let address = self.server.address(transport);
        let host = address.ip().to_string();
        let credentials = Credentials::new(None, ALICE.name, ALICE.password);
        let client = Client::new(options)?;
        let session = client.connect(&host, Some(address.port()), &credentials);
        Ok(session.wait()?)
    }

    /// One file, in three ways.
    fn mixed(&self, way: &str) -> Result<Mixed> {
        let session = self.connect(way)?;
        let shares = [
            session.share("data").wait()?,
            session.share("cached").wait()?,
        ];
        let options = OpenOptions::new().read(true).write(true).create(true);
        shares[0].open("file", &options).wait()?.close().wait()?;
        let path = self.directory.join("file");
        let mixed = Mixed {
            files: open(&shares)?,
            local: local(&path)?,
            shares,
            path,
            random: Random::new(7),
        };
        Ok(mixed)
    }

    /// Bytes that the server has read from disks and written to them.
    fn disk_bytes(&self) -> Result<[u64; 2]> {
        let text = fs::read_to_string(format!("/proc/{}/io", self.server.pid()))?;
        let value = |key: &str| -> Result<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            Ok(line.context("such a line")?.trim().parse()?)
        };
        Ok([value("read_bytes:")?, value("write_bytes:")?])
    }
}

/// A file that is worked on in three ways: past the page cache, through it, and by this process.
struct Mixed {
    shares: [smbeam_client::Share; 2],
    files: [File; 2],
    local: fs::File,
    path: PathBuf,
    random: Random,
}

fn open(shares: &[smbeam_client::Share; 2]) -> Result<[File; 2]> {
    let options = OpenOptions::new().read(true).write(true);
    let [one, other] = shares;
    let one = one.open("file", &options).wait()?;
    Ok([one, other.open("file", &options).wait()?])
}

fn local(path: &Path) -> Result<fs::File> {
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    file.with_context(|| format!("cannot open {}", path.display()))
}

impl Mixed {
    /// Which share goes next; `None`: the local process. Half of all goes past the page cache.
    fn pick(&mut self) -> Option<&File> {
        match self.random.below(4) {
            0 => None,
            1 => Some(&self.files[1]),
            _ => Some(&self.files[0]),
        }
    }
}

/// Reads until it has `length` bytes, or the file ends.
fn read_all(
    length: usize,
    offset: u64,
    mut read: impl FnMut(&mut Vec<u8>, u64) -> Result<usize>,
) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    while found.len() < length {
        let mut piece = vec![0; length - found.len()];
        match read(&mut piece, offset + found.len() as u64)? {
            0 => break,
            count => found.extend_from_slice(&piece[..count]),
        }
    }
    Ok(found)
}

fn read_remote(file: &File, length: usize, offset: u64) -> Result<Vec<u8>> {
    read_all(length, offset, |piece, at| {
        let (count, bytes) = file.read_at(std::mem::take(piece), at).wait();
        *piece = bytes;
        Ok(count?)
    })
}

impl Storage for Mixed {
    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        match self.pick() {
            Some(file) => Ok(file.write_all_at_blocking(bytes, offset)?),
            None => Ok(self.local.write_all_at(bytes, offset)?),
        }
    }

    fn read(&mut self, length: usize, offset: u64) -> Result<Vec<u8>> {
        match self.pick() {
            Some(file) => read_remote(file, length, offset),
            None => read_all(length, offset, |piece, at| {
                Ok(self.local.read_at(piece, at)?)
            }),
        }
    }

    fn set_len(&mut self, length: u64) -> Result<()> {
        match self.pick() {
            Some(file) => Ok(file.set_len(length).wait()?),
            None => Ok(self.local.set_len(length)?),
        }
    }

    fn length(&mut self) -> Result<u64> {
        match self.pick() {
            Some(file) => Ok(file.len().wait()?),
            None => Ok(self.local.metadata()?.len()),
        }
    }

    fn sync(&mut self) -> Result<()> {
        match self.pick() {
            Some(file) => Ok(file.sync().wait()?),
            None => Ok(self.local.sync_all()?),
        }
    }

    fn reopen(&mut self) -> Result<()> {
        self.files = open(&self.shares)?;
        self.local = local(&self.path)?;
        Ok(())
    }
}

/// Sizes with offsets and lengths aligned to `alignment`.
fn aligned(alignment: u64) -> Sizes {
    Sizes {
        alignment,
        ..Sizes::LARGE
    }
}

fn exercise(rig: &Rig, way: &str) -> Result<()> {
    for (seed, alignment) in [(1, 4096), (2, 512), (3, 1)] {
        let mixed = rig.mixed(way)?;
        mixed.local.set_len(0)?;
        let mut exerciser = Exerciser::new(mixed, aligned(alignment), seed);
        let run = exerciser.run(OPERATIONS);
        run.with_context(|| format!("aligned to {alignment}"))?;
    }
    Ok(())
}

fn every_byte(way: &str, io: &str) -> Result<()> {
    let rig = Rig::new(io)?;
    exercise(&rig, way)?;
    let log = rig.server.log();
    ensure!(!log.contains("direct I/O"), "{log}");
    Ok(())
}

/// Every request goes to the disk, which the kernel counts; an odd end is cut and not lost.
fn passes_by(way: &str) -> Result<()> {
    let rig = Rig::new("auto")?;
    let mixed = rig.mixed(way)?;
    let [direct, cached] = &mixed.files;
    let mut bytes = vec![0; EVEN_BYTES + ODD_BYTES];
    Random::new(1).fill(&mut bytes);
    let all = EVEN_BYTES as u64;

    direct.write_all_at_blocking(&bytes[..EVEN_BYTES], 0)?;
    // The page cache has none of it: the first read there comes from the disk.
    let [before, written] = rig.disk_bytes()?;
    ensure!(written >= all, "{written} bytes were written");
    ensure!(read_remote(cached, EVEN_BYTES, 0)? == bytes[..EVEN_BYTES]);
    let [after, _] = rig.disk_bytes()?;
    ensure!(after - before >= all, "the page cache had what was written");

    cached.write_all_at_blocking(&bytes[EVEN_BYTES..], all)?;
    for round in 1..4 {
        let [before, _] = rig.disk_bytes()?;
        ensure!(read_remote(cached, bytes.len(), 0)? == bytes);
        let [between, _] = rig.disk_bytes()?;
        ensure!(read_remote(direct, bytes.len(), 0)? == bytes);
        let [after, _] = rig.disk_bytes()?;
        let read = after - between;
        ensure!(read >= all, "{read} bytes were read in round {round}");
        // Some pages of the program or the directory may come from the disk as well.
        ensure!(
            between - before < all / 2,
            "the page cache lost what it had"
        );
    }
    // Past the end there is nothing, wherever that is.
    for offset in [all, all + (1 << 20), 1 << 40] {
        let expected = bytes.get(usize::try_from(offset)?..).unwrap_or_default();
        ensure!(read_remote(direct, 1 << 20, offset)? == expected);
    }
    let through = OpenOptions::new().write(true).write_through(true);
    let through = mixed.shares[0].open("file", &through).wait()?;
    through.write_all_at_blocking(&bytes[1 << 20..2 << 20], 0)?;
    ensure!(fs::read(&mixed.path)?[..1 << 20] == bytes[1 << 20..2 << 20]);
    Ok(())
}

fn the_cache_does_where_it_must() -> Result<()> {
    let rig = Rig::below(Path::new(MEMORY), "auto")?;
    for way in TRANSPORTS {
        exercise(&rig, way)?;
    }
    let log = rig.server.log();
    let count = log.matches("file does not support direct I/O").count();
    ensure!(count == 1, "{count} times: {log}");
    Ok(())
}
