//! File systems on loop devices.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::scratch::Scratch;

use crate::host::{self, Tool};
use crate::process::quiet;

/// Size of an image in bytes. It is sparse.
const IMAGE_LEN: u64 = 8 << 30;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    Ext4,
    Btrfs,
    Xfs,
}

impl FileSystem {
    /// The kind with this name.
    pub(super) fn of(name: &str) -> Result<Self> {
        match name {
            "ext4" => Ok(Self::Ext4),
            "btrfs" => Ok(Self::Btrfs),
            "xfs" => Ok(Self::Xfs),
            _ => bail!("the file systems are ext4, btrfs and xfs"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
            Self::Xfs => "xfs",
        }
    }

    /// The program that makes it, and the package of Debian with the program.
    fn tool(self) -> Tool {
        let (program, package) = match self {
            Self::Ext4 => ("mkfs.ext4", "e2fsprogs"),
            Self::Btrfs => ("mkfs.btrfs", "btrfs-progs"),
            Self::Xfs => ("mkfs.xfs", "xfsprogs"),
        };
        Tool { program, package }
    }
}

/// A mounted file system. It is unmounted and removed with the value.
pub(super) struct Volume {
    mounted: PathBuf,
    _scratch: Scratch,
}

impl Volume {
    /// Makes and mounts a file system.
    pub(super) fn new(file_system: FileSystem) -> Result<Self> {
        let tool = file_system.tool();
        let program = tool.program;
        host::ensure(&[tool])?;
        let scratch = Scratch::new("volume")?;
        let image = scratch.path().join("image");
        let file = File::create(&image).context("cannot make an image")?;
        file.set_len(IMAGE_LEN).context("cannot make an image")?;
        quiet(Command::new(program).arg("-q").arg(&image))?;
        let mounted = scratch.path().join("mounted");
        fs::create_dir(&mounted).context("cannot make a directory")?;
        let mount = &mut Command::new("mount");
        quiet(mount.args(["-o", "loop"]).arg(&image).arg(&mounted))?;
        let _scratch = scratch;
        Ok(Self { mounted, _scratch })
    }

    /// The directory where it is mounted.
    pub(super) fn path(&self) -> &Path {
        &self.mounted
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Err(error) = quiet(Command::new("umount").arg(&self.mounted)) {
            eprintln!(
                "warning: {} stays mounted: {error:#}",
                self.mounted.display()
            );
        }
    }
}
