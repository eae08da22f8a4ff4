//! The sector sizes of the disk below a file system, from sysfs.

use std::fs;

use rustix::fs::{major, makedev, minor};

use super::stat::Stat;

/// The sector size of almost every disk, and of file systems without one, in bytes.
const SECTOR: u32 = 512;
/// The limits of a plausible sector size in bytes: the kernel supports no larger ones.
const SECTORS: std::ops::RangeInclusive<u32> = SECTOR..=65_536;
/// Length in bytes of the pages in which the kernel writes file systems without a disk.
const PAGE: u32 = 4096;

/// Sector sizes in bytes; powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sectors {
    /// The unit of addresses.
    pub(super) logical: u32,
    /// The unit that the disk writes as a whole; at least `logical`.
    pub(super) physical: u32,
}

impl Default for Sectors {
    fn default() -> Self {
        Self {
            logical: SECTOR,
            physical: SECTOR,
        }
    }
}

/// The sector sizes of the disk of a file. A file system without one disk (in memory, on a network,
/// on several disks) has logical sectors of 512 bytes, and physical sectors of the length of its
/// blocks, at most a page.
pub(super) fn sectors_of(stat: &Stat, block: u64) -> Sectors {
    let device = makedev(stat.0.stx_dev_major, stat.0.stx_dev_minor);
    // A partition has no queue; that of its disk is one directory above.
    let directory = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let queue = ["queue", "../queue"]
        .map(|queue| format!("{directory}/{queue}"))
        .into_iter()
        .find_map(|queue| {
            let logical = size(&format!("{queue}/logical_block_size"))?;
            let physical = size(&format!("{queue}/physical_block_size"));
            Some((logical, physical.unwrap_or(logical)))
        });
    let (logical, physical) = queue.unwrap_or_else(|| {
        let block = u32::try_from(block).unwrap_or(PAGE).min(PAGE);
        let is_sector = SECTORS.contains(&block) && block.is_power_of_two();
        (SECTOR, if is_sector { block } else { SECTOR })
    });
    Sectors {
        logical,
        physical: physical.max(logical),
    }
}

/// Reads a plausible sector size.
fn size(path: &str) -> Option<u32> {
    let bytes = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    (SECTORS.contains(&bytes) && bytes.is_power_of_two()).then_some(bytes)
}
