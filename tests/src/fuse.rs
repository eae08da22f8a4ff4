//! Mounts of `smbeam mount` on this machine.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::lab::{Missing, is_root};
use crate::subject::{Server, User, program};
use crate::wait;

/// Time limit for the start of a mount.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs a program as the user `$0` in a name space with a device for every user, which can belong
/// to root alone on this machine, and with a name for the user, which fusermount3 needs.
const AS_USER: &str = "
    set -e
    mount -t tmpfs none /mnt
    mknod -m 666 /mnt/fuse c 10 229
    mount --bind /mnt/fuse /dev/fuse
    { cat /etc/passwd; echo \"mounter:x:$0:$0::/:/bin/sh\"; } > /mnt/passwd
    mount --bind /mnt/passwd /etc/passwd
    umount -l /mnt
    exec setpriv --reuid $0 --regid $0 --clear-groups \"$@\"";

/// A mount, and the process that serves it.
#[derive(Debug)]
pub struct FuseMount {
    process: Child,
    target: PathBuf,
    /// The ordinary user that has mounted it, in a name space of its own.
    user: Option<u32>,
}

impl FuseMount {
    /// Mounts the share `data` as a user, at the new directory `target`, with a list of options.
    pub fn new(server: &Server, user: User, target: &Path, options: &str) -> Result<FuseMount> {
        Self::start((&server.tcp.to_string(), user), target, options, None)
    }

    /// As [`new`](Self::new), from the server at an address. `uid` is the user that runs the
    /// process and owns the directory; `None` for the present one.
    pub fn start(
        (address, account): (&str, User),
        target: &Path,
        options: &str,
        uid: Option<u32>,
    ) -> Result<FuseMount> {
        if !is_root() || !Path::new("/dev/fuse").exists() {
            let why = "a mount needs root and /dev/fuse".to_owned();
            return Err(Missing(why).into());
        }
        fs::create_dir(target)?;
        let password = target.with_extension("password");
        fs::write(&password, account.password)?;
        let mut command = start_as(uid, program()?.as_os_str());
        command
            .args(["mount", "--foreground", "--password-file"])
            .args([password.as_os_str(), OsStr::new("-o"), OsStr::new(options)])
            .arg(format!("smb://{}@{address}/data", account.name))
            .arg(target)
            .stdin(Stdio::null());
        if let Some(uid) = uid {
            chown(target, Some(uid), Some(uid))?;
            chown(&password, Some(uid), Some(uid))?;
        }
        let process = command.spawn().context("cannot start smbeam mount")?;
        let target = target.to_path_buf();
        let mut mount = FuseMount {
            process,
            target,
            user: uid,
        };
        wait::until("the mount", TIME_LIMIT, || {
            mount.is_mounted() || mount.has_ended()
        })?;
        ensure!(mount.is_mounted(), "smbeam mount has ended");
        Ok(mount)
    }

    /// A command that runs a program as the user of the mount, which sees the mount.
    pub fn command(&self, program: &str) -> Command {
        let Some(user) = self.user else {
            return Command::new(program);
        };
        let (id, user) = (self.process.id().to_string(), user.to_string());
        let mut command = Command::new("nsenter");
        command
            // The directories of root are closed to the user.
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .args(["--mount", "--target", &id])
            .args(["setpriv", "--clear-groups", "--reuid", &user])
            .args(["--regid", &user, program]);
        command
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The directory that shows the share.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Sends a signal to the process by its name, such as TERM.
    pub fn signal(&self, name: &str) -> Result<()> {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status()?;
        ensure!(sent.success(), "kill -s {name} failed");
        Ok(())
    }

    /// Kills the process.
    pub fn kill(&mut self) -> Result<()> {
        Ok(self.process.kill()?)
    }

    /// Waits for the end of the process.
    pub fn ends(&mut self) -> Result<()> {
        let status = wait::for_end(&mut self.process, TIME_LIMIT)?;
        status.map(drop).context("smbeam mount does not end")
    }

    /// Whether the directory shows the share.
    pub fn is_mounted(&self) -> bool {
        match self.user {
            Some(_) => self.is_mounted_for(self.process.id()),
            None => self.is_mounted_for(std::process::id()),
        }
    }

    /// Whether the directory shows the share to a process.
    pub fn is_mounted_for(&self, process: u32) -> bool {
        let mounts = format!("/proc/{process}/mounts");
        let mounts = fs::read_to_string(mounts).unwrap_or_default();
        let target = self.target.to_string_lossy();
        mounts
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(&target))
    }
}

/// A command that runs a program as a user, or as the present one.
fn start_as(user: Option<u32>, program: &OsStr) -> Command {
    let Some(user) = user else {
        return Command::new(program);
    };
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "slave", "sh", "-c", AS_USER])
        .arg(user.to_string())
        .arg(program);
    command
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
