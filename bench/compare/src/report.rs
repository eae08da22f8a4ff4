//! The results, the ratios with their spread, and their output.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Error, Result};
use serde_json::{Map, Value, json};

use crate::options::Options;
use crate::sample::{Metric, Row};

/// All results of a comparison.
pub(crate) struct Record {
    subjects: [&'static str; 2],
    machine: Vec<(String, String)>,
    settings: Value,
    lines: Vec<Line>,
    failures: Vec<String>,
    /// Number of lines and failures that were printed as progress.
    printed: (usize, usize),
}

/// One metric of one row, for both sides and all rounds.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The title of the row.
    pub(crate) title: String,
    /// The metric.
    pub(crate) metric: Metric,
    /// The values of each side with their rounds.
    values: [Vec<(u32, f64)>; 2],
}

/// A median, with the smallest and the largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The smallest value.
    pub(crate) min: f64,
    /// The median.
    pub(crate) median: f64,
    /// The largest value.
    pub(crate) max: f64,
}

/// Writes the results to `path`: one object, or an array of several.
pub(crate) fn write_json(records: &[&Record], path: &Path) -> Result<()> {
    let value = match records {
        [only] => only.json(),
        several => several.iter().map(|record| record.json()).collect(),
    };
    fs::write(path, format!("{value:#}\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}

impl Record {
    /// An empty record. `subjects` are the names of A and B.
    pub(crate) fn new(
        subjects: [&'static str; 2],
        options: &Options,
        machine: Vec<(String, String)>,
    ) -> Record {
        let settings = json!({
            "rounds": options.rounds,
            "torture_seconds": options.seconds,
            "torture_connections": options.connections,
            "torture_depth": options.depth,
            "large_file_bytes": options.large_bytes,
            "files": options.files,
            "idle_connections": options.idle_connections,
            "link_seconds": options.link_seconds(),
            "link_mbit": options.link_mbit,
            "smb_conf": options.smb_conf,
            "quinn_threads": options.quinn_threads,
            "congestion": options.congestion.name(),
        });
        for (name, fact) in &machine {
            println!("{name}: {fact}");
        }
        Record {
            subjects,
            machine,
            settings,
            lines: Vec::new(),
            failures: Vec::new(),
            printed: (0, 0),
        }
    }

    /// Adds the rows of `side` in `round`.
    pub(crate) fn add(&mut self, side: usize, round: u32, rows: Vec<Row>) {
        for Row { title, metrics } in rows {
            for (metric, value) in metrics {
                let mut lines = self.lines.iter_mut();
                let known = lines.find(|line| line.title == title && line.metric == metric);
                match known {
                    Some(line) => line.values[side].push((round, value)),
                    None => {
                        let mut values = [Vec::new(), Vec::new()];
                        values[side].push((round, value));
                        let title = title.clone();
                        self.lines.push(Line {
                            title,
                            metric,
                            values,
                        });
                    }
                }
            }
        }
    }

    /// Records the failure of a bench.
    pub(crate) fn fail(&mut self, side: usize, title: &str, error: &Error) {
        let subject = self.subjects[side];
        self.failures.push(format!("{title}, {subject}: {error:#}"));
    }

    /// Prints the lines and failures since the last call.
    pub(crate) fn print_new_lines(&mut self) {
        for line in &self.lines[self.printed.0..] {
            println!("{}", line.cells().join("  "));
        }
        for failure in &self.failures[self.printed.1..] {
            println!("failed: {failure}");
        }
        self.printed = (self.lines.len(), self.failures.len());
    }

    /// The lines with titles that start with `title`.
    pub(crate) fn find(&self, title: &str, metric: Metric) -> impl Iterator<Item = &Line> {
        let lines = self.lines.iter();
        lines.filter(move |line| line.title.starts_with(title) && line.metric == metric)
    }

    /// The table of all lines, and the failures.
    pub(crate) fn table(&self) -> String {
        let [a, b] = self.subjects;
        let head = ["what", "metric", a, b, "B/A", "min", "max"].map(str::to_owned);
        let mut rows = vec![head.to_vec()];
        rows.extend(self.lines.iter().map(|line| line.cells().to_vec()));
        let mut text = align(&rows);
        for failure in &self.failures {
            text.push_str(&format!("failed: {failure}\n"));
        }
        text
    }

    fn json(&self) -> Value {
        let machine: Map<String, Value> = self
            .machine
            .iter()
            .map(|(name, fact)| (name.clone(), fact.as_str().into()))
            .collect();
        let lines: Vec<Value> = self.lines.iter().map(Line::json).collect();
        json!({
            "a": self.subjects[0],
            "b": self.subjects[1],
            "machine": machine,
            "settings": self.settings,
            "lines": lines,
            "failures": self.failures,
        })
    }
}

impl Line {
    /// The ratios B / A, round by round.
    pub(crate) fn ratios(&self) -> Option<Spread> {
        let [a, b] = &self.values;
        let of_round = |round| a.iter().find(|(other, _)| *other == round);
        let pairs = b
            .iter()
            .filter_map(|(round, b)| Some((b, of_round(*round)?.1)));
        Spread::of(pairs.map(|(b, a)| b / a).collect())
    }

    fn side(&self, side: usize) -> Option<Spread> {
        Spread::of(self.values[side].iter().map(|(_, value)| *value).collect())
    }

    fn cells(&self) -> [String; 7] {
        let dash = || "-".to_owned();
        let median = |side| {
            let spread = self.side(side);
            spread.map_or_else(dash, |spread| self.metric.format(spread.median))
        };
        let ratios = self.ratios();
        let ratio = |value: fn(Spread) -> f64| {
            ratios.map_or_else(dash, |ratios| format!("{:.2}", value(ratios)))
        };
        [
            self.title.clone(),
            self.metric.name().to_owned(),
            median(0),
            median(1),
            ratio(|ratios| ratios.median),
            ratio(|ratios| ratios.min),
            ratio(|ratios| ratios.max),
        ]
    }

    fn json(&self) -> Value {
        let values = |side: usize| {
            let values = self.values[side].iter();
            values.map(|(_, value)| *value).collect::<Vec<f64>>()
        };
        let ratios = self.ratios();
        json!({
            "what": self.title,
            "metric": self.metric.name(),
            "a": values(0),
            "b": values(1),
            "b_over_a": ratios.map(|Spread { min, median, max }| {
                json!({ "min": min, "median": median, "max": max })
            }),
        })
    }
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Spread { min, median, max })
    }
}

/// Formats columns of equal width. The first two are left-aligned, the others right-aligned.
fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_of_the_same_round_are_divided() {
        let line = Line {
            title: "echo".into(),
            metric: Metric::OpsPerSecond,
            values: [
                vec![(0, 10.0), (2, 100.0)],
                vec![(0, 20.0), (1, 9.0), (2, 100.0)],
            ],
        };
        let ratios = line.ratios().expect("two pairs");
        assert_eq!((ratios.min, ratios.median, ratios.max), (1.0, 1.5, 2.0));
    }

    #[test]
    fn nothing_has_no_spread() {
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
