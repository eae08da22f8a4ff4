//! The result of a run, as a table, JSON or CSV.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::Record;
use crate::format::{count, measured_rate, measured_time, size};

/// Version of the JSON form. It changes when a field is renamed, removed or given another meaning.
const VERSION: u32 = 2;

/// Bytes per GiB.
const GIB: f64 = (1_u64 << 30) as f64;

/// The result of one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// `read`, `write`, `rw`, `meta`, `echo` or `connect`.
    pub(crate) workload: String,
    /// The URL of the measured directory.
    pub(crate) url: String,
    /// Dialect, cipher or signing algorithm, and transports of the first session.
    pub(crate) session: String,
    /// Whether all messages of the session were signed.
    pub(crate) is_signed: bool,
    /// Whether all messages of the session were encrypted.
    pub(crate) is_encrypted: bool,
    /// Bytes per operation; 0 for workloads without data.
    pub(crate) io_size: u64,
    /// Operations in flight per session.
    pub(crate) depth: usize,
    /// Channels per session.
    pub(crate) channels: usize,
    /// The transport of each channel of the first session.
    pub(crate) transports: Vec<String>,
    /// Number of sessions.
    pub(crate) connections: usize,
    /// Bytes of all files of all sessions.
    pub(crate) working_set: u64,
    /// Seconds from the first request to the last response.
    pub(crate) seconds: f64,
    /// Operations that succeeded.
    pub(crate) ops: u64,
    /// Bytes that these operations transferred.
    pub(crate) bytes: u64,
    /// Latency of the operations in microseconds.
    pub(crate) latency_us: Latency,
    /// CPU seconds of this process.
    pub(crate) client_cpu: f64,
    /// CPU seconds of the server, if it runs on this host.
    pub(crate) server_cpu: Option<f64>,
}

/// Percentiles of the latency in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p99_9: f64,
    pub(crate) max: f64,
}

impl Latency {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            p50: record.percentile_us(50.0),
            p90: record.percentile_us(90.0),
            p99: record.percentile_us(99.0),
            p99_9: record.percentile_us(99.9),
            max: record.max_us(),
        }
    }

    /// The percentiles for people.
    fn line(&self) -> String {
        let columns = [
            ("p50", self.p50),
            ("p90", self.p90),
            ("p99", self.p99),
            ("p99.9", self.p99_9),
            ("max", self.max),
        ];
        let shown = columns.map(|(name, us)| format!("{name} {}", measured_time(us / 1e6)));
        shown.join("  ")
    }
}

impl Report {
    /// Throughput in bytes per second.
    fn bytes_per_second(&self) -> f64 {
        ratio(self.bytes as f64, self.seconds)
    }

    /// Throughput in GiB (2^30 bytes) per second.
    pub(crate) fn gib_per_second(&self) -> f64 {
        self.bytes_per_second() / GIB
    }

    /// Throughput in 10^9 bytes per second.
    pub(crate) fn gb_per_second(&self) -> f64 {
        ratio(self.bytes as f64 / 1e9, self.seconds)
    }

    /// Operations per second.
    pub(crate) fn ops_per_second(&self) -> f64 {
        ratio(self.ops as f64, self.seconds)
    }

    /// The figure that decides which server is faster: GiB/s, or operations per second for
    /// workloads without data.
    pub(crate) fn rate(&self) -> f64 {
        if self.bytes > 0 {
            self.gib_per_second()
        } else {
            self.ops_per_second()
        }
    }

    /// Formats `cpu` seconds as time per GiB, or as time per operation for workloads without data.
    fn cost(&self, cpu: f64) -> String {
        if self.bytes > 0 {
            format!("{}/GiB", measured_time(ratio(cpu, self.bytes as f64 / GIB)))
        } else {
            format!("{}/op", measured_time(ratio(cpu, self.ops as f64)))
        }
    }

