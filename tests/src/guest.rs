//! A Linux kernel in user mode whose cifs.ko is the client.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::lab::{GUEST_INIT, GUEST_KERNEL, Lab};
use crate::namespace::{GUEST_ADDRESS, Namespace, TAP};
use crate::scratch::Scratch;
use crate::wait;

/// How long a guest may run, boot included.
const TIME_LIMIT: Duration = Duration::from_secs(300);
const MEMORY_MIB: u32 = 512;

/// A guest about to be booted in a namespace with a tap device.
#[derive(Debug)]
pub struct Guest<'a> {
    lab: &'a Lab,
    namespace: &'a Namespace,
    time_limit: Duration,
}

/// What a guest left behind.
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
            namespace,
            time_limit: TIME_LIMIT,
        }
    }

    /// Boots it, runs `script` in it with sh and waits until it is powered off.
    pub fn run(&self, script: &str) -> Result<Report> {
        let scratch = Scratch::new("guest")?;
        let path = scratch.path().join("script.sh");
        fs::write(&path, script)?;
        let console = fs::File::create_new(scratch.path().join("console"))?;
        let mut command = self.lab.command_under(Some(self.namespace.holder()), "env");
        command.args(["TMPDIR=/dev/shm", "HOME=/tmp", GUEST_KERNEL]);
        command.args([
            "root=/dev/root",
            "rootfstype=hostfs",
            "hostfs=/",
            "rw",
            "quiet",
        ]);
        command.args(["con=null", "con0=null,fd:1", &format!("mem={MEMORY_MIB}M")]);
        command.arg(format!("init={GUEST_INIT}"));
        command.arg(format!("vec0:transport=tap,ifname={TAP},depth=64,gro=1"));
        command.arg(format!("smbeam.address={GUEST_ADDRESS}/24"));
        command.arg(format!("smbeam.run={}", path.display()));
        command
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console.try_clone()?);
        let mut child = command.spawn().context("cannot start user-mode Linux")?;
        wait::for_end(&mut child, self.time_limit)?;
        let mut bytes = Vec::new();
        fs::File::open(scratch.path().join("console"))?.read_to_end(&mut bytes)?;
        let console = String::from_utf8_lossy(&bytes).into_owned();
        let code = console
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("GUEST-END rc="));
        Ok(Report {
            code: code.and_then(|code| code.trim().parse().ok()),
            console,
        })
    }
}
