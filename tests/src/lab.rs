//! The lab: real peers in a directory outside the checkout, built by `cargo xtask lab`.
//!
//! It is one Debian root file system with the Samba tools, and two user-mode Linux kernels that
//! boot from the same files: Debian's with cifs.ko, and one with RDMA that is built from source.
//! Commands run in it through [`Lab::command`].

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The recipe of the Samba part. A change of the contents of the part must raise it: older labs are
/// built anew.
pub const SAMBA_RECIPE: u32 = 2;
/// The recipe of the guest part.
pub const GUEST_RECIPE: u32 = 2;
/// The recipe of the part with test suites.
pub const SUITES_RECIPE: u32 = 1;
/// The recipe of the part with tools of Prometheus.
pub const MONITORING_RECIPE: u32 = 1;
/// The recipe of the part with a browser.
pub const BROWSER_RECIPE: u32 = 1;
/// The recipe of the part with PyTorch.
pub const TORCH_RECIPE: u32 = 1;
/// The recipe of the part with a server of NFS.
pub const NFS_RECIPE: u32 = 1;
/// The recipe of the RDMA part.
pub const RDMA_RECIPE: u32 = 1;
/// The recipe of the RDMA part's kernel, which is kept beside the root file system.
pub const KERNEL_RECIPE: u32 = 1;
/// Path of the guest's kernel inside the lab's root.
pub const GUEST_KERNEL: &str = "/usr/bin/linux.uml";
/// Path of the RDMA guest's kernel inside the lab's root.
pub const RDMA_KERNEL: &str = "/usr/lib/smbeam-lab/linux-rdma";
/// Path of the programs of ksmbd inside the lab's root, beside Samba's.
pub const KSMBD_DIRECTORY: &str = "/opt/ksmbd-tools";
/// Path of the first process of the guests inside the lab's root.
pub const GUEST_INIT: &str = "/usr/lib/smbeam-lab/guest-init";

/// The directory that the lab's commands share with the host, under the same path.
const SHARED_DIRECTORY: &str = "/tmp";
const ENTER: &str = include_str!("lab/enter.sh");

/// A lab that was built and can be used.
#[derive(Clone, Debug)]
pub struct Lab {
    root: PathBuf,
    /// The directory with other files of users and groups.
    accounts: Option<PathBuf>,
}

/// A part of the lab, built and stamped on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// smbclient, smbtorture and smbd.
    Samba,
    /// User-mode Linux with cifs.ko.
    Guest,
    /// Test suites for file systems, and other programs that use many of their features.
    Suites,
    /// Tools of Prometheus.
    Monitoring,
    /// Chromium.
    Browser,
    /// PyTorch, for the newest Python.
    Torch,
    /// nfs-ganesha, a server of NFS in user space, and the programs for mounts of NFS.
    Nfs,
    /// User-mode Linux with RDMA devices, and cifs.ko and ksmbd with SMB Direct.
    Rdma,
}

/// A program of a crate, of one version. It is built once and kept beside the root file system,
/// where every clone finds it.
#[derive(Clone, Copy, Debug)]
pub struct Crate {
    /// The name of the crate and of its program.
    pub name: &'static str,
    /// The version. A build of another version is not used.
    pub version: &'static str,
}

/// A suite for the calls of POSIX on files.
pub const PJDFSTEST: Crate = Crate {
    name: "pjdfstest",
    version: "0.2.0",
};
/// A program that reads and writes one file at random, and verifies every byte.
pub const FSX: Crate = Crate {
    name: "fsx",
    version: "0.3.2",
};

/// Why there is no lab to use.
#[derive(Clone, Debug)]
pub struct Missing(pub String);

impl Lab {
    /// The lab, if its Samba part is built and this process may enter it.
    pub fn find() -> Result<Lab, Missing> {
        Part::Samba.not_known_missing()?;
        if !is_root() {
            return Err(Missing(
                "the lab needs root: it enters a root file system of its own".into(),
            ));
        }
        let lab = Lab::at(&directory());
        if !lab.holds(Part::Samba) {
            let place = directory().display().to_string();
            return Err(Missing(format!(
                "no lab in {place}: build it with `cargo xtask lab`"
            )));
        }
        Ok(lab)
    }

    /// The lab, if its guest part can be used too.
    pub fn find_with_guest() -> Result<Lab, Missing> {
        Lab::with_part(Part::Guest, "no guest: build it with `cargo xtask lab`")
    }

    /// The lab, if its test suites can be used too.
    pub fn find_with_suites() -> Result<Lab, Missing> {
        let lab = Lab::find()?;
        Part::Suites.not_known_missing()?;
        let has_programs = [PJDFSTEST, FSX]
            .iter()
            .all(|suite| suite.program().is_file());
        if !lab.holds(Part::Suites) || !has_programs {
            return Err(Missing(
                "the lab has no test suites: build them with `cargo xtask lab`".into(),
            ));
        }
        Ok(lab)
    }

    /// The lab, if its tools of Prometheus can be used too.
    pub fn find_with_monitoring() -> Result<Lab, Missing> {
        Lab::with_part(
            Part::Monitoring,
            "no tools of Prometheus: build them with `cargo xtask lab`",
        )
    }

    /// The lab, if its browser can be used too.
    pub fn find_with_browser() -> Result<Lab, Missing> {
        Lab::with_part(
            Part::Browser,
            "no browser: build it with `cargo xtask lab browser`",
        )
    }

    /// The lab, if its PyTorch can be used too.
    pub fn find_with_torch() -> Result<Lab, Missing> {
        Lab::with_part(
            Part::Torch,
            "no PyTorch: build it with `cargo xtask lab torch`",
        )
    }

