//! The file systems of a share, and their properties.
//!
//! Others can be mounted below the root of a share: disks, btrfs subvolumes, ZFS data sets. Each
//! has separate inode numbers, free space and features. A file belongs to the file system that
//! statx(2) names, by device and mount.
//!
//! # Numbers of files
//!
//! Clients take two files with one number for the same file. The files of the root's file system
//! keep their inode numbers; those of another one have its tag added: see [`VolumeId::file_id`].
//! The upper 16 bits of a tag are unique among the file systems that the table knows. They are a
//! hash of the serial number, so that they stay the same after a restart; after a collision of the
//! hash, the next free value.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use proto::file::{VolumeId, VolumeKind};
use proto::token::Token;
use rustix::fs::{fstatfs, getxattr};
use rustix::io::Errno;

use super::sectors::{Sectors, sectors_of};
use super::stat::{Stat, by_descriptor, or_as_server, supports_attributes};
use crate::{Effort, dosattrib};

/// Maximum number of file systems in the table of a share. Further ones evict those without opens;
/// if all have opens, the tag of a further one is not checked for a collision of its hash.
const VOLUMES_MAX: usize = 4096;
/// Number of bits of a tag below the part that is unique.
const TAG_SHIFT: u32 = 48;
/// The values of the unique part of a tag are 1 to this number. 0 stands for the root; the largest
/// 16-bit number could make a file number of all ones, which means "no number".
const TAG_MAX: u64 = 0xFFFE;

/// `f_type` of statfs(2).
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58F6;
const MSDOS: u32 = 0x0000_4D44;
const EXFAT: u32 = 0x2011_BAB0;
const ISO9660: u32 = 0x0000_9660;
const UDF: u32 = 0x1501_3346;
const BTRFS: u32 = 0x9123_683E;

/// A file system, and the mount through which the share reaches it.
#[derive(Debug)]
pub(super) struct Volume {
    place: Place,
    /// Serial number and tag, as clients see them.
    pub(super) id: VolumeId,
    pub(super) kind: VolumeKind,
    pub(super) sectors: Sectors,
    /// Whether the file system supports extended attributes.
    pub(super) stores_attributes: bool,
    /// Whether the file system is in memory and never waits for a disk.
    pub(super) never_blocks: bool,
    /// Whether the file system can compress files.
    pub(super) compresses: bool,
    /// Whether files can share extents, once that was tried out.
    pub(super) shares_extents: OnceLock<bool>,
    /// Whether the file system has refused a non-blocking buffered write, so that later writes do
    /// not try one.
    pub(super) writes_wait: AtomicBool,
}

/// Device and mount of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    device: u64,
    mount: u64,
}

impl Place {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.key().volume,
            mount: stat.mount(),
        }
    }
}

impl Volume {
    /// The effort of an operation on a file: a file system in memory never blocks.
    pub(super) fn effort(&self, effort: Effort) -> Effort {
        match self.never_blocks {
            true => Effort::Blocking,
            false => effort,
        }
    }

    /// Whether this is the file system of a file.
    pub(super) fn holds(&self, stat: &Stat) -> bool {
        self.place == Place::of(stat)
    }

    /// Queries the properties of the file system that holds an open file.
    fn of(fd: &OwnedFd, stat: &Stat, token: &Arc<Token>, tag: impl FnOnce(u64) -> u64) -> Self {
        let place = Place::of(stat);
        let statfs = fstatfs(fd).ok();
        let f_type = statfs.map_or(0, |statfs| statfs.f_type as u32);
        let serial = match rustix::fs::fstatvfs(fd).map_or(0, |statvfs| statvfs.f_fsid) {
            0 => place.device,
            serial => serial,
        };
        let tag = tag(serial);
        Self {
            place,
            id: VolumeId { serial, tag },
            kind: kind_of(f_type),
            sectors: sectors_of(stat, statfs.map_or(0, |statfs| statfs.f_bsize as u64)),
            stores_attributes: stores_attributes(fd, stat, token),
            never_blocks: [TMPFS, RAMFS].contains(&f_type),
            compresses: f_type == BTRFS,
            shares_extents: OnceLock::new(),
            writes_wait: AtomicBool::new(false),
        }
    }
}

