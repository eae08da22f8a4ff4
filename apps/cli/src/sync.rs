//! `smbeam sync`: make a directory what another one is, with as little work as possible.

use std::time::Duration;

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::FilePath;
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::progress::{OutputArguments, Progress};
use crate::report::Report;
use crate::transfer::{Compare, Item, Policy, Transfer, TransferArguments};

/// The finest step of a time that SMB has: 100 ns. \[MS-DTYP\] 2.3.3
const FINEST: Duration = Duration::from_nanos(100);

/// What to make the same.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory as it should be, or a file.
    #[arg(value_name = "SOURCE")]
    source: Location,
    /// The directory (or file) that becomes like it; at least one of the two is on a server.
    #[arg(value_name = "TARGET")]
    target: Location,
    /// Compare the bytes of files of the same size; otherwise their times tell.
    #[arg(short = 'c', long, conflicts_with = "modify_window")]
    checksum: bool,
    /// Seconds that times may differ and still be taken for the same.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_seconds)]
    modify_window: Duration,
    /// Remove from the target what the source does not have.
    #[arg(long)]
    delete: bool,
    /// Do nothing, say what would be done.
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Do not keep times. The next sync will find that they differ.
    #[arg(long)]
    no_preserve: bool,
    #[command(flatten)]
    transfer: TransferArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    connect: ConnectArguments,
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "want a number of seconds, such as 0 or 2".into())
}

impl Arguments {
    fn policy(&self) -> Policy {
        let compare = match self.checksum {
            true => Compare::Contents,
            false => Compare::SizeAndTime(self.modify_window.max(FINEST)),
        };
        Policy {
            compare,
            delete: self.delete,
            dry_run: self.dry_run,
            ..self.transfer.policy(!self.no_preserve, &self.connect)
        }
    }
}

/// Runs `smbeam sync`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    let item = match item(arguments, &connector) {
        Ok(item) => item,
        Err(failure) => return report.failed(&failure),
    };
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return report.failed(&Failure::local("signals", &error)),
    };
    let progress = Progress::start(arguments.output, report);
    Transfer::new(arguments.policy(), report, &progress, &interrupt).run(vec![item]);
    progress.finish(report);
}

fn item(arguments: &Arguments, connector: &Connector) -> Outcome<Item> {
    if let (Location::Local(_), Location::Local(_)) = (&arguments.source, &arguments.target) {
        let reason = "neither source nor target is on a server";
        return Err(Failure::usage(&arguments.target, reason));
    }
    let source = connector.resolve(&arguments.source)?;
    let target = connector.resolve(&arguments.target)?;
    let info = source.info(true)?;
    if let (FilePath::Remote(source), FilePath::Remote(target)) = (&source, &target)
        && (source.contains(target) || target.contains(source))
    {
        return Err(Failure::usage(
            target,
            "one of the directories is in the other",
        ));
    }
    let old = target.lookup(true)?;
    if let Some(old) = old
        && old.is_directory() != info.is_directory()
    {
        let what = old.kind.name();
        let reason = format!("there is a {what} of this name");
        return Err(Failure::new(Exit::Exists, target, reason));
    }
    if info.is_directory() && old.is_none() && !arguments.dry_run {
        target.create_directories()?;
    }
    Ok(Item {
        source,
        info,
        target,
    })
}
