//! Progress of a transfer: a bar on a terminal, or one line at the end.

use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;

use crate::describe::json;
use crate::file_path::FilePath;
use crate::format;
use crate::log::LogArguments;
use crate::output::{beside_bar, note, set_bar};
use crate::report::Report;

/// Interval between updates of the bar.
const TICK: Duration = Duration::from_millis(100);
/// The action of the summary in JSON.
const TOTAL: &str = "total";
const TEMPLATE: &str = "{bar:24} {percent:>3}% {done}/{total} {rate} {eta} left  {msg}";
/// The bar for data of unknown length.
const UNKNOWN_LENGTH: &str = "{done} {rate} {elapsed}";

/// Options for the output of a transfer.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Print only errors; with --dry-run, print only the total.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,
    /// Print one JSON object per line: each action, each failure, and the total at the end.
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

/// Counters of a transfer, and the bar that shows them.
pub(crate) struct Progress {
    output: OutputArguments,
    /// Whether to print the name of each completed file.
    names_files: bool,
    is_dry_run: bool,
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

/// An action of a transfer, in JSON and in the report of a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    /// Create a directory.
    Create,
    /// Copy a file to a path without a file.
    Copy,
    /// Copy a file over an existing one.
    Update,
    /// Remove a file or directory.
    Remove,
    /// Give a file or directory the case of the source's name.
    Rename,
    /// Move a file that is replaced or removed to `--backup-dir`.
    Backup,
}

impl Action {
    /// The action for a file; `exists`: its target is known to exist.
    pub(crate) fn of_file(exists: bool) -> Self {
        match exists {
            true => Self::Update,
            false => Self::Copy,
        }
    }

    /// The start of a line of `--verbose`.
    fn participle(self) -> &'static str {
        match self {
            Self::Create => "created ",
            Self::Copy | Self::Update => "",
            Self::Remove => "removed ",
            Self::Rename => "renamed ",
            Self::Backup => "backed up ",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Copy => "copy",
            Self::Update => "update",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Backup => "back up",
        }
    }
}

/// An action in JSON.
#[derive(Serialize)]
struct ActionLine {
    action: Action,
    path: String,
    /// The new path of [`Action::Rename`] and [`Action::Backup`].
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    bytes: u64,
}

/// The summary at the end.
#[derive(Serialize)]
struct Summary {
    /// Distinguishes the summary from the actions before it: `total`.
    action: &'static str,
    /// Whether the counters are those of a dry run. A run with changes does not have the field.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_dry_run: bool,
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

impl OutputArguments {
    /// Whether actions and failures are lines of JSON.
    pub(crate) fn json(self) -> bool {
        self.json
    }

    /// Whether only errors are printed.
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }
}

impl Progress {
    /// Starts the clock, and the bar if standard error is a terminal.
    pub(crate) fn start(output: OutputArguments, log: &LogArguments, report: &Report) -> Self {
        let shows = !output.quiet && std::io::stderr().is_terminal();
        let bar = shows.then(new_bar);
        if let Some(bar) = &bar {
            set_bar(Some(bar.clone()));
            report.print_through(Some(Box::new(|line| beside_bar(&|| note(&line)))));
        }
        Self {
            output,
            names_files: log.names_files(),
            is_dry_run: false,
            start: Instant::now(),
            bar,
            counts: Counts::default(),
        }
    }

    /// Starts the clock of a dry run. It transfers nothing, so it has no bar.
    pub(crate) fn dry_run(output: OutputArguments) -> Self {
        Self {
            output,
            names_files: false,
            is_dry_run: true,
            start: Instant::now(),
            bar: None,
            counts: Counts::default(),
        }
    }

    /// Reports and counts a file that a dry run does not transfer.
    pub(crate) fn would(&self, action: Action, path: &FilePath, bytes: u64) {
        add(&self.counts.bytes, bytes);
        add(&self.counts.files, 1);
        self.did(action, path, None, bytes);
    }

