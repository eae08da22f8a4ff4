//! `smbeam tree`: shows a directory tree.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::short_line;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, Entry, FilePath};
use crate::format;
use crate::location::Url;
use crate::output::Lines;
use crate::report::Report;

/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: u32 = 512;

/// Arguments of `smbeam tree`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory.
    #[arg(value_name = "URL", value_parser = crate::location::url)]
    url: Url,
    /// Maximum depth of the tree.
    #[arg(short = 'L', long, value_name = "N")]
    level: Option<u32>,
    /// Show only directories.
    #[arg(short, long)]
    directories: bool,
    /// Show file sizes.
    #[arg(short, long)]
    size: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam tree`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let mut drawing = Drawing {
        arguments,
        report,
        lines: Lines::new(),
        directories: 0,
        files: 0,
    };
    let drawn = Connector::new(&arguments.connect)
        .file_path(&arguments.url)
        .and_then(|path| drawing.root(&path));
    report.take(drawn);
}

struct Drawing<'a> {
    arguments: &'a Arguments,
    report: &'a Report,
    lines: Lines,
    directories: u64,
    files: u64,
}

impl Drawing<'_> {
    fn root(&mut self, path: &FilePath) -> Outcome {
        self.lines.line(path);
        self.directory(path, &mut String::new(), 1)?;
        self.lines.line(&format_args!(
            "\n{}, {}",
            format::count(self.directories, "directory"),
            format::count(self.files, "file")
        ));
        Ok(())
    }

    fn directory(&mut self, path: &FilePath, before: &mut String, depth: u32) -> Outcome {
        if depth > self.arguments.level.unwrap_or(MAX_DEPTH).min(MAX_DEPTH) {
            return Ok(());
        }
        let mut entries = Vec::new();
        let only_directories = self.arguments.directories;
        path.list(Detail::Brief, &mut |entry| {
            match entry {
                Ok(entry) if only_directories && !entry.info.is_directory() => {}
                Ok(entry) => entries.push(entry),
                Err(failure) => self.report.failed(&failure),
            }
            true
        })?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let count = entries.len();
        for (index, entry) in entries.into_iter().enumerate() {
            self.entry(path, &entry, before, index + 1 == count, depth);
            if self.report.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        path: &FilePath,
        entry: &Entry,
        before: &mut String,
        last: bool,
        depth: u32,
    ) {
        let (branch, more) = match last {
            true => ("`-- ", "    "),
            false => ("|-- ", "|   "),
        };
        let size = match self.arguments.size && !entry.info.is_directory() {
            true => format!("[{}]  ", format::size(entry.info.size)),
            false => String::new(),
        };
        let name = short_line(&entry.name, &entry.info);
        self.lines
            .line(&format_args!("{before}{branch}{size}{name}"));
        if !entry.info.is_directory() {
            self.files += 1;
            return;
        }
        self.directories += 1;
        let length = before.len();
        before.push_str(more);
        let drawn = match path.listed(&entry.name) {
            Ok(below) => self.directory(&below, before, depth + 1),
            Err(error) => Err(Failure::name(path, error)),
        };
        before.truncate(length);
        self.report.take(drawn);
    }
}
