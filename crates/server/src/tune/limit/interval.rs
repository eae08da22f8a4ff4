//! The differences of two samples.

use serde::{Deserialize, Serialize};

use super::sample::{ProcessSample, Sample};
use crate::activity::{Activity, CommandActivity, TimeActivity};

/// A load between two samples. Times are seconds for each second of the interval, so a time of the
/// requests in a state is the mean number of requests in that state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Length in seconds.
    pub seconds: f64,
    /// Answered requests per second.
    pub requests: f64,
    /// Bytes per second that READs returned.
    pub read: f64,
    /// Bytes per second that WRITEs wrote.
    pub written: f64,
    /// Connections with a request in the interval.
    pub clients: usize,
    /// Mean number of reads and writes that wait for a disk.
    pub at_disk: f64,
    /// Mean time of such a read or write in seconds; 0 without one.
    pub disk_time: f64,
    /// Mean number of requests that wait for a buffer, or for the memory of responses.
    pub at_buffers: f64,
    /// Mean number of requests that wait for a lock or for other clients to release a file.
    pub at_locks: f64,
    /// Mean number of sends that wait for the socket.
    pub at_sockets: f64,
    /// Mean number of connections without a request in progress, in pauses below a second.
    pub at_clients: f64,
    /// Mean time of such a pause in seconds; 0 without one.
    pub pause: f64,
    /// Number of pauses per second.
    pub pauses: f64,
    /// Processors that the server uses.
    pub processors: f64,
    /// Processors that its threads wait for.
    pub ready: f64,
    /// Part of the interval in which the busiest thread ran.
    pub busiest: f64,
    /// Part of the interval in which it was ready and another program ran.
    pub busiest_ready: f64,
    /// Name of this thread.
    pub busiest_name: String,
    /// Part of the periods in which the quota of the control group was used up.
    pub throttled: f64,
    /// The quota in processors; `None` without one.
    pub quota: Option<f64>,
    /// Processors that signing and encryption use.
    pub crypto: f64,
    /// Bytes per second that are signed or encrypted.
    pub crypto_bytes: f64,
    /// The algorithm of most protected connections.
    pub protection: Option<String>,
    /// The busiest disk, and the part of the interval in which it had a request.
    pub disk: Option<(String, f64)>,
    /// The busiest link with a known speed, and the part of its speed that is used.
    pub link: Option<(String, f64)>,
    /// Part of the time with data to send in which clients did not receive.
    pub window_limited: f64,
    /// Mean number of connections with unacknowledged data.
    pub sending: f64,
    /// Mean round trip of the TCP connections in seconds.
    pub round_trip: f64,
    /// Segments per second that were sent again.
    pub retransmits: f64,
    /// Part of the time in which a processor of the machine was busy.
    pub machine: f64,
    /// Most bytes of I/O buffers of a worker.
    pub buffer_bytes_max: u64,
}

impl Interval {
    /// Returns the load between two samples of the same server.
    pub fn between(before: &Sample, after: &Sample) -> Self {
        let seconds = (after.at - before.at).max(1e-3);
        let activities = [&before.activity, &after.activity];
        let rate = |value: fn(&Activity) -> f64| rate(activities.map(value), seconds);
        let disk = |kind| times(activities, |activity| &activity.disk, kind);
        let wait = |kind| times(activities, |activity| &activity.waits, kind);
        let (reads, writes, metadata) = (disk("read"), disk("write"), disk("metadata"));
        let (buffer, memory) = (wait("buffer"), wait("response_memory"));
        let (sends, pauses) = (wait("send"), wait("client"));
        let data = (reads.0 + writes.0, reads.1 + writes.1);
        let commands = |name| command_seconds(activities, name);
        let creates = (commands("CREATE") - metadata.1).max(0.0);
        let sockets = [&before.sockets, &after.sockets];
        let sending = (sockets[1].busy - sockets[0].busy).max(0.0);
        let limited = (sockets[1].window_limited - sockets[0].window_limited).max(0.0);
        let mut interval = Self {
            seconds,
            requests: rate(|activity| activity.totals.answered as f64),
            read: rate(|it| it.shares.iter().map(|share| share.read as f64).sum()),
            written: rate(|it| it.shares.iter().map(|share| share.written as f64).sum()),
            clients: active_clients(activities),
            at_disk: data.1 / seconds,
            disk_time: mean(data),
            at_buffers: (buffer.1 + memory.1) / seconds,
            at_locks: (commands("LOCK") + creates) / seconds,
            at_sockets: sends.1 / seconds,
            at_clients: pauses.1 / seconds,
            pause: mean(pauses),
            pauses: pauses.0 / seconds,
            crypto: rate(|it| it.crypto.iter().map(|crypto| crypto.seconds).sum()),
            crypto_bytes: rate(|it| it.crypto.iter().map(|crypto| crypto.bytes as f64).sum()),
            window_limited: limited / sending.max(1e-9),
            sending: sending / seconds,
            round_trip: after.sockets.round_trip,
            retransmits: after
                .sockets
                .retransmits
                .saturating_sub(before.sockets.retransmits) as f64
                / seconds,
            machine: machine(before, after),
            protection: after.protection.clone(),
            quota: after.process.quota,
            buffer_bytes_max: after.activity.buffer_bytes_max,
            disk: busiest_disk(before, after, seconds),
            link: busiest_link(before, after, seconds),
            ..Self::default()
        };
        interval.add_process(&before.process, &after.process);
        interval
    }

