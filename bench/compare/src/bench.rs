//! The server benches, and the storage that they run on.

use anyhow::{Result, ensure};
use smbeam_tests::smbclient::Protection;

use crate::environment::{Environment, Running, Storage};
use crate::options::{DISCONNECTED_BENCH, Options};
use crate::raw;
use crate::raw::opens::Kind;
use crate::sample::{Metric, Row};
use crate::smbclient::{self, Transfer};
use crate::torture::{self, Test};

/// Time for a server to become idle after many logins.
const SETTLE: std::time::Duration = std::time::Duration::from_secs(2);

/// A measurement of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bench {
    /// Name on the command line, and prefix of the titles of its rows.
    pub(crate) name: &'static str,
    /// Description for `--list`.
    pub(crate) about: &'static str,
    what: What,
    /// Whether the bench also runs on the disk.
    on_disk: bool,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Torture(Test, u64),
    Smbclient(Transfer, Protection),
    Reads { length: u32, depth: usize },
    Metadata,
    Idle,
    Opens(Kind),
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl Bench {
    /// All server benches.
    pub(crate) const ALL: [Bench; 23] = [
        torture(
            "read-8m",
            "smb2.bench.read, 8 MiB",
            Test::Read,
            8 * MIB,
            false,
        ),
        torture(
            "read-2m",
            "smb2.bench.read, 2 MiB",
            Test::Read,
            2 * MIB,
            false,
        ),
        torture("read-1m", "smb2.bench.read, 1 MiB", Test::Read, MIB, true),
        torture(
            "read-64k",
            "smb2.bench.read, 64 KiB",
            Test::Read,
            64 * KIB,
            true,
        ),
        torture(
            "read-4k",
            "smb2.bench.read, 4 KiB",
            Test::Read,
            4 * KIB,
            true,
        ),
        torture(
            "write-1m",
            "smb2.bench.write, 1 MiB",
            Test::Write,
            MIB,
            true,
        ),
        torture(
            "write-64k",
            "smb2.bench.write, 64 KiB",
            Test::Write,
            64 * KIB,
            false,
        ),
        torture(
            "write-4k",
            "smb2.bench.write, 4 KiB",
            Test::Write,
            4 * KIB,
            false,
        ),
        torture("echo", "smb2.bench.echo", Test::Echo, 0, false),
        smbclient("get-plain", Transfer::Get, Protection::Off, true),
        smbclient("get-signed", Transfer::Get, Protection::Sign, false),
        smbclient("get-encrypted", Transfer::Get, Protection::Encrypt, false),
        smbclient("put-plain", Transfer::Put, Protection::Off, true),
        smbclient("put-signed", Transfer::Put, Protection::Sign, false),
        smbclient("put-encrypted", Transfer::Put, Protection::Encrypt, false),
        reads(
            "raw-read-1m",
            "our client reads a real file, 1 MiB, depth 4",
            1 << 20,
            4,
        ),
        reads(
            "raw-read-64k",
            "our client reads a real file, 64 KiB, depth 16",
            64 << 10,
            16,
        ),
        reads(
            "raw-read-4k",
            "our client reads a real file, 4 KiB, depth 16",
            4 << 10,
            16,
        ),
        Bench {
            name: "metadata",
            about: "our client creates, opens, lists and unlinks many files in one directory",
            what: What::Metadata,
            on_disk: true,
        },
        Bench {
            name: "idle",
            about: "memory of connections that are logged in and do nothing",
            what: What::Idle,
            on_disk: false,
        },
        opens("opens", "memory of open files", Kind::Plain),
        opens(
            "opens-leased",
            "memory of open files with leases",
            Kind::Leased,
        ),
        opens(
            DISCONNECTED_BENCH,
            "memory of durable opens after the loss of their connection",
            Kind::Disconnected,
        ),
    ];

    /// The title of the rows of this bench on `storage`.
    pub(crate) fn title(&self, storage: Storage, options: &Options) -> String {
        let protection = match (self.what, options.protection) {
            (What::Torture(..), protection) if protection != Protection::Off => protection.word(),
            _ => "",
        };
        format!("{} {} {protection}", self.name, storage.name())
            .trim_end()
            .to_owned()
    }

    /// Runs the bench against a newly started server of `side` (0 for A, 1 for B).
    pub(crate) fn run(
        &self,
        environment: &mut Environment,
        side: usize,
        storage: Storage,
        options: &Options,
    ) -> Result<Vec<Row>> {
        environment.with_server(side, |environment, running| match self.what {
            What::Torture(test, io_size) => {
                let run = || {
                    torture::run(
                        environment.lab(),
                        running.server,
                        storage,
                        test,
                        io_size,
                        options,
                    )
                };
                Ok(vec![running.count(run)?.row(self.title(storage, options))])
            }
            What::Smbclient(transfer, protection) => {
                let run =
                    || smbclient::run(environment, running.server, storage, transfer, protection);
                Ok(vec![running.count(run)?.row(self.title(storage, options))])
            }
            What::Reads { length, depth } => {
                let mut client = raw::connect(running.server, storage)?;
                let bytes = options.large_bytes;
                let run = || raw::reads::run(&mut client, bytes, length, depth);
                Ok(vec![running.count(run)?.row(self.title(storage, options))])
            }
            What::Metadata => raw::metadata::run(running, storage, options.files),
            What::Idle => idle(running, storage, options.idle_connections),
            What::Opens(kind) => raw::opens::run(running, storage, kind, options.open_files),
        })
    }
}