    /// Reports an action, or with a dry run what it would be.
    fn did(&self, action: Action, path: &FilePath, to: Option<&FilePath>, bytes: u64) {
        if self.output.json {
            let line = ActionLine {
                action,
                path: path.to_string(),
                to: to.map(ToString::to_string),
                bytes,
            };
            return beside_bar(&|| crate::output::line(&json(&line)));
        }
        let to = to.map_or_else(String::new, |to| format!(" to {to}"));
        if self.is_dry_run && !self.output.quiet {
            note(&format_args!("would {} {path}{to}", action.verb()));
        } else if self.names_files {
            let done = action.participle();
            beside_bar(&|| note(&format_args!("{done}{path}{to}")));
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

    /// A file of this many bytes is complete.
    pub(crate) fn file_done(&self, action: Action, path: &FilePath, bytes: u64) {
        add(&self.counts.files, 1);
        if let Some(bar) = &self.bar {
            self.show_files(bar, self.counts.files_found.load(Ordering::Relaxed));
        }
        self.did(action, path, None, bytes);
    }

    /// A file is up to date.
    pub(crate) fn unchanged(&self) {
        add(&self.counts.skipped, 1);
    }

    /// A directory was created, or a dry run would create it.
    pub(crate) fn directory_created(&self, path: &FilePath) {
        add(&self.counts.directories, 1);
        self.did(Action::Create, path, None, 0);
    }

    /// A file of this many bytes, or a directory, was removed, or a dry run would remove it.
    pub(crate) fn removed(&self, path: &FilePath, bytes: u64) {
        add(&self.counts.removed, 1);
        self.did(Action::Remove, path, None, bytes);
    }

    /// A file or directory got another name, or would get it in a dry run.
    pub(crate) fn renamed(&self, from: &FilePath, to: &FilePath) {
        add(&self.counts.renamed, 1);
        self.did(Action::Rename, from, Some(to), 0);
    }

    /// A file that is replaced or removed moved to `--backup-dir`.
    pub(crate) fn backed_up(&self, from: &FilePath, to: &FilePath) {
        self.did(Action::Backup, from, Some(to), 0);
    }

    /// Ends the bar and prints the summary.
    pub(crate) fn finish(&self, report: &Report) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            set_bar(None);
            report.print_through(None);
        }
        let time = self.start.elapsed();
        let summary = self.summary(report, time);
        if self.output.json {
            crate::output::line(&json(&summary));
        } else if self.is_dry_run {
            note(&summary.dry_line());
        } else if !self.output.quiet {
            note(&summary.line(time));
        }
    }

    fn summary(&self, report: &Report, time: Duration) -> Summary {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.counts;
        Summary {
            action: TOTAL,
            is_dry_run: self.is_dry_run,
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
        self.add_others(&mut line, ["removed", "renamed"]);
        line
    }

    fn dry_line(&self) -> String {
        let mut line = format!(
            "dry run: {}, {} to transfer",
            format::count(self.files, "file"),
            format::size(self.bytes)
        );
        if self.directories > 0 {
            let directories = format::count(self.directories, "directory");
            line.push_str(&format!(", {directories} to create"));
        }
        self.add_others(&mut line, ["to remove", "to rename"]);
        line
    }

    fn add_others(&self, line: &mut String, [removed, renamed]: [&str; 2]) {
        for (count, word) in [
            (self.unchanged, "unchanged"),
            (self.removed, removed),
            (self.renamed, renamed),
            (self.failed, "failed"),
        ] {
            if count > 0 {
                line.push_str(&format!(", {count} {word}"));
            }
        }
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
        bar.set_style(with_sizes(style));
    }
}

/// Adds the sizes of a template in the style of all other output. A bar has no place to report an
/// error of `write!`.
fn with_sizes(style: ProgressStyle) -> ProgressStyle {
    let size = |bytes: u64, text: &mut dyn Write| {
        let _ = text.write_str(&format::size(bytes));
    };
    style
        .with_key(
            "done",
            move |state: &ProgressState, text: &mut dyn Write| {
                size(state.pos(), text);
            },
        )
        .with_key(
            "total",
            move |state: &ProgressState, text: &mut dyn Write| {
                size(state.len().unwrap_or(state.pos()), text);
            },
        )
        .with_key("rate", |state: &ProgressState, text: &mut dyn Write| {
            let _ = write!(text, "{}/s", format::size(state.per_sec() as u64));
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_one_line() {
        let mut summary = Summary {
            action: TOTAL,
            is_dry_run: false,
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
    fn a_dry_run_counts_what_it_would_do() {
        let quiet = OutputArguments {
            quiet: true,
            ..OutputArguments::default()
        };
        let progress = Progress::dry_run(quiet);
        let path = |text: &str| FilePath::Local(text.into());
        progress.directory_created(&path("d"));
        progress.would(Action::Copy, &path("d/a"), 1000);
        progress.would(Action::Update, &path("d/b"), 1048);
        progress.removed(&path("c"), 77);
        let summary = progress.summary(&Report::new("sync"), Duration::ZERO);
        assert_eq!(
            summary.dry_line(),
            "dry run: 2 files, 2.0 KiB to transfer, 1 directory to create, 1 to remove"
        );
        let text = json(&summary);
        assert!(
            text.starts_with(
                "{\"action\":\"total\",\"is_dry_run\":true,\"files\":2,\"bytes\":2048"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_bar_has_a_form() {
        for template in [TEMPLATE, UNKNOWN_LENGTH] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
