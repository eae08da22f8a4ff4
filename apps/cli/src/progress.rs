//! Progress of a transfer: a bar on a terminal, or one line at the end.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::format;
use crate::output::note;
use crate::report::Report;

/// Interval between updates of the bar.
const TICK: Duration = Duration::from_millis(100);
const TEMPLATE: &str = "{bar:24} {percent:>3}% {bytes}/{total_bytes} {binary_bytes_per_sec} \
     {eta} left  {msg}";
/// The bar for data of unknown length.
const UNKNOWN_LENGTH: &str = "{bytes} {binary_bytes_per_sec} {elapsed}";

/// Options for the output of a transfer.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
    /// Print the name of each completed file.
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,
    /// Print a summary as JSON at the end.
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

/// Counters of a transfer, and the bar that shows them.
pub(crate) struct Progress {
    output: OutputArguments,
    start: Instant,
    bar: Option<ProgressBar>,
    counts: Counts,
}

/// Completed and expected work.
#[derive(Debug, Default)]
struct Counts {
    files: AtomicU64,
    bytes: AtomicU64,
    files_found: AtomicU64,
    bytes_found: AtomicU64,
    directories: AtomicU64,
    skipped: AtomicU64,
    removed: AtomicU64,
    renamed: AtomicU64,
}

/// The summary at the end.
#[derive(Serialize)]
struct Summary {
    files: u64,
    bytes: u64,
    #[serde(rename = "folders")]
    directories: u64,
    unchanged: u64,
    removed: u64,
    renamed: u64,
    failed: u64,
    seconds: f64,
}

impl Progress {
    /// Starts the clock, and the bar if standard error is a terminal.
    pub(crate) fn start(output: OutputArguments, report: &Report) -> Self {
        let shows = !output.quiet && std::io::stderr().is_terminal();
        let bar = shows.then(new_bar);
        if let Some(bar) = &bar {
            let through = bar.clone();
            report.print_through(Some(Box::new(move |line| {
                through.suspend(|| note(&line));
            })));
        }
        Self {
            output,
            start: Instant::now(),
            bar,
            counts: Counts::default(),
        }
    }

    /// A file of this many bytes will be transferred.
    pub(crate) fn file_found(&self, bytes: u64) {
        let files = add(&self.counts.files_found, 1);
        let total = add(&self.counts.bytes_found, bytes);
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            self.show_files(bar, files);
        }
    }

    fn show_files(&self, bar: &ProgressBar, found: u64) {
        if found > 1 {
            let done = self.counts.files.load(Ordering::Relaxed);
            bar.set_message(format!("{done}/{found} files"));
        }
    }

    /// Bytes were transferred.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        add(&self.counts.bytes, bytes);
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// Data of unknown length will be transferred, so the bar cannot show the remaining time.
    pub(crate) fn stream_found(&self) {
        self.file_found(0);
        if let Some(bar) = &self.bar {
            bar.unset_length();
            set_form(bar, UNKNOWN_LENGTH);
        }
    }

    /// Bytes need no transfer: an earlier transfer sent them, or they are a hole.
    pub(crate) fn skip_bytes(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// A file is complete.
    pub(crate) fn file_done(&self, name: &dyn std::fmt::Display) {
        add(&self.counts.files, 1);
        if let Some(bar) = &self.bar {
            self.show_files(bar, self.counts.files_found.load(Ordering::Relaxed));
        }
        self.print_verbose(name);
    }

    /// A file is up to date.
    pub(crate) fn unchanged(&self) {
        add(&self.counts.skipped, 1);
    }

    /// A directory was created.
    pub(crate) fn directory_created(&self) {
        add(&self.counts.directories, 1);
    }

    /// A file or directory was removed.
    pub(crate) fn removed(&self, name: &dyn std::fmt::Display) {
        add(&self.counts.removed, 1);
        self.print_verbose(&format_args!("removed {name}"));
    }

    /// A file or directory got another name.
    pub(crate) fn renamed(&self, from: &dyn std::fmt::Display, to: &dyn std::fmt::Display) {
        add(&self.counts.renamed, 1);
        self.print_verbose(&format_args!("renamed {from} to {to}"));
    }

    /// Prints a line if `--verbose` is given.
    fn print_verbose(&self, text: &dyn std::fmt::Display) {
        if self.output.verbose {
            self.print_line(text);
        }
    }

    /// Prints a line beside the bar. It does not report a failure.
    pub(crate) fn print_line(&self, text: &dyn std::fmt::Display) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(text)),
            None => note(text),
        }
    }

    /// Ends the bar and prints the summary.
    pub(crate) fn finish(&self, report: &Report) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            report.print_through(None);
        }
        let time = self.start.elapsed();
        let summary = self.summary(report, time);
        if self.output.json {
            match serde_json::to_string(&summary) {
                Ok(text) => crate::output::line(&text),
                Err(error) => report.note(&error.to_string()),
            }
        } else if !self.output.quiet {
            note(&summary.line(time));
        }
    }

    fn summary(&self, report: &Report, time: Duration) -> Summary {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        Summary {
            files: count(&counts.files),
            bytes: count(&counts.bytes),
            directories: count(&counts.directories),
            unchanged: count(&counts.skipped),
            removed: count(&counts.removed),
            renamed: count(&counts.renamed),
            failed: report.failures(),
            seconds: time.as_secs_f64(),
        }
    }
}

impl Summary {
    fn line(&self, time: Duration) -> String {
        let mut line = format!(
            "{}, {} in {:.1} s ({})",
            format::count(self.files, "file"),
            format::size(self.bytes),
            self.seconds,
            format::rate(self.bytes, time)
        );
        for (count, word) in [
            (self.unchanged, "unchanged"),
            (self.removed, "removed"),
            (self.renamed, "renamed"),
            (self.failed, "failed"),
        ] {
            if count > 0 {
                line.push_str(&format!(", {count} {word}"));
            }
        }
        line
    }
}

fn add(counter: &AtomicU64, more: u64) -> u64 {
    counter.fetch_add(more, Ordering::Relaxed) + more
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    set_form(&bar, TEMPLATE);
    bar.enable_steady_tick(TICK);
    bar
}

fn set_form(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_one_line() {
        let mut summary = Summary {
            files: 12,
            bytes: 3 << 30,
            directories: 2,
            unchanged: 0,
            removed: 0,
            renamed: 0,
            failed: 0,
            seconds: 2.0,
        };
        let time = Duration::from_secs(2);
        assert_eq!(summary.line(time), "12 files, 3.0 GiB in 2.0 s (1.5 GiB/s)");
        summary.failed = 1;
        summary.unchanged = 7;
        assert!(summary.line(time).ends_with("7 unchanged, 1 failed"));
    }

    #[test]
    fn the_bar_has_a_form() {
        for template in [TEMPLATE, UNKNOWN_LENGTH] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
