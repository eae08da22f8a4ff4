//! Rules about the configuration and the protection of connections.

use super::sources::{CONFIGURATION, PERFORMANCE, window_bytes};
use crate::tune::facts::ConfigFacts;
use crate::tune::{Facts, Finding, Profile};

/// Bytes of one credit. \[MS-SMB2\] 3.1.5.2
const CREDIT_BYTES: u64 = 64 << 10;
/// Least advised credits of a connection.
const CREDITS_MIN: u64 = 512;
/// Channels that known clients open at most.
const CHANNELS: usize = 16;
/// Least advised MiB of buffers of a worker: two clients with 64 MiB in flight.
const BUFFERS_MB: usize = 128;
/// Least advised bytes of READs and WRITEs.
const REQUEST_BYTES: u32 = 1 << 20;
/// Speed of cryptography, divided by the best one of its kind, below which a finding is made.
const SLOW_CRYPTO: f64 = 0.5;

pub(super) fn advise(facts: &Facts, profile: Profile, findings: &mut Vec<Finding>) {
    if let Some(config) = &facts.config {
        let rules = [
            workers(facts, config),
            buffers(facts, config, profile),
            multichannel(config),
            credits(facts, config),
            request_size(config),
            log_level(config),
        ];
        findings.extend(rules.into_iter().flatten());
    }
    findings.extend(crypto(facts));
}

fn of(code: &'static str, message: impl std::fmt::Display) -> Finding {
    Finding::new(code, "configuration", message)
}

fn workers(facts: &Facts, config: &ConfigFacts) -> Option<Finding> {
    let (workers, cpus) = (config.workers, facts.kernel.cpus);
    let message = match workers {
        0 => return None,
        _ if workers > cpus => "more workers than processors: they interrupt each other",
        _ if workers * 2 <= cpus => "fewer workers than half of the processors: the rest is idle",
        _ => return None,
    };
    let finding = of("tune-workers", message)
        .seen(format_args!("server.workers = {workers}"), "configuration")
        .seen(format_args!("{cpus} processors"), "/proc/cpuinfo");
    Some(finding.advise_key(
        "server.workers",
        0,
        config.is_set("server.workers"),
        CONFIGURATION,
    ))
}

fn buffers(facts: &Facts, config: &ConfigFacts, profile: Profile) -> Option<Finding> {
    let present = config.buffer_memory_mb;
    let workers = match config.workers {
        0 => facts.kernel.cpus,
        workers => workers,
    };
    let memory_mb = (facts.kernel.memory_bytes >> 20) as usize;
    let wanted = match profile {
        Profile::SmallFiles => BUFFERS_MB / 2,
        _ => BUFFERS_MB,
    };
    let key = "server.buffer_memory_mb";
    let seen = format!("{key} = {present}, {workers} workers");
    if present < wanted && wanted * workers * 4 <= memory_mb {
        let message = "small buffer pools: requests with large data wait for a buffer";
        let finding = of("tune-buffers", message).seen(seen, "configuration");
        return Some(finding.advise_key(key, wanted, config.is_set(key), CONFIGURATION));
    }
    if present * workers * 2 > memory_mb {
        let message = "the buffer pools may take more than half of the memory, which the page \
            cache then lacks";
        let finding = of("tune-buffers", message)
            .seen(seen, "configuration")
            .seen(format_args!("{memory_mb} MiB of memory"), "/proc/meminfo");
        let wanted = (memory_mb / 4 / workers.max(1)).max(16);
        return Some(finding.advise_key(key, wanted, config.is_set(key), CONFIGURATION));
    }
    None
}

fn multichannel(config: &ConfigFacts) -> Option<Finding> {
    let ConfigFacts {
        multichannel,
        channels_per_session,
        ..
    } = config;
    let (key, value, seen) = match multichannel {
        false => (
            "server.multichannel",
            "true".to_owned(),
            "server.multichannel = false".to_owned(),
        ),
        true if *channels_per_session < CHANNELS => (
            "limits.channels_per_session",
            CHANNELS.to_string(),
            format!("limits.channels_per_session = {channels_per_session}"),
        ),
        true => return None,
    };
    let message = "a client cannot use as many connections as it wants: one connection is one \
        worker and one queue of the network card";
    let finding = of("tune-multichannel", message).seen(seen, "configuration");
    Some(finding.advise_key(key, value, config.is_set(key), CONFIGURATION))
}

