//! The counters of a running server and its machine at one time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use net::netlink::tcp_sockets;
use serde::{Deserialize, Serialize};

use crate::activity::Activity;
use crate::status::Status;
use crate::tune::cgroup;
use crate::tune::facts::{StoreFacts, algorithm};
use crate::tune::files::{number, text};

/// The counters of a running server and its machine at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since a fixed time.
    pub at: f64,
    /// The counters of the server.
    pub activity: Activity,
    /// The process of the server.
    pub process: ProcessSample,
    /// The block devices of the shares.
    pub disks: Vec<DiskSample>,
    /// The network interfaces.
    pub links: Vec<LinkSample>,
    /// The algorithm of most protected sessions; `None` without one.
    pub protection: Option<String>,
    /// The TCP connections of the server.
    pub sockets: SocketTimes,
    /// Processor time of all programs, and of this idle machine, in clock ticks.
    pub machine_busy: u64,
    /// See `machine_busy`.
    pub machine_idle: u64,
}

/// The process of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Its threads.
    pub threads: Vec<ThreadTime>,
    /// Processors that its control group may use; `None` without a limit.
    pub quota: Option<f64>,
    /// Periods of the quota.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled: u64,
}

/// The processor time of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// Number of the thread.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Seconds on a processor.
    pub run: f64,
    /// Seconds in which it was ready and waited for a processor.
    pub wait: f64,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskSample {
    /// Name in /sys/block.
    pub name: String,
    /// Seconds with a request in progress.
    pub busy: f64,
    /// Number of completed requests.
    pub requests: u64,
    /// Bytes of completed requests.
    pub bytes: u64,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSample {
    /// Its name.
    pub name: String,
    /// Speed in 10^6 bits per second; `None` if it is unknown.
    pub speed_mbit: Option<u64>,
    /// Received bytes.
    pub received: u64,
    /// Sent bytes.
    pub sent: u64,
}

/// Sums over the TCP connections of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SocketTimes {
    /// Number of connections.
    pub count: usize,
    /// Seconds with data to send.
    pub busy: f64,
    /// Part of them in which a client did not receive.
    pub window_limited: f64,
    /// Part of them in which the send buffer was full.
    pub buffer_limited: f64,
    /// Mean round trip in seconds.
    pub round_trip: f64,
    /// Segments that were sent again.
    pub retransmits: u64,
}

impl Sample {
    /// Reads the counters of the machine and adds those of the server. `start` is the fixed time.
    pub fn take(
        start: Instant,
        status: &Status,
        activity: Activity,
        stores: &[StoreFacts],
    ) -> Self {
        let (machine_busy, machine_idle) = machine();
        let mut names: Vec<&str> = stores
            .iter()
            .filter_map(|store| Some(store.device.as_ref()?.name.as_str()))
            .collect();
        names.sort_unstable();
        names.dedup();
        Self {
            at: start.elapsed().as_secs_f64(),
            activity,
            process: process(status.server.pid),
            disks: names.into_iter().filter_map(disk).collect(),
            links: links(),
            protection: protection(status),
            sockets: sockets(status),
            machine_busy,
            machine_idle,
        }
    }
}

fn process(pid: u32) -> ProcessSample {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let periods = cgroup::periods(pid).unwrap_or_default();
    ProcessSample {
        threads: tasks.filter_map(|task| thread(&task.path())).collect(),
        quota: cgroup::cpu_quota(pid),
        periods: periods.all,
        throttled: periods.throttled,
    }
}

fn thread(task: &Path) -> Option<ThreadTime> {
    let times = text(task.join("schedstat"))?;
    let mut times = times
        .split(' ')
        .map(|time| time.parse().map(Duration::from_nanos));
    Some(ThreadTime {
        id: task.file_name()?.to_str()?.parse().ok()?,
        name: text(task.join("comm"))?,
        run: times.next()?.ok()?.as_secs_f64(),
        wait: times.next()?.ok()?.as_secs_f64(),
    })
}

/// Parses /sys/block/NAME/stat. The unit of its sectors is 512 bytes.
/// <https://docs.kernel.org/block/stat.html>
fn disk(name: &str) -> Option<DiskSample> {
    let line = text(Path::new("/sys/block").join(name).join("stat"))?;
    let values: Vec<u64> = line
        .split_whitespace()
        .map_while(|it| it.parse().ok())
        .collect();
    Some(DiskSample {
        name: name.to_owned(),
        busy: *values.get(9)? as f64 / 1e3,
        requests: values[0] + values[4],
        bytes: (values[2] + values[6]) * 512,
    })
}

fn links() -> Vec<LinkSample> {
    let entries = fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    let links = entries.filter_map(|entry| {
        let directory = entry.path();
        let count = |name: &str| number(directory.join("statistics").join(name));
        Some(LinkSample {
            name: entry
                .file_name()
                .into_string()
                .ok()
                .filter(|name| name != "lo")?,
            speed_mbit: number::<i64>(directory.join("speed"))
                .and_then(|speed| u64::try_from(speed).ok())
                .filter(|speed| *speed > 0),
            received: count("rx_bytes")?,
            sent: count("tx_bytes")?,
        })
    });
    links.collect()
}

/// The algorithm that protects most sessions.
fn protection(status: &Status) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for algorithm in status.sessions.iter().filter_map(algorithm) {
        *counts.entry(algorithm).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(algorithm, _)| algorithm.to_owned())
}

/// The connections to the ports of the server.
fn sockets(status: &Status) -> SocketTimes {
    let addresses = status.server.listening.iter();
    let ports: Vec<u16> = addresses
        .filter_map(|listening| listening.address.rsplit_once(':')?.1.parse().ok())
        .collect();
    let mut sums = SocketTimes::default();
    let sockets = tcp_sockets().unwrap_or_default();
    for socket in sockets.iter().filter(|it| ports.contains(&it.local_port)) {
        sums.count += 1;
        sums.busy += socket.busy.as_secs_f64();
        sums.window_limited += socket.window_limited.as_secs_f64();
        sums.buffer_limited += socket.buffer_limited.as_secs_f64();
        sums.round_trip += socket.round_trip.as_secs_f64();
        sums.retransmits += u64::from(socket.retransmits);
    }
    sums.round_trip /= sums.count.max(1) as f64;
    sums
}

/// Busy and idle clock ticks of all processors. proc_stat(5)
fn machine() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = (line.split_whitespace().skip(1))
        .map_while(|ticks| ticks.parse().ok())
        .collect();
    let idle = ticks.iter().skip(3).take(2).sum();
    // The times of guests, behind the eighth, are part of the first two.
    (ticks.iter().take(8).sum::<u64>() - idle, idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_counters() {
        let own = process(std::process::id());
        assert!(!own.threads.is_empty());
        let (busy, idle) = machine();
        assert!(busy > 0 && idle > 0);
        assert!(sockets(&Status::default()).count == 0);
        assert!(links().iter().all(|link| link.name != "lo"));
    }
}
