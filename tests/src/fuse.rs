//! Mounts of `smbeam mount` on this machine.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::lab::{Missing, is_root};
use crate::subject::{Server, User, program};
use crate::wait;

/// Time limit for the start of a mount.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A mount, and the process that serves it.
#[derive(Debug)]
pub struct FuseMount {
    process: Child,
    target: PathBuf,
}

impl FuseMount {
    /// Mounts the share `data` as a user, at the new directory `target`, with a list of options.
    pub fn new(server: &Server, user: User, target: &Path, options: &str) -> Result<FuseMount> {
        if !is_root() || !Path::new("/dev/fuse").exists() {
            let why = "a mount needs root and /dev/fuse".to_owned();
            return Err(Missing(why).into());
        }
        fs::create_dir(target)?;
        let password = target.with_extension("password");
        fs::write(&password, user.password)?;
        let url = format!("smb://{}@{}/data", user.name, server.tcp);
        let process = Command::new(program()?)
            .args(["mount", "--foreground", "--password-file"])
            .args([password.as_os_str(), OsStr::new("-o"), OsStr::new(options)])
            .arg(url)
            .arg(target)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start smbeam mount")?;
        let target = target.to_path_buf();
        let mut mount = FuseMount { process, target };
        wait::until("the mount", TIME_LIMIT, || {
            mount.is_mounted() || !matches!(mount.process.try_wait(), Ok(None))
        })?;
        ensure!(mount.is_mounted(), "smbeam mount has ended");
        Ok(mount)
    }

    /// The directory that shows the share.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let target = self.target.to_string_lossy();
        mounts
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(&target))
    }
}

impl Drop for FuseMount {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("umount")
            .arg("-l")
            .arg(&self.target)
            .stderr(Stdio::null())
            .status();
    }
}
