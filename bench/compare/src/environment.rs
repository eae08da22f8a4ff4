//! The environment of server benches: the directories, the files and the two servers.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result};
use smbeam_tests::files::write_random;
use smbeam_tests::lab::Lab;
use smbeam_tests::ports::ReservedPort;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Share};

use crate::accounting::{Accounting, Memory};
use crate::mount::Mount;
use crate::options::{DISCONNECTED_BENCH, Options};
use crate::sample::Work;
use crate::scraper::Scraper;

/// The large file on every share.
pub(crate) const LARGE_FILE: &str = "large.bin";
/// Space on the tmpfs besides two large files, in bytes.
const TMPFS_SPARE_BYTES: u64 = 1 << 30;

/// The file system of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// A tmpfs.
    Tmpfs,
    /// A file system on a disk.
    Disk,
}

impl Storage {
    /// The name on the command line, and the name of the share.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Storage::Tmpfs => "tmpfs",
            Storage::Disk => "disk",
        }
    }

    /// Finds the storage with this name.
    pub(crate) fn named(name: &str) -> Result<Storage> {
        let all = [Storage::Tmpfs, Storage::Disk];
        let found = all.into_iter().find(|storage| storage.name() == name);
        found.with_context(|| format!("{name} is neither tmpfs nor disk"))
    }
}

/// The directories, the files and the servers.
pub(crate) struct Environment {
    // The order of fields matters: the servers are dropped before their directories.
    sides: [Side; 2],
    lab: Lab,
    _hosts: Vec<Mount>,
    disk: Disk,
    _tmpfs: Mount,
    scratch: Scratch,
}

/// A directory on the chosen disk, and the type of its file system.
struct Disk {
    kind: String,
    _mount: Mount,
    _directory: Scratch,
}

struct Side {
    server: Server,
    accounting: Accounting,
    /// The address of its metrics, if they are scraped.
    metrics: Option<SocketAddr>,
}

impl Environment {
    /// Creates the directories and files, and prepares both servers.
    pub(crate) fn set(options: &Options) -> Result<Environment> {
        let lab = Lab::find()?;
        let scratch = Scratch::new("compare")?;
        let tmpfs = scratch.open_directory(Storage::Tmpfs.name())?;
        let tmpfs = Mount::tmpfs(&tmpfs, 2 * options.large_bytes + TMPFS_SPARE_BYTES)?;
        let disk = Disk::shown_in(&scratch, options)?;
        let hosts = disable_name_lookups(&scratch, &lab)?;
        for storage in &options.storages {
            let path = scratch.path().join(storage.name());
            let large = path.join(LARGE_FILE);
            println!("writing {}", large.display());
            write_random(&large, options.large_bytes, 1)?;
            File::open(&large)?.sync_all()?;
        }
        Ok(Environment {
            sides: [
                Side::prepare(0, options, &lab, &scratch)?,
                Side::prepare(1, options, &lab, &scratch)?,
            ],
            lab,
            _hosts: hosts,
            disk,
            _tmpfs: tmpfs,
            scratch,
        })
    }

    /// The lab that contains the clients.
    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The directory of the share on `storage`.
    pub(crate) fn directory(&self, storage: Storage) -> PathBuf {
        self.scratch.path().join(storage.name())
    }

    /// Starts the server of `side`, calls `act` with it, and stops it.
    pub(crate) fn with_server<T>(
        &mut self,
        side: usize,
        act: impl FnOnce(&Environment, &Running<'_>) -> Result<T>,
    ) -> Result<T> {
        let Side {
            server, accounting, ..
        } = &mut self.sides[side];
        accounting.around(|| server.restart())?;
        let environment = &*self;
        let Side {
            server,
            accounting,
            metrics,
        } = &environment.sides[side];
        let scraper = metrics.map(Scraper::start);
        let result = act(environment, &Running { server, accounting });
        scraper.map(Scraper::stop).transpose()?;
        // Kill a server that does not stop in time, so that it does not affect the next run.
        let server = &mut self.sides[side].server;
        server.stop().or_else(|_| server.kill())?;
        result
    }

    /// Facts about the machine, for the report.
    pub(crate) fn machine(&self) -> Vec<(String, String)> {
        let mut facts = hardware();
        let method = self.sides[0].accounting.method();
        facts.push(("disk".into(), self.disk.kind.clone()));
        facts.push(("CPU time from".into(), method.into()));
        facts
    }
}

/// Facts about the machine that do not depend on the benches.
pub(crate) fn hardware() -> Vec<(String, String)> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or("unknown", |(_, model)| model.trim());
    let count = thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    let load = read("/proc/loadavg");
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let facts = [
        ("processor", format!("{count} x {model}")),
        ("kernel", kernel),
        ("load average at the start", load),
    ];
    facts.map(|(name, fact)| (name.to_owned(), fact)).into()
}

