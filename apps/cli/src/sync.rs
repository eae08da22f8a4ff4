//! `smbeam sync`: makes the target equal to the source and transfers only the differences.

use std::path::PathBuf;
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

/// The resolution of times in SMB: 100 ns. \[MS-DTYP\] 2.3.3
pub(crate) const TIME_RESOLUTION: Duration = Duration::from_nanos(100);

/// Arguments of `smbeam sync`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The source: a directory or a file.
    #[arg(value_name = "SOURCE")]
    source: Location,
    /// The target, which becomes equal to the source. Source or target must be on a server.
    #[arg(value_name = "TARGET")]
    target: Location,
    /// Compare the contents of files of equal size, instead of their times.
    #[arg(short = 'c', long, conflicts_with = "modify_window")]
    checksum: bool,
    /// Treat times that differ by at most this many seconds as equal.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_seconds)]
    modify_window: Duration,
    /// Remove files and directories from the target that the source does not have.
    #[arg(long)]
    delete: bool,
    /// Stop before more than this number of files and directories is removed (exit code 13).
    #[arg(long, value_name = "N", requires = "delete")]
    max_delete: Option<u64>,
    /// Change nothing. Print each action that a sync would do, and the total.
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Do not set the times of files. The next sync then transfers them again.
    #[arg(long, conflicts_with = "archive")]
    no_preserve: bool,
    #[command(flatten)]
    transfer: TransferArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    connect: ConnectArguments,
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "want a number of seconds, such as 0 or 2".into())
}

impl Arguments {
    fn policy(&self) -> Outcome<Policy> {
        let compare = match self.checksum {
            true => Compare::Contents,
            false => Compare::SizeAndTime(self.modify_window.max(TIME_RESOLUTION)),
        };
        Ok(Policy {
            compare,
            delete: self.delete,
            max_delete: self.max_delete,
            dry_run: self.dry_run,
            ..self.transfer.policy(!self.no_preserve, &self.connect)?
        })
    }
}

/// Runs `smbeam sync`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.print_json(arguments.output.json());
    let names = arguments.transfer.names();
    let connector = Connector::new(&arguments.connect)
        .local_names(names)
        .reconnect(arguments.transfer.reconnect());
    let prepared = arguments.policy().and_then(|policy| {
        let item = item(arguments, &connector)?;
        let backup = arguments.transfer.backup(&connector, &item.target)?;
        Ok((policy, item, backup))
    });
    let (policy, item, backup) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return report.failed(&failure),
    };
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return report.failed(&Failure::local("signals", &error)),
    };
    let progress = match arguments.dry_run {
        true => Progress::dry_run(arguments.output),
        false => Progress::start(arguments.output, &arguments.connect.log, report),
    };
    Transfer::new(policy, report, &progress, &interrupt)
        .with_backup(backup)
        .run(vec![item]);
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
            "source and target overlap: one directory is in the other",
        ));
    }
    let old = target.lookup(true)?;
    if let Some(old) = old
        && old.is_directory() != info.is_directory()
    {
        let what = old.kind.name();
        let reason = format!("a {what} with this name exists already");
        return Err(Failure::new(Exit::Exists, target, reason));
    }
    if info.is_directory() && old.is_none() && !arguments.dry_run {
        target.create_directories()?;
    }
    Ok(Item {
        relative: match info.is_directory() {
            true => PathBuf::new(),
            false => source.relative(),
        },
        source,
        info,
        target,
    })
}
