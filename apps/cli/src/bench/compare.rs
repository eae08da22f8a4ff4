//! Comparison of two servers. The runs alternate (A B A B), so that changes on the machine affect
//! both servers alike.

use std::fmt::Write as _;

use super::report::Report;

/// The median of several values, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Returns `None` without values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self {
            median,
            least,
            most,
        })
    }
}

/// Formats a table of the rounds. Each round is one run of A and one of B.
pub(crate) fn table(rounds: &[(Report, Report)]) -> String {
    let mut text = String::new();
    let Some((first, second)) = rounds.first() else {
        return text;
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "A  {} ({})\nB  {} ({})",
        first.url, first.session, second.url, second.session
    );
    let _ = writeln!(
        text,
        "{:<22}{:>12}{:>12}{:>12}  spread",
        "", "A", "B", "B / A"
    );
    for (name, value) in ROWS {
        let pairs = rounds
            .iter()
            .filter_map(|(a, b)| Some((value(a)?, value(b)?)));
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.filter(|(a, _)| *a > 0.0).unzip();
        let ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b / a).collect();
        let (Some(a), Some(b), Some(ratio)) = (Spread::of(&a), Spread::of(&b), Spread::of(&ratios))
        else {
            continue;
        };
        let _ = writeln!(
            text,
            "{name:<22}{:>12.3}{:>12.3}{:>12.2}  {:.2} - {:.2}",
            a.median, b.median, ratio.median, ratio.least, ratio.most
        );
    }
    text
}

type Value = fn(&Report) -> Option<f64>;

/// The rows of the table: a label, and the figure of a report.
const ROWS: [(&str, Value); 6] = [
    ("GiB/s", |report| {
        (report.bytes > 0).then(|| report.gib_per_second())
    }),
    ("operations/s", |report| Some(report.ops_per_second())),
    ("p50 us", |report| Some(report.latency_us.p50)),
    ("p99 us", |report| Some(report.latency_us.p99)),
    ("client CPU us/op", |report| {
        per_op(report, Some(report.client_cpu))
    }),
    ("server CPU us/op", |report| {
        per_op(report, report.server_cpu)
    }),
];

fn per_op(report: &Report, cpu: Option<f64>) -> Option<f64> {
    let cpu = cpu?;
    (report.ops > 0).then(|| cpu * 1e6 / report.ops as f64)
}

#[cfg(test)]
mod tests {
    use super::super::report::example;
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]).expect("given");
        assert_eq!((spread.median, spread.least, spread.most), (2.5, 1.0, 4.0));
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[7.0]).expect("given").median, 7.0);
    }

    #[test]
    fn a_server_twice_as_fast_has_twice_the_rate() {
        let slow = example();
        let mut fast = example();
        fast.seconds /= 2.0;
        let text = table(&[(slow.clone(), fast.clone()), (slow, fast)]);
        let row = text
            .lines()
            .find(|line| line.starts_with("GiB/s"))
            .expect("given");
        assert!(row.ends_with("2.00  2.00 - 2.00"), "{row}");
        assert!(!text.contains("server CPU"), "{text}");
    }
}
