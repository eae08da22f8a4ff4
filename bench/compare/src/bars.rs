//! The first bars: what the design must show. They are reported; time never fails a run.

use crate::report::Record;
use crate::sample::Metric;

/// What a line of a result should be.
pub(crate) struct Bar {
    /// What the titles of its lines start with.
    title: &'static str,
    metric: Metric,
    bound: Bound,
}

/// What B divided by A must be.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Of smbeam beside smbd.
pub(crate) const SERVERS: [Bar; 5] = [
    Bar {
        title: "read-1m ",
        metric: Metric::GbPerSecond,
        bound: Bound::AtLeast(1.0),
    },
    Bar {
        title: "read-64k ",
        metric: Metric::GbPerSecond,
        bound: Bound::AtLeast(1.0),
    },
    Bar {
        title: "read-4k ",
        metric: Metric::OpsPerSecond,
        bound: Bound::AtLeast(1.5),
    },
    Bar {
        title: "create+close, depth 1 ",
        metric: Metric::OpsPerSecond,
        bound: Bound::AtLeast(10.0),
    },
    Bar {
        title: "idle connection",
        metric: Metric::PssKibPerConnection,
        bound: Bound::AtMost(0.1),
    },
];

/// Of the transports beside their yardsticks.
pub(crate) const TRANSPORTS: [Bar; 5] = [
    Bar {
        title: "quic-read-1m ",
        metric: Metric::GbPerSecond,
        bound: Bound::AtLeast(0.85),
    },
    Bar {
        title: "quic-link-read-1m ",
        metric: Metric::GbPerSecond,
        bound: Bound::AtLeast(0.9),
    },
    Bar {
        title: "quic-link-tcp-read-1m ",
        metric: Metric::GbPerSecond,
        bound: Bound::AtLeast(1.0),
    },
    Bar {
        title: "smbdirect-read-1m ",
        metric: Metric::CpuSecondsPerGb,
        bound: Bound::AtMost(0.5),
    },
    Bar {
        title: "smbdirect-disk-read-1m ",
        metric: Metric::CpuSecondsPerGb,
        bound: Bound::AtMost(0.5),
    },
];

/// Which of `bars` are met, line by line.
pub(crate) fn report(record: &Record, bars: &[Bar]) -> String {
    let mut text = String::from("bars (median of B/A):\n");
    for Bar {
        title,
        metric,
        bound,
    } in bars
    {
        let (is_met, wanted): (fn(f64, f64) -> bool, _) = match *bound {
            Bound::AtLeast(value) => (|ratio, value| ratio >= value, ("at least", value)),
            Bound::AtMost(value) => (|ratio, value| ratio <= value, ("at most", value)),
        };
        let (word, value) = wanted;
        let mut lines = record.find(title, *metric).peekable();
        if lines.peek().is_none() {
            text.push_str(&format!(
                "  not measured  {}{word} {value}\n",
                padded(title)
            ));
        }
        for line in lines {
            let Some(ratios) = line.ratios() else {
                text.push_str(&format!("  not measured  {}\n", line.title));
                continue;
            };
            let verdict = match is_met(ratios.median, value) {
                true => "met",
                false => "NOT MET",
            };
            text.push_str(&format!(
                "  {verdict:12}  {:32} {} {:.2} ({:.2} to {:.2}), {word} {value}\n",
                line.title,
                metric.name(),
                ratios.median,
                ratios.min,
                ratios.max,
            ));
        }
    }
    text
}

fn padded(title: &str) -> String {
    format!("{:33}", title.trim_end())
}
