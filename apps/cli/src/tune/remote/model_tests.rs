//! Measured sweeps, and the limits that they must show.

use super::*;

const MIB: u64 = 1 << 20;

/// A sweep on one channel with this latency and rate of a channel.
fn sweep(latency: f64, channel_rate: f64, depths: &[usize]) -> Measured {
    let points = depths.iter().map(|depth| Point {
        channels: 1,
        depth: *depth,
        rate: 1.0 / (latency / (*depth as f64 * MIB as f64) + 1.0 / channel_rate),
        latency,
        client_cpus: 0.3,
        server_cpus: Some(0.2),
    });
    Measured {
        round_trip: latency,
        io_size: MIB,
        depth: 16,
        channels: 1,
        credits: Some(8192),
        cpus: 8,
        points: points.collect(),
        ..Measured::default()
    }
}

fn code(measured: &Measured) -> &'static str {
    let limits = Fit::of(measured).limits(measured);
    assert!(
        limits
            .iter()
            .all(|limit| !limit.finding.evidence.is_empty())
    );
    limits[0].finding.code
}

#[test]
fn the_fit_finds_latency_and_rate() {
    let measured = sweep(0.020, 2e9, &[1, 2, 4, 8, 16, 32]);
    let fit = Fit::of(&measured);
    assert!((fit.latency - 0.020).abs() < 1e-6, "{fit:?}");
    assert!((fit.channel_rate / 2e9 - 1.0).abs() < 1e-6, "{fit:?}");
    assert!(fit.error < 1e-6, "{fit:?}");
    let text = fit.text(&measured);
    assert!(text.contains("20.000 ms"), "{text}");
}

#[test]
fn a_long_round_trip_is_a_limit_of_the_window() {
    let measured = sweep(0.020, 2e9, &[1, 2, 4, 8, 16, 32]);
    assert_eq!(code(&measured), "limit-window");
    let near = sweep(0.0002, 2e9, &[1, 2, 4, 8, 16, 32]);
    assert_eq!(code(&near), "limit-network");
}

#[test]
fn few_credits_are_a_limit_of_the_window() {
    let mut measured = sweep(0.0005, 4e9, &[1]);
    let one = measured.points[0].clone();
    let same = [2, 4, 8, 16, 32].map(|depth| Point {
        depth,
        ..one.clone()
    });
    measured.points.extend(same);
    measured.credits = Some(31);
    assert_eq!(code(&measured), "limit-window");
    let limits = Fit::of(&measured).limits(&measured);
    let advice = &limits[0].finding.advice;
    assert!(advice.contains("credits ="), "{advice}");
}

#[test]
fn the_time_on_a_channel_is_that_of_a_processor_or_of_cryptography() {
    let mut measured = sweep(0.0002, 0.7e9, &[1, 2, 4, 8, 16, 32]);
    measured.crypto = Some(CryptoSpeed {
        algorithm: "AES-128-CCM".to_owned(),
        gb_per_second: 0.97,
    });
    assert_eq!(code(&measured), "limit-crypto");
    measured.crypto = None;
    let busy = |client, server| {
        let mut measured = measured.clone();
        for point in &mut measured.points {
            (point.client_cpus, point.server_cpus) = (client, server);
        }
        measured
    };
    assert_eq!(code(&busy(0.3, Some(0.9))), "limit-server-cpu");
    assert_eq!(code(&busy(0.95, Some(0.9))), "limit-client-cpu");
    assert_eq!(code(&busy(0.95, None)), "limit-client-cpu");
    assert_eq!(code(&busy(0.3, None)), "limit-network");
}

#[test]
fn a_full_link_is_the_limit() {
    let mut measured = sweep(0.0002, 1.2e9, &[1, 2, 4, 8, 16, 32]);
    measured.link_bits = Some(10_000_000_000);
    assert_eq!(code(&measured), "limit-network");
}

#[test]
fn points_of_several_channels_count() {
    // Published measurements: 5.3 GB/s with one channel, 9.4 with four.
    let mut measured = sweep(0.0, 1.0, &[]);
    measured.credits = None;
    let point = |channels, rate| Point {
        channels,
        depth: 16,
        rate,
        ..Point::default()
    };
    measured.points = vec![point(1, 5.3e9), point(4, 9.4e9)];
    let fit = Fit::of(&measured);
    assert!((fit.channel_rate / 9.11e9 - 1.0).abs() < 0.01, "{fit:?}");
    assert!(
        Fit::of(&Measured::default())
            .limits(&Measured::default())
            .is_empty()
    );
}
