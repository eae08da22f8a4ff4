//! A mount: its threads, and its end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Weak};

use fuser::{Config, MountOption, Notifier, Session, SessionACL, SessionUnmounter};
use smbeam_client::Share;

use crate::counters::MountStatistics;
use crate::executor::Executor;
use crate::filesystem::Requests;
use crate::options::MountOptions;
use crate::volume::Volume;

/// Largest number of threads that read requests, and of threads that continue tasks.
const THREADS_MAX: usize = 4;

/// Read-ahead of the kernel in KiB: several READs of the largest length.
const READAHEAD_KIB: u32 = 4096;

/// A mounted file system.
pub struct Mounted {
    session: Session<Requests>,
    volume: Arc<Volume>,
    target: PathBuf,
}

/// Unmounts a file system from another thread.
pub struct Unmounter {
    session: SessionUnmounter,
    volume: Weak<Volume>,
    target: PathBuf,
}

impl Mounted {
    /// Mounts the directory `base` of a share at the local directory `target`. An ordinary user
    /// needs the program `fusermount3`. `source` is the name of the mount in /proc/mounts.
    ///
    /// # Errors
    /// The directory does not exist, the user may not mount there, or the system lacks FUSE.
    pub fn new(
        share: Share,
        base: &str,
        (source, target): (&str, &Path),
        options: MountOptions,
    ) -> io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.clamp(2, THREADS_MAX);
        let config = config(source, &options, threads);
        let share = with_names(share, options.posix)?;
        let volume = Volume::new(share, base, options)?;
        let requests = Requests {
            volume: Arc::clone(&volume),
            executor: Arc::new(Executor::new(threads)?),
        };
        // A query of the directory waits for this process once it is mounted.
        let place = target.canonicalize()?;
        let session = Session::new(requests, target, &config)?;
        let notifier: Notifier = session.notifier();
        let _ = volume.notifier.set(notifier);
        let target = target.to_path_buf();
        raise_readahead(&place);
        Ok(Self {
            session,
            volume,
            target,
        })
    }

    /// Returns an object that unmounts the file system from another thread.
    pub fn unmounter(&mut self) -> Unmounter {
        Unmounter {
            session: self.session.unmount_callable(),
            volume: Arc::downgrade(&self.volume),
            target: self.target.clone(),
        }
    }

    /// Returns a function that returns the counters of the mount.
    pub fn statistics(&self) -> impl Fn() -> MountStatistics + Send + 'static {
        let volume = Arc::downgrade(&self.volume);
        move || {
            volume
                .upgrade()
                .map_or_else(MountStatistics::default, |it| it.statistics())
        }
    }

    /// Serves the requests of the kernel until the file system is unmounted.
    ///
    /// # Errors
    /// The kernel ends the connection with an error.
    pub fn run(self) -> io::Result<()> {
        self.session.run()
    }
}

impl Unmounter {
    /// Unmounts the file system. [`Mounted::run`] returns then.
    ///
    /// # Errors
    /// A program uses the file system (EBUSY), so that only the directory shows it no more. The
    /// process can end: the programs get an error then.
    pub fn unmount(&mut self) -> io::Result<()> {
        let unmounted = self.session.unmount();
        if unmounted.is_err() {
            // The command works without a system call that this crate would need.
            let detach = Command::new("umount").arg("-l").arg(&self.target).status();
            detach?;
        }
        // The process may end before programs close their files: those that used the mount, or
        // those of another mount namespace with a copy of it.
        if let Some(volume) = self.volume.upgrade() {
            volume.flush_all();
        }
        unmounted
    }
}

/// Raises the read-ahead of the kernel for a mount, which is 128 KiB for FUSE. Only root may do
/// that; the mount works without it. /sys/class/bdi
fn raise_readahead(target: &Path) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(device) = device_of(&mounts, &target.to_string_lossy()) else {
        return;
    };
    let path = format!("/sys/class/bdi/{device}/read_ahead_kb");
    if let Err(error) = fs::write(&path, READAHEAD_KIB.to_string()) {
        tracing::debug!(%path, %error, "the read-ahead of the kernel stays");
    }
}

/// Device number `major:minor` of the last mount at a directory. proc_pid_mountinfo(5)
fn device_of<'a>(mounts: &'a str, target: &str) -> Option<&'a str> {
    let at_target = |line: &&str| line.split(' ').nth(4) == Some(target);
    let last = mounts.lines().rfind(at_target)?;
    last.split(' ').nth(2)
}

/// The share with the SMB3 POSIX extensions, if the server has them and the options want them.
fn with_names(share: Share, is_wanted: Option<bool>) -> io::Result<Share> {
    if share.uses_posix() && is_wanted != Some(false) {
        return Ok(share);
    }
    match (is_wanted, share.with_posix()) {
        (Some(true), None) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the server does not have the SMB3 POSIX extensions; mount without the option posix",
        )),
        (None | Some(true), Some(posix)) => Ok(posix),
        (None | Some(false), _) => Ok(share),
    }
}

fn config(source: &str, options: &MountOptions, threads: usize) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(source.to_owned()),
        MountOption::Subtype("smbeam".to_owned()),
    ];
    if options.read_only {
        config.mount_options.push(MountOption::RO);
    }
    if options.default_permissions {
        config.mount_options.push(MountOption::DefaultPermissions);
    }
    config.acl = match options.allow_other {
        true => SessionACL::All,
        false => SessionACL::Owner,
    };
    config
        .mount_options
        .extend(options.kernel.iter().filter_map(|name| kernel(name)));
    config.n_threads = Some(threads);
    config.clone_fd = true;
    config
}

/// The option of the kernel with a name of [`MountOptions::kernel`].
fn kernel(name: &str) -> Option<MountOption> {
    Some(match name {
        "suid" => MountOption::Suid,
        "nosuid" => MountOption::NoSuid,
        "dev" => MountOption::Dev,
        "nodev" => MountOption::NoDev,
        "exec" => MountOption::Exec,
        "noexec" => MountOption::NoExec,
        "atime" => MountOption::Atime,
        "noatime" => MountOption::NoAtime,
        "sync" => MountOption::Sync,
        "async" => MountOption::Async,
        "dirsync" => MountOption::DirSync,
        "auto_unmount" => MountOption::AutoUnmount,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_at_a_directory_counts() {
        let mounts = "25 1 0:23 / /a rw - fuse.smbeam x rw\n26 1 0:99 / /a rw - fuse y rw\n\
                      27 1 0:50 / /a/b rw - tmpfs none rw\n";
        assert_eq!(device_of(mounts, "/a"), Some("0:99"));
        assert_eq!(device_of(mounts, "/c"), None);
    }
}
