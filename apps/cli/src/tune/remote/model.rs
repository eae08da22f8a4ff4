//! The model of a transfer, and the limit that it shows.
//!
//! A client keeps `q` requests of `s` bytes in flight over `n` channels. A request takes `T`
//! without load, and a channel moves `c` bytes per second. In such a closed loop the times add up:
//! `1/B = T/(q s) + 1/(n c)`. The first term is the window (latency and depth), the second one the
//! channels. Both unknowns come from the measured points by least squares of the relative errors.

use serde::Serialize;
use smbeam_server::tune::{CryptoSpeed, Finding, Limit};

use crate::format::measured_rate;

/// Bytes of one credit. \[MS-SMB2\] 3.1.5.2
const CREDIT_BYTES: f64 = 65_536.0;
/// Part of a resource that is as good as all of it.
const FULL: f64 = 0.85;
/// Processors of a process for each channel that make it the limit.
const BUSY: f64 = 0.6;
/// Part of the time on a channel for cryptography that makes it the limit.
const CRYPTO: f64 = 0.5;
/// Bytes per second that one accelerator reads in the training workload unet3d of MLPerf Storage
/// (h100, 90 % utilization): batches of 7 samples of 146,600,628 bytes, 0.323 s each.
const ACCELERATOR: f64 = 2.859e9;
/// Documentation of the model.
const SOURCE: &str = "docs/tune.md";

/// Measurements of a server from a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Measured {
    /// Median time of an ECHO in seconds.
    pub(super) round_trip: f64,
    /// Bytes of a request.
    pub(super) io_size: u64,
    /// Requests in flight that the user has.
    pub(super) depth: usize,
    /// Channels that the user has.
    pub(super) channels: usize,
    /// Least credits of a channel.
    pub(super) credits: Option<u32>,
    /// Processors of this machine.
    pub(super) cpus: usize,
    /// Bits per second of the fastest link; `None` if it is unknown, and for a server on this
    /// machine.
    pub(super) link_bits: Option<u64>,
    /// The algorithm that protects the messages, with its speed on a core of this machine.
    pub(super) crypto: Option<CryptoSpeed>,
    /// The measured settings.
    pub(super) points: Vec<Point>,
}

/// The throughput of one setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Point {
    pub(super) channels: usize,
    /// Requests in flight over all channels.
    pub(super) depth: usize,
    /// Bytes per second.
    pub(super) rate: f64,
    /// Median time of a request in seconds.
    pub(super) latency: f64,
    /// Processors that this process uses.
    pub(super) client_cpus: f64,
    /// Processors that the server uses; `None` for a server on another machine.
    pub(super) server_cpus: Option<f64>,
}

/// The model with its parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Fit {
    /// Seconds of a request without load.
    pub(super) latency: f64,
    /// Bytes per second of a channel.
    pub(super) channel_rate: f64,
    /// Root mean square of the relative errors of the points.
    pub(super) error: f64,
}

impl Measured {
    /// Requests in flight that the credits allow.
    fn window(&self, depth: usize, channels: usize) -> f64 {
        let charge = (self.io_size as f64 / CREDIT_BYTES).ceil().max(1.0);
        let by_credits = self.credits.map_or(f64::INFINITY, |credits| {
            // The client keeps one credit for acknowledgments.
            (f64::from(credits.saturating_sub(1)) / charge)
                .floor()
                .max(1.0)
                * channels as f64
        });
        (depth as f64).min(by_credits)
    }

    fn is_limited_by_credits(&self) -> bool {
        self.window(self.depth, self.channels) < self.depth as f64
    }

    /// The measurement of the setting of the user, or the nearest one.
    fn present(&self) -> Option<&Point> {
        let distance = |point: &&Point| {
            let channels = point.channels.abs_diff(self.channels);
            (channels, point.depth.abs_diff(self.depth))
        };
        self.points.iter().min_by_key(distance)
    }
}

impl Point {
    pub(super) fn text(&self) -> String {
        let server = self
            .server_cpus
            .map_or_else(String::new, |cpus| format!(", server {cpus:.2}"));
        format!(
            "channels {:<2} depth {:<4} {:>12}  {:>8.3} ms, processors: client {:.2}{server}",
            self.channels,
            self.depth,
            measured_rate(self.rate),
            self.latency * 1e3,
            self.client_cpus
        )
    }
}

