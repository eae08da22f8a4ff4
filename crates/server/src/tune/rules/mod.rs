//! The rules: findings from facts.

mod config;
mod kernel;
mod mounts;
mod network;
mod sources;
mod storage;

use super::{Facts, Finding, Profile};

pub use self::mounts::mount_options;

/// The codes of all rules. docs/tune.md explains each.
pub const CODES: &[&str] = &[
    "tune-allocation-groups",
    "tune-backlog",
    "tune-buffers",
    "tune-cifs-mount",
    "tune-clock-source",
    "tune-congestion-control",
    "tune-cpu-quota",
    "tune-credits",
    "tune-crypto",
    "tune-direct",
    "tune-dirty-bytes",
    "tune-disk-scheduler",
    "tune-duplex",
    "tune-file-system",
    "tune-flush",
    "tune-governor",
    "tune-huge-pages",
    "tune-interrupts",
    "tune-io-uring",
    "tune-log-level",
    "tune-mtu",
    "tune-multichannel",
    "tune-noatime",
    "tune-packet-loss",
    "tune-pause-frames",
    "tune-queue-depth",
    "tune-raid-degraded",
    "tune-raid-stripe-cache",
    "tune-read-ahead",
    "tune-receive-queues",
    "tune-request-size",
    "tune-slow-start",
    "tune-smbdirect",
    "tune-socket-buffers",
    "tune-swappiness",
    "tune-tmpfs-huge",
    "tune-workers",
    "tune-write-cache",
    "tune-xfs-log",
    "tune-xfs-stripe",
    "tune-zone-reclaim",
];

/// Returns the findings of all rules. The same facts give the same findings.
pub fn advise(facts: &Facts, profile: Profile) -> Vec<Finding> {
    let mut findings = Vec::new();
    kernel::advise(facts, profile, &mut findings);
    storage::advise(facts, profile, &mut findings);
    network::advise(facts, &mut findings);
    config::advise(facts, profile, &mut findings);
    mounts::advise(facts, profile, &mut findings);
    findings
}

#[cfg(test)]
mod tests;
