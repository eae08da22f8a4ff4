//! Rules about the kernel and the machine.

use super::sources::{CONFIGURATION, IP, NET, VM, window_bytes};
use crate::tune::facts::KernelFacts;
use crate::tune::{Facts, Finding, Profile};

/// Dirty bytes above which a flush takes seconds.
const DIRTY_MAX: u64 = 8 << 30;
/// Advised limit of dirty bytes, and that at which the kernel starts to write.
const DIRTY: u64 = 4 << 30;
const DIRTY_BACKGROUND: u64 = 1 << 30;
/// The same for checkpoints: writing starts early, and the flush at the end is short.
const DIRTY_CHECKPOINT: u64 = 2 << 30;
const DIRTY_CHECKPOINT_BACKGROUND: u64 = 256 << 20;
/// Most advised swappiness for a file server.
const SWAPPINESS: u64 = 10;
/// Least and most advised socket buffers in bytes.
const SOCKET_MIN: u64 = 4 << 20;
const SOCKET_MAX: u64 = 128 << 20;
/// Advised length of the backlog queue of each processor.
const BACKLOG: u64 = 10_000;
/// Speed from which on a longer backlog is worth its memory, in bits per second.
const FAST_LINK: u64 = 25_000_000_000;

pub(super) fn advise(facts: &Facts, profile: Profile, findings: &mut Vec<Finding>) {
    let kernel = &facts.kernel;
    let rules = [
        dirty_bytes(kernel, profile),
        swappiness(kernel),
        zone_reclaim(kernel),
        socket_buffers(facts),
        backlog(facts),
        slow_start(kernel),
        congestion_control(kernel),
        io_uring(facts),
        huge_pages(kernel),
        clock_source(kernel),
        governor(kernel),
        cpu_quota(facts),
    ];
    findings.extend(rules.into_iter().flatten());
}

fn dirty_bytes(kernel: &KernelFacts, profile: Profile) -> Option<Finding> {
    let (key, value, limit) = match kernel.sysctl_number("vm.dirty_bytes")? {
        0 => {
            let ratio = kernel.sysctl_number("vm.dirty_ratio")?;
            ("vm.dirty_ratio", ratio, kernel.memory_bytes / 100 * ratio)
        }
        bytes => ("vm.dirty_bytes", bytes, bytes),
    };
    let (most, background, wanted) = match profile {
        Profile::Checkpoint => (
            DIRTY_CHECKPOINT,
            DIRTY_CHECKPOINT_BACKGROUND,
            DIRTY_CHECKPOINT,
        ),
        _ => (DIRTY_MAX, DIRTY_BACKGROUND, DIRTY),
    };
    if limit <= most {
        return None;
    }
    let message = format!(
        "up to {} GiB of written data may wait in memory: a flush then takes seconds, and all \
         writers stop meanwhile",
        limit >> 30
    );
    let finding = Finding::new("tune-dirty-bytes", "kernel", message)
        .seen_sysctl(key, &value.to_string())
        .seen(
            format_args!("{} GiB of memory", kernel.memory_bytes >> 30),
            "/proc/meminfo",
        );
    let values = [
        ("vm.dirty_background_bytes", background.to_string()),
        ("vm.dirty_bytes", wanted.to_string()),
    ];
    Some(finding.advise_sysctls(&values, VM))
}

fn swappiness(kernel: &KernelFacts) -> Option<Finding> {
    let value = kernel.sysctl_number("vm.swappiness")?;
    if value <= SWAPPINESS || kernel.swap_bytes == 0 {
        return None;
    }
    let message = "the kernel may swap the server out in favor of cached files";
    let finding = Finding::new("tune-swappiness", "kernel", message)
        .seen_sysctl("vm.swappiness", &value.to_string())
        .seen(
            format_args!("{} MiB of swap", kernel.swap_bytes >> 20),
            "/proc/meminfo",
        );
    Some(finding.advise_sysctls(&[("vm.swappiness", SWAPPINESS.to_string())], VM))
}

fn zone_reclaim(kernel: &KernelFacts) -> Option<Finding> {
    let value = kernel.sysctl_number("vm.zone_reclaim_mode")?;
    if value == 0 {
        return None;
    }
    let message = "the kernel drops cached files of a NUMA node although other nodes have memory";
    let finding = Finding::new("tune-zone-reclaim", "kernel", message)
        .seen_sysctl("vm.zone_reclaim_mode", &value.to_string());
    Some(finding.advise_sysctls(&[("vm.zone_reclaim_mode", "0".to_owned())], VM))
}

/// The largest windows of TCP, which the third number of tcp_rmem and tcp_wmem limits.
fn socket_buffers(facts: &Facts) -> Option<Finding> {
    let kernel = &facts.kernel;
    let bits = facts.fastest_bits()?;
    let wanted = window_bytes(bits).clamp(SOCKET_MIN, SOCKET_MAX);
    let mut values = Vec::new();
    let mut finding = Finding::new(
        "tune-socket-buffers",
        "kernel",
        format_args!(
            "a connection may have fewer bytes in flight than the {} Gbit/s link carries in 10 ms",
            bits / 1_000_000_000
        ),
    );
    for key in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        let value = kernel.sysctl(key)?;
        let numbers: Vec<&str> = value.split(' ').collect();
        let [least, first, most] = numbers[..] else {
            return None;
        };
        if most.parse::<u64>().ok()? < wanted {
            finding = finding.seen_sysctl(key, value);
            values.push((key, format!("{least} {first} {wanted}")));
        }
    }
    (!values.is_empty()).then(|| finding.advise_sysctls(&values, IP))
}

