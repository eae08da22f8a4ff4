//! Linux kernels in user mode, with cifs.ko as the client.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::background::Background;
use crate::lab::{GUEST_INIT, GUEST_KERNEL, Lab, RDMA_KERNEL};
use crate::namespace::{GUEST_ADDRESS, Namespace, TAP};
use crate::scratch::Scratch;
use crate::wait;

/// How long a guest may run, boot included.
const TIME_LIMIT: Duration = Duration::from_secs(840);
/// The same where the devices are software, too.
const RDMA_TIME_LIMIT: Duration = Duration::from_secs(600);
/// How long a script may take until it makes a file for which the host waits.
const FILE_LIMIT: Duration = Duration::from_secs(120);
/// The name of the file with the output of a guest.
const CONSOLE: &str = "console";
const MEMORY_MIB: u32 = 512;
/// The memory of the RDMA guest holds the shares and both ends of the transfers.
const RDMA_MEMORY_MIB: u32 = 1536;
/// Where there is one processor, a program that waits by asking again starves its peer.
const RDMA_PROCESSORS: u32 = 2;

/// A guest about to be booted.
#[derive(Debug)]
pub struct Guest<'a> {
    lab: &'a Lab,
    machine: Machine<'a>,
    memory_mib: u32,
    time_limit: Duration,
}

#[derive(Debug)]
enum Machine<'a> {
    /// On a tap device, with cifs.ko.
    OnTap(&'a Namespace),
    /// Without any way out, with RDMA devices.
    WithRdma,
}

/// A guest that runs its script; killed with the value.
#[derive(Debug)]
pub struct Running {
    child: Background,
    scratch: Scratch,
    start: Instant,
    time_limit: Duration,
}

/// The result of a guest.
#[derive(Debug)]
pub struct Report {
    /// Everything it printed.
    pub console: String,
    /// The exit code of its script; none when it crashed or ran out of time.
    pub code: Option<i32>,
}

impl<'a> Guest<'a> {
    /// A guest of the lab on the tap device of `namespace`.
    pub fn new(lab: &'a Lab, namespace: &'a Namespace) -> Guest<'a> {
        Guest {
            lab,
            machine: Machine::OnTap(namespace),
            memory_mib: MEMORY_MIB,
            time_limit: TIME_LIMIT,
        }
    }

    /// The guest of the lab with RDMA, and with a separate network.
    pub fn with_rdma(lab: &'a Lab) -> Guest<'a> {
        Guest {
            lab,
            machine: Machine::WithRdma,
            memory_mib: RDMA_MEMORY_MIB,
            time_limit: RDMA_TIME_LIMIT,
        }
    }

    /// The same with another limit for its run, boot included.
    #[must_use]
    pub fn within(self, time_limit: Duration) -> Guest<'a> {
        Guest { time_limit, ..self }
    }

    /// The same with another size of its memory.
    #[must_use]
    pub fn with_memory_mib(self, memory_mib: u32) -> Guest<'a> {
        Guest { memory_mib, ..self }
    }

    /// Boots it, runs `script` in it with sh and waits until it is powered off.
    pub fn run(&self, script: &str) -> Result<Report> {
        self.start(script)?.wait()
    }

    /// Boots it and runs `script` in it with sh.
    pub fn start(&self, script: &str) -> Result<Running> {
        let scratch = Scratch::new("guest")?;
        let path = scratch.path().join("script.sh");
        fs::write(&path, script)?;
        let console = File::create_new(scratch.path().join(CONSOLE))?;
        let mut command = self.machine(scratch.path());
        command.args([
            "root=/dev/root",
            "rootfstype=hostfs",
            "hostfs=/",
            "rw",
            "quiet",
        ]);
        command.args(["con=null", "con0=null,fd:1"]);
        command.arg(format!("init={GUEST_INIT}"));
        command.arg(format!("smbeam.run={}", path.display()));
        command
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console);
        let child = Background::start(&mut command).context("cannot start user-mode Linux")?;
        Ok(Running {
            child,
            scratch,
            start: Instant::now(),
            time_limit: self.time_limit,
        })
    }

    /// The process of the kernel, with its state in `directory`.
    fn machine(&self, directory: &Path) -> Command {
        let holder = match self.machine {
            Machine::OnTap(namespace) => Some(namespace.holder()),
            Machine::WithRdma => None,
        };
        let mut command = self.lab.command_under(holder, "env");
        command.arg("TMPDIR=/dev/shm");
        command.arg(format!("HOME={}", directory.display()));
        let memory = format!("mem={}M", self.memory_mib);
        match self.machine {
            Machine::OnTap(_) => {
                command.args([GUEST_KERNEL, &memory]);
                command.arg(format!("vec0:transport=tap,ifname={TAP},depth=64,gro=1"));
                command.arg(format!("smbeam.address={GUEST_ADDRESS}/24"));
            }
            Machine::WithRdma => {
                command.args([RDMA_KERNEL, &memory]);
                command.args([&format!("ncpus={RDMA_PROCESSORS}"), "seccomp=on"]);
            }
        }
        command
    }
}

impl Running {
    /// Waits until the script has made the file at `path`, which host and guest share. Fails with
    /// the console when the guest ends before.
    pub fn wait_for_file(&mut self, path: &Path) -> Result<()> {
        let child = &mut self.child.0;
        let mut ended = false;
        let waited = wait::until(
            &format!("{} in the guest", path.display()),
            FILE_LIMIT,
            || {
                ended = child.try_wait().ok().flatten().is_some();
                ended || path.exists()
            },
        );
        if ended && !path.exists() || waited.is_err() {
            bail!(
                "the guest does not make {}:\n{}",
                path.display(),
                self.console()
            );
        }
        Ok(())
    }

    /// Waits until it is powered off.
    pub fn wait(mut self) -> Result<Report> {
        let limit = self.time_limit.saturating_sub(self.start.elapsed());
        wait::for_end(&mut self.child.0, limit)?;
        let console = self.console();
        let code = console
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("GUEST-END rc="));
        Ok(Report {
            code: code.and_then(|code| code.trim().parse().ok()),
            console,
        })
    }

    /// Everything that it has printed.
    pub fn console(&self) -> String {
        let bytes = fs::read(self.console_path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn console_path(&self) -> PathBuf {
        self.scratch.path().join(CONSOLE)
    }
}

impl Report {
    /// Fails with everything that the guest printed unless its script ended with 0.
    pub fn succeeded(&self) -> Result<()> {
        ensure!(
            self.code == Some(0),
            "the guest ends with {:?}:\n{}",
            self.code,
            self.console
        );
        Ok(())
    }

    /// The rest of each line that begins with `word` and a space.
    pub fn lines(&self, word: &str) -> impl Iterator<Item = &str> {
        let lines = self.console.lines();
        lines.filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
    }
}
