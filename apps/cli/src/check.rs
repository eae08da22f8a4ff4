//! `smbeam check`: compares two directories and prints the differences.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::json;
use crate::failure::{Failure, Outcome};
use crate::format;
use crate::interrupt::Interrupt;
use crate::output::{self, note};
use crate::progress::{OutputArguments, Progress};
use crate::report::Report;
use crate::transfer::{
    CompareArguments, Difference, DifferenceKind, FileArguments, Item, Policy, Transfer, relative,
};

/// Arguments of `smbeam check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trees: CompareArguments,
    /// Ignore files that only TARGET has.
    #[arg(long)]
    one_way: bool,
    /// Compare the targets of local symbolic links instead of the links.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// A difference in JSON.
#[derive(Serialize)]
struct Line {
    action: &'static str,
    path: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// The counts at the end.
#[derive(Serialize)]
struct Total {
    action: &'static str,
    equal: u64,
    missing: u64,
    extra: u64,
    differ: u64,
    failed: u64,
    seconds: f64,
}

#[derive(Default)]
struct Counts {
    equal: AtomicU64,
    missing: AtomicU64,
    extra: AtomicU64,
    differ: AtomicU64,
}

/// Runs `smbeam check`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.print_json(arguments.output.json());
    let connector = Connector::new(&arguments.connect).local_names(arguments.files.names());
    let prepared = arguments
        .policy()
        .and_then(|policy| Ok((policy, item(arguments, &connector)?)));
    let (policy, item) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return report.failed(&failure),
    };
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return report.failed(&Failure::local("signals", &error)),
    };
    let start = Instant::now();
    let counts = Counts::default();
    let progress = Progress::dry_run(arguments.output);
    let transfer = Transfer::new(policy, report, &progress, &interrupt);
    transfer.compare_trees(item, arguments.one_way, &|found| {
        counts.add(found.as_ref());
        if let Some(difference) = found {
            arguments.print(&difference);
        }
    });
    let total = counts.total(report, start.elapsed());
    arguments.print_total(&total);
    if total.differences() > 0 {
        report.found_difference();
    }
}

fn item(arguments: &Arguments, connector: &Connector) -> Outcome<Item> {
    let (source, target) = arguments.trees.resolve(connector)?;
    let info = source.info(true)?;
    Ok(Item {
        relative: relative(&source, info.is_directory()),
        source,
        info,
        target,
    })
}

impl Arguments {
    fn policy(&self) -> Outcome<Policy> {
        Ok(Policy {
            compare: self.trees.compare(),
            follow: self.follow,
            ..self.files.policy(&self.connect)?
        })
    }

    fn print(&self, difference: &Difference) {
        let (action, reason) = words(difference.kind);
        if self.output.json() {
            let line = Line {
                action,
                path: difference.path.to_string(),
                bytes: difference.bytes,
                reason,
            };
            return output::line(&json(&line));
        }
        if !self.output.is_quiet() {
            let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            output::line(&format_args!("{action}{reason}: {}", difference.path));
        }
    }

    fn print_total(&self, total: &Total) {
        if self.output.json() {
            output::line(&json(total));
        } else if !self.output.is_quiet() {
            note(&total.line());
        }
    }
}

/// The words for a difference: its action in JSON, and the part that differs.
fn words(kind: DifferenceKind) -> (&'static str, Option<&'static str>) {
    let part = match kind {
        DifferenceKind::Missing => return ("missing", None),
        DifferenceKind::Extra => return ("extra", None),
        DifferenceKind::Type => "type",
        DifferenceKind::Name => "name",
        DifferenceKind::Size => "size",
        DifferenceKind::Time => "time",
        DifferenceKind::Contents => "contents",
        DifferenceKind::LinkTarget => "link",
    };
    ("differ", Some(part))
}

impl Counts {
    fn add(&self, found: Option<&Difference>) {
        let count = match found.map(|difference| difference.kind) {
            None => &self.equal,
            Some(DifferenceKind::Missing) => &self.missing,
            Some(DifferenceKind::Extra) => &self.extra,
            Some(_) => &self.differ,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self, report: &Report, time: Duration) -> Total {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Total {
            action: "total",
            equal: count(&self.equal),
            missing: count(&self.missing),
            extra: count(&self.extra),
            differ: count(&self.differ),
            failed: report.failures(),
            seconds: time.as_secs_f64(),
        }
    }
}

impl Total {
    fn differences(&self) -> u64 {
        self.missing + self.extra + self.differ
    }

    fn line(&self) -> String {
        let mut line = format!("{} equal", format::count(self.equal, "file"));
        for (count, word) in [
            (self.differ, "different"),
            (self.missing, "missing"),
            (self.extra, "extra"),
            (self.failed, "failed"),
        ] {
            if count > 0 {
                line.push_str(&format!(", {count} {word}"));
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_path::FilePath;

    fn difference(kind: DifferenceKind) -> Difference {
        Difference {
            kind,
            path: FilePath::Local("/a".into()),
            bytes: 1,
        }
    }

    #[test]
    fn the_total_counts_each_kind() {
        let counts = Counts::default();
        counts.add(None);
        for kind in [
            DifferenceKind::Missing,
            DifferenceKind::Extra,
            DifferenceKind::Size,
            DifferenceKind::Type,
        ] {
            counts.add(Some(&difference(kind)));
        }
        let total = counts.total(&Report::new("check"), Duration::ZERO);
        assert_eq!(total.differences(), 4);
        assert_eq!(
            total.line(),
            "1 file equal, 2 different, 1 missing, 1 extra"
        );
    }

    #[test]
    fn every_difference_has_words() {
        assert_eq!(words(DifferenceKind::Missing), ("missing", None));
        assert_eq!(words(DifferenceKind::Time), ("differ", Some("time")));
    }
}
