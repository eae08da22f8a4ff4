//! Mounts that end when a value is dropped, or with the mount namespace of this program.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A mount.
#[derive(Debug)]
pub(crate) struct Mount {
    target: PathBuf,
}

impl Mount {
    /// Mounts a tmpfs of `bytes` bytes at `target`, writable for all users.
    pub(crate) fn tmpfs(target: &Path, bytes: u64) -> Result<Mount> {
        let size = format!("size={bytes},mode=777");
        Mount::new(&["-t", "tmpfs", "-o", &size], Path::new("tmpfs"), target)
    }

    /// Mounts the directory or file `source` at `target` as well.
    pub(crate) fn bind(source: &Path, target: &Path) -> Result<Mount> {
        Mount::new(&["--bind"], source, target)
    }

    fn new(how: &[&str], source: &Path, target: &Path) -> Result<Mount> {
        let mut command = Command::new("mount");
        command.args(how).args([source, target]);
        let status = command.status().context("cannot run mount")?;
        ensure!(status.success(), "{command:?} ended with {status}");
        let target = target.to_owned();
        Ok(Mount { target })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.target).status();
    }
}
