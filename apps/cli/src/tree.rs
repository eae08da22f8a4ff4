//! `smbeam tree`: a folder and all that is below it, as a picture.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::short_line;
use crate::exit::{Failure, Outcome, Report};
use crate::format;
use crate::location::Url;
use crate::output::Lines;
use crate::place::{Detail, Entry, Place};

/// Folders within folders. A server can pretend to have any number.
const MAX_DEPTH: u32 = 512;

/// What to draw.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder.
    #[arg(value_name = "URL")]
    url: Url,
    /// So many levels only.
    #[arg(short = 'L', long, value_name = "N")]
    level: Option<u32>,
    /// Folders only.
    #[arg(short, long)]
    directories: bool,
    /// Sizes as well.
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
        folders: 0,
        files: 0,
    };
    let drawn = Connector::new(&arguments.connect)
        .place_of(&arguments.url)
        .and_then(|place| drawing.root(&place));
    report.take(drawn);
}

struct Drawing<'a> {
    arguments: &'a Arguments,
    report: &'a Report,
    lines: Lines,
    folders: u64,
    files: u64,
}

impl Drawing<'_> {
    fn root(&mut self, place: &Place) -> Outcome {
        self.lines.line(place);
        self.folder(place, &mut String::new(), 1)?;
        self.lines.line(&format_args!(
            "\n{}, {}",
            format::count(self.folders, "folder"),
            format::count(self.files, "file")
        ));
        Ok(())
    }

    fn folder(&mut self, place: &Place, before: &mut String, depth: u32) -> Outcome {
        if depth > self.arguments.level.unwrap_or(MAX_DEPTH).min(MAX_DEPTH) {
            return Ok(());
        }
        let mut entries = Vec::new();
        let only_folders = self.arguments.directories;
        place.list(Detail::Brief, &mut |entry| {
            match entry {
                Ok(entry) if only_folders && !entry.facts.is_folder() => {}
                Ok(entry) => entries.push(entry),
                Err(failure) => self.report.failed(&failure),
            }
            true
        })?;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let count = entries.len();
        for (index, entry) in entries.into_iter().enumerate() {
            self.entry(place, &entry, before, index + 1 == count, depth);
            if self.report.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn entry(&mut self, place: &Place, entry: &Entry, before: &mut String, last: bool, depth: u32) {
        let (branch, more) = match last {
            true => ("`-- ", "    "),
            false => ("|-- ", "|   "),
        };
        let size = match self.arguments.size && !entry.facts.is_folder() {
            true => format!("[{}]  ", format::size(entry.facts.size)),
            false => String::new(),
        };
        let name = short_line(&entry.name, &entry.facts);
        self.lines
            .line(&format_args!("{before}{branch}{size}{name}"));
        if !entry.facts.is_folder() {
            self.files += 1;
            return;
        }
        self.folders += 1;
        let length = before.len();
        before.push_str(more);
        let drawn = match place.listed(&entry.name) {
            Ok(below) => self.folder(&below, before, depth + 1),
            Err(error) => Err(Failure::name(place, error)),
        };
        before.truncate(length);
        self.report.take(drawn);
    }
}
