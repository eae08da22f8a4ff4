//! What one run of a bench yields: rows of metrics.

/// Something that is measured, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    /// 10^9 bytes of payload in a second.
    GbPerSecond,
    /// Operations in a second.
    OpsPerSecond,
    /// CPU seconds of the server, user and system, for 10^9 bytes of payload.
    CpuSecondsPerGb,
    /// CPU seconds of the client, user and system, for 10^9 bytes of payload.
    ClientCpuSecondsPerGb,
    /// CPU seconds of both ends in a second.
    CoresBusy,
    /// CPU microseconds of the server, user and system, for an operation.
    CpuMicrosecondsPerOp,
    /// Proportional set size of the server for a connection.
    PssKibPerConnection,
    /// Page tables of the server for a connection.
    PageTableKibPerConnection,
}

impl Metric {
    /// How tables and JSON call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Metric::GbPerSecond => "GB/s",
            Metric::OpsPerSecond => "ops/s",
            Metric::CpuSecondsPerGb => "CPU s/GB",
            Metric::ClientCpuSecondsPerGb => "client CPU s/GB",
            Metric::CoresBusy => "cores busy",
            Metric::CpuMicrosecondsPerOp => "CPU us/op",
            Metric::PssKibPerConnection => "PSS KiB",
            Metric::PageTableKibPerConnection => "page tables KiB",
        }
    }

    /// `value` with as many digits as mean something.
    pub(crate) fn format(self, value: f64) -> String {
        match self {
            // A link that loses packets may carry a megabyte in a second.
            Metric::GbPerSecond if value < 0.1 => format!("{value:.5}"),
            Metric::GbPerSecond | Metric::CpuSecondsPerGb | Metric::ClientCpuSecondsPerGb => {
                format!("{value:.3}")
            }
            Metric::CoresBusy => format!("{value:.2}"),
            Metric::OpsPerSecond => format!("{value:.0}"),
            Metric::CpuMicrosecondsPerOp
            | Metric::PssKibPerConnection
            | Metric::PageTableKibPerConnection => format!("{value:.1}"),
        }
    }
}

/// One line of the result.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was done, and where.
    pub(crate) title: String,
    /// What was measured.
    pub(crate) metrics: Vec<(Metric, f64)>,
}

/// What a client got done, and what it cost the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Payload; 0 where there is none.
    pub(crate) bytes: u64,
    /// Operations; 0 where they do not count.
    pub(crate) ops: u64,
    /// How long it took.
    pub(crate) seconds: f64,
    /// CPU seconds of the server, user and system.
    pub(crate) cpu_seconds: f64,
}

impl Work {
    /// The row of this work.
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
