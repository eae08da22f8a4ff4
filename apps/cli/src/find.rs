//! `smbeam find`: finds files by name, kind, size and time.

use std::sync::Mutex;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use globset::{GlobBuilder, GlobMatcher};
use smbeam_profile::parse_size;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::FileDescription;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, Entry, FileInfo, FilePath, Kind};
use crate::format::parse_time_or_age;
use crate::location::{Url, encode};
use crate::mutex::lock;
use crate::output::Lines;
use crate::report::Report;
use crate::transfer::pool::{self, Queue};

/// Directories that are listed at the same time.
const WORKERS: usize = 16;
/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: u32 = 512;

/// Arguments of `smbeam find`. A file must meet all conditions.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directories to search.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Find names that match a pattern with `*`, `?`, `[a-z]` and `{one,other}`, ignoring case.
    #[arg(short, long, value_name = "PATTERN", value_parser = parse_pattern)]
    name: Option<GlobMatcher>,
    /// Find entries of this kind.
    #[arg(short = 't', long = "type", value_name = "KIND")]
    kind: Option<KindChoice>,
    /// Find files of at least this size.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    min_size: Option<u64>,
    /// Find files of at most this size.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    max_size: Option<u64>,
    /// Find files written at or after this time: 2026-01-31, 2026-01-31T12:00:00 (add Z for UTC),
    /// @seconds since 1970, or an age such as `1h` or `7d` (also `7d ago`).
    #[arg(long, value_name = "TIME", value_parser = parse_time_or_age)]
    newer: Option<SystemTime>,
    /// Find files last written before this time.
    #[arg(long, value_name = "TIME", value_parser = parse_time_or_age)]
    older: Option<SystemTime>,
    /// Maximum depth of the search.
    #[arg(short = 'L', long, value_name = "N")]
    level: Option<u32>,
    /// Print one object of JSON per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// The values of `--type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindChoice {
    /// A file.
    #[value(alias = "f")]
    File,
    /// A directory.
    #[value(aliases = ["d", "folder"])]
    Directory,
    /// A link.
    #[value(alias = "l")]
    Link,
}

fn parse_pattern(text: &str) -> Result<GlobMatcher, String> {
    GlobBuilder::new(text)
        .case_insensitive(true)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.to_string())
}

impl Arguments {
    fn matches(&self, name: &str, info: &FileInfo) -> bool {
        let is_kind = |choice: KindChoice| match choice {
            KindChoice::File => info.kind == Kind::File,
            KindChoice::Directory => info.kind == Kind::Directory,
            KindChoice::Link => info.kind == Kind::Link,
        };
        self.name.as_ref().is_none_or(|glob| glob.is_match(name))
            && self.kind.is_none_or(is_kind)
            && self.min_size.is_none_or(|size| info.size >= size)
            && self.max_size.is_none_or(|size| info.size <= size)
            && self.newer.is_none_or(|time| info.written >= time)
            && self.older.is_none_or(|time| info.written < time)
    }
}

struct Job {
    directory: FilePath,
    depth: u32,
}

/// Runs `smbeam find`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    let lines = Mutex::new(Lines::new());
    for url in &arguments.urls {
        report.take(find(arguments, &connector, url, report, &lines));
        if report.is_over() {
            break;
        }
    }
}

fn find(
    arguments: &Arguments,
    connector: &Connector,
    url: &Url,
    report: &Report,
    lines: &Mutex<Lines>,
) -> Outcome {
    let directory = connector.file_path(url)?;
    let info = directory.info(true)?;
    if !info.is_directory() {
        let name = directory.name().unwrap_or_default();
        if arguments.matches(&name, &info) {
            print_row(arguments, &directory.to_string(), &info, lines);
        }
        return Ok(());
    }
    let first = vec![Job {
        directory,
        depth: 1,
    }];
    pool::run(WORKERS, first, &|job, queue: &Queue<Job>| {
        if report.is_over() {
            return;
        }
        if let Err(failure) = search(arguments, &job, queue, report, lines) {
            report.failed(&failure);
        }
        lock(lines).flush();
    });
    Ok(())
}

fn search(
    arguments: &Arguments,
    job: &Job,
    queue: &Queue<Job>,
    report: &Report,
    lines: &Mutex<Lines>,
) -> Outcome {
    if job.depth > MAX_DEPTH {
        let reason = "directories are nested too deeply";
        return Err(Failure::new(Exit::Failed, &job.directory, reason));
    }
    job.directory
        .list(Detail::of(arguments.json), &mut |entry| {
            let done = entry.and_then(|entry| check_entry(arguments, job, &entry, queue, lines));
            if let Err(failure) = done {
                report.failed(&failure);
            }
            !report.is_over()
        })
}

fn check_entry(
    arguments: &Arguments,
    job: &Job,
    entry: &Entry,
    queue: &Queue<Job>,
    lines: &Mutex<Lines>,
) -> Outcome {
    if arguments.matches(&entry.name, &entry.info) {
        let path = format!("{}/{}", job.directory, encode(&entry.name));
        print_row(arguments, &path, &entry.info, lines);
    }
    if entry.info.is_directory() && job.depth < arguments.level.unwrap_or(u32::MAX) {
        let directory = job.directory.listed(&entry.name);
        queue.push_directory(Job {
            directory: directory.map_err(|error| Failure::name(&job.directory, error))?,
            depth: job.depth + 1,
        });
    }
    Ok(())
}

fn print_row(arguments: &Arguments, path: &str, info: &FileInfo, lines: &Mutex<Lines>) {
    match arguments.json {
        true => lock(lines).line(&FileDescription::new(path, info).line()),
        false => lock(lines).line(&path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_a_shell() {
        let matches =
            |pattern: &str, name: &str| parse_pattern(pattern).expect("a pattern").is_match(name);
        assert!(matches("*.TXT", "a.txt"));
        assert!(matches("a?c", "abc") && !matches("a?c", "ac"));
        assert!(matches("[a-c]*.{rs,toml}", "b.rs"));
        assert!(!matches("*.rs", "b.rsx"));
        assert!(matches("*", ".hidden"));
        assert!(parse_pattern("[a").is_err());
    }
}