fn backlog(facts: &Facts) -> Option<Finding> {
    let kernel = &facts.kernel;
    let value = kernel.sysctl_number("net.core.netdev_max_backlog")?;
    let is_fast = facts.fastest_bits().is_some_and(|bits| bits >= FAST_LINK);
    if value >= BACKLOG || kernel.backlog_drops == 0 && !is_fast {
        return None;
    }
    let message = "received packets can overflow the queue of a processor and get lost";
    let finding = Finding::new("tune-backlog", "kernel", message)
        .seen_sysctl("net.core.netdev_max_backlog", &value.to_string())
        .seen(
            format_args!("{} dropped packets since the start", kernel.backlog_drops),
            "/proc/net/softnet_stat, column 2",
        );
    Some(finding.advise_sysctls(&[("net.core.netdev_max_backlog", BACKLOG.to_string())], NET))
}

fn slow_start(kernel: &KernelFacts) -> Option<Finding> {
    let key = "net.ipv4.tcp_slow_start_after_idle";
    if kernel.sysctl_number(key)? == 0 {
        return None;
    }
    let message = "a connection starts slowly again after each pause, for example between batches";
    let finding = Finding::new("tune-slow-start", "kernel", message).seen_sysctl(key, "1");
    Some(finding.advise_sysctls(&[(key, "0".to_owned())], IP))
}

/// The choice depends on the path to the clients, so it is not applied.
fn congestion_control(kernel: &KernelFacts) -> Option<Finding> {
    let key = "net.ipv4.tcp_congestion_control";
    let value = kernel.sysctl(key)?;
    if value != "bbr" {
        return None;
    }
    let message = "bbr paces each packet: in a local network it costs 10 to 50 % of the rate. \
        It is right for clients with a round trip above about 20 ms or with packet loss";
    let finding =
        Finding::new("tune-congestion-control", "kernel", message).seen_sysctl(key, value);
    Some(finding.advise(format_args!("sysctl -w {key}=cubic"), IP))
}

fn io_uring(facts: &Facts) -> Option<Finding> {
    let key = "kernel.io_uring_disabled";
    let disabled = facts.kernel.sysctl_number(key).unwrap_or(0);
    let is_epoll = facts.config.as_ref().is_some_and(|config| config.is_epoll);
    if disabled == 0 && !is_epoll {
        return None;
    }
    let message = "the server uses epoll and threads for disks in place of io_uring";
    let finding =
        Finding::new("tune-io-uring", "kernel", message).seen_sysctl(key, &disabled.to_string());
    Some(match is_epoll {
        true => finding
            .seen("server.io = \"epoll\"", "configuration")
            .advise("[server] io = \"auto\"", CONFIGURATION),
        false => finding.advise(
            format_args!("sysctl -w {key}=0, after a look at the security policy of the machine"),
            "https://docs.kernel.org/admin-guide/sysctl/kernel.html",
        ),
    })
}

fn huge_pages(kernel: &KernelFacts) -> Option<Finding> {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let value = kernel.huge_pages.as_deref()?;
    if value != "never" {
        return None;
    }
    let message = "the buffers of the server cannot use huge pages";
    let finding = Finding::new("tune-huge-pages", "kernel", message).seen(value, path);
    let source = "https://docs.kernel.org/admin-guide/mm/transhuge.html";
    Some(finding.advise(format_args!("echo madvise > {path}"), source))
}

fn clock_source(kernel: &KernelFacts) -> Option<Finding> {
    let value = kernel.clock_source.as_deref()?;
    if !matches!(value, "hpet" | "acpi_pm" | "jiffies") {
        return None;
    }
    let message = "each reading of the clock is a slow access to a device";
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let finding = Finding::new("tune-clock-source", "kernel", message).seen(value, path);
    let source = "https://docs.kernel.org/timers/timekeeping.html";
    Some(finding.advise(
        "find out why the kernel rejects tsc: dmesg | grep -i clocksource",
        source,
    ))
}

fn governor(kernel: &KernelFacts) -> Option<Finding> {
    let value = kernel.governor.as_deref()?;
    if value != "powersave" {
        return None;
    }
    let message = "processors may stay at a low frequency during short bursts of requests";
    let path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let finding = Finding::new("tune-governor", "kernel", message).seen(value, path);
    let source = "https://docs.kernel.org/admin-guide/pm/cpufreq.html";
    Some(finding.advise("cpupower frequency-set -g performance", source))
}

fn cpu_quota(facts: &Facts) -> Option<Finding> {
    let quota = facts.kernel.cpu_quota?;
    let configured = facts.config.as_ref().map_or(0, |config| config.workers);
    let workers = match configured {
        0 => facts.kernel.cpus,
        workers => workers,
    };
    if quota >= workers as f64 {
        return None;
    }
    let message = format!(
        "the control group of the server allows {quota:.2} processors for {workers} workers: the \
         kernel stops all of them when the quota of a period is used up"
    );
    let finding = Finding::new("tune-cpu-quota", "server", message).seen(
        format_args!("quota of {quota:.2} processors"),
        "cpu.max or cpu.cfs_quota_us",
    );
    let source = "https://docs.kernel.org/scheduler/sched-bwc.html";
    let workers = (quota.ceil() as usize).max(1);
    Some(finding.advise(
        format_args!("raise CPUQuota= of the unit, or [server] workers = {workers}"),
        source,
    ))
}
