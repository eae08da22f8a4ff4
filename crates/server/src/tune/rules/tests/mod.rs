//! Recorded facts, and the findings that they must have.

mod connections;
mod storage;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::tune::{
    BlockFacts, Change, ClientFacts, ConfigFacts, CryptoSpeed, FlushTimes, InterfaceFacts,
    InterruptFacts, KernelFacts, MountFacts, RaidFacts, StoreFacts, XfsFacts,
};

/// A machine without findings.
fn good() -> Facts {
    let sysctls = [
        ("kernel.io_uring_disabled", "0"),
        ("net.core.netdev_max_backlog", "10000"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_rmem", "4096 131072 134217728"),
        ("net.ipv4.tcp_slow_start_after_idle", "0"),
        ("net.ipv4.tcp_wmem", "4096 16384 134217728"),
        ("vm.dirty_bytes", "2147483648"),
        ("vm.dirty_ratio", "0"),
        ("vm.swappiness", "10"),
        ("vm.zone_reclaim_mode", "0"),
    ];
    let sysctls = sysctls.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Facts {
        kernel: KernelFacts {
            release: "6.12.9".to_owned(),
            cpus: 16,
            memory_bytes: 256 << 30,
            swap_bytes: 1 << 30,
            sysctls: BTreeMap::from(sysctls),
            huge_pages: Some("madvise".to_owned()),
            clock_source: Some("tsc".to_owned()),
            governor: Some("performance".to_owned()),
            backlog_drops: 0,
            cpu_quota: None,
        },
        stores: vec![store()],
        interfaces: vec![InterfaceFacts {
            name: "eth0".to_owned(),
            speed_mbit: Some(100_000),
            mtu: 9000,
            receive_queues: 16,
            ..InterfaceFacts::default()
        }],
        config: Some(ConfigFacts {
            buffer_memory_mb: 256,
            blocking_threads: 4,
            multichannel: true,
            transports: vec!["tcp".to_owned()],
            credits: 8192,
            channels_per_session: 32,
            max_read: 8 << 20,
            max_write: 8 << 20,
            log_level: "info".to_owned(),
            ..ConfigFacts::default()
        }),
        ..Facts::default()
    }
}

fn store() -> StoreFacts {
    StoreFacts {
        share: "data".to_owned(),
        path: "/srv/data".into(),
        mount: MountFacts {
            target: "/srv".into(),
            file_system: "xfs".to_owned(),
            source: "/dev/md0".to_owned(),
            options: vec!["rw".to_owned(), "noatime".to_owned()],
            device: "9:0".to_owned(),
        },
        device: Some(BlockFacts {
            name: "md0".to_owned(),
            read_ahead_kb: 8192,
            optimal_io: 4 << 20,
            raid: Some(RaidFacts {
                level: "raid5".to_owned(),
                disks: 9,
                missing: 0,
                chunk: 512 << 10,
                stripe_cache: Some(8192),
                action: "idle".to_owned(),
            }),
            ..BlockFacts::default()
        }),
        xfs: Some(XfsFacts {
            allocation_groups: 32,
            stripe_unit: 512 << 10,
            stripe_width: 4 << 20,
            has_external_log: true,
        }),
        ..StoreFacts::default()
    }
}

/// Checks that a change of good facts has exactly these findings.
fn assert_codes(
    profile: Profile,
    change: impl FnOnce(&mut Facts),
    expected: &[&str],
) -> Vec<Finding> {
    let mut facts = good();
    change(&mut facts);
    let findings = advise(&facts, profile);
    let codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, expected, "{findings:#?}");
    for finding in &findings {
        assert!(CODES.contains(&finding.code), "{finding:?}");
        assert!(!finding.evidence.is_empty(), "{finding:?}");
        assert!(
            !finding.advice.is_empty() && !finding.source.is_empty(),
            "{finding:?}"
        );
    }
    findings
}

