//! `smbeam bench ai`: the workloads of MLPerf Storage, without Python and without accelerators.
//!
//! A run emulates the training loop of DLIO and computes the utilization of the accelerators by the
//! same formulas. The storage is a path, or a server that the client of smbeam reaches without a
//! mount. Sources: the rules and configuration files of mlcommons/storage, and DLIO.

mod checkpoint;
mod checkpoint_command;
mod datagen;
mod dataset;
mod datasize;
mod datasize_command;
mod format;
mod host;
mod live;
mod loader;
mod model;
mod options;
mod order;
mod publish;
mod report;
mod result;
mod search;
mod sizes;
mod store;
mod train;
mod train_command;
mod usage;
mod utilization;
mod workload;

use crate::failure::{Failure, Outcome};
use crate::format::{count, measured_rate, size};
use crate::output::line;
use dataset::Layout;
pub(crate) use options::Command;
use options::{DatagenArguments, ReportArguments};
use publish::{failed, write_html};
use result::BenchResult;
use store::Store;

/// Runs `smbeam bench ai`.
pub(crate) fn run(command: &Command) -> Outcome {
    match command {
        Command::Datasize(arguments) => datasize_command::run(arguments),
        Command::Datagen(arguments) => datagen(arguments),
        Command::Train(arguments) => train_command::run(arguments),
        Command::Checkpoint(arguments) => checkpoint_command::run(arguments),
        Command::Report(arguments) => compare(arguments),
        Command::Schema => {
            line(&format_args!("{:#}", result::schema()));
            Ok(())
        }
    }
}

fn datagen(arguments: &DatagenArguments) -> Outcome {
    let store = Store::open(&arguments.location, &arguments.connect)?;
    let layout = Layout {
        workload: arguments.workload,
        files: arguments.files,
    };
    let generated = datagen::generate(&store, layout, arguments.scale, arguments.jobs)
        .map_err(|error| failed(&arguments.location, &error))?;
    let rate = measured_rate(generated.bytes as f64 / generated.seconds.max(1e-6));
    line(&format_args!(
        "{} with {} in {:.1} s ({rate})",
        count(generated.files, "file"),
        size(generated.bytes),
        generated.seconds
    ));
    Ok(())
}

fn compare(arguments: &ReportArguments) -> Outcome {
    let results = arguments.results.iter().map(|path| {
        let subject = path.display();
        let text = std::fs::read(path).map_err(|error| Failure::local(&subject, &error))?;
        let result: BenchResult = serde_json::from_slice(&text)
            .map_err(|error| Failure::usage(&subject, format!("not a result: {error}")))?;
        match result.version {
            result::VERSION => Ok(result),
            other => Err(Failure::usage(&subject, format!("unknown version {other}"))),
        }
    });
    let results = results.collect::<Outcome<Vec<BenchResult>>>()?;
    line(&report::table(&results).trim_end());
    match &arguments.html {
        Some(path) => write_html(path, &results),
        None => Ok(()),
    }
}