impl Side {
    /// Prepares the server of one contender.
    fn prepare(side: usize, options: &Options, lab: &Lab, scratch: &Scratch) -> Result<Side> {
        let contender = &options.subjects[side];
        let share =
            |storage: Storage| Share::new(storage.name(), &scratch.path().join(storage.name()));
        let metrics = match contender.is_scraped {
            true => {
                let port = ReservedPort::new()?.into_number();
                Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            }
            false => None,
        };
        let listen = metrics.map(|address| ("listen".to_owned(), address.to_string().into()));
        let plan = Plan {
            metrics: listen.into_iter().collect(),
            shares: vec![share(Storage::Tmpfs), share(Storage::Disk)],
            samba_globals: options.smb_conf.clone(),
            binary: contender.binary.clone(),
            // As smbd: with the default, smbeam encrypts what the other server only signs, or
            // sends without protection.
            gmac_channels: Some("allow"),
            limits: limits(options),
            ..Plan::default()
        };
        let mut server = Server::start_as(contender.subject, Some(lab), None, plan)?;
        server.stop().or_else(|_| server.kill())?;
        let accounting = Accounting::new(["a", "b"][side]);
        Ok(Side {
            server,
            accounting,
            metrics,
        })
    }
}

/// The limits of smbeam that the chosen benches need beyond the defaults. Other benches omit the
/// key, so that older binaries accept the configuration.
fn limits(options: &Options) -> Vec<(String, u64)> {
    match options.is_chosen(DISCONNECTED_BENCH) {
        // The bench has one more open than it measures.
        true => {
            let count = u64::from(options.open_files) + 1;
            vec![("disconnected_opens_per_user".into(), count)]
        }
        false => Vec::new(),
    }
}

/// A running server with its accounting.
pub(crate) struct Running<'a> {
    /// The server.
    pub(crate) server: &'a Server,
    accounting: &'a Accounting,
}

impl Running<'_> {
    /// Calls `act`, and adds the CPU time of the server to its result.
    pub(crate) fn count(&self, act: impl FnOnce() -> Result<Work>) -> Result<Work> {
        let before = self.accounting.cpu_seconds(self.server.pid())?;
        let work = act()?;
        let after = self.accounting.cpu_seconds(self.server.pid())?;
        let cpu_seconds = after - before;
        Ok(Work {
            cpu_seconds,
            ..work
        })
    }

    /// Current memory of the server.
    pub(crate) fn memory(&self) -> Memory {
        self.accounting.memory(self.server.pid())
    }
}

impl Disk {
    /// Mounts a directory of the chosen disk where both servers find it.
    fn shown_in(scratch: &Scratch, options: &Options) -> Result<Disk> {
        let target = scratch.open_directory(Storage::Disk.name())?;
        let directory = Scratch::below(&options.disk, "disk")?;
        let source = directory.open_directory("share")?;
        let mount = Mount::bind(&source, &target)?;
        let kind = kind_of(&source)?;
        Ok(Disk {
            kind,
            _mount: mount,
            _directory: directory,
        })
    }
}

/// smbd resolves its own host name at every login. To exclude the name server from the measurement,
/// the lab resolves the name from a file as long as the mounts exist.
pub(crate) fn disable_name_lookups(scratch: &Scratch, lab: &Lab) -> Result<Vec<Mount>> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let hosts = scratch.path().join("hosts");
    fs::write(&hosts, format!("127.0.0.1 localhost {}\n", host.trim()))?;
    let mut mounts = Vec::new();
    for (source, name) in [
        (hosts.as_path(), "hosts"),
        (Path::new("/dev/null"), "resolv.conf"),
    ] {
        let target = lab.root().join("etc").join(name);
        if target.exists() {
            mounts.push(Mount::bind(source, &target)?);
        }
    }
    Ok(mounts)
}

/// The type of the file system of `path`.
fn kind_of(path: &Path) -> Result<String> {
    let mut command = Command::new("findmnt");
    let output = command
        .args(["-n", "-o", "FSTYPE", "-T"])
        .arg(path)
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
