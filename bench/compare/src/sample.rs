//! The result of one run of a bench: rows of metrics.

/// A metric with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    /// 10^9 bytes of payload per second.
    GbPerSecond,
    /// Operations per second.
    OpsPerSecond,
    /// CPU seconds of the server per 10^9 bytes of payload, user and system.
    CpuSecondsPerGb,
    /// CPU seconds of the client per 10^9 bytes of payload, user and system.
    ClientCpuSecondsPerGb,
    /// CPU seconds of both ends per second.
    CoresBusy,
    /// CPU microseconds of the server per operation, user and system.
    CpuMicrosecondsPerOp,
    /// Proportional set size of the server per open file, in KiB.
    PssKib,
    /// Proportional set size of the server per connection, in KiB.
    PssKibPerConnection,
    /// Page tables of the server per connection, in KiB.
    PageTableKibPerConnection,
}

impl Metric {
    /// The name in tables and JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::GbPerSecond => "GB/s",
            Metric::OpsPerSecond => "ops/s",
            Metric::CpuSecondsPerGb => "CPU s/GB",
            Metric::ClientCpuSecondsPerGb => "client CPU s/GB",
            Metric::CoresBusy => "cores busy",
            Metric::CpuMicrosecondsPerOp => "CPU us/op",
            Metric::PssKib | Metric::PssKibPerConnection => "PSS KiB",
            Metric::PageTableKibPerConnection => "page tables KiB",
        }
    }

    /// Formats a value with its significant digits.
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            // A link with packet loss can be slower than 1 MB/s.
            Metric::GbPerSecond if value < 0.1 => format!("{value:.5}"),
            Metric::GbPerSecond | Metric::CpuSecondsPerGb | Metric::ClientCpuSecondsPerGb => {
                format!("{value:.3}")
            }
            Metric::CoresBusy => format!("{value:.2}"),
            Metric::OpsPerSecond => format!("{value:.0}"),
            Metric::CpuMicrosecondsPerOp
            | Metric::PssKib
            | Metric::PssKibPerConnection
            | Metric::PageTableKibPerConnection => format!("{value:.1}"),
        }
    }
}

/// One row of the result.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The title: the operation, and its storage.
    pub(crate) title: String,
    /// The metrics with their values.
    pub(crate) metrics: Vec<(Metric, f64)>,
}

/// The work of a client, and its cost for the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Bytes of payload; 0 without payload.
    pub(crate) bytes: u64,
    /// Number of operations; 0 if they are not counted.
    pub(crate) ops: u64,
    /// Duration in seconds.
    pub(crate) seconds: f64,
    /// CPU seconds of the server, user and system.
    pub(crate) cpu_seconds: f64,
}

impl Work {
    /// Converts the work into a row.
    pub(crate) fn row(&self, title: String) -> Row {
        let gb = self.bytes as f64 / 1e9;
        let ops = self.ops as f64;
        let mut metrics = Vec::new();
        if self.bytes > 0 {
            metrics.push((Metric::GbPerSecond, gb / self.seconds));
        }
        if self.ops > 0 {
            metrics.push((Metric::OpsPerSecond, ops / self.seconds));
        }
        if self.bytes > 0 {
            metrics.push((Metric::CpuSecondsPerGb, self.cpu_seconds / gb));
        }
        if self.ops > 0 {
            let micros = self.cpu_seconds * 1e6 / ops;
            metrics.push((Metric::CpuMicrosecondsPerOp, micros));
        }
        Row { title, metrics }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_payload_has_no_speed_in_bytes() {
        let work = Work {
            bytes: 0,
            ops: 1000,
            seconds: 0.5,
            cpu_seconds: 0.01,
        };
        let row = work.row("unlink".into());
        assert_eq!(
            row.metrics,
            [
                (Metric::OpsPerSecond, 2000.0),
                (Metric::CpuMicrosecondsPerOp, 10.0)
            ]
        );
    }
}
