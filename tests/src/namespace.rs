//! A separate network for a test: a loopback and a tap device to a guest.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::background::Background;

/// The host's address on the tap device.
pub const HOST_ADDRESS: &str = "10.77.0.1";
/// The guest's address on the tap device.
pub const GUEST_ADDRESS: &str = "10.77.0.2";
/// The tap device.
pub const TAP: &str = "labtap0";

/// A network namespace. It is held by a child that reads from us, so that it ends with this
/// process.
#[derive(Debug)]
pub struct Namespace {
    holder: Background,
}

impl Namespace {
    /// A new namespace with a loopback and the tap device for one guest.
    pub fn with_tap() -> Result<Namespace> {
        let script = format!(
            "set -e; ip link set lo up; ip tuntap add dev {TAP} mode tap; \
             ip addr add {HOST_ADDRESS}/24 dev {TAP}; ip link set {TAP} up; echo ready; exec cat"
        );
        let mut command = Command::new("unshare");
        command
            .args(["--net", "--", "/bin/sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut holder = Background::start(&mut command).context("cannot run unshare")?;
        let output = holder.0.stdout.take().context("the output was piped")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(
            line.trim() == "ready",
            "cannot make a network namespace with a tap device"
        );
        Ok(Namespace { holder })
    }

    /// The process that owns the network namespace.
    pub fn holder(&self) -> u32 {
        self.holder.0.id()
    }
}