    fn add_process(&mut self, before: &ProcessSample, after: &ProcessSample) {
        let periods = after.periods.saturating_sub(before.periods);
        let throttled = after.throttled.saturating_sub(before.throttled);
        self.throttled = throttled as f64 / periods.max(1) as f64;
        for thread in &after.threads {
            let mut known = before.threads.iter();
            let known = known.find(|known| known.id == thread.id);
            let since = known.map_or((0.0, 0.0), |known| (known.run, known.wait));
            let run = (thread.run - since.0).max(0.0) / self.seconds;
            let wait = (thread.wait - since.1).max(0.0) / self.seconds;
            self.processors += run;
            self.ready += wait;
            if run + wait > self.busiest + self.busiest_ready {
                self.busiest = run;
                self.busiest_ready = wait;
                self.busiest_name.clone_from(&thread.name);
            }
        }
    }

    /// Bytes of data per second in both directions.
    pub fn bytes(&self) -> f64 {
        self.read + self.written
    }
}

fn rate([before, after]: [f64; 2], seconds: f64) -> f64 {
    (after - before).max(0.0) / seconds
}

/// Number and seconds of the operations of a kind.
fn times(
    activities: [&Activity; 2],
    list: impl Fn(&Activity) -> &[TimeActivity],
    kind: &str,
) -> (f64, f64) {
    let [before, after] = activities.map(|activity| {
        let found = list(activity).iter().find(|time| time.kind == kind);
        found.map_or((0.0, 0.0), |time| (time.count as f64, time.seconds))
    });
    ((after.0 - before.0).max(0.0), (after.1 - before.1).max(0.0))
}

fn mean((count, seconds): (f64, f64)) -> f64 {
    match count > 0.0 {
        true => seconds / count,
        false => 0.0,
    }
}

fn command_seconds(activities: [&Activity; 2], name: &str) -> f64 {
    let [before, after] = activities.map(|activity| {
        let is_wanted = |command: &&CommandActivity| command.command == name;
        let found = activity.commands.iter().find(is_wanted);
        found.map_or(0.0, |command| command.seconds)
    });
    (after - before).max(0.0)
}

/// Connections with more answers than before.
fn active_clients([before, after]: [&Activity; 2]) -> usize {
    let is_active = |id: &str, answered: u64| {
        let mut known = before.clients.iter();
        let known = known.find(|known| known.id == id);
        known.map_or(0, |known| known.answered) < answered
    };
    let clients = after.clients.iter();
    clients
        .filter(|client| is_active(&client.id, client.answered))
        .count()
}

fn machine(before: &Sample, after: &Sample) -> f64 {
    let busy = after.machine_busy.saturating_sub(before.machine_busy) as f64;
    let idle = after.machine_idle.saturating_sub(before.machine_idle) as f64;
    busy / (busy + idle).max(1.0)
}

fn busiest_disk(before: &Sample, after: &Sample, seconds: f64) -> Option<(String, f64)> {
    let used = after.disks.iter().filter_map(|disk| {
        let known = before.disks.iter().find(|known| known.name == disk.name)?;
        Some((
            disk.name.clone(),
            (disk.busy - known.busy).max(0.0) / seconds,
        ))
    });
    used.max_by(|one, other| one.1.total_cmp(&other.1))
}

fn busiest_link(before: &Sample, after: &Sample, seconds: f64) -> Option<(String, f64)> {
    let used = after.links.iter().filter_map(|link| {
        let known = before.links.iter().find(|known| known.name == link.name)?;
        let received = link.received.saturating_sub(known.received);
        let sent = link.sent.saturating_sub(known.sent);
        let bits = received.max(sent) as f64 * 8.0;
        let speed = link.speed_mbit? as f64 * 1e6;
        Some((link.name.clone(), bits / seconds / speed))
    });
    used.max_by(|one, other| one.1.total_cmp(&other.1))
}
