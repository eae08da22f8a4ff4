//! Recorded facts about networks, the configuration and mounts.

use super::*;

#[test]
fn interfaces_have_findings() {
    let change =
        |change: fn(&mut InterfaceFacts)| move |facts: &mut Facts| change(&mut facts.interfaces[0]);
    let mixed = Profile::Mixed;
    assert_codes(
        mixed,
        change(|it| it.is_half_duplex = true),
        &["tune-duplex"],
    );
    assert_codes(mixed, change(|it| it.mtu = 1500), &["tune-mtu"]);
    assert_codes(
        mixed,
        change(|it| it.receive_queues = 1),
        &["tune-receive-queues"],
    );
    assert_codes(mixed, change(|it| it.lost = 3), &["tune-packet-loss"]);
    assert_codes(
        mixed,
        change(|it| it.rdma = Some("mlx5_0".to_owned())),
        &["tune-smbdirect"],
    );
    let uneven = change(|it| {
        let counts = |number| InterruptFacts {
            number,
            counts: [vec![200_000], vec![10; 15]].concat(),
        };
        it.interrupts = (1..4).map(counts).collect();
    });
    assert_codes(mixed, uneven, &["tune-interrupts"]);
    let roce = |facts: &mut Facts| {
        let interface = &mut facts.interfaces[0];
        (interface.rdma, interface.has_pause) = (Some("mlx5_0".to_owned()), Some(false));
        config(facts).transports.push("smbdirect".to_owned());
    };
    assert_codes(mixed, roce, &["tune-pause-frames"]);
    let unknown = change(|it| (it.speed_mbit, it.mtu, it.receive_queues) = (None, 1500, 1));
    assert_codes(mixed, unknown, &[]);
}

#[test]
fn the_configuration_has_findings() {
    let change = |change: fn(&mut ConfigFacts)| move |facts: &mut Facts| change(config(facts));
    let mixed = Profile::Mixed;
    assert_codes(mixed, change(|it| it.workers = 64), &["tune-workers"]);
    assert_codes(mixed, change(|it| it.workers = 2), &["tune-workers"]);
    assert_codes(
        mixed,
        change(|it| it.buffer_memory_mb = 16),
        &["tune-buffers"],
    );
    assert_codes(
        mixed,
        change(|it| it.buffer_memory_mb = 16_384),
        &["tune-buffers"],
    );
    assert_codes(
        mixed,
        change(|it| it.multichannel = false),
        &["tune-multichannel"],
    );
    assert_codes(
        mixed,
        change(|it| it.channels_per_session = 1),
        &["tune-multichannel"],
    );
    assert_codes(
        mixed,
        change(|it| it.max_read = 65_536),
        &["tune-request-size"],
    );
    assert_codes(
        mixed,
        change(|it| it.log_level = "trace".to_owned()),
        &["tune-log-level"],
    );
    assert_codes(mixed, change(|it| it.is_epoll = true), &["tune-io-uring"]);
    // 100 Gbit/s for 10 ms are 1908 credits of 64 KiB.
    let findings = assert_codes(mixed, change(|it| it.credits = 512), &["tune-credits"]);
    assert_eq!(findings[0].advice, "[limits] credits = 1908");
    assert_eq!(findings[0].changes.len(), 1);
    let set = change(|it| {
        it.credits = 512;
        it.set_keys = BTreeSet::from(["limits.credits".to_owned()]);
    });
    let findings = assert_codes(mixed, set, &["tune-credits"]);
    assert!(findings[0].changes.is_empty(), "a file sets the key");
}

#[test]
fn slow_protection_and_mounts_have_findings() {
    let ccm = |facts: &mut Facts| {
        let speed = |algorithm: &str, gb_per_second| CryptoSpeed {
            algorithm: algorithm.to_owned(),
            gb_per_second,
        };
        facts.crypto = vec![speed("AES-128-CCM", 0.97), speed("AES-128-GCM", 17.0)];
        facts.clients = vec![ClientFacts {
            count: 3,
            dialect: "3.0.2".to_owned(),
            algorithm: Some("AES-128-CCM".to_owned()),
        }];
    };
    let findings = assert_codes(Profile::Mixed, ccm, &["tune-crypto"]);
    assert!(
        findings[0].message.contains("1.03 s"),
        "{}",
        findings[0].message
    );
    let mount = |options: &str| MountFacts {
        target: "/mnt".into(),
        file_system: "cifs".to_owned(),
        source: "//nas/data".to_owned(),
        options: options.split(',').map(str::to_owned).collect(),
        device: "0:50".to_owned(),
    };
    let plain = |facts: &mut Facts| facts.mounts = vec![mount("rw,vers=3.1.1,cache=strict")];
    let findings = assert_codes(Profile::Training, plain, &["tune-cifs-mount"]);
    assert!(
        findings[0].advice.contains("cache=none"),
        "{}",
        findings[0].advice
    );
    let options = "vers=3.1.1,multichannel,max_channels=16,max_credits=8192,serverino,\
        rsize=4194304,cache=none,acregmax=120";
    let tuned = |facts: &mut Facts| facts.mounts = vec![mount(options)];
    assert_codes(Profile::Training, tuned, &[]);
}

#[test]
fn mount_options_are_those_of_cifs() {
    for profile in [
        Profile::Training,
        Profile::Checkpoint,
        Profile::SmallFiles,
        Profile::Mixed,
    ] {
        let options = mount_options(profile, 48, Some(200_000_000_000));
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        assert!(!names.contains(&"proto") && !names.contains(&"clientaddr"));
        assert!(names.contains(&"multichannel"));
    }
    let training = mount_options(Profile::Training, 48, Some(200_000_000_000));
    assert!(training.contains(&("max_channels", "16".to_owned())));
    assert!(training.contains(&("max_credits", "4096".to_owned())));
}
