//! Rules about the directories of shares: file systems, block devices and RAIDs.

use super::sources::{CONFIGURATION, MD, QUEUE, XFS};
use crate::tune::facts::{BlockFacts, RaidFacts, StoreFacts, XfsFacts};
use crate::tune::{Facts, Finding, Profile};

/// KiB that the kernel should read ahead for large sequential reads.
const READ_AHEAD_KB: u64 = 8192;
/// Commands that a fast device should take at a time.
const QUEUE_DEPTH: u64 = 32;
/// Pages of the stripe cache of a RAID with parity.
const STRIPE_CACHE: u64 = 8192;
/// Median time of a flush above which a write cache without power-loss protection is likely.
const FLUSH_MS: f64 = 2.0;
/// Least allocation groups for the writers of a machine.
const GROUPS_MIN: u64 = 4;

pub(super) fn advise(facts: &Facts, profile: Profile, findings: &mut Vec<Finding>) {
    let mut devices: Vec<&str> = Vec::new();
    for store in &facts.stores {
        findings.extend(
            [
                file_system(store),
                noatime(store),
                tmpfs_huge(store),
                direct(store, profile),
                flush(store),
                xfs_stripe(store),
                xfs_log(store),
                allocation_groups(store, facts.kernel.cpus),
            ]
            .into_iter()
            .flatten(),
        );
        // Shares on one device have the findings of the device once.
        let Some(device) = &store.device else {
            continue;
        };
        if devices.contains(&device.name.as_str()) {
            continue;
        }
        devices.push(&device.name);
        let rules = [
            scheduler(device),
            queue_depth(device),
            write_cache(device),
            read_ahead(device, profile),
            degraded(device),
            stripe_cache(device),
        ];
        findings.extend(rules.into_iter().flatten());
    }
}

fn of_share(code: &'static str, store: &StoreFacts, message: impl std::fmt::Display) -> Finding {
    Finding::new(code, format_args!("share {}", store.share), message)
}

fn of_device(code: &'static str, device: &BlockFacts, message: impl std::fmt::Display) -> Finding {
    Finding::new(code, format_args!("device {}", device.name), message)
}

/// The file of a parameter of a device.
fn parameter(device: &BlockFacts, name: &str) -> String {
    format!("/sys/block/{}/queue/{name}", device.name)
}

