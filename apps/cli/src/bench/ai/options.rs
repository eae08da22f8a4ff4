//! The arguments of `smbeam bench ai`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::model::ModelName;
use super::workload::{Accelerator, Round, Workload};
use crate::connect::ConnectArguments;
use crate::location::Location;
use smbeam_profile::parse_size;

/// Largest number of accelerators.
pub(crate) const ACCELERATORS_MAX: u64 = 1024;
/// Largest number of reading threads of an accelerator: `MAX_READ_THREADS` of the rules.
const WORKERS_MAX: i64 = 32;

/// Measure storage for AI training with the workloads of MLPerf Storage.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the number of files that the rules require.
    Datasize(DatasizeArguments),
    /// Generate the files of a workload.
    Datagen(Box<DatagenArguments>),
    /// Train with emulated accelerators: utilization and throughput.
    Train(Box<TrainArguments>),
    /// Write and read checkpoints of a large language model.
    Checkpoint(Box<CheckpointArguments>),
    /// Compare results side by side, and write an HTML page with charts.
    Report(ReportArguments),
    /// Print the JSON schema of results.
    Schema,
}

/// Arguments of `smbeam bench ai datasize`.
#[derive(Debug, Args)]
pub(crate) struct DatasizeArguments {
    /// The model to train.
    #[arg(long, value_enum)]
    pub(crate) workload: Workload,
    /// The accelerator to emulate [default: the first one of the workload].
    #[arg(long, value_enum)]
    pub(crate) accelerator: Option<Accelerator>,
    /// Number of accelerators.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = accelerators())]
    pub(crate) accelerators: u64,
    /// Memory of each client [default: the memory of this machine].
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) client_memory: Option<u64>,
    /// Number of clients.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) clients: u32,
    /// Length of the samples relative to that of the workload.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = scale)]
    pub(crate) scale: f64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `smbeam bench ai datagen`.
#[derive(Debug, Args)]
pub(crate) struct DatagenArguments {
    /// The directory for the data: a path or a URL. The files go to WORKLOAD/train below it.
    pub(crate) location: Location,
    /// The model to train.
    #[arg(long, value_enum)]
    pub(crate) workload: Workload,
    /// Number of files: see `smbeam bench ai datasize`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    pub(crate) files: u64,
    /// Length of the samples relative to that of the workload.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = scale)]
    pub(crate) scale: f64,
    /// Threads that generate files.
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) jobs: u32,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
}

/// Arguments of `smbeam bench ai train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    /// The directory with the data: a path, also on a mount, or a URL.
    pub(crate) location: Location,
    /// The model to train.
    #[arg(long, value_enum)]
    pub(crate) workload: Workload,
    /// The accelerator to emulate [default: the first one of the workload].
    #[arg(long, value_enum)]
    pub(crate) accelerator: Option<Accelerator>,
    /// Number of accelerators, or `max` to search the largest number that reaches the target.
    #[arg(long, value_name = "N|max", default_value = "1", value_parser = count)]
    pub(crate) accelerators: Count,
    /// Reading threads of each accelerator [default: that of the workload].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=WORKERS_MAX))]
    pub(crate) workers: Option<u32>,
    /// Batches that the workers of an accelerator read ahead.
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1024))]
    pub(crate) prefetch: u32,
    /// The round of MLPerf Storage that defines the formula of the throughput [default: that of the
    /// accelerator].
    #[arg(long, value_enum)]
    pub(crate) round: Option<Round>,
    /// Length of the samples relative to that of the workload, for files of other generators. The
    /// computation is scaled as well, so that the bytes per second stay.
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    pub(crate) scale: Option<f64>,
    /// Computation of a step [default: that of the accelerator, times the scale].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) computation_time: Option<f64>,
    /// Epochs of each run [default: those of the workload; 1 while searching].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) epochs: Option<u32>,
    /// Largest number of steps per epoch [default: as many as there are files].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Seed of the order of samples.
    #[arg(long, default_value_t = 123)]
    pub(crate) seed: u64,
    /// Bypass the page cache of a path (O_DIRECT). The samples are not verified then.
    #[arg(long)]
    pub(crate) direct: bool,
    /// Do not verify the checksums of the samples.
    #[arg(long)]
    pub(crate) no_decode: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
}

