//! Control groups with limits, of version 1 or 2.

use std::fs;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use smbeam_tests::lab::{Missing, is_root};

/// Length of a period of the processor quota in microseconds.
const PERIOD: f64 = 100_000.0;

/// A group with one process. Dropping it moves the process to the root group.
pub(super) struct ControlGroup {
    directory: PathBuf,
    root: PathBuf,
    process: u32,
}

impl ControlGroup {
    /// A group that may use a number of processors.
    pub(super) fn with_processors(processors: f64, process: u32) -> Result<Self> {
        let quota = (processors * PERIOD) as u64;
        Self::new("cpu", process, |group, version| match version {
            1 => {
                fs::write(group.join("cpu.cfs_period_us"), PERIOD.to_string())?;
                fs::write(group.join("cpu.cfs_quota_us"), quota.to_string())
            }
            _ => fs::write(group.join("cpu.max"), format!("{quota} {PERIOD}")),
        })
    }

    /// A group that reads a number of bytes per second from the device of `path`.
    pub(super) fn with_read_rate(rate: u64, path: &Path, process: u32) -> Result<Self> {
        let device = fs::metadata(path)?.st_dev();
        let (major, minor) = (
            (device >> 8) & 0xFFF,
            (device & 0xFF) | ((device >> 12) & 0xF_FF00),
        );
        Self::new(controller(), process, |group, version| match version {
            1 => {
                let file = group.join("blkio.throttle.read_bps_device");
                fs::write(file, format!("{major}:{minor} {rate}"))
            }
            _ => fs::write(group.join("io.max"), format!("{major}:{minor} rbps={rate}")),
        })
    }

    fn new(
        controller: &str,
        process: u32,
        limit: impl FnOnce(&Path, u32) -> std::io::Result<()>,
    ) -> Result<Self> {
        if !is_root() {
            return Err(Missing("only root makes control groups".to_owned()).into());
        }
        let (root, version) = root(controller)?;
        let directory = root.join(format!("smbeam-test-{}", std::process::id()));
        fs::create_dir(&directory).context("cannot make a control group")?;
        let group = Self {
            directory,
            root,
            process,
        };
        limit(&group.directory, version).context("cannot limit a control group")?;
        let file = group.directory.join("cgroup.procs");
        fs::write(file, process.to_string()).context("cannot fill a control group")?;
        Ok(group)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // The server may have ended.
        let _ = fs::write(self.root.join("cgroup.procs"), self.process.to_string());
        let _ = fs::remove_dir(&self.directory);
    }
}

/// The controller of block devices: its name depends on the version.
fn controller() -> &'static str {
    match Path::new("/sys/fs/cgroup/blkio").exists() {
        true => "blkio",
        false => "io",
    }
}

/// The directory of a controller, and the version.
fn root(controller: &str) -> Result<(PathBuf, u32)> {
    let first = Path::new("/sys/fs/cgroup").join(controller);
    if first.join("cgroup.procs").exists() {
        return Ok((first, 1));
    }
    let second = Path::new("/sys/fs/cgroup");
    let enabled = fs::read_to_string(second.join("cgroup.controllers")).unwrap_or_default();
    let has_controller = enabled.split_whitespace().any(|word| word == controller);
    let is_enabled = || {
        fs::write(
            second.join("cgroup.subtree_control"),
            format!("+{controller}"),
        )
    };
    if !has_controller || is_enabled().is_err() {
        return Err(Missing(format!("no control group with the controller {controller}")).into());
    }
    Ok((second.to_owned(), 2))
}
