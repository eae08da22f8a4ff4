//! Facts about the directories of shares: mounts and block devices.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use super::kernel::chosen;
use super::raid::{self, RaidFacts};
use super::xfs::{self, XfsFacts};
use crate::config::ShareSection;
use crate::tune::files::{number, text};

/// Flushes of one measurement.
const FLUSHES: usize = 16;

/// Facts about the directory of a share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreFacts {
    /// Name of the share.
    pub share: String,
    /// Its directory.
    pub path: PathBuf,
    /// The share key `direct`: large transfers do not use the page cache.
    pub direct: bool,
    /// The mount with the directory.
    pub mount: MountFacts,
    /// The block device of the mount; `None` for file systems without one, such as tmpfs.
    pub device: Option<BlockFacts>,
    /// The XFS file system; `None` for others, and without the program `xfs_info`.
    pub xfs: Option<XfsFacts>,
    /// Times of flushes; `None` if they were not measured.
    pub flush: Option<FlushTimes>,
}

/// A mount of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountFacts {
    /// Directory of the mount.
    pub target: PathBuf,
    /// Type of the file system, such as `xfs`.
    pub file_system: String,
    /// Device or server.
    pub source: String,
    /// Options of the mount and of its file system.
    pub options: Vec<String>,
    /// Device number in the form `MAJOR:MINOR`.
    pub device: String,
}

impl MountFacts {
    /// Whether the mount has the option.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    /// The value of an option `NAME=VALUE`.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter();
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Facts about a block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFacts {
    /// Name in /sys/block, such as `nvme0n1`.
    pub name: String,
    /// Whether it is a rotating disk.
    pub is_rotational: bool,
    /// I/O scheduler; `None` for devices without one, such as md.
    pub scheduler: Option<String>,
    /// Requests that may wait in the queue.
    pub requests: Option<u64>,
    /// Commands that the device takes at a time; `None` if it does not report that.
    pub queue_depth: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// KiB that the kernel reads ahead.
    pub read_ahead_kb: u64,
    /// Bytes of a full stripe or of the best request; 0 if the device has none.
    pub optimal_io: u64,
    /// The RAID; `None` for other devices.
    pub raid: Option<RaidFacts>,
}

/// Times of flushes (fdatasync) after a write of 4 KiB, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlushTimes {
    /// The median.
    pub median_ms: f64,
    /// The longest.
    pub longest_ms: f64,
}

pub(super) fn gather(shares: &[ShareSection], measures_flush: bool) -> Vec<StoreFacts> {
    let mounts = mounts();
    let stores = shares.iter().filter_map(|share| {
        let path = share.path.get_ref().canonicalize().ok()?;
        let mount = mount_of(&mounts, &path)?.clone();
        let is_xfs = mount.file_system == "xfs";
        Some(StoreFacts {
            share: share.name.get_ref().clone(),
            direct: share.direct,
            device: device(&mount),
            xfs: is_xfs.then(|| xfs::gather(&mount.target)).flatten(),
            flush: measures_flush.then(|| flush_times(&path)).flatten(),
            path,
            mount,
        })
    });
    stores.collect()
}

/// The mounts of cifs.ko.
pub(super) fn cifs_mounts() -> Vec<MountFacts> {
    let mut mounts = mounts();
    mounts.retain(|mount| matches!(mount.file_system.as_str(), "cifs" | "smb3"));
    mounts
}

fn mounts() -> Vec<MountFacts> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(mount).collect()
}

/// Parses a line of /proc/self/mountinfo. proc_pid_mountinfo(5)
fn mount(line: &str) -> Option<MountFacts> {
    let (of_mount, of_file_system) = line.split_once(" - ")?;
    let fields: Vec<&str> = of_mount.split(' ').collect();
    let mut rest = of_file_system.split(' ');
    let file_system = rest.next()?.to_owned();
    let source = unescaped(rest.next()?);
    let options = fields
        .get(5)?
        .split(',')
        .chain(rest.next().unwrap_or("").split(','));
    let mut options: Vec<String> = options.map(str::to_owned).collect();
    options.dedup();
    Some(MountFacts {
        target: unescaped(fields.get(4)?).into(),
        file_system,
        source,
        options,
        device: (*fields.get(2)?).to_owned(),
    })
}