/// Arguments of `smbeam bench ai checkpoint`.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArguments {
    /// The directory for the checkpoints: a path, also on a mount, or a URL.
    pub(crate) location: Location,
    /// The model.
    #[arg(long, value_enum, default_value = "llama3-8b")]
    pub(crate) model: ModelName,
    /// Ranks that take part, and ranks of the model: `8` or `8/64` [default: all].
    #[arg(long, value_name = "K[/N]", value_parser = ranks)]
    pub(crate) ranks: Option<Ranks>,
    /// Number of parameters relative to that of the model.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = scale)]
    #[arg(conflicts_with_all = ["layers", "hidden", "ffn"])]
    pub(crate) scale: f64,
    /// Number of layers instead of that of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) layers: Option<u64>,
    /// Hidden size instead of that of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(256..=1 << 20))]
    pub(crate) hidden: Option<u64>,
    /// Hidden size of the feed-forward layers instead of that of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(256..=1 << 20))]
    pub(crate) ffn: Option<u64>,
    /// Checkpoints to write. 0 reads existing ones.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) writes: u32,
    /// Checkpoints to read. 0 only writes.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1000))]
    pub(crate) reads: u32,
    /// Do not flush the files to stable storage.
    #[arg(long)]
    pub(crate) no_fsync: bool,
    /// Bypass the page cache of a path (O_DIRECT).
    #[arg(long)]
    pub(crate) direct: bool,
    /// Pause before each checkpoint. The rules require 5 seconds.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = pause)]
    pub(crate) pause: f64,
    /// Empty the page cache of this machine before the first read. As root.
    #[arg(long)]
    pub(crate) drop_caches: bool,
    /// Leave the checkpoints in the directory.
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
}

/// Arguments of `smbeam bench ai report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Files with results, written with --json. Results with the same label are one column.
    #[arg(required = true, value_name = "JSON")]
    pub(crate) results: Vec<PathBuf>,
    /// Write an HTML page with charts to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Options for the result.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Name of the storage in reports [default: smb, or the type of the file system].
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,
    /// Write the result as JSON to this file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write an HTML page with charts to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// A number of accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Exactly(u64),
    Max,
}

fn accelerators() -> impl clap::builder::TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(1..=ACCELERATORS_MAX)
}

fn count(text: &str) -> Result<Count, String> {
    if text == "max" {
        return Ok(Count::Max);
    }
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=ACCELERATORS_MAX).contains(number));
    let number = number.map(Count::Exactly);
    number.ok_or_else(|| format!("expected a number from 1 to {ACCELERATORS_MAX}, or max"))
}

/// Ranks that take part in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranks {
    pub(crate) taking_part: u64,
    /// Ranks of the model, as the user expects them.
    pub(crate) of: Option<u64>,
}

fn ranks(text: &str) -> Result<Ranks, String> {
    let (taking_part, of) = match text.split_once('/') {
        Some((taking_part, of)) => (taking_part, Some(of)),
        None => (text, None),
    };
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
    let wanted = || "expected K or K/N, such as 8/64".to_owned();
    let taking_part = number(taking_part).ok_or_else(wanted)?;
    let of = of.map(|of| number(of).ok_or_else(wanted)).transpose()?;
    Ok(Ranks { taking_part, of })
}

fn scale(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|scale: &f64| *scale >= 1e-6 && *scale <= 16.0);
    number.ok_or_else(|| "expected a factor from 0.000001 to 16, such as 0.1".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    pause(text).and_then(|seconds| match seconds > 0.0 {
        true => Ok(seconds),
        false => Err("expected more than 0 seconds".to_owned()),
    })
}

fn pause(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('s').parse().ok();
    let number = number.filter(|seconds: &f64| *seconds >= 0.0 && *seconds <= 3600.0);
    number.ok_or_else(|| "expected 0 to 3600 seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_ranks_are_bounded() {
        assert_eq!(count("max"), Ok(Count::Max));
        assert_eq!(count("15"), Ok(Count::Exactly(15)));
        assert!(count("0").is_err() && count("1025").is_err() && count("all").is_err());
        let expected = Ranks {
            taking_part: 8,
            of: Some(64),
        };
        assert_eq!(ranks("8/64"), Ok(expected));
        assert_eq!(ranks("8").map(|ranks| ranks.of), Ok(None));
        assert!(ranks("0").is_err() && ranks("8/").is_err() && ranks("/8").is_err());
    }

    #[test]
    fn factors_and_seconds_are_numbers_in_range() {
        assert_eq!(scale("0.1"), Ok(0.1));
        assert!(scale("0").is_err() && scale("NaN").is_err() && scale("100").is_err());
        assert_eq!(seconds("0.5s"), Ok(0.5));
        assert!(seconds("0").is_err() && pause("-1").is_err() && pause("inf").is_err());
        assert_eq!(pause("0"), Ok(0.0));
    }
}
