//! `smbeam ls`: what is in a folder.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::{Described, long_line, short_line};
use crate::exit::{Outcome, Report};
use crate::format::SizeArguments;
use crate::location::Url;
use crate::output::Lines;
use crate::place::{Detail, Entry, Facts, Found, Place};

/// Entries that are kept to be sorted. A folder with more is listed in the server's order.
const MAX_SORTED: usize = 1 << 20;
/// Folders within folders. A server can pretend to have any number.
const MAX_DEPTH: u32 = 512;

/// What to list.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Folders or files; `*` and `?` in the last component stand for any characters, or one.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    /// Attributes, size and time of last write as well.
    #[arg(short, long)]
    long: bool,
    /// Folders in folders as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    sizes: SizeArguments,
    /// In the server's order, as entries come.
    #[arg(long)]
    unsorted: bool,
    /// The folder itself, not what is in it.
    #[arg(short, long)]
    directory: bool,
    /// An object of JSON in each line.
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
    fn list(&mut self, found: &Found, has_titles: bool) -> Outcome {
        let facts = found.facts()?;
        let place = &found.place;
        if facts.is_folder() && !self.arguments.directory {
            return self.folder(place, has_titles, 0);
        }
        let name = place.name().unwrap_or_else(|| ".".into());
        self.entry(place, &name, &facts);
        Ok(())
    }

    fn folder(&mut self, place: &Place, has_titles: bool, depth: u32) -> Outcome {
        let is_plain = !self.arguments.json;
        if has_titles && is_plain {
            self.lines.line(&format_args!("{place}:"));
        }
        let mut folders = Vec::new();
        let mut sorted = Vec::new();
        let mut keeps = !self.arguments.unsorted;
        place.list(Detail::of(self.arguments.json), &mut |entry| {
            match entry {
                Ok(entry) => {
                    if self.arguments.recursive && entry.facts.is_folder() {
                        folders.push(entry.name.clone());
                    }
                    match keeps {
                        true => sorted.push(entry),
                        false => self.listed(place, &entry),
                    }
                    keeps &= sorted.len() < MAX_SORTED;
                }
                Err(failure) => self.report.failed(&failure),
            }
            true
        })?;
        sorted.sort_by(|one, other| one.name.cmp(&other.name));
        for entry in &sorted {
            self.listed(place, entry);
        }
        drop(sorted);
        folders.sort();
        self.below(place, &folders, depth)
    }

    fn below(&mut self, place: &Place, folders: &[String], depth: u32) -> Outcome {
        if depth == MAX_DEPTH {
            return Ok(());
        }
        for name in folders {
            let listed = match place.listed(name) {
                Ok(below) => {
                    if !self.arguments.json {
                        self.lines.line(&"");
                    }
                    self.folder(&below, true, depth + 1)
                }
                Err(error) => Err(crate::exit::Failure::name(place, error)),
            };
            self.report.take(listed);
            if self.report.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn listed(&mut self, folder: &Place, entry: &Entry) {
        if !self.arguments.json {
            return self.line(&entry.name, &entry.facts);
        }
        let path = format!("{folder}/{}", crate::location::encode(&entry.name));
        let line = Described::new(&path, &entry.facts).line();
        self.lines.line(&line);
    }

    fn entry(&mut self, place: &Place, name: &str, facts: &Facts) {
        if self.arguments.json {
            let line = Described::new(&place.to_string(), facts).line();
            return self.lines.line(&line);
        }
        self.line(name, facts);
    }

    fn line(&mut self, name: &str, facts: &Facts) {
        match self.arguments.long {
            true => self
                .lines
                .line(&long_line(name, facts, &self.arguments.sizes)),
            false => self.lines.line(&short_line(name, facts)),
        }
    }
}