/// The window of a connection must cover the link for the latency of a busy server.
fn credits(facts: &Facts, config: &ConfigFacts) -> Option<Finding> {
    let bits = facts.fastest_bits();
    let of_link = bits.map_or(0, |bits| window_bytes(bits).div_ceil(CREDIT_BYTES));
    let wanted = of_link.clamp(CREDITS_MIN, 8192);
    if u64::from(config.credits) >= wanted {
        return None;
    }
    let message = format!(
        "a connection may have {} KiB in flight: too little for this network at a latency of 10 ms",
        (u64::from(config.credits) * CREDIT_BYTES) >> 10
    );
    let mut finding = of("tune-credits", message).seen(
        format_args!("limits.credits = {}", config.credits),
        "configuration",
    );
    if let Some(bits) = bits {
        let gigabits = bits / 1_000_000_000;
        finding = finding.seen(format_args!("{gigabits} Gbit/s"), "/sys/class/net/*/speed");
    }
    let key = "limits.credits";
    Some(finding.advise_key(key, wanted, config.is_set(key), CONFIGURATION))
}

fn request_size(config: &ConfigFacts) -> Option<Finding> {
    let (key, present) = match (config.max_read, config.max_write) {
        (read, _) if read < REQUEST_BYTES => ("limits.max_read", read),
        (_, write) if write < REQUEST_BYTES => ("limits.max_write", write),
        _ => return None,
    };
    let message = "small requests: the cost of each request counts more often";
    let finding =
        of("tune-request-size", message).seen(format_args!("{key} = {present}"), "configuration");
    Some(finding.advise_key(key, 8 << 20, config.is_set(key), CONFIGURATION))
}

fn log_level(config: &ConfigFacts) -> Option<Finding> {
    let level = config.log_level.as_str();
    if !level.contains("debug") && !level.contains("trace") {
        return None;
    }
    let message = "the server logs each request or more";
    let finding =
        of("tune-log-level", message).seen(format_args!("log.level = {level:?}"), "configuration");
    let is_set = config.is_set("log.level");
    Some(finding.advise_key("log.level", "\"info\"", is_set, CONFIGURATION))
}

/// Connections with an algorithm that is much slower than another one of its kind.
fn crypto(facts: &Facts) -> Option<Finding> {
    let speed = |name: &str| {
        let mut all = facts.crypto.iter();
        all.find(|it| it.algorithm == name)
            .map(|it| it.gb_per_second)
    };
    let slow = facts.clients.iter().find_map(|client| {
        let algorithm = client.algorithm.as_deref()?;
        let better = match algorithm.contains("CCM") || algorithm.contains("GCM") {
            true => "AES-128-GCM",
            false => "AES-GMAC",
        };
        let (present, best) = (speed(algorithm)?, speed(better)?);
        (present < best * SLOW_CRYPTO).then_some((client, algorithm, present, better, best))
    });
    let (client, algorithm, present, better, best) = slow?;
    let message = format!(
        "{} connections use {algorithm}: {:.2} s of a processor for 10^9 bytes, in place of {:.2} \
         s with {better}",
        client.count,
        1.0 / present,
        1.0 / best
    );
    let finding = Finding::new("tune-crypto", "connections", message)
        .seen(
            format_args!("dialect {}, {algorithm}", client.dialect),
            "smbeam status",
        )
        .seen(
            format_args!("{algorithm} {present:.2} GB/s, {better} {best:.2} GB/s on one core"),
            "measured",
        );
    Some(finding.advise(
        "[security] min_dialect = \"3.1.1\", and SMB 3.1.1 in clients (mount.cifs: vers=3.1.1)",
        PERFORMANCE,
    ))
}
