//! The performance goals of the design. They are reported, and a missed goal does not fail a run.

use crate::report::Record;
use crate::sample::Metric::{
    self, ClientCpuSecondsPerGb, CpuSecondsPerGb, GbPerSecond, OpsPerSecond, PssKibPerConnection,
};
use Bound::{AtLeast, AtMost};

/// A goal for one metric of a bench.
pub(crate) struct Goal {
    /// Prefix of the titles of the rows.
    title: &'static str,
    metric: Metric,
    bound: Bound,
}

/// The bound for B / A.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// Goals for smbeam compared with smbd.
pub(crate) const SERVERS: [Goal; 5] = [
    goal("read-1m ", GbPerSecond, AtLeast(1.0)),
    goal("read-64k ", GbPerSecond, AtLeast(1.0)),
    goal("read-4k ", OpsPerSecond, AtLeast(1.5)),
    goal("create+close, depth 1 ", OpsPerSecond, AtLeast(10.0)),
    goal("idle connection", PssKibPerConnection, AtMost(0.1)),
];

/// Goals for the commands of smbeam compared with smbclient.
pub(crate) const CLIENTS: [Goal; 14] = [
    goal("client-get-plain ", GbPerSecond, AtLeast(1.8)),
    goal("client-get-signed ", GbPerSecond, AtLeast(1.8)),
    goal("client-get-encrypted ", GbPerSecond, AtLeast(2.0)),
    goal("client-get-plain ", ClientCpuSecondsPerGb, AtMost(1.0)),
    goal("client-get-signed ", ClientCpuSecondsPerGb, AtMost(1.0)),
    goal("client-get-encrypted ", ClientCpuSecondsPerGb, AtMost(1.0)),
    goal("client-get-file-plain ", GbPerSecond, AtLeast(1.8)),
    goal("client-get-file-signed ", GbPerSecond, AtLeast(1.8)),
    goal("client-get-file-encrypted ", GbPerSecond, AtLeast(2.0)),
    goal("client-put-plain ", GbPerSecond, AtLeast(1.5)),
    goal("client-put-signed ", GbPerSecond, AtLeast(1.5)),
    goal("client-put-encrypted ", GbPerSecond, AtLeast(2.0)),
    goal("client-get-many ", OpsPerSecond, AtLeast(5.0)),
    goal("client-list ", OpsPerSecond, AtLeast(0.67)),
];

/// Goals for transports compared with their baselines.
pub(crate) const TRANSPORTS: [Goal; 6] = [
    goal("tcp-four-read-1m ", GbPerSecond, AtLeast(0.85)),
    goal("quic-read-1m ", GbPerSecond, AtLeast(0.85)),
    goal("quic-link-read-1m ", GbPerSecond, AtLeast(0.9)),
    goal("quic-link-tcp-read-1m ", GbPerSecond, AtLeast(1.0)),
    goal("smbdirect-read-1m ", CpuSecondsPerGb, AtMost(0.5)),
    goal("smbdirect-disk-read-1m ", CpuSecondsPerGb, AtMost(0.5)),
];

const fn goal(title: &'static str, metric: Metric, bound: Bound) -> Goal {
    Goal {
        title,
        metric,
        bound,
    }
}

/// Lists for every goal whether it is met.
pub(crate) fn report(record: &Record, goals: &[Goal]) -> String {
    let mut text = String::from("goals (median of B/A):\n");
    for Goal {
        title,
        metric,
        bound,
    } in goals
    {
        let (is_met, wanted): (fn(f64, f64) -> bool, _) = match *bound {
            AtLeast(value) => (|ratio, value| ratio >= value, ("at least", value)),
            AtMost(value) => (|ratio, value| ratio <= value, ("at most", value)),
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