impl Fit {
    /// Fits the model to the points.
    pub(super) fn of(measured: &Measured) -> Self {
        let rows: Vec<[f64; 2]> = (measured.points.iter())
            .filter(|point| point.rate > 0.0)
            .map(|point| {
                let window = measured.window(point.depth, point.channels);
                // Each row is divided by 1/B, so that all points count the same.
                [
                    point.rate / window,
                    point.rate / point.channels.max(1) as f64,
                ]
            })
            .collect();
        let [window, channel] = least_squares(&rows);
        let errors = rows
            .iter()
            .map(|row| (row[0] * window + row[1] * channel - 1.0).powi(2));
        let error = (errors.sum::<f64>() / rows.len().max(1) as f64).sqrt();
        Self {
            latency: window * measured.io_size as f64,
            channel_rate: 1.0 / channel.max(1e-15),
            error,
        }
    }

    /// Bytes per second that the model expects.
    fn rate(&self, measured: &Measured, depth: usize, channels: usize) -> f64 {
        let [window, channel] = self.terms(measured, depth, channels);
        1.0 / (window + channel).max(1e-15)
    }

    /// Seconds of each byte in the window and on the channels.
    fn terms(&self, measured: &Measured, depth: usize, channels: usize) -> [f64; 2] {
        let window = measured.window(depth, channels) * measured.io_size as f64;
        [
            self.latency / window,
            1.0 / (self.channel_rate * channels as f64),
        ]
    }

    /// The parameters, and what the model expects of changes.
    pub(super) fn text(&self, measured: &Measured) -> String {
        let Measured {
            depth, channels, ..
        } = *measured;
        let expected = |depth, channels| {
            let rate = self.rate(measured, depth, channels);
            format!("{} (+-{:.0} %)", measured_rate(rate), self.error * 100.0)
        };
        let present = self.rate(measured, depth, channels);
        format!(
            "model          a request takes {:.3} ms without load, a channel moves {}; {}: depth \
             {}, or {}: {} channels; {:.0} accelerators of unet3d (h100)",
            self.latency * 1e3,
            measured_rate(self.channel_rate),
            expected(depth * 2, channels),
            depth * 2,
            expected(depth, channels * 2),
            channels * 2,
            (present / ACCELERATOR).floor()
        )
    }

    /// The limits of the setting of the user: the one that binds, then the next one.
    pub(super) fn limits(&self, measured: &Measured) -> Vec<Limit> {
        let Some(present) = measured.present() else {
            return Vec::new();
        };
        let [window, channel] = self.terms(measured, measured.depth, measured.channels);
        let window_share = window / (window + channel).max(1e-15);
        let window = limit(window_share, self.window(measured, present));
        let channel = limit(1.0 - window_share, self.channel(measured, present));
        let mut limits = vec![window, channel];
        limits.sort_by(|one, other| other.share.total_cmp(&one.share));
        if let Some(link) = link(measured, present) {
            limits.insert(0, link);
        }
        limits
    }

    fn window(&self, measured: &Measured, present: &Point) -> Finding {
        let requests = measured.window(measured.depth, measured.channels);
        let message = format!(
            "{requests:.0} requests of {} KiB in flight, and each takes {:.3} ms without load \
             (window = latency x depth)",
            measured.io_size >> 10,
            self.latency * 1e3
        );
        let finding = Finding::new("limit-window", "client", message)
            .seen(
                format_args!("round trip {:.3} ms", measured.round_trip * 1e3),
                "ECHO",
            )
            .seen(present.text(), "measured");
        let most = measured.rate_bound();
        let wanted = (self.latency * most / measured.io_size as f64)
            .ceil()
            .max(2.0);
        match measured.is_limited_by_credits() {
            true => finding
                .seen(
                    format_args!("{} credits of each channel", measured.credits.unwrap_or(0)),
                    "responses of the server",
                )
                .advise(
                    format_args!(
                        "server: [limits] credits = {:.0} (mount.cifs: max_credits)",
                        (wanted * measured.io_size as f64 / CREDIT_BYTES).max(512.0)
                    ),
                    SOURCE,
                ),
            false => finding.advise(
                format_args!(
                    "--depth {:.0} or more, or more channels",
                    wanted.max(measured.depth as f64 * 2.0)
                ),
                SOURCE,
            ),
        }
    }

