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

/// A cut of the network between the host and the guest. If it is dropped, the cut stays.
#[must_use]
#[derive(Debug)]
pub struct Cut<'a> {
    namespace: &'a Namespace,
}

impl Cut<'_> {
    /// Packets pass again.
    pub fn end(self) -> Result<()> {
        self.namespace.blackhole("del")
    }
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

    /// Drops every packet between the host and the guest, without a report to either end, until
    /// [`Cut::end`].
    pub fn cut(&self) -> Result<Cut<'_>> {
        self.blackhole("add")?;
        Ok(Cut { namespace: self })
    }

    /// Adds or deletes the route that drops packets to the guest. Packets from the guest are
    /// dropped with them: the host accepts none from an address that it cannot reach.
    fn blackhole(&self, action: &str) -> Result<()> {
        let status = Command::new("nsenter")
            .args(["--net", "--target", &self.holder().to_string(), "--"])
            .args(["ip", "route", action, "blackhole", GUEST_ADDRESS])
            .status()
            .context("cannot run nsenter")?;
        ensure!(status.success(), "ip route {action} blackhole fails");
        Ok(())
    }

    /// The process that owns the network namespace.
    pub fn holder(&self) -> u32 {
        self.holder.0.id()
    }
}
