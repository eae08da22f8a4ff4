//! `smbeam bench`: measures the throughput, latency and CPU cost of a server.
//!
//! A run reads and writes real data. Its report states the size of the working set, and the CPU
//! time of an operation for client and server.

mod ai;
mod blocks;
mod compare;
mod cpu;
mod options;
mod pattern;
mod plot;
mod record;
mod report;
mod run;
mod session_factory;
mod setting;
mod test_files;

use clap::Args;
use smbeam_client::Channels;

use crate::connect::ConnectArguments;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::location::Url;
use crate::output::note_text;
use crate::report::Report as ExitReport;
pub(crate) use options::Arguments;
use report::Report;
pub(crate) use run::measure;
pub(crate) use session_factory::SessionFactory;
pub(crate) use setting::Setting;
pub(crate) use test_files::TestFiles;

/// Operations in flight per session if `--depth` is not given, for all transports.
const DEPTH: usize = 16;

/// Arguments of `smbeam bench`: those of a run, or the subcommand for AI workloads.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Bench {
    #[command(subcommand)]
    subcommand: Option<Subcommand>,
    #[command(flatten)]
    arguments: Arguments,
}

/// The subcommands of `smbeam bench`.
#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Measure storage for AI training with the workloads of MLPerf Storage.
    #[command(subcommand)]
    Ai(ai::Command),
}

/// Runs `smbeam bench`.
pub(crate) fn run(bench: &Bench, exit_report: &ExitReport) {
    match &bench.subcommand {
        Some(Subcommand::Ai(command)) => exit_report.take(ai::run(command)),
        None => exit_report.take(self::bench(&bench.arguments)),
    }
}

fn bench(arguments: &Arguments) -> Outcome {
    let connect = &arguments.connect;
    let setting = Setting {
        io_size: connect.io_size.unwrap_or(smbeam_client::REQUEST_BYTES),
        depth: connect.depth.map_or(DEPTH, |depth| depth as usize),
        channels: connect.channels.clone(),
    };
    match (&arguments.compare, &arguments.url) {
        (Some(urls), _) => run_two(arguments, &setting, connect, [&urls[0], &urls[1]]),
        (None, Some(url)) => run_one(arguments, &setting, connect, url),
        (None, None) => unreachable!("one of them is required"),
    }
}

/// Converts an error of a run into a failure for its URL.
fn failed(url: &Url, error: &anyhow::Error) -> Failure {
    match error.downcast_ref::<smbeam_client::Error>() {
        Some(error) => crate::client_failure::failure_of(url, error),
        None => Failure::new(Exit::Failed, url.to_string(), format!("{error:#}")),
    }
}

/// Runs the workload against one server: once, or once per setting if `--plot` is given.
fn run_one(
    arguments: &Arguments,
    largest: &Setting,
    connect: &ConnectArguments,
    url: &Url,
) -> Outcome {
    let settings = match arguments.plot {
        Some(_) => steps(largest),
        None => vec![largest.clone()],
    };
    let mut reports = Vec::with_capacity(settings.len());
    for setting in &settings {
        let factory = SessionFactory::new(connect, url, setting.channels.clone())?;
        let report = run::run(arguments, setting, &factory).map_err(|error| failed(url, &error))?;
        print(arguments, &report, reports.is_empty());
        reports.push(report);
    }
    match &arguments.plot {
        Some(path) => plot::draw(path, &reports).map_err(|error| failed(url, &error)),
        None => Ok(()),
    }
}

/// Runs the workload against two servers in turn (A B A B).
fn run_two(
    arguments: &Arguments,
    setting: &Setting,
    connect: &ConnectArguments,
    urls: [&Url; 2],
) -> Outcome {
    let [first, second] =
        urls.map(|url| SessionFactory::new(connect, url, setting.channels.clone()));
    let (first, second) = (first?, second?);
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        let run = |factory: &SessionFactory| {
            let report = run::run(arguments, setting, factory);
            report.map_err(|error| failed(&factory.url, &error))
        };
        let pair = (run(&first)?, run(&second)?);
        if arguments.json || arguments.csv {
            print(arguments, &pair.0, rounds.is_empty());
            print(arguments, &pair.1, false);
        }
        rounds.push(pair);
    }
    let table = compare::table(&rounds);
    if arguments.json || arguments.csv {
        note_text(&table);
    } else {
        print!("{table}");
    }
    Ok(())
}

fn print(arguments: &Arguments, report: &Report, is_first: bool) {
    if arguments.json {
        println!("{}", report.json());
    } else if arguments.csv {
        if is_first {
            println!("{}", Report::CSV_HEADER);
        }
        println!("{}", report.csv());
    } else {
        println!("{}", report.table());
    }
}

/// Every combination of depth and number of channels up to the largest, in powers of two.
fn steps(largest: &Setting) -> Vec<Setting> {
    let channels = match &largest.channels {
        named @ (Channels::Auto | Channels::Over(_)) => vec![named.clone()],
        Channels::Exactly(most) => powers(*most).into_iter().map(Channels::Exactly).collect(),
    };
    let depths = powers(largest.depth);
    let pairs = channels.into_iter().flat_map(|channels| {
        let depths = depths.iter();
        depths.map(move |depth| (channels.clone(), *depth))
    });
    let settings = pairs.map(|(channels, depth)| Setting {
        depth,
        channels,
        io_size: largest.io_size,
    });
    settings.collect()
}

/// The powers of two below `last`, and `last`.
fn powers(last: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1), |power: &usize| power.checked_mul(2));
    let mut powers: Vec<usize> = doubled.take_while(|power| *power < last).collect();
    powers.push(last.max(1));
    powers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_goes_up_in_powers_of_two_to_the_largest() {
        assert_eq!(powers(1), [1]);
        assert_eq!(powers(6), [1, 2, 4, 6]);
        let mut largest = Setting {
            io_size: 4096,
            depth: 4,
            channels: Channels::Exactly(2),
        };
        assert_eq!(steps(&largest).len(), 6);
        largest.channels = Channels::Auto;
        assert_eq!(steps(&largest).len(), 3);
    }
}
