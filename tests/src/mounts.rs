//! Mounts of cifs.ko in a guest: the server, the network, and the script around the commands of a
//! test.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::guest::{Guest, Report, Running};
use crate::lab::{Lab, Missing};
use crate::namespace::{HOST_ADDRESS, Namespace};
use crate::scratch::Scratch;
use crate::smbclient::Smbclient;
use crate::subject::{ALICE, Plan, Server, Subject};

/// Messages of the kernel that fail a test, as an extended regular expression.
pub const COMPLAINTS: &str = "CIFS: VFS|WARNING|BUG|Oops|Call Trace|hung|lockup|general protection";
/// The same without the reports of cifs.ko, which mention every lost connection.
pub const FAULTS: &str = "WARNING|BUG|Oops|Call Trace|hung|lockup|general protection";

/// A server with one share, in a network with a guest.
#[derive(Debug)]
pub struct MountStage {
    /// The server.
    pub server: Server,
    /// The directory behind the share.
    pub share: PathBuf,
    /// Files that the host and the guest see under the same path.
    pub scratch: Scratch,
    /// The network of the server and the guest.
    pub namespace: Namespace,
    lab: Lab,
}

impl MountStage {
    /// The server `subject` with one share. The guest has not started. `name` is part of the names
    /// of its directories.
    pub fn new(subject: Subject, name: &str) -> Result<MountStage> {
        let scratch = Scratch::new(name)?;
        let share = scratch.open_directory("share")?;
        MountStage::sharing(subject, scratch, share)
    }

    /// The same with a server that advertises several connections to its interface.
    pub fn with_channels(subject: Subject, name: &str) -> Result<MountStage> {
        let scratch = Scratch::new(name)?;
        let share = scratch.open_directory("share")?;
        MountStage::start_server(subject, scratch, share, true)
    }

    /// The server `subject` with the directory `share`, which every user may write.
    pub fn sharing(subject: Subject, scratch: Scratch, share: PathBuf) -> Result<MountStage> {
        MountStage::start_server(subject, scratch, share, false)
    }

    /// The server `subject` with one share, on which every operation has the rights of root.
    pub fn as_root(subject: Subject, name: &str) -> Result<MountStage> {
        let scratch = Scratch::new(name)?;
        let share = scratch.open_directory("share")?;
        let mut plan = Plan::sharing(&share);
        let user = toml::Table::from_iter([("force_user".to_owned(), "root".into())]);
        plan.shares[0].keys = user;
        plan.samba_globals.push("force user = root".into());
        MountStage::start_with(subject, scratch, share, plan)
    }

    fn start_server(
        subject: Subject,
        scratch: Scratch,
        share: PathBuf,
        channels: bool,
    ) -> Result<MountStage> {
        let plan = Plan {
            channels,
            ..Plan::sharing(&share)
        };
        MountStage::start_with(subject, scratch, share, plan)
    }

    fn start_with(
        subject: Subject,
        scratch: Scratch,
        share: PathBuf,
        mut plan: Plan,
    ) -> Result<MountStage> {
        let lab = Lab::find_with_guest()?;
        let namespace = Namespace::with_tap()?;
        // smbd keeps the opens of a lost client only where no other file system client matters.
        let samba_globals = [
            "posix locking = no",
            "kernel share modes = no",
            "vfs objects = acl_xattr streams_xattr",
            "ea support = yes",
        ];
        let samba_globals = samba_globals.map(str::to_owned);
        plan.samba_globals.extend(samba_globals);
        let server = Server::start_as(subject, Some(&lab), Some(namespace.holder()), plan)?;
        Ok(MountStage {
            server,
            share,
            scratch,
            namespace,
            lab,
        })
    }

    /// Runs `script` in a guest. Fails with the output of both ends unless the script succeeds.
    pub fn run(&self, script: &str) -> Result<Report> {
        let running = self.start(script)?;
        self.finish(running)
    }

    /// The same for a script that may take longer than others, boot included.
    pub fn run_within(&self, script: &str, limit: Duration) -> Result<Report> {
        let guest = Guest::new(&self.lab, &self.namespace).within(limit);
        self.finish(guest.start(script)?)
    }

    /// Starts `script` in a guest.
    pub fn start(&self, script: &str) -> Result<Running> {
        Guest::new(&self.lab, &self.namespace).start(script)
    }

    /// Waits for the end of a guest. Fails with the output of both ends unless its script succeeds.
    pub fn finish(&self, running: Running) -> Result<Report> {
        let report = running.wait()?;
        let succeeded = report.succeeded();
        succeeded.with_context(|| format!("server:\n{}", self.server.log()))?;
        Ok(report)
    }

    /// Fails with [`Missing`] unless the lab has all of these programs, which guests run too.
    pub fn needs(&self, programs: &[&str]) -> Result<()> {
        let bin = self.lab.root().join("usr/bin");
        for program in programs {
            if !bin.join(program).exists() {
                return Err(Missing(format!("the lab has no {program}")).into());
            }
        }
        Ok(())
    }

    /// The path of a copy of `program` that a guest can run.
    pub fn program(&self, program: &str) -> Result<PathBuf> {
        let name = Path::new(program)
            .file_name()
            .context("a program has a name")?;
        let copy = self.scratch.path().join(name);
        fs::copy(program, &copy).with_context(|| format!("cannot copy {program}"))?;
        Ok(copy)
    }

    /// The path of a new file with `text` that a guest can read.
    pub fn text(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    /// smbclient on the host as another client of the share.
    pub fn smbclient(&self) -> Smbclient<'_> {
        Smbclient::new(&self.lab, &self.server)
    }
}

/// A script of a guest, for bash. It mounts the share at `/mnt/NAME` with the options of each of
/// `mounts`, runs `commands`, unmounts, and searches the log of the kernel for `complaints`. The
/// first command that fails ends it.
pub fn script(mounts: &[(&str, &str)], commands: &str, complaints: &str) -> String {
    let mut text = "set -e\n\
        trap 'code=$?; test $code = 0 || { echo \"failed with $code\"; dmesg | tail -40; }' EXIT\n\
        dmesg -C\n\
        modprobe cifs\n"
        .to_owned();
    for (mount, options) in mounts {
        text += &format!("mkdir -p /mnt/{mount}\n{}\n", mount_command(mount, options));
    }
    text += commands;
    text += "\ncd /\n";
    for (mount, _) in mounts {
        text += &format!("umount /mnt/{mount}\n");
    }
    text + &format!("dmesg | grep -E '{complaints}' && exit 99\nexit 0\n")
}

/// The command that mounts the share at `/mnt/MOUNT`, a directory that exists.
pub fn mount_command(mount: &str, options: &str) -> String {
    let (name, password) = (ALICE.name, ALICE.password);
    format!(
        "mount -t cifs //{HOST_ADDRESS}/data /mnt/{mount} \
         -o username={name},password='{password}',{options}"
    )
}
