//! `smbeam sync`: makes the target equal to the source and transfers only the differences.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::FilePath;
use crate::interrupt::Interrupt;
use crate::progress::{OutputArguments, Progress};
use crate::report::Report;
use crate::transfer::{CompareArguments, Item, Policy, Transfer, TransferArguments, relative};

/// Arguments of `smbeam sync`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    trees: CompareArguments,
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

impl Arguments {
    fn policy(&self) -> Outcome<Policy> {
        Ok(Policy {
            compare: self.trees.compare(),
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
    let (source, target) = arguments.trees.resolve(connector)?;
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
        relative: relative(&source, info.is_directory()),
        source,
        info,
        target,
    })
}