fn sysctl(facts: &mut Facts, key: &str, value: &str) {
    facts
        .kernel
        .sysctls
        .insert(key.to_owned(), value.to_owned());
}

fn config(facts: &mut Facts) -> &mut ConfigFacts {
    facts.config.as_mut().expect("given")
}

#[test]
fn a_good_machine_has_no_findings() {
    for profile in [Profile::Training, Profile::SmallFiles, Profile::Mixed] {
        assert_codes(profile, |_| {}, &[]);
    }
}

#[test]
fn parameters_of_the_kernel_have_findings() {
    let cases: [(&str, &str, &str); 7] = [
        ("vm.swappiness", "60", "tune-swappiness"),
        ("vm.zone_reclaim_mode", "1", "tune-zone-reclaim"),
        (
            "net.ipv4.tcp_rmem",
            "4096 131072 6291456",
            "tune-socket-buffers",
        ),
        ("net.core.netdev_max_backlog", "1000", "tune-backlog"),
        ("net.ipv4.tcp_slow_start_after_idle", "1", "tune-slow-start"),
        (
            "net.ipv4.tcp_congestion_control",
            "bbr",
            "tune-congestion-control",
        ),
        ("kernel.io_uring_disabled", "2", "tune-io-uring"),
    ];
    for (key, value, code) in cases {
        assert_codes(Profile::Mixed, |facts| sysctl(facts, key, value), &[code]);
    }
    // Without swap there is nothing to swap.
    let without = |facts: &mut Facts| {
        sysctl(facts, "vm.swappiness", "60");
        facts.kernel.swap_bytes = 0;
    };
    assert_codes(Profile::Mixed, without, &[]);
}

#[test]
fn dirty_bytes_depend_on_memory_and_profile() {
    let by_ratio = |facts: &mut Facts| {
        sysctl(facts, "vm.dirty_bytes", "0");
        sysctl(facts, "vm.dirty_ratio", "20");
    };
    let findings = assert_codes(Profile::Mixed, by_ratio, &["tune-dirty-bytes"]);
    let expected = Change::Sysctl {
        key: "vm.dirty_bytes".to_owned(),
        value: (4_u64 << 30).to_string(),
    };
    assert_eq!(findings[0].changes[1], expected);
    let small = |facts: &mut Facts| {
        by_ratio(facts);
        facts.kernel.memory_bytes = 16 << 30;
    };
    assert_codes(Profile::Mixed, small, &[]);
    let findings = assert_codes(
        Profile::Checkpoint,
        by_ratio,
        &["tune-dirty-bytes", "tune-direct"],
    );
    assert!(
        findings[0]
            .advice
            .contains("vm.dirty_background_bytes=268435456")
    );
}

#[test]
fn the_machine_has_findings() {
    let huge = |facts: &mut Facts| facts.kernel.huge_pages = Some("never".to_owned());
    assert_codes(Profile::Mixed, huge, &["tune-huge-pages"]);
    let clock = |facts: &mut Facts| facts.kernel.clock_source = Some("hpet".to_owned());
    assert_codes(Profile::Mixed, clock, &["tune-clock-source"]);
    let governor = |facts: &mut Facts| facts.kernel.governor = Some("powersave".to_owned());
    assert_codes(Profile::Mixed, governor, &["tune-governor"]);
    let quota = |facts: &mut Facts| facts.kernel.cpu_quota = Some(1.5);
    let findings = assert_codes(Profile::Mixed, quota, &["tune-cpu-quota"]);
    assert!(findings[0].advice.contains("workers = 2"));
}

#[test]
fn the_page_lists_all_codes() {
    let page = include_str!("../../../../../../docs/tune.md");
    let of_page = |prefix: &str| -> BTreeSet<String> {
        let rows = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let codes = rows.map(|(code, _)| code.to_owned());
        codes.filter(|code| code.starts_with(prefix)).collect()
    };
    let all = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(of_page("tune-"), all(CODES));
    assert_eq!(of_page("limit-"), all(crate::tune::LIMITS));
}