const fn opens(name: &'static str, about: &'static str, kind: Kind) -> Bench {
    Bench {
        name,
        about,
        what: What::Opens(kind),
        on_disk: false,
    }
}

const fn torture(
    name: &'static str,
    about: &'static str,
    test: Test,
    io_size: u64,
    on_disk: bool,
) -> Bench {
    let what = What::Torture(test, io_size);
    Bench {
        name,
        about,
        what,
        on_disk,
    }
}

const fn smbclient(
    name: &'static str,
    transfer: Transfer,
    protection: Protection,
    on_disk: bool,
) -> Bench {
    Bench {
        name,
        about: "smbclient moves a large file",
        what: What::Smbclient(transfer, protection),
        on_disk,
    }
}

const fn reads(name: &'static str, about: &'static str, length: u32, depth: usize) -> Bench {
    Bench {
        name,
        about,
        what: What::Reads { length, depth },
        on_disk: false,
    }
}

/// The selected benches with their storage.
pub(crate) fn plan(options: &Options) -> Vec<(Bench, Storage)> {
    let is_chosen = |bench: &&Bench| options.is_chosen(bench.name);
    let mut plan = Vec::new();
    for storage in &options.storages {
        let benches = Bench::ALL.iter().filter(is_chosen);
        let worth = benches.filter(|bench| bench.on_disk || *storage == Storage::Tmpfs);
        plan.extend(worth.map(|bench| (*bench, *storage)));
    }
    plan
}

fn idle(running: &Running<'_>, storage: Storage, count: u32) -> Result<Vec<Row>> {
    // The memory that the server allocates for the first login is not part of a connection.
    drop(raw::connect(running.server, storage)?);
    std::thread::sleep(SETTLE);
    let before = running.memory();
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(raw::connect(running.server, storage)?);
    }
    std::thread::sleep(SETTLE);
    let after = running.memory();
    for connection in &mut connections {
        connection.echo()?;
    }
    ensure!(
        after.processes >= before.processes,
        "the server lost a process"
    );
    let each = |after: u64, before: u64| (after as f64 - before as f64) / f64::from(count);
    let metrics = vec![
        (
            Metric::PssKibPerConnection,
            each(after.pss_kib, before.pss_kib),
        ),
        (
            Metric::PageTableKibPerConnection,
            each(after.page_table_kib, before.page_table_kib),
        ),
    ];
    let title = "idle connection".into();
    Ok(vec![Row { title, metrics }])
}