/// Spaces and tabs in names are octal: `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[3..]);
            }
            None => plain.push_str(part),
        }
    }
    plain
}

/// The mount with the path: the last one of the longest targets.
fn mount_of<'m>(mounts: &'m [MountFacts], path: &Path) -> Option<&'m MountFacts> {
    let above = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.target));
    above.max_by_key(|mount| mount.target.as_os_str().len())
}

/// The whole block device of a mount, without its partitions.
fn device(mount: &MountFacts) -> Option<BlockFacts> {
    let by_number = Path::new("/sys/dev/block").join(&mount.device);
    let directory = by_number.canonicalize().or_else(|_| {
        // File systems such as btrfs have numbers that belong to no device.
        let name = Path::new(&mount.source).file_name().unwrap_or_default();
        Path::new("/sys/class/block").join(name).canonicalize()
    });
    let directory = directory.ok()?;
    let whole = match directory.join("partition").exists() {
        true => directory.parent()?.to_owned(),
        false => directory,
    };
    block(&whole)
}

fn block(directory: &Path) -> Option<BlockFacts> {
    let queue = directory.join("queue");
    let of_queue = |name: &str| number(queue.join(name));
    Some(BlockFacts {
        name: directory.file_name()?.to_str()?.to_owned(),
        is_rotational: of_queue("rotational") == Some(1),
        scheduler: text(queue.join("scheduler")).map(|text| chosen(&text)),
        requests: of_queue("nr_requests"),
        queue_depth: number(directory.join("device/queue_depth")),
        write_cache: text(queue.join("write_cache")),
        read_ahead_kb: of_queue("read_ahead_kb")?,
        optimal_io: of_queue("optimal_io_size").unwrap_or(0),
        raid: raid::gather(directory),
    })
}

/// Writes 4 KiB to an unnamed file and flushes it, several times. Clients cannot see the file.
fn flush_times(directory: &Path) -> Option<FlushTimes> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = File::from(open(directory, flags, Mode::RUSR | Mode::WUSR).ok()?);
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let start = Instant::now();
        file.write_all(&[0x5A; 4096]).ok()?;
        file.sync_data().ok()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Some(FlushTimes {
        median_ms: times[FLUSHES / 2],
        longest_ms: times[FLUSHES - 1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: [&str; 3] = [
        "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard",
        "36 27 9:0 / /srv/my\\040data rw,noatime shared:5 - xfs /dev/md0 rw,sunit=1024,swidth=8192",
        "40 27 0:50 / /mnt rw - cifs //nas/data rw,vers=3.1.1,rsize=4194304",
    ];

    #[test]
    fn the_mount_of_a_path_is_found() {
        let mounts: Vec<MountFacts> = LINES.iter().filter_map(|line| mount(line)).collect();
        let found = mount_of(&mounts, Path::new("/srv/my data/set")).expect("a mount");
        assert_eq!(
            (found.file_system.as_str(), found.device.as_str()),
            ("xfs", "9:0")
        );
        assert!(found.has("noatime"));
        assert_eq!(found.value("swidth"), Some("8192"));
        let root = mount_of(&mounts, Path::new("/srv/other")).expect("a mount");
        assert_eq!(root.target, Path::new("/"));
        assert_eq!(mounts[2].value("rsize"), Some("4194304"));
    }

    #[test]
    fn a_flush_leaves_no_file() {
        let directory = tempfile::tempdir().expect("a directory");
        if let Some(times) = flush_times(directory.path()) {
            assert!(times.median_ms <= times.longest_ms);
        }
        let left = fs::read_dir(directory.path()).expect("a directory");
        assert_eq!(left.count(), 0);
    }
}
