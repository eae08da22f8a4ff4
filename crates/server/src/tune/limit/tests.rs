//! Recorded loads, and the limits that they must show.

use super::*;
use crate::activity::{Activity, ClientActivity, CommandActivity, CryptoActivity, TimeActivity};

/// A load that nothing limits: a base for the recorded ones.
fn load() -> Interval {
    Interval {
        seconds: 1.0,
        requests: 1000.0,
        read: 1e9,
        clients: 1,
        at_sockets: 0.1,
        processors: 0.3,
        busiest: 0.3,
        busiest_name: "smbeam-worker".to_owned(),
        buffer_bytes_max: 256 << 20,
        round_trip: 50e-6,
        ..Interval::default()
    }
}

/// Checks the code of the first limit, and that it has evidence and an advice.
fn assert_limit(interval: &Interval, code: &str) {
    let limits = interval.limits();
    let first = &limits[0];
    assert_eq!(first.finding.code, code, "{limits:#?}");
    assert!((0.0..=1.0).contains(&first.share), "{first:?}");
    for limit in &limits {
        assert!(LIMITS.contains(&limit.finding.code));
        assert!(!limit.finding.evidence.is_empty() && !limit.finding.advice.is_empty());
    }
}

#[test]
fn a_server_without_load_has_no_limit() {
    assert_limit(&Interval::default(), "limit-none");
}

#[test]
fn a_quota_is_a_limit_of_the_processor() {
    let quota = Interval {
        quota: Some(0.2),
        throttled: 0.93,
        processors: 0.2,
        busiest: 0.15,
        at_clients: 0.5,
        ..load()
    };
    assert_limit(&quota, "limit-server-cpu");
    let unused = Interval {
        throttled: 0.0,
        ..quota
    };
    assert_limit(&unused, "limit-window");
}

#[test]
fn slow_ciphers_are_the_limit_also_if_clients_are_slow() {
    let ccm = Interval {
        processors: 0.7,
        busiest: 0.7,
        crypto: 0.55,
        crypto_bytes: 0.5e9,
        protection: Some("AES-128-CCM".to_owned()),
        at_sockets: 0.8,
        window_limited: 0.9,
        sending: 0.9,
        ..load()
    };
    assert_limit(&ccm, "limit-crypto");
    assert!(ccm.limits()[0].finding.message.contains("AES-128-CCM"));
    let fast = Interval { crypto: 0.1, ..ccm };
    assert_limit(&fast, "limit-client-cpu");
}

#[test]
fn the_station_with_most_requests_is_the_limit() {
    let disk = Interval {
        at_disk: 14.0,
        disk_time: 0.7,
        disk: Some(("nvme0n1".to_owned(), 1.0)),
        ..load()
    };
    assert_limit(&disk, "limit-disk");
    let pool = Interval {
        at_buffers: 40.0,
        at_disk: 3.0,
        buffer_bytes_max: 16 << 20,
        ..load()
    };
    assert_limit(&pool, "limit-buffers");
    assert_eq!(pool.limits().len(), 1);
    let locks = Interval {
        at_locks: 3.0,
        requests: 10.0,
        ..load()
    };
    assert_limit(&locks, "limit-locks");
}

#[test]
fn slow_receivers_are_no_lack_of_buffers() {
    let slow = Interval {
        at_buffers: 8.0,
        at_sockets: 1.0,
        window_limited: 0.9,
        sending: 1.0,
        ..load()
    };
    assert_limit(&slow, "limit-client-cpu");
    let loss = Interval {
        window_limited: 0.0,
        at_buffers: 0.0,
        retransmits: 900.0,
        ..slow
    };
    assert_limit(&loss, "limit-network");
}

#[test]
fn full_resources_are_limits() {
    let small = Interval {
        requests: 90_000.0,
        read: 90_000.0 * 4096.0,
        busiest: 0.97,
        processors: 1.0,
        ..load()
    };
    assert_limit(&small, "limit-small-requests");
    let large = Interval { read: 5e9, ..small };
    assert_limit(&large, "limit-server-cpu");
    let contended = Interval {
        busiest: 0.4,
        busiest_ready: 0.6,
        ..large
    };
    assert_limit(&contended, "limit-server-cpu");
    assert!(
        contended.limits()[0]
            .finding
            .message
            .contains("other programs")
    );
    let link = Interval {
        link: Some(("eth0".to_owned(), 0.97)),
        ..load()
    };
    assert_limit(&link, "limit-network");
}

#[test]
fn pauses_of_clients_are_a_limit_of_the_window() {
    let far = Interval {
        requests: 780.0,
        pauses: 48.0,
        pause: 0.0204,
        at_clients: 0.98,
        ..load()
    };
    assert_limit(&far, "limit-window");
    assert!(far.limits()[0].finding.message.contains("20.4 ms"));
    assert_limit(&load(), "limit-window");
}

fn time(kind: &str, count: u64, seconds: f64) -> TimeActivity {
    TimeActivity {
        kind: kind.to_owned(),
        count,
        seconds,
    }
}

#[test]
fn an_interval_has_the_differences_of_two_samples() {
    let client = |answered| ClientActivity {
        id: "1".to_owned(),
        answered,
        ..ClientActivity::default()
    };
    let command = |seconds| CommandActivity {
        command: "LOCK".to_owned(),
        seconds,
        ..CommandActivity::default()
    };
    let thread = |run, wait| ThreadTime {
        id: 7,
        name: "worker".to_owned(),
        run,
        wait,
    };
    let sample = |at: f64, scale: f64| Sample {
        at,
        activity: Activity {
            commands: vec![command(scale)],
            clients: vec![client(scale as u64)],
            disk: vec![time("read", scale as u64, 4.0 * scale)],
            waits: vec![
                time("buffer", 1, scale),
                time("client", scale as u64, 0.1 * scale),
            ],
            crypto: vec![CryptoActivity {
                direction: "sent".to_owned(),
                seconds: scale,
                bytes: 0,
            }],
            ..Activity::default()
        },
        process: ProcessSample {
            threads: vec![thread(scale, scale / 2.0)],
            quota: Some(0.5),
            periods: 10 * scale as u64,
            throttled: 5 * scale as u64,
        },
        ..Sample::default()
    };
    let interval = Interval::between(&sample(10.0, 1.0), &sample(12.0, 3.0));
    assert_eq!((interval.seconds, interval.clients), (2.0, 1));
    assert_eq!((interval.at_disk, interval.disk_time), (4.0, 4.0));
    assert_eq!((interval.at_buffers, interval.at_locks), (1.0, 1.0));
    assert!((interval.pause - 0.1).abs() < 1e-9);
    assert_eq!((interval.busiest, interval.busiest_ready), (1.0, 0.5));
    assert_eq!((interval.crypto, interval.throttled), (1.0, 0.5));
    // A restarted server has smaller counters.
    let restarted = Interval::between(&sample(12.0, 3.0), &sample(14.0, 1.0));
    assert_eq!((restarted.at_disk, restarted.processors), (0.0, 0.0));
}