/// The file systems that a share has met.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    known: Mutex<Known>,
    /// Whether all of them are in memory.
    never_block: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    /// Device of the root.
    root: u64,
    volumes: HashMap<Place, Arc<Volume>>,
}

impl Volumes {
    /// Enters the file system of a new root, and forgets all others: the numbers of their files
    /// depend on it.
    pub(super) fn enter_root(&self, fd: &OwnedFd, stat: &Stat, token: &Arc<Token>) -> Arc<Volume> {
        let volume = Arc::new(Volume::of(fd, stat, token, |_| 0));
        let mut known = self.lock();
        known.root = volume.place.device;
        known.volumes.clear();
        known.volumes.insert(volume.place, volume.clone());
        self.never_block
            .store(volume.never_blocks, Ordering::Relaxed);
        volume
    }

    /// The file system of a file, which is probably that of `near`: its directory.
    pub(super) fn find(
        &self,
        fd: &OwnedFd,
        stat: &Stat,
        near: &Arc<Volume>,
        token: &Arc<Token>,
    ) -> Arc<Volume> {
        if near.holds(stat) {
            return near.clone();
        }
        let place = Place::of(stat);
        if let Some(volume) = self.lock().volumes.get(&place) {
            return volume.clone();
        }
        // System calls do not run under the lock. Two threads may do this at the same time; the
        // tags of both are the same.
        let volume = Volume::of(fd, stat, token, |serial| self.lock().tag(place, serial));
        if !volume.never_blocks {
            self.never_block.store(false, Ordering::Relaxed);
        }
        self.lock().add(volume)
    }

    /// The file system at a place, if it is known.
    pub(super) fn get(&self, stat: &Stat) -> Option<Arc<Volume>> {
        self.lock().volumes.get(&Place::of(stat)).cloned()
    }