fn file_system(store: &StoreFacts) -> Option<Finding> {
    let name = store.mount.file_system.as_str();
    let is_remote = matches!(name, "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "ceph");
    if !is_remote && !name.starts_with("fuse") && name != "overlay" {
        return None;
    }
    let message = format!("its directory is on {name}: each request has the cost of another layer");
    let finding = of_share("tune-file-system", store, message).seen(
        format_args!("{} on {}", name, store.mount.target.display()),
        "/proc/self/mountinfo",
    );
    Some(finding.advise(
        "share a directory of a local file system such as XFS or ext4",
        CONFIGURATION,
    ))
}

fn noatime(store: &StoreFacts) -> Option<Finding> {
    let mount = &store.mount;
    let is_local = store.device.is_some();
    if !is_local || mount.has("noatime") || mount.has("ro") {
        return None;
    }
    let present = match mount.has("relatime") {
        true => "relatime",
        false => "atime",
    };
    let message = "the first read of a file in a day also writes its inode";
    let finding = of_share("tune-noatime", store, message).seen(
        format_args!("{present} on {}", mount.target.display()),
        "/proc/self/mountinfo",
    );
    let target = mount.target.display();
    Some(finding.advise(
        format_args!("mount -o remount,noatime {target}, and noatime in /etc/fstab"),
        "mount(8)",
    ))
}

fn tmpfs_huge(store: &StoreFacts) -> Option<Finding> {
    let mount = &store.mount;
    if mount.file_system != "tmpfs" || mount.value("huge").is_some() {
        return None;
    }
    let message = "tmpfs with pages of 4 KiB: huge pages halve the cost of a send from the cache";
    let finding = of_share("tune-tmpfs-huge", store, message)
        .seen(mount.options.join(","), "/proc/self/mountinfo");
    let target = mount.target.display();
    Some(finding.advise(
        format_args!("mount -o remount,huge=within_size {target}"),
        "https://docs.kernel.org/admin-guide/mm/transhuge.html",
    ))
}

/// A checkpoint is written once and is larger than the cache.
fn direct(store: &StoreFacts, profile: Profile) -> Option<Finding> {
    let is_disk = store.device.is_some();
    let (code, subject) = ("tune-direct", store);
    let seen = format!("direct = {} of share {}", store.direct, store.share);
    let (message, value) = match (profile, store.direct) {
        (Profile::Checkpoint, false) if is_disk => (
            "large writes go through the page cache, and the flush at the end waits for them",
            true,
        ),
        (Profile::SmallFiles | Profile::Mixed, true) => (
            "large transfers do not use the page cache: files that clients read again come from \
             the disk each time",
            false,
        ),
        _ => return None,
    };
    let finding = of_share(code, subject, message).seen(seen, "configuration");
    Some(finding.advise(
        format_args!("[[share]] direct = {value} (name = \"{}\")", store.share),
        CONFIGURATION,
    ))
}

fn flush(store: &StoreFacts) -> Option<Finding> {
    let times = store.flush?;
    if times.median_ms <= FLUSH_MS {
        return None;
    }
    let message = "a flush is slow: it waits for the medium, not for a protected cache. Databases \
        and checkpoints flush often";
    let finding = of_share("tune-flush", store, message).seen(
        format_args!(
            "write of 4 KiB and fdatasync: median {:.1} ms, longest {:.1} ms",
            times.median_ms, times.longest_ms
        ),
        "measured in its directory",
    );
    Some(finding.advise(
        "use a device with power-loss protection, or put the log of the file system on one",
        XFS,
    ))
}

/// Bytes of a stripe: of one disk, and of all disks with data.
fn stripes(device: &BlockFacts) -> Option<(u64, u64, String)> {
    let raid = device.raid.as_ref()?;
    let has_stripes =
        raid.chunk > 0 && (raid.has_parity() || raid.level == "raid0" || raid.level == "raid10");
    has_stripes.then(|| {
        let origin = format!("/sys/block/{}/md", device.name);
        (raid.chunk, raid.chunk * raid.data_disks(), origin)
    })
}

fn xfs_stripe(store: &StoreFacts) -> Option<Finding> {
    let XfsFacts {
        stripe_unit,
        stripe_width,
        ..
    } = store.xfs?;
    let device = store.device.as_ref()?;
    let (unit, width, origin) = stripes(device)?;
    if (stripe_unit, stripe_width) == (unit, width) {
        return None;
    }
    let message = "XFS does not know the stripes of the RAID: writes touch parts of two stripes, \
        and a RAID with parity must read before it writes";
    let disks = width / unit;
    let finding = of_share("tune-xfs-stripe", store, message)
        .seen(
            format_args!("sunit {stripe_unit}, swidth {stripe_width} bytes"),
            "xfs_info",
        )
        .seen(
            format_args!("chunk {unit} bytes, {disks} disks with data"),
            origin,
        );
    Some(finding.advise(
        format_args!(
            "new file system: mkfs.xfs -d su={}k,sw={disks}; an existing one: mount -o \
             sunit={},swidth={}",
            unit >> 10,
            unit >> 9,
            width >> 9
        ),
        XFS,
    ))
}

fn xfs_log(store: &StoreFacts) -> Option<Finding> {
    let xfs = store.xfs?;
    let raid = store.device.as_ref()?.raid.as_ref()?;
    if xfs.has_external_log || !raid.has_parity() {
        return None;
    }
    let message = "the log of XFS is on a RAID with parity: each small log write reads and writes \
        whole stripes";
    let finding = of_share("tune-xfs-log", store, message)
        .seen("internal log", "xfs_info")
        .seen(raid.level.as_str(), "md/level");
    Some(finding.advise(
        "mkfs.xfs -l logdev=/dev/DEVICE,size=2g and mount -o logdev=/dev/DEVICE,logbsize=256k, \
         with a mirrored fast device",
        XFS,
    ))
}

fn allocation_groups(store: &StoreFacts, cpus: usize) -> Option<Finding> {
    let xfs = store.xfs?;
    let wanted = (cpus as u64 / 2).max(GROUPS_MIN);
    if xfs.allocation_groups >= wanted {
        return None;
    }
    let message = "few allocation groups: writers of different files wait for the same group";
    let finding = of_share("tune-allocation-groups", store, message).seen(
        format_args!("agcount={}, {cpus} processors", xfs.allocation_groups),
        "xfs_info",
    );
    Some(finding.advise(
        format_args!("new file system: mkfs.xfs -d agcount={cpus}"),
        XFS,
    ))
}

fn scheduler(device: &BlockFacts) -> Option<Finding> {
    let scheduler = device.scheduler.as_deref()?;
    let is_virtual = device.name.starts_with("loop") || device.name.starts_with("zram");
    let is_nvme = device.name.starts_with("nvme");
    let wanted = match (is_nvme, device.is_rotational) {
        _ if is_virtual => return None,
        (true, _) if scheduler != "none" => "none",
        (false, false) if scheduler == "bfq" => "none",
        (false, true) if scheduler == "none" => "mq-deadline",
        _ => return None,
    };
    let path = parameter(device, "scheduler");
    let message = format!("the I/O scheduler {scheduler} costs throughput on this device");
    let finding = of_device("tune-disk-scheduler", device, message).seen(scheduler, &path);
    let source = "https://docs.kernel.org/block/switching-sched.html";
    Some(finding.advise(
        format_args!("echo {wanted} > {path}, in a udev rule to keep it"),
        source,
    ))
}

fn queue_depth(device: &BlockFacts) -> Option<Finding> {
    let depth = device.queue_depth?;
    if depth >= QUEUE_DEPTH || device.is_rotational {
        return None;
    }
    let path = format!("/sys/block/{}/device/queue_depth", device.name);
    let message = format!("the device takes only {depth} commands at a time");
    let finding = of_device("tune-queue-depth", device, message).seen(depth, &path);
    Some(finding.advise(format_args!("echo {QUEUE_DEPTH} > {path}"), QUEUE))
}

fn write_cache(device: &BlockFacts) -> Option<Finding> {
    if device.write_cache.as_deref()? != "write through" || !device.is_rotational {
        return None;
    }
    let path = parameter(device, "write_cache");
    let message = "the write cache of the disk is off: each write waits for the medium";
    let finding = of_device("tune-write-cache", device, message).seen("write through", &path);
    Some(finding.advise(
        format_args!(
            "hdparm -W1 /dev/{}, if its cache is protected or flushes work",
            device.name
        ),
        "hdparm(8)",
    ))
}

fn read_ahead(device: &BlockFacts, profile: Profile) -> Option<Finding> {
    let is_streaming = profile.is_streaming() || profile == Profile::Mixed && device.raid.is_some();
    let wanted = match profile.is_streaming() {
        true => READ_AHEAD_KB,
        // Two full stripes keep all disks of a RAID busy.
        false => ((device.optimal_io * 2) >> 10).min(READ_AHEAD_KB),
    };
    if !is_streaming || device.read_ahead_kb >= wanted {
        return None;
    }
    let path = parameter(device, "read_ahead_kb");
    let message = "the kernel reads little ahead: a sequential reader waits for the device again \
        and again";
    let finding = of_device("tune-read-ahead", device, message)
        .seen(format_args!("{} KiB", device.read_ahead_kb), &path);
    Some(finding.advise(
        format_args!("echo {wanted} > {path}, in a udev rule to keep it"),
        QUEUE,
    ))
}

fn degraded(device: &BlockFacts) -> Option<Finding> {
    let raid = device.raid.as_ref()?;
    let is_busy = matches!(
        raid.action.as_str(),
        "resync" | "recover" | "reshape" | "check"
    );
    if raid.missing == 0 && !is_busy {
        return None;
    }
    let RaidFacts {
        disks,
        missing,
        action,
        ..
    } = raid;
    let message = match missing {
        0 => format!("the RAID is at work on itself ({action}), beside the load"),
        _ => format!(
            "{missing} of {disks} disks are missing: reads must be computed from the others"
        ),
    };
    let directory = format!("/sys/block/{}/md", device.name);
    let finding = of_device("tune-raid-degraded", device, message).seen(
        format_args!("degraded {missing}, action {action}"),
        directory,
    );
    Some(finding.advise(
        format_args!(
            "replace the disk: mdadm --manage /dev/{} --add DISK",
            device.name
        ),
        MD,
    ))
}

fn stripe_cache(device: &BlockFacts) -> Option<Finding> {
    let raid = device.raid.as_ref()?;
    let pages = raid.stripe_cache?;
    if pages >= STRIPE_CACHE {
        return None;
    }
    let path = format!("/sys/block/{}/md/stripe_cache_size", device.name);
    let memory = (STRIPE_CACHE * 4096 * raid.disks) >> 20;
    let message = "a small stripe cache: writes become partial stripes, which need reads";
    let finding = of_device("tune-raid-stripe-cache", device, message).seen(pages, &path);
    Some(finding.advise(
        format_args!("echo {STRIPE_CACHE} > {path} (takes {memory} MiB of memory)"),
        MD,
    ))
}
