//! Limits of processors: quotas, cryptography, small requests and busy workers.

use super::decide::{FULL, Limit, SOURCE};
use super::interval::Interval;
use crate::tune::Finding;

/// Part of the periods with a used-up quota that slows the server.
const THROTTLED: f64 = 0.25;
/// Part of the processor time for cryptography that makes it the limit.
const CRYPTO: f64 = 0.5;
/// Mean bytes of a small request.
const SMALL_BYTES: f64 = 16_384.0;

impl Interval {
    pub(super) fn quota(&self) -> Option<Limit> {
        let quota = self.quota?;
        if self.throttled < THROTTLED {
            return None;
        }
        let message = "the control group of the server has used up its processor time";
        let finding = Finding::new("limit-server-cpu", "server", message)
            .seen(
                format_args!("quota of {quota:.2} processors"),
                "cpu.max or cpu.cfs_quota_us",
            )
            .seen(
                format_args!("stopped in {:.0} % of the periods", self.throttled * 100.0),
                "cpu.stat",
            )
            .seen(
                format_args!("{:.2} processors used", self.processors),
                "schedstat",
            );
        let source = "https://docs.kernel.org/scheduler/sched-bwc.html";
        Some(Limit::of(
            self.throttled,
            finding.advise("raise CPUQuota= of the unit", source),
        ))
    }

    pub(super) fn crypto(&self) -> Option<Limit> {
        let share = self.crypto / self.processors.max(1e-9);
        if share < CRYPTO || self.busiest + self.busiest_ready < CRYPTO {
            return None;
        }
        let algorithm = self
            .protection
            .as_deref()
            .unwrap_or("signing or encryption");
        let message = format!("{algorithm} takes most of the processor time of the server");
        let speed = self.crypto_bytes / self.crypto.max(1e-9) / 1e9;
        let finding = Finding::new("limit-crypto", "server", message).seen(
            format_args!(
                "{:.2} of {:.2} used processors, {speed:.2} GB/s on one core",
                self.crypto, self.processors
            ),
            "smbeam_crypto_seconds_total",
        );
        let advice = match algorithm {
            "AES-128-CCM" | "AES-256-CCM" | "AES-CMAC" | "HMAC-SHA256" => {
                "let clients use SMB 3.1.1 (mount.cifs: vers=3.1.1): AES-GCM and AES-GMAC are \
                 many times as fast"
            }
            _ => "use more channels, so that more processors share the work",
        };
        Some(Limit::of(
            share.min(1.0),
            finding.advise(advice, "docs/performance.md"),
        ))
    }

    /// The busiest thread: the processor time that it used, and the time that it was ready to run
    /// while other programs ran.
    pub(super) fn busy(&self) -> f64 {
        self.busiest + self.busiest_ready
    }

    pub(super) fn small_requests(&self) -> Option<Limit> {
        let size = self.bytes() / self.requests.max(1e-9);
        if size >= SMALL_BYTES || self.busy() < FULL {
            return None;
        }
        let message = "the number of small requests keeps a worker busy, not their data";
        let finding = Finding::new("limit-small-requests", "server", message)
            .seen(
                format_args!(
                    "{:.0} requests/s with {size:.0} bytes of data",
                    self.requests
                ),
                "activity",
            )
            .seen(self.busiest_text(), "schedstat");
        let advice = "larger requests or compounds in the client, a client cache (leases), or more \
            channels and clients for more workers";
        Some(Limit::of(
            self.busy().min(1.0),
            finding.advise(advice, SOURCE),
        ))
    }

    pub(super) fn busiest_text(&self) -> String {
        format!(
            "thread {} ran {:.0} % and waited {:.0} % for a processor; {:.2} processors in all",
            self.busiest_name,
            self.busiest * 100.0,
            self.busiest_ready * 100.0,
            self.processors
        )
    }

    pub(super) fn server_cpu(&self) -> Option<Limit> {
        if self.busy() < FULL {
            return None;
        }
        let is_contended = self.busiest_ready > self.busiest;
        let message = match is_contended {
            true => "a worker waits for a processor that other programs use",
            false => "a worker has used up its processor",
        };
        let finding = Finding::new("limit-server-cpu", "server", message)
            .seen(self.busiest_text(), "schedstat")
            .seen(
                format_args!("machine busy {:.0} %", self.machine * 100.0),
                "/proc/stat",
            );
        let advice = match is_contended {
            true => "move other programs away, or raise CPUWeight= of the unit",
            false => {
                "more channels or clients, so that more workers share the load; then more \
                processors"
            }
        };
        Some(Limit::of(
            self.busy().min(1.0),
            finding.advise(advice, SOURCE),
        ))
    }
}
