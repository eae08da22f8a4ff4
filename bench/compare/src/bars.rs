//! The first bars: what the design must show. They are reported; time never fails a run.

use crate::report::Record;
use crate::sample::Metric;

struct Bar {
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

const BARS: [Bar; 5] = [
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

/// Which bars are met, line by line.
pub(crate) fn report(record: &Record) -> String {
    let mut text = String::from("bars (median of B/A):\n");
    for Bar {
        title,
        metric,
        bound,
    } in BARS
    {
        let (is_met, wanted): (fn(f64, f64) -> bool, _) = match bound {
            Bound::AtLeast(value) => (|ratio, value| ratio >= value, ("at least", value)),
            Bound::AtMost(value) => (|ratio, value| ratio <= value, ("at most", value)),
        };
        let (word, value) = wanted;
        let mut lines = record.find(title, metric).peekable();
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
