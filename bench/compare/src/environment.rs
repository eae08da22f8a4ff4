//! Where the benches take environment: the directories, the files, the two servers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result};
use smbeam_tests::files::write_random;
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Share};

use crate::accounting::{Accounting, Memory};
use crate::mount::Mount;
use crate::options::Options;
use crate::sample::Work;

/// The large file in every share.
pub(crate) const LARGE_FILE: &str = "large.bin";
/// Room on the tmpfs besides two large files.
const TMPFS_SPARE_BYTES: u64 = 1 << 30;

/// Which file system a share lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Memory.
    Tmpfs,
    /// A file system of the machine.
    Disk,
}

impl Storage {
    /// Its name on the command line and as a share.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Storage::Tmpfs => "tmpfs",
            Storage::Disk => "disk",
        }
    }

    /// The storage of that name.
    pub(crate) fn named(name: &str) -> Result<Storage> {
        let all = [Storage::Tmpfs, Storage::Disk];
        let found = all.into_iter().find(|storage| storage.name() == name);
        found.with_context(|| format!("{name} is neither tmpfs nor disk"))
    }
}

/// Directories, files and servers.
pub(crate) struct Environment {
    // The servers end before their directories go.
    sides: [Side; 2],
    lab: Lab,
    _hosts: Vec<Mount>,
    disk: Disk,
    _tmpfs: Mount,
    scratch: Scratch,
}

/// A directory on the disk that was asked for, and what file system that is.
struct Disk {
    kind: String,
    _mount: Mount,
    _directory: Scratch,
}

struct Side {
    server: Server,
    accounting: Accounting,
}

impl Environment {
    /// Makes directories and files, and both servers ready to be started.
    pub(crate) fn set(options: &Options) -> Result<Environment> {
        let lab = Lab::find()?;
        let scratch = Scratch::new("compare")?;
        let tmpfs = scratch.open_folder(Storage::Tmpfs.name())?;
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

    /// The lab that the clients come from.
    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The directory behind the share of `storage`.
    pub(crate) fn directory(&self, storage: Storage) -> PathBuf {
        self.scratch.path().join(storage.name())
    }

    /// Starts the server of `side` anew, runs `act` against it and stops it.
    pub(crate) fn with_server<T>(
        &mut self,
        side: usize,
        act: impl FnOnce(&Environment, &Running<'_>) -> Result<T>,
    ) -> Result<T> {
        let Side { server, accounting } = &mut self.sides[side];
        accounting.around(|| server.restart())?;
        let environment = &*self;
        let Side { server, accounting } = &environment.sides[side];
        let result = act(environment, &Running { server, accounting });
        // A server that is slow to finish must not spoil the next run.
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

/// Facts about the machine that hold wherever a bench takes environment.
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
    /// The server of one of the contenders.
    fn prepare(side: usize, options: &Options, lab: &Lab, scratch: &Scratch) -> Result<Side> {
        let contender = &options.subjects[side];
        let share =
            |storage: Storage| Share::new(storage.name(), &scratch.path().join(storage.name()));
        let plan = Plan {
            shares: vec![share(Storage::Tmpfs), share(Storage::Disk)],
            samba_globals: options.smb_conf.clone(),
            binary: contender.binary.clone(),
            ..Plan::default()
        };
        let mut server = Server::start_as(contender.subject, Some(lab), None, plan)?;
        server.stop().or_else(|_| server.kill())?;
        let accounting = Accounting::new(["a", "b"][side]);
        Ok(Side { server, accounting })
    }
}

/// A server that runs and is counted.
pub(crate) struct Running<'a> {
    /// The server.
    pub(crate) server: &'a Server,
    accounting: &'a Accounting,
}

impl Running<'_> {
    /// Runs `act` and adds what it cost the server.
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

    /// The server's memory now.
    pub(crate) fn memory(&self) -> Memory {
        self.accounting.memory(self.server.pid())
    }
}

impl Disk {
    /// Puts a directory of the chosen disk where both servers will find it.
    fn shown_in(scratch: &Scratch, options: &Options) -> Result<Disk> {
        let target = scratch.open_folder(Storage::Disk.name())?;
        let directory = Scratch::below(&options.disk, "disk")?;
        let source = directory.open_folder("share")?;
        let mount = Mount::bind(&source, &target)?;
        let kind = kind_of(&source)?;
        Ok(Disk {
            kind,
            _mount: mount,
            _directory: directory,
        })
    }
}

/// smbd looks its own host name up at every login. The answer of a name server, or its silence, is
/// no part of what is measured: let the lab find the name in a file, as long as the mounts live.
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

/// The type of the file system that `path` lies on.
fn kind_of(path: &Path) -> Result<String> {
    let mut command = Command::new("findmnt");
    let output = command
        .args(["-n", "-o", "FSTYPE", "-T"])
        .arg(path)
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
