//! File systems on loop devices.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::lab::{Missing, is_root};
use crate::scratch::Scratch;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// btrfs.
    Btrfs,
    /// XFS.
    Xfs,
    /// A file system in memory, without a loop device.
    Tmpfs,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Btrfs, Self::Xfs, Self::Tmpfs];

    /// The name by which mount(8) knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
            Self::Xfs => "xfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// The program that makes it, and the package of Debian with the program; none for tmpfs.
    pub fn tool(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Ext4 => Some(("mkfs.ext4", "e2fsprogs")),
            Self::Btrfs => Some(("mkfs.btrfs", "btrfs-progs")),
            Self::Xfs => Some(("mkfs.xfs", "xfsprogs")),
            Self::Tmpfs => None,
        }
    }
}

/// A mounted file system. It is unmounted and removed with the value.
#[derive(Debug)]
pub struct Volume {
    mounted: PathBuf,
    _scratch: Scratch,
}

impl Volume {
    /// Makes and mounts a file system of at most `length` bytes. Fails with [`Missing`] if this
    /// process is not root, or if the machine lacks the program or loop devices.
    pub fn new(file_system: FileSystem, length: u64) -> Result<Self> {
        if !is_root() {
            return Err(Missing("only root mounts file systems".to_owned()).into());
        }
        let name = file_system.name();
        let scratch = Scratch::new("volume")?;
        let mounted = scratch.path().join("mounted");
        fs::create_dir(&mounted).context("cannot make a directory")?;
        let mut mount = Command::new("mount");
        mount.args(["-t", name]);
        match file_system.tool() {
            Some((program, _)) => {
                let image = scratch.path().join("image");
                let file = File::create(&image).context("cannot make an image")?;
                file.set_len(length).context("cannot make an image")?;
                let made = run(Command::new(program).arg("-q").arg(&image));
                made.map_err(|error| Missing(format!("{name}: {error:#}")))?;
                mount.args(["-o", "loop"]).arg(&image)
            }
            None => mount.arg("-o").arg(format!("size={length}")).arg("none"),
        };
        let done = run(mount.arg(&mounted));
        done.map_err(|error| Missing(format!("{name}: {error:#}")))?;
        let _scratch = scratch;
        Ok(Self { mounted, _scratch })
    }

    /// The directory where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mounted
    }
}

/// Runs a program. Fails with its errors.
fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}", errors.trim());
    Ok(())
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("umount").arg(&self.mounted)) {
            let path = self.mounted.display();
            eprintln!("warning: {path} stays mounted: {error:#}");
        }
    }
}
