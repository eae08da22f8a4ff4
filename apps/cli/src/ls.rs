//! `smbeam ls`: lists directories.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::{FileDescription, long_line, short_line};
use crate::failure::Outcome;
use crate::file_path::{Detail, Entry, ExpandedPath, FileInfo, FilePath};
use crate::format::SizeArguments;
use crate::location::Url;
use crate::output::Lines;
use crate::report::Report;

/// Maximum number of entries that are sorted. A larger directory is listed in the order of the
/// server.
const MAX_SORTED: usize = 1 << 20;
/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: u32 = 512;

/// Arguments of `smbeam ls`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Directories or files. `*` and `?` in the last component are wildcards.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Show attributes, size and time of last write.
    #[arg(short, long)]
    long: bool,
    /// List subdirectories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    sizes: SizeArguments,
    /// Do not sort: list entries in the order of the server.
    #[arg(long)]
    unsorted: bool,
    /// List directories themselves, not their contents.
    #[arg(short, long)]
    directory: bool,
    /// Print one object of JSON per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam ls`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    let mut listing = Listing {
        arguments,
        report,
        lines: Lines::new(),
    };
    let has_titles = arguments.recursive || arguments.urls.len() > 1;
    for url in &arguments.urls {
        let detail = Detail::of(arguments.json);
        let found = report.found(connector.expand(url, detail));
        let has_titles = has_titles || found.len() > 1;
        for found in &found {
            if !report.is_over() {
                report.take(listing.list(found, has_titles));
            }
        }
        if report.is_over() {
            break;
        }
    }
}

struct Listing<'a> {
    arguments: &'a Arguments,
    report: &'a Report,
    lines: Lines,
}

impl Listing<'_> {
    fn list(&mut self, found: &ExpandedPath, has_titles: bool) -> Outcome {
        let info = found.info()?;
        let path = &found.path;
        if info.is_directory() && !self.arguments.directory {
            return self.directory(path, has_titles, 0);
        }
        let name = path.name().unwrap_or_else(|| ".".into());
        self.entry(path, &name, &info);
        Ok(())
    }

    fn directory(&mut self, path: &FilePath, has_titles: bool, depth: u32) -> Outcome {
        let is_plain = !self.arguments.json;
        if has_titles && is_plain {
            self.lines.line(&format_args!("{path}:"));
        }
        let mut directories = Vec::new();
        let mut sorted = Vec::new();
        let mut keeps = !self.arguments.unsorted;
        path.list(Detail::of(self.arguments.json), &mut |entry| {
            match entry {
                Ok(entry) => {
                    if self.arguments.recursive && entry.info.is_directory() {
                        directories.push(entry.name.clone());
                    }
                    match keeps {
                        true => sorted.push(entry),
                        false => self.listed(path, &entry),
                    }
                    keeps &= sorted.len() < MAX_SORTED;
                }
                Err(failure) => self.report.failed(&failure),
            }
            true
        })?;
        sorted.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in &sorted {
            self.listed(path, entry);
        }
        drop(sorted);
        directories.sort();
        self.below(path, &directories, depth)
    }

    fn below(&mut self, path: &FilePath, directories: &[String], depth: u32) -> Outcome {
        if depth == MAX_DEPTH {
            return Ok(());
        }
        for name in directories {
            let listed = match path.listed(name) {
                Ok(below) => {
                    if !self.arguments.json {
                        self.lines.line(&"");
                    }
                    self.directory(&below, true, depth + 1)
                }
                Err(error) => Err(crate::failure::Failure::name(path, error)),
            };
            self.report.take(listed);
            if self.report.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn listed(&mut self, directory: &FilePath, entry: &Entry) {
        if !self.arguments.json {
            return self.line(&entry.name, &entry.info);
        }
        let path = format!("{directory}/{}", crate::location::encode(&entry.name));
        let line = FileDescription::new(&path, &entry.info).line();
        self.lines.line(&line);
    }

    fn entry(&mut self, path: &FilePath, name: &str, info: &FileInfo) {
        if self.arguments.json {
            let line = FileDescription::new(&path.to_string(), info).line();
            return self.lines.line(&line);
        }
        self.line(name, info);
    }

    fn line(&mut self, name: &str, info: &FileInfo) {
        match self.arguments.long {
            true => self
                .lines
                .line(&long_line(name, info, &self.arguments.sizes)),
            false => self.lines.line(&short_line(name, info)),
        }
    }
}
