//! Names what limits a load.
//!
//! The requests of a closed loop wait mostly at the slowest station: the disk, the buffers, the
//! locks, the socket or the client. So the mean numbers of waiting requests show the limit, unless
//! a resource without such a queue (processor, link) is used up.

use serde::Serialize;

use super::interval::Interval;
use crate::tune::Finding;

/// A limit of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// How much of the load the limit explains, from 0 to 1: the used part of a resource, or the
    /// part of the requests that wait for it.
    pub share: f64,
    /// The limit, its evidence, and the advice.
    #[serde(flatten)]
    pub finding: Finding,
}

/// The codes of all limits. docs/tune.md explains each.
pub const LIMITS: &[&str] = &[
    "limit-none",
    "limit-server-cpu",
    "limit-crypto",
    "limit-buffers",
    "limit-disk",
    "limit-locks",
    "limit-small-requests",
    "limit-network",
    "limit-client-cpu",
    "limit-window",
];

/// Fewer requests per second, and none that waits, are no load.
const IDLE_REQUESTS: f64 = 1.0;
/// Part of a resource that is as good as all of it.
pub(super) const FULL: f64 = 0.85;

/// Documentation of this project.
pub(super) const SOURCE: &str = "docs/tune.md";

impl Interval {
    /// Returns the limits of the load: the one that binds, then the next ones by their share.
    pub fn limits(&self) -> Vec<Limit> {
        if self.is_idle() {
            return vec![self.idle()];
        }
        let rules = [
            self.quota(),
            self.crypto(),
            self.buffers(),
            self.disk(),
            self.locks(),
            self.small_requests(),
            self.server_cpu(),
            self.network(),
            self.client(),
            self.window(),
        ];
        let mut limits: Vec<Limit> = rules.into_iter().flatten().collect();
        if limits.is_empty() {
            limits.push(self.unclear());
        }
        limits[1..].sort_by(|one, other| other.share.total_cmp(&one.share));
        limits.dedup_by_key(|limit| limit.finding.code);
        limits
    }

    /// Mean number of requests and connections that wait anywhere.
    pub(super) fn waiting(&self) -> f64 {
        let of_requests = self.at_disk + self.at_buffers + self.at_locks;
        (of_requests + self.at_sockets + self.at_clients).max(1e-9)
    }

    fn is_idle(&self) -> bool {
        let is_waiting = self.at_disk + self.at_buffers + self.at_locks + self.at_sockets > 0.1;
        self.requests < IDLE_REQUESTS && !is_waiting
    }

    fn idle(&self) -> Limit {
        let finding = Finding::new("limit-none", "load", "no load: clients send few requests");
        let finding = finding.seen(format_args!("{:.1} requests/s", self.requests), "activity");
        Limit::of(0.0, finding.advise("run the load, and look again", SOURCE))
    }

    /// No resource is used up, and no station has a queue.
    fn unclear(&self) -> Limit {
        let message = "no resource of the server is used up: clients send no more requests";
        let finding = Finding::new("limit-window", "clients", message)
            .seen(
                format_args!(
                    "{:.0} requests/s, {:.0} MB/s",
                    self.requests,
                    self.bytes() / 1e6
                ),
                "activity",
            )
            .seen(self.busiest_text(), "schedstat");
        let advice = "more requests in flight, or smbeam tune smb://... on the client";
        Limit::of(0.0, finding.advise(advice, SOURCE))
    }
}

impl Limit {
    pub(super) fn of(share: f64, finding: Finding) -> Self {
        Self { share, finding }
    }
}
