//! Facts about a RAID of the md driver.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::tune::files::{number, text};

/// Facts about a RAID of the md driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaidFacts {
    /// Level, such as `raid5`.
    pub level: String,
    /// Number of disks.
    pub disks: u64,
    /// Number of missing disks.
    pub missing: u64,
    /// Bytes of a stripe on one disk.
    pub chunk: u64,
    /// Pages of the stripe cache for each disk; `None` for levels without parity.
    pub stripe_cache: Option<u64>,
    /// The present action, such as `idle` or `resync`.
    pub action: String,
}

impl RaidFacts {
    /// Whether the level has parity.
    pub(crate) fn has_parity(&self) -> bool {
        matches!(self.level.as_str(), "raid4" | "raid5" | "raid6")
    }

    /// Number of disks that hold the data of a stripe.
    pub(crate) fn data_disks(&self) -> u64 {
        let of_parity = match self.level.as_str() {
            "raid4" | "raid5" => 1,
            "raid6" => 2,
            "raid10" => return (self.disks / 2).max(1),
            _ => 0,
        };
        self.disks.saturating_sub(of_parity).max(1)
    }
}

/// Reads the facts below the directory of a block device; `None` for other devices.
pub(super) fn gather(device: &Path) -> Option<RaidFacts> {
    let md = device.join("md");
    Some(RaidFacts {
        level: text(md.join("level"))?,
        disks: number(md.join("raid_disks"))?,
        missing: number(md.join("degraded")).unwrap_or(0),
        chunk: number(md.join("chunk_size")).unwrap_or(0),
        stripe_cache: number(md.join("stripe_cache_size")),
        action: text(md.join("sync_action")).unwrap_or_default(),
    })
}
