//! Limits of the stations at which requests wait: buffers, disk, locks, sockets and clients.

use super::decide::{FULL, Limit, SOURCE};
use super::interval::Interval;
use crate::tune::Finding;

/// Mean number of waiting requests that makes a station count.
const WAITING_MIN: f64 = 0.5;
/// Part of the waiting requests that makes a station the limit.
const SHARE_MIN: f64 = 0.3;
/// Bytes of a pool from which on a connection has the largest quota of buffers.
const LARGE_POOL: u64 = 256 << 20;

impl Interval {
    pub(super) fn buffers(&self) -> Option<Limit> {
        let others = self.at_disk.max(self.at_locks);
        let is_small = self.buffer_bytes_max < LARGE_POOL;
        // With a large pool, requests wait because responses leave slowly.
        let is_pool = is_small || self.at_sockets < WAITING_MIN;
        if self.at_buffers < WAITING_MIN || self.at_buffers < others || !is_pool {
            return None;
        }
        let megabytes = self.buffer_bytes_max >> 20;
        let message = "requests wait for I/O buffers: the pool is too small for their data";
        let finding = Finding::new("limit-buffers", "server", message)
            .seen(
                format_args!(
                    "{:.1} requests wait for buffers, {:.1} for disks",
                    self.at_buffers, self.at_disk
                ),
                "smbeam_wait_duration_seconds",
            )
            .seen(
                format_args!("{megabytes} MiB for each worker"),
                "server.buffer_memory_mb",
            );
        let wanted = (megabytes * 4).max(256);
        Some(Limit::of(
            self.at_buffers / self.waiting(),
            finding.advise(
                format_args!("[server] buffer_memory_mb = {wanted}"),
                "docs/configuration.md",
            ),
        ))
    }

    pub(super) fn disk(&self) -> Option<Limit> {
        let share = self.at_disk / self.waiting();
        if self.at_disk < WAITING_MIN || share < SHARE_MIN {
            return None;
        }
        let message = "requests wait for the disk";
        let mut finding = Finding::new("limit-disk", "disk", message).seen(
            format_args!(
                "{:.1} reads and writes wait, {:.1} ms each, {:.0} MB/s",
                self.at_disk,
                self.disk_time * 1e3,
                self.bytes() / 1e6
            ),
            "smbeam_store_duration_seconds",
        );
        if let Some((name, busy)) = &self.disk {
            let busy = busy.min(1.0) * 100.0;
            finding = finding.seen(
                format_args!("{name} busy {busy:.0} %"),
                format_args!("/sys/block/{name}/stat"),
            );
        }
        let advice = match self.disk_time > 0.05 {
            true => "a faster or a further device; a deep queue only adds to the latency",
            false => {
                "more requests in flight (client depth, [server] blocking_threads), or a faster \
                device"
            }
        };
        Some(Limit::of(share, finding.advise(advice, SOURCE)))
    }

    pub(super) fn locks(&self) -> Option<Limit> {
        let share = self.at_locks / self.waiting();
        if self.at_locks < WAITING_MIN || share < SHARE_MIN {
            return None;
        }
        let message = "requests wait for byte-range locks, or for clients to give leases back";
        let finding = Finding::new("limit-locks", "files", message).seen(
            format_args!("{:.1} LOCK and CREATE requests wait", self.at_locks),
            "smbeam_request_duration_seconds",
        );
        let advice = "smbeam open list shows the files and their holders; spread the clients over \
            more files, or set oplocks = false for a share that several clients write";
        Some(Limit::of(
            share,
            finding.advise(advice, "docs/configuration.md"),
        ))
    }

    pub(super) fn network(&self) -> Option<Limit> {
        if let Some((name, used)) = &self.link
            && *used >= FULL
        {
            let message = format!("the link of {name} is full");
            let finding = Finding::new("limit-network", format_args!("interface {name}"), message)
                .seen(
                    format_args!("{:.0} % of its speed", used * 100.0),
                    format_args!("/sys/class/net/{name}/statistics"),
                );
            let advice = "a faster link, or a further one with multichannel";
            return Some(Limit::of(
                used.min(1.0),
                finding.advise(advice, "docs/transports.md"),
            ));
        }
        let share = self.at_sockets / self.waiting();
        let is_receiver = self.window_limited >= 0.5;
        if self.at_sockets < WAITING_MIN || share < SHARE_MIN || is_receiver {
            return None;
        }
        let message = "responses wait for the network: TCP sends them more slowly than they come";
        let finding = Finding::new("limit-network", "network", message)
            .seen(
                format_args!("{:.1} sends wait", self.at_sockets),
                "smbeam_wait_duration_seconds",
            )
            .seen(
                format_args!(
                    "round trip {:.1} ms, {:.1} segments/s sent again",
                    self.round_trip * 1e3,
                    self.retransmits
                ),
                "sock_diag (ss -ti)",
            );
        let advice = "smbeam tune shows congestion control, socket buffers and lost packets";
        Some(Limit::of(
            share,
            finding.advise(advice, "docs/transports.md"),
        ))
    }

    pub(super) fn client(&self) -> Option<Limit> {
        let is_receiver = self.window_limited >= 0.5;
        if !is_receiver || self.at_sockets < WAITING_MIN {
            return None;
        }
        let message = "clients receive their responses slowly: they are busy with other work";
        let finding = Finding::new("limit-client-cpu", "clients", message)
            .seen(
                format_args!(
                    "receive windows full in {:.0} % of the time with data to send",
                    self.window_limited * 100.0
                ),
                "sock_diag (ss -ti)",
            )
            .seen(
                format_args!("{:.1} sends wait", self.at_sockets),
                "smbeam_wait_duration_seconds",
            );
        let advice = "more channels or processes on the client, and smbeam tune smb://... there";
        Some(Limit::of(
            self.window_limited.min(1.0),
            finding.advise(advice, SOURCE),
        ))
    }

    pub(super) fn window(&self) -> Option<Limit> {
        let share = self.at_clients / (self.clients.max(1) as f64);
        if share < SHARE_MIN {
            return None;
        }
        let depth = self.requests / self.pauses.max(1e-9);
        let message = format!(
            "the server waits for requests: {depth:.1} requests in flight, then a pause of {:.1} \
             ms (window = latency x depth)",
            self.pause * 1e3
        );
        let finding = Finding::new("limit-window", "clients", message)
            .seen(
                format_args!(
                    "{:.0} % of the time no request is in progress",
                    share.min(1.0) * 100.0
                ),
                "smbeam_wait_duration_seconds",
            )
            .seen(
                format_args!("TCP round trip {:.2} ms", self.round_trip * 1e3),
                "sock_diag (ss -ti)",
            );
        let advice = "more requests in flight: a higher depth, more channels, more readers, more \
            credits; if the TCP round trip is much shorter than the pause, the client is slow";
        Some(Limit::of(share.min(1.0), finding.advise(advice, SOURCE)))
    }
}
