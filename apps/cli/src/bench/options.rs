//! The arguments of `smbeam bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use smbeam_profile::parse_size;

use crate::connect::ConnectArguments;
use crate::location::Url;

/// Measure the speed of a server: throughput, latency and CPU cost. The bench creates a directory
/// below the URL and removes it at the end.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What to measure.
    #[arg(value_enum, required = true)]
    workload: Option<Workload>,
    /// A writable directory on the server. Not with --compare.
    #[arg(required_unless_present = "compare", conflicts_with = "compare")]
    #[arg(value_name = "URL", value_parser = crate::location::url)]
    pub(crate) url: Option<Url>,
    /// Measure two servers in turn (A B A B), and print the ratios with their spread.
    #[arg(long, num_args = 2, value_names = ["URL_A", "URL_B"])]
    #[arg(value_parser = crate::location::url)]
    pub(crate) compare: Option<Vec<Url>>,
    /// Number of pairs of runs with --compare.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Number of sessions. Each has its own connections.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,
    /// Number of files per session.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) files: u32,
    /// Size of all files of a session together (the working set).
    #[arg(long, default_value = "1G", value_parser = working_set)]
    pub(crate) size: u64,
    /// Duration of a run in seconds.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) time: f64,
    /// Use random offsets instead of sequential ones.
    #[arg(long)]
    pub(crate) random: bool,
    /// Percentage of operations that read, for the workload `rw`.
    #[arg(long, default_value_t = 70, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) reads: u8,
    /// Check every byte that is read.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Read all files once before the run (the default).
    #[arg(long, conflicts_with = "cold")]
    pub(crate) warm: bool,
    /// Empty the page cache of this machine before the run. Only for a server on this machine, as
    /// root.
    #[arg(long)]
    pub(crate) cold: bool,
    /// Repeat smbtorture's smb2.bench.read: each request in flight reads the start of its own
    /// sparse file.
    #[arg(long, conflicts_with_all = ["random", "verify", "files", "size", "cold"])]
    pub(crate) torture: bool,
    /// Run every combination of depth and channels up to the given ones, in powers of two, and draw
    /// the results into this SVG file.
    #[arg(long, value_name = "SVG", conflicts_with = "compare")]
    pub(crate) plot: Option<PathBuf>,
    /// Print one line of JSON per run.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print one line of comma-separated values per run, after a header line.
    #[arg(long)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
}

impl Arguments {
    /// Reads of one file of `size` bytes, for `time` seconds, without output.
    pub(crate) fn reading(connect: &ConnectArguments, size: u64, time: f64) -> Self {
        Self {
            workload: Some(Workload::Read),
            url: None,
            compare: None,
            rounds: 1,
            connections: 1,
            files: 1,
            size,
            time,
            random: false,
            reads: 100,
            verify: false,
            warm: true,
            cold: false,
            torture: false,
            plot: None,
            json: true,
            csv: false,
            connect: connect.clone(),
        }
    }

    /// What to measure.
    pub(crate) fn workload(&self) -> Workload {
        self.workload.expect("a run requires a workload")
    }
}

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Read files.
    Read,
    /// Overwrite files.
    Write,
    /// Read and overwrite files.
    Rw,
    /// Create, query and remove empty files.
    Meta,
    /// Send ECHO requests (round trips without file access).
    Echo,
    /// Connect, log in and log off.
    Connect,
}

impl Workload {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Rw => "rw",
            Self::Meta => "meta",
            Self::Echo => "echo",
            Self::Connect => "connect",
        }
    }

    /// Whether the workload transfers file data.
    pub(crate) fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Rw)
    }
}

/// Parses a number of bytes greater than 0.
fn working_set(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("expected at least one byte".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Parses a number of seconds, which can have a fraction.
fn seconds(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .trim_end_matches('s')
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds"))?;
    if number > 0.0 && number <= 86_400.0 {
        Ok(number)
    } else {
        Err("expected more than 0 and at most 86400 seconds".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_set_is_not_empty() {
        assert_eq!(working_set("64K"), Ok(65_536));
        assert!(working_set("0").is_err());
        assert!(working_set("1Q").is_err());
    }

    #[test]
    fn times_are_bounded() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        assert_eq!(seconds("3s"), Ok(3.0));
        assert!(seconds("0").is_err());
        assert!(seconds("-1").is_err());
        assert!(seconds("NaN").is_err());
    }
}