    /// A table for people.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<14}{value}");
        };
        row("workload", &self.what());
        row("server", &format!("{} ({})", self.url, self.session));
        row("working set", &size(self.working_set));
        row("time", &format!("{:.2} s", self.seconds));
        if self.bytes > 0 {
            row("throughput", &measured_rate(self.bytes_per_second()));
        }
        row(
            "operations",
            &format!("{:.0} /s ({} in all)", self.ops_per_second(), self.ops),
        );
        row("latency", &self.latency_us.line());
        row("client CPU", &self.cost(self.client_cpu));
        let server = self.server_cpu.map(|cpu| self.cost(cpu));
        row(
            "server CPU",
            server
                .as_deref()
                .unwrap_or("not measured (not on this host)"),
        );
        text
    }

    fn what(&self) -> String {
        let size = if self.io_size > 0 {
            format!(" of {}", size(self.io_size))
        } else {
            String::new()
        };
        format!(
            "{}{size}, depth {}, {}, {}",
            self.workload,
            self.depth,
            count(self.channels as u64, "channel"),
            count(self.connections as u64, "connection")
        )
    }

    /// One line of JSON.
    pub(crate) fn json(&self) -> String {
        let mut value = serde_json::json!(self);
        value["version"] = VERSION.into();
        value["gb_per_second"] = self.gb_per_second().into();
        value["ops_per_second"] = self.ops_per_second().into();
        value.to_string()
    }

    /// The header line for [`Self::csv`].
    pub(crate) const CSV_HEADER: &'static str = "workload,url,io_size,depth,channels,transports,\
        connections,working_set,seconds,ops,bytes,gb_per_second,ops_per_second,p50_us,p90_us,\
        p99_us,p99_9_us,max_us,client_cpu_s,server_cpu_s";

    /// One line of comma-separated values.
    pub(crate) fn csv(&self) -> String {
        let latency = self.latency_us;
        let server = self
            .server_cpu
            .map(|cpu| cpu.to_string())
            .unwrap_or_default();
        format!(
            "{},\"{}\",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{server}",
            self.workload,
            self.url.replace('"', "\"\""),
            self.io_size,
            self.depth,
            self.channels,
            self.transports.join("+"),
            self.connections,
            self.working_set,
            self.seconds,
            self.ops,
            self.bytes,
            self.gb_per_second(),
            self.ops_per_second(),
            latency.p50,
            latency.p90,
            latency.p99,
            latency.p99_9,
            latency.max,
            self.client_cpu,
        )
    }
}

/// The quotient; 0 if the divisor is 0.
fn ratio(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 {
        dividend / divisor
    } else {
        0.0
    }
}

#[cfg(test)]
pub(crate) fn example() -> Report {
    Report {
        workload: "read".to_owned(),
        url: "smb://alice@host/data".to_owned(),
        session: "3.1.1".to_owned(),
        is_signed: false,
        is_encrypted: true,
        io_size: 1 << 20,
        depth: 16,
        channels: 1,
        transports: vec!["tcp".into()],
        connections: 2,
        working_set: 3 << 29,
        seconds: 2.0,
        ops: 4000,
        bytes: 4000 << 20,
        latency_us: Latency {
            p50: 1.0,
            p90: 2.0,
            p99: 3.0,
            p99_9: 4.0,
            max: 5.0,
        },
        client_cpu: 1.0,
        server_cpu: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_ran_and_how_fast() {
        let table = example().table();
        assert!(
            table.contains("read of 1.0 MiB, depth 16, 1 channel, 2 connections"),
            "{table}"
        );
        assert!(table.contains("working set   1.5 GiB"), "{table}");
        assert!(table.contains("throughput    1.95 GiB/s"), "{table}");
        assert!(table.contains("p50 1.00 us  p90 2.00 us"), "{table}");
        assert!(table.contains("256 ms/GiB"), "{table}");
        assert!(table.contains("not measured (not on this host)"), "{table}");
    }

    #[test]
    fn operations_without_bytes_cost_microseconds() {
        let mut report = example();
        report.bytes = 0;
        report.io_size = 0;
        assert!(report.table().contains("250 us/op"), "{}", report.table());
        assert!(!report.table().contains("GiB/s"));
        assert!((report.rate() - 2000.0).abs() < 1e-9);
    }

    #[test]
    fn a_line_of_csv_has_a_value_for_each_column() {
        let columns = Report::CSV_HEADER.split(',').count();
        assert_eq!(example().csv().split(',').count(), columns);
    }

    #[test]
    fn json_has_the_rates() {
        let value: serde_json::Value = serde_json::from_str(&example().json()).expect("given");
        assert_eq!(value["version"], VERSION);
        assert_eq!(value["is_encrypted"], true);
        assert_eq!(value["ops_per_second"], 2000.0);
        assert_eq!(value["latency_us"]["p99_9"], 4.0);
    }
}
