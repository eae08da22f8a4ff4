//! CPU time of client, server and host while a benchmark runs.

use std::fs;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::cpu;

/// CPU time during a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CpuUse {
    /// Wall time in seconds.
    pub(crate) seconds: f64,
    /// CPU seconds of this process. For a mount, the work of the kernel's client on behalf of this
    /// process is included, and that of its own threads is not.
    pub(crate) client_s: f64,
    /// CPU seconds of the server, if it runs on this host and this user can see its processes.
    pub(crate) server_s: Option<f64>,
    /// Busy time of all processors of this host in percent of their wall time.
    pub(crate) host_percent: f64,
    /// Processors of this host.
    pub(crate) cores: u32,
}

impl CpuUse {
    /// CPU seconds of client and known server for 10^9 bytes.
    pub(crate) fn per_gb(&self, bytes: u64) -> (f64, Option<f64>) {
        let per_gb = |seconds: f64| match bytes {
            0 => 0.0,
            bytes => seconds / (bytes as f64 / 1e9),
        };
        (per_gb(self.client_s), self.server_s.map(per_gb))
    }
}

/// Measures the CPU time from its creation on.
pub(crate) struct Usage {
    started: Instant,
    client_s: f64,
    server: Option<(cpu::Server, f64)>,
    host: HostTime,
}

impl Usage {
    /// Starts the measurement. `server` has the processes of the server on this host.
    pub(crate) fn start(server: Option<cpu::Server>) -> Self {
        let with_time = |server: cpu::Server| {
            let seconds = server.seconds();
            (server, seconds)
        };
        Self {
            started: Instant::now(),
            client_s: cpu::own_seconds(),
            server: server.map(with_time),
            host: HostTime::now(),
        }
    }

    /// Ends the measurement.
    pub(crate) fn finish(self) -> CpuUse {
        let host = HostTime::now();
        let busy = host.busy.saturating_sub(self.host.busy) as f64;
        let total = host.total.saturating_sub(self.host.total).max(1) as f64;
        let server = self
            .server
            .map(|(server, before)| server.seconds() - before);
        CpuUse {
            seconds: self.started.elapsed().as_secs_f64(),
            client_s: cpu::own_seconds() - self.client_s,
            server_s: server,
            host_percent: 100.0 * busy / total,
            cores: host.cores,
        }
    }
}

/// Clock ticks of all processors since the start of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct HostTime {
    busy: u64,
    total: u64,
    cores: u32,
}

impl HostTime {
    fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. The
    /// later fields are parts of user and nice. proc_stat(5)
    fn parse(text: &str) -> Self {
        let fields = text.lines().next().unwrap_or_default().split_whitespace();
        let ticks = fields
            .skip(1)
            .take(8)
            .map(|field| field.parse().unwrap_or(0));
        let ticks: Vec<u64> = ticks.collect();
        let total = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        Self {
            busy: total - idle,
            total,
            cores: text.lines().filter(is_core).count() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_disk_is_not_busy_time() {
        let text = "cpu  10 1 20 300 40 2 3 4 9 0\ncpu0 1 2\ncpu1 1 2\nintr 5\n";
        let expected = HostTime {
            busy: 40,
            total: 380,
            cores: 2,
        };
        assert_eq!(HostTime::parse(text), expected);
        assert_eq!(HostTime::parse(""), HostTime::default());
    }

    #[test]
    fn a_measurement_has_this_host() {
        let used = Usage::start(None).finish();
        assert!(used.cores > 0 && used.server_s.is_none());
        assert!((0.0..=100.0).contains(&used.host_percent), "{used:?}");
        let used = CpuUse {
            client_s: 2.0,
            server_s: Some(1.0),
            ..used
        };
        assert_eq!(used.per_gb(4_000_000_000), (0.5, Some(0.25)));
        assert_eq!(used.per_gb(0), (0.0, Some(0.0)));
    }
}