    /// The effort of an operation that walks a path: it never blocks if no file system of the share
    /// does.
    pub(super) fn effort(&self, effort: Effort) -> Effort {
        match self.never_block.load(Ordering::Relaxed) {
            true => Effort::Blocking,
            false => effort,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The tag of a file system.
    fn tag(&self, place: Place, serial: u64) -> u64 {
        if place.device == self.root {
            return 0;
        }
        let same = |volume: &&Arc<Volume>| {
            volume.place.device == place.device && volume.id.serial == serial
        };
        if let Some(volume) = self.volumes.values().find(same) {
            return volume.id.tag;
        }
        let hash = mixed(serial);
        let low = hash & ((1 << TAG_SHIFT) - 1);
        let used = |unique: &u64| {
            let mut tags = self.volumes.values().map(|volume| volume.id.tag);
            tags.any(|tag| tag >> TAG_SHIFT == *unique)
        };
        let start = (hash >> TAG_SHIFT) % TAG_MAX;
        let free = (start..start + TAG_MAX)
            .map(|number| number % TAG_MAX + 1)
            .find(|unique| !used(unique));
        free.unwrap_or(start + 1) << TAG_SHIFT | low
    }

    /// Adds a file system, unless another thread was faster.
    fn add(&mut self, volume: Volume) -> Arc<Volume> {
        if let Some(known) = self.volumes.get(&volume.place) {
            return known.clone();
        }
        let volume = Arc::new(volume);
        if self.volumes.len() >= VOLUMES_MAX {
            let root = self.root;
            let is_used = |volume: &Arc<Volume>| Arc::strong_count(volume) > 1;
            self.volumes
                .retain(|place, volume| place.device == root || is_used(volume));
        }
        if self.volumes.len() < VOLUMES_MAX {
            self.volumes.insert(volume.place, volume.clone());
        }
        volume
    }
}

/// A hash of 64 bits that maps different numbers to different numbers: the finalizer of splitmix64.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

fn kind_of(f_type: u32) -> VolumeKind {
    match f_type {
        MSDOS => VolumeKind::Fat,
        EXFAT => VolumeKind::ExFat,
        ISO9660 => VolumeKind::Iso9660,
        UDF => VolumeKind::Udf,
        _ => VolumeKind::Full,
    }
}

/// Whether the file system of a file supports extended attributes of the user class.
fn stores_attributes(fd: &impl AsFd, stat: &Stat, token: &Arc<Token>) -> bool {
    if !supports_attributes(stat) {
        return true;
    }
    let mut value = [0; dosattrib::MAX_LEN];
    let path = by_descriptor(fd);
    let read = || getxattr(path.as_str(), dosattrib::NAME, &mut value[..]);
    // The kernel checks the permission first.
    let result = or_as_server(token, read);
    !matches!(result, Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(device: u64, mount: u64, serial: u64, tag: u64) -> Volume {
        Volume {
            place: Place { device, mount },
            id: VolumeId { serial, tag },
            kind: VolumeKind::Full,
            sectors: Sectors::default(),
            stores_attributes: true,
            never_blocks: false,
            compresses: false,
            shares_extents: OnceLock::new(),
            writes_wait: AtomicBool::new(false),
        }
    }

    /// Meets a file system, and returns its tag.
    fn meet(known: &mut Known, device: u64, mount: u64, serial: u64) -> u64 {
        let tag = known.tag(Place { device, mount }, serial);
        known.add(volume(device, mount, serial, tag)).id.tag
    }

    #[test]
    fn tags_are_unique_and_the_same_through_every_mount() {
        let mut known = Known {
            root: 1,
            ..Known::default()
        };
        assert_eq!(meet(&mut known, 1, 1, 7), 0);
        assert_eq!(meet(&mut known, 1, 2, 7), 0, "the root, mounted again");
        let tags: Vec<u64> = (2..500).map(|n| meet(&mut known, n, n, n << 32)).collect();
        let mut unique: Vec<u64> = tags.iter().map(|tag| tag >> TAG_SHIFT).collect();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), tags.len());
        assert!(unique.iter().all(|unique| (1..=TAG_MAX).contains(unique)));
        assert_eq!(meet(&mut known, 7, 900, 7 << 32), tags[5]);
    }

    #[test]
    fn equal_serial_numbers_of_two_disks_get_two_tags() {
        let mut known = Known {
            root: 1,
            ..Known::default()
        };
        let one = meet(&mut known, 2, 2, 5);
        let copy = meet(&mut known, 3, 3, 5);
        assert_ne!(one >> TAG_SHIFT, copy >> TAG_SHIFT);
        let after_restart = Known {
            root: 1,
            ..Known::default()
        };
        let again = after_restart.tag(
            Place {
                device: 9,
                mount: 9,
            },
            5,
        );
        assert_eq!(again, one, "the number of the device may change");
    }

    #[test]
    fn numbers_of_files_differ_and_are_neither_nothing_nor_all_ones() {
        let mut known = Known {
            root: 1,
            ..Known::default()
        };
        let tags = [0, 2, 3, 4].map(|n| match n {
            0 => 0,
            n => meet(&mut known, n, n, n),
        });
        let inodes = [1, 2, 128, 256, (1 << 32) + 5, (1 << TAG_SHIFT) - 1];
        let mut numbers: Vec<u64> = tags
            .iter()
            .flat_map(|tag| {
                let id = VolumeId {
                    serial: 0,
                    tag: *tag,
                };
                inodes.map(|inode| id.file_id(inode))
            })
            .collect();
        assert_eq!(numbers[..inodes.len()], inodes);
        assert!(!numbers.contains(&0) && !numbers.contains(&u64::MAX));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), tags.len() * inodes.len());
    }

    #[test]
    fn the_table_is_bounded() {
        let mut known = Known {
            root: 1,
            ..Known::default()
        };
        meet(&mut known, 1, 1, 7);
        for n in 2..2 * VOLUMES_MAX as u64 {
            known.add(volume(n, n, n, n << TAG_SHIFT));
            assert!(known.volumes.len() <= VOLUMES_MAX);
        }
        let root = Place {
            device: 1,
            mount: 1,
        };
        assert!(known.volumes.contains_key(&root));
    }
}
