//! Recorded facts about disks and file systems.

use super::*;

fn raid(facts: &mut Facts) -> &mut RaidFacts {
    let device = facts.stores[0].device.as_mut().expect("given");
    device.raid.as_mut().expect("given")
}

fn device(facts: &mut Facts) -> &mut BlockFacts {
    facts.stores[0].device.as_mut().expect("given")
}

#[test]
fn raids_and_xfs_have_findings() {
    let stripe = |facts: &mut Facts| {
        facts.stores[0].xfs = Some(XfsFacts {
            allocation_groups: 32,
            has_external_log: true,
            ..XfsFacts::default()
        });
    };
    let findings = assert_codes(Profile::Mixed, stripe, &["tune-xfs-stripe"]);
    assert!(
        findings[0].advice.contains("su=512k,sw=8"),
        "{}",
        findings[0].advice
    );
    assert!(findings[0].advice.contains("sunit=1024,swidth=8192"));
    let log = |facts: &mut Facts| {
        let xfs = facts.stores[0].xfs.as_mut().expect("given");
        (xfs.has_external_log, xfs.allocation_groups) = (false, 2);
    };
    assert_codes(
        Profile::Mixed,
        log,
        &["tune-xfs-log", "tune-allocation-groups"],
    );
    assert_codes(
        Profile::Mixed,
        |facts| raid(facts).missing = 1,
        &["tune-raid-degraded"],
    );
    let cache = |facts: &mut Facts| raid(facts).stripe_cache = Some(256);
    assert_codes(Profile::Mixed, cache, &["tune-raid-stripe-cache"]);
    let ahead = |facts: &mut Facts| device(facts).read_ahead_kb = 128;
    assert_codes(Profile::Training, ahead, &["tune-read-ahead"]);
    assert_codes(Profile::SmallFiles, ahead, &[]);
}

#[test]
fn file_systems_and_disks_have_findings() {
    let atime = |facts: &mut Facts| facts.stores[0].mount.options = vec!["relatime".to_owned()];
    assert_codes(Profile::Mixed, atime, &["tune-noatime"]);
    let overlay = |facts: &mut Facts| {
        facts.stores[0].mount.file_system = "overlay".to_owned();
    };
    assert_codes(Profile::Mixed, overlay, &["tune-file-system"]);
    let tmpfs = |facts: &mut Facts| {
        let store = &mut facts.stores[0];
        store.mount.file_system = "tmpfs".to_owned();
        (store.device, store.xfs) = (None, None);
    };
    assert_codes(Profile::Mixed, tmpfs, &["tune-tmpfs-huge"]);
    assert_codes(
        Profile::Mixed,
        |facts| facts.stores[0].direct = true,
        &["tune-direct"],
    );
    assert_codes(Profile::Checkpoint, |_| {}, &["tune-direct"]);
    let flush = |facts: &mut Facts| {
        facts.stores[0].flush = Some(FlushTimes {
            median_ms: 8.0,
            longest_ms: 30.0,
        });
    };
    assert_codes(Profile::Mixed, flush, &["tune-flush"]);
    let nvme = |facts: &mut Facts| {
        let device = device(facts);
        (device.name, device.raid) = ("nvme0n1".to_owned(), None);
        device.scheduler = Some("mq-deadline".to_owned());
        device.queue_depth = Some(1);
    };
    assert_codes(
        Profile::Mixed,
        nvme,
        &["tune-disk-scheduler", "tune-queue-depth"],
    );
    let disk = |facts: &mut Facts| {
        let device = device(facts);
        (device.is_rotational, device.raid) = (true, None);
        device.write_cache = Some("write through".to_owned());
    };
    assert_codes(Profile::Mixed, disk, &["tune-write-cache"]);
    let two_shares = |facts: &mut Facts| {
        raid(facts).missing = 1;
        let second = facts.stores[0].clone();
        facts.stores.push(second);
    };
    assert_codes(Profile::Mixed, two_shares, &["tune-raid-degraded"]);
}
