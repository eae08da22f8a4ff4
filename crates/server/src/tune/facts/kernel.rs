//! Facts about the kernel and the machine.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::tune::cgroup::cpu_quota;
use crate::tune::files::text;

/// The parameters below /proc/sys that the rules know.
pub(in crate::tune) const SYSCTLS: [&str; 17] = [
    "kernel.io_uring_disabled",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_wmem",
    "vm.dirty_background_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_bytes",
    "vm.dirty_ratio",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
];

/// Facts about the kernel and the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Release of the kernel, such as `6.12.9`.
    pub release: String,
    /// Number of processors that are online.
    pub cpus: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of swap space.
    pub swap_bytes: u64,
    /// Parameters below /proc/sys by their names.
    pub sysctls: BTreeMap<String, String>,
    /// The chosen value of transparent_hugepage/enabled: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Name of the clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// Governor of the first processor, such as `powersave`.
    pub governor: Option<String>,
    /// Packets that were dropped because a backlog queue was full, since the start.
    pub backlog_drops: u64,
    /// Processors that the control group of the server may use; `None` without a limit.
    pub cpu_quota: Option<f64>,
}

impl KernelFacts {
    /// A parameter, as text.
    pub(crate) fn sysctl(&self, key: &str) -> Option<&str> {
        self.sysctls.get(key).map(String::as_str)
    }

    /// A parameter that is a number.
    pub(crate) fn sysctl_number(&self, key: &str) -> Option<u64> {
        self.sysctl(key)?.parse().ok()
    }
}

pub(super) fn gather(server: Option<u32>) -> KernelFacts {
    let read = |key: &str| {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        // A parameter with several numbers has tabs between them.
        let value = text(path)?.split_whitespace().collect::<Vec<_>>().join(" ");
        Some((key.to_owned(), value))
    };
    let memory = text("/proc/meminfo").unwrap_or_default();
    let sys = Path::new("/sys");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    KernelFacts {
        release: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpus,
        memory_bytes: kibibytes(&memory, "MemTotal:"),
        swap_bytes: kibibytes(&memory, "SwapTotal:"),
        sysctls: SYSCTLS.into_iter().filter_map(read).collect(),
        huge_pages: text(sys.join("kernel/mm/transparent_hugepage/enabled")).map(|it| chosen(&it)),
        clock_source: text(sys.join("devices/system/clocksource/clocksource0/current_clocksource")),
        governor: text(sys.join("devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        backlog_drops: backlog_drops(&text("/proc/net/softnet_stat").unwrap_or_default()),
        cpu_quota: cpu_quota(server.unwrap_or_else(std::process::id)),
    }
}

/// The word in brackets, such as `b` of `a [b] c`.
pub(super) fn chosen(text: &str) -> String {
    let word = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(text, |(word, _)| word).to_owned()
}

/// Bytes of a line of /proc/meminfo, such as `MemTotal: 16 kB`.
fn kibibytes(text: &str, key: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) << 10
}

/// The second column of /proc/net/softnet_stat, over all processors. Its numbers are hexadecimal.
fn backlog_drops(text: &str) -> u64 {
    let columns = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    columns
        .filter_map(|column| u64::from_str_radix(column, 16).ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none"), "none");
        assert_eq!(
            kibibytes("MemTotal:  16 kB\nSwapTotal: 8 kB", "SwapTotal:"),
            8 << 10
        );
        assert_eq!(
            backlog_drops("0000000e 00000000 0\n00001322 0000000a 0\n"),
            10
        );
        let here = gather(None);
        assert!(here.cpus > 0 && here.memory_bytes > 0);
        assert!(here.sysctl_number("vm.swappiness").is_some());
    }
}