    /// The part of the work that takes most of the time on a channel.
    fn channel(&self, measured: &Measured, present: &Point) -> Finding {
        if let Some(finding) = self.crypto(measured, present) {
            return finding;
        }
        let server = present.server_cpus.unwrap_or(0.0);
        let is_busy = |cpus: f64| cpus >= BUSY * measured.channels.min(measured.cpus) as f64;
        let (code, message, advice) = if is_busy(server) && server > present.client_cpus {
            (
                "limit-server-cpu",
                "the server spends its processor time on this channel",
                "more channels, so that more workers share the load",
            )
        } else if is_busy(present.client_cpus) {
            (
                "limit-client-cpu",
                "this process spends its processor time on this channel",
                "more channels or more processes on this machine",
            )
        } else {
            (
                "limit-network",
                "a channel moves no more, and neither process is busy: network, disk, or \
                 processors that other programs use",
                "more channels; smbeam tune --watch on the server names its limit",
            )
        };
        let finding = Finding::new(code, "channel", message)
            .seen(
                format_args!("a channel moves {}", measured_rate(self.channel_rate)),
                "model of the measured depths",
            )
            .seen(present.text(), "measured");
        finding.advise(advice, SOURCE)
    }

    fn crypto(&self, measured: &Measured, present: &Point) -> Option<Finding> {
        let crypto = measured.crypto.as_ref()?;
        let share = self.channel_rate / (crypto.gb_per_second * 1e9);
        if share < CRYPTO {
            return None;
        }
        let algorithm = &crypto.algorithm;
        let message = format!(
            "{algorithm} takes {:.0} % of the time of a channel, at both ends",
            share.min(1.0) * 100.0
        );
        let finding = Finding::new("limit-crypto", "channel", message)
            .seen(
                format_args!("{algorithm}: {:.2} GB/s on one core", crypto.gb_per_second),
                "measured",
            )
            .seen(present.text(), "measured");
        Some(finding.advise(
            "SMB 3.1.1 at both ends, for AES-GCM and AES-GMAC; then more channels",
            "docs/performance.md",
        ))
    }
}

impl Measured {
    /// The best measured bytes per second, or those of the link.
    fn rate_bound(&self) -> f64 {
        let measured = self
            .points
            .iter()
            .map(|point| point.rate)
            .fold(0.0, f64::max);
        self.link_bits
            .map_or(measured * 2.0, |bits| bits as f64 / 8.0)
    }
}

fn limit(share: f64, finding: Finding) -> Limit {
    Limit { share, finding }
}

/// A full link is the limit for any terms.
fn link(measured: &Measured, present: &Point) -> Option<Limit> {
    let bits = measured.link_bits?;
    let share = present.rate * 8.0 / bits as f64;
    if share < FULL {
        return None;
    }
    let finding = Finding::new("limit-network", "link", "the link is full")
        .seen(present.text(), "measured")
        .seen(
            format_args!("{} Mbit/s", bits / 1_000_000),
            "/sys/class/net/*/speed",
        );
    let finding = finding.advise("a faster link, or a further one with multichannel", SOURCE);
    Some(limit(share.min(1.0), finding))
}

/// Solves `row . x = 1` for all rows, with `x` not below 0.
fn least_squares(rows: &[[f64; 2]]) -> [f64; 2] {
    let sum = |value: &dyn Fn(&[f64; 2]) -> f64| rows.iter().map(value).sum::<f64>();
    let (aa, bb) = (sum(&|row| row[0] * row[0]), sum(&|row| row[1] * row[1]));
    let (ab, a, b) = (
        sum(&|row| row[0] * row[1]),
        sum(&|row| row[0]),
        sum(&|row| row[1]),
    );
    let determinant = aa * bb - ab * ab;
    if determinant > aa * bb * 1e-9 {
        let solved = [
            (a * bb - b * ab) / determinant,
            (b * aa - a * ab) / determinant,
        ];
        if solved[0] >= 0.0 && solved[1] >= 0.0 {
            return solved;
        }
        if solved[0] < 0.0 {
            return [0.0, b / bb];
        }
    }
    [a / aa.max(1e-300), 0.0]
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