    /// The lab, if its RDMA part can be used too.
    pub fn find_with_rdma() -> Result<Lab, Missing> {
        Lab::with_part(Part::Rdma, "no RDMA: build it with `cargo xtask lab rdma`")
    }

    /// The lab, if it holds `part`. `missing` says what it lacks.
    fn with_part(part: Part, missing: &str) -> Result<Lab, Missing> {
        let lab = Lab::find()?;
        part.not_known_missing()?;
        match lab.holds(part) {
            true => Ok(lab),
            false => Err(Missing(format!("the lab has {missing}"))),
        }
    }

    /// The lab in `directory`, built or not.
    pub fn at(directory: &Path) -> Lab {
        Lab {
            root: directory.join("root"),
            accounts: None,
        }
    }

    /// The lab with more users and groups of Unix: lines of passwd(5) and group(5). `directory`
    /// receives the files, and must be in the directory that the lab shares with the host.
    pub fn with_accounts(&self, directory: &Path, users: &str, groups: &str) -> io::Result<Lab> {
        for (name, lines) in [("passwd", users), ("group", groups)] {
            let known = fs::read_to_string(self.root.join("etc").join(name))?;
            fs::write(directory.join(name), format!("{known}{lines}"))?;
        }
        Ok(Lab {
            accounts: Some(directory.into()),
            ..self.clone()
        })
    }

    /// The root file system of the peers.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether `part` was built to its end by the present recipe.
    pub fn holds(&self, part: Part) -> bool {
        fs::read_to_string(self.stamp(part)).is_ok_and(|text| text.trim() == part.recipe())
    }

    /// The file with the recipe that built `part`.
    pub fn stamp(&self, part: Part) -> PathBuf {
        self.root.join("usr/lib/smbeam-lab").join(part.name())
    }

    /// `program`, to be run inside the lab. It shares the network and `/tmp` with the caller.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        self.enter(&mut command, program);
        command
    }

    /// `program`, run inside the lab and in the network namespace of process `holder`; killed with
    /// the caller.
    pub fn command_under(&self, holder: Option<u32>, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        if let Some(pid) = holder {
            command.args(["nsenter", "--net", "--target", &pid.to_string(), "--"]);
        }
        command.arg("unshare");
        self.enter(&mut command, program);
        command
    }

    fn enter(&self, command: &mut Command, program: &str) {
        command.args([
            "--mount",
            "--propagation",
            "private",
            "--",
            "/bin/sh",
            "-c",
            ENTER,
            "enter",
        ]);
        command.arg(&self.root);
        if let Some(directory) = &self.accounts {
            command.arg("--accounts").arg(directory);
        }
        command.args(["--bind", SHARED_DIRECTORY]);
        command.args([
            "env",
            "LC_ALL=C.UTF-8",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            program,
        ]);
    }
}

impl Part {
    /// The name of its stamp.
    pub fn name(self) -> &'static str {
        match self {
            Part::Samba => "samba",
            Part::Guest => "guest",
            Part::Suites => "suites",
            Part::Monitoring => "monitoring",
            Part::Browser => "browser",
            Part::Torch => "torch",
            Part::Nfs => "nfs",
            Part::Rdma => "rdma",
        }
    }

    /// The variable in which `cargo xtask test` passes the reason for a missing part.
    pub fn missing_variable(self) -> &'static str {
        match self {
            Part::Samba => "SMBEAM_LAB_MISSING",
            Part::Guest => "SMBEAM_GUEST_MISSING",
            Part::Suites => "SMBEAM_SUITES_MISSING",
            Part::Monitoring => "SMBEAM_MONITORING_MISSING",
            Part::Browser => "SMBEAM_BROWSER_MISSING",
            Part::Torch => "SMBEAM_TORCH_MISSING",
            Part::Nfs => "SMBEAM_NFS_MISSING",
            Part::Rdma => "SMBEAM_RDMA_MISSING",
        }
    }

    fn not_known_missing(self) -> Result<(), Missing> {
        env::var(self.missing_variable()).map_or(Ok(()), |reason| Err(Missing(reason)))
    }

    /// The expected content of its stamp.
    pub fn recipe(self) -> String {
        match self {
            Part::Samba => SAMBA_RECIPE.to_string(),
            Part::Guest => format!("{SAMBA_RECIPE}.{GUEST_RECIPE}"),
            Part::Suites => format!("{SAMBA_RECIPE}.{SUITES_RECIPE}"),
            Part::Monitoring => format!("{SAMBA_RECIPE}.{MONITORING_RECIPE}"),
            Part::Browser => format!("{SAMBA_RECIPE}.{BROWSER_RECIPE}"),
            Part::Torch => format!("{SAMBA_RECIPE}.{TORCH_RECIPE}"),
            Part::Nfs => format!("{SAMBA_RECIPE}.{NFS_RECIPE}"),
            Part::Rdma => format!("{SAMBA_RECIPE}.{RDMA_RECIPE}.{KERNEL_RECIPE}"),
        }
    }
}

impl Crate {
    /// The directory of the program, as `cargo install --root` makes it.
    pub fn directory(&self) -> PathBuf {
        directory().join(format!("{}-{}", self.name, self.version))
    }

    /// The program, built or not.
    pub fn program(&self) -> PathBuf {
        self.directory().join("bin").join(self.name)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// The directory of the lab: `$SMBEAM_LAB`, or one in the user's cache that all clones share.
pub fn directory() -> PathBuf {
    if let Some(directory) = env::var_os("SMBEAM_LAB") {
        return directory.into();
    }
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map_or_else(|| "/root".into(), PathBuf::from);
    cache
        .unwrap_or_else(|| home().join(".cache"))
        .join("smbeam/lab")
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:"))
        .unwrap_or_default();
    uids.split_whitespace().nth(1) == Some("0")
}
