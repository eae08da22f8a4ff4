//! The arguments of `smbeam bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::connect::ConnectArguments;
use crate::format::parse_size;
use crate::location::Url;

/// Measure a server. Makes a directory of its own below the URL and removes it at the end.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What to do.
    #[arg(value_enum)]
    pub(crate) workload: Workload,
    /// A directory that may be written to; not with --compare.
    #[arg(required_unless_present = "compare", conflicts_with = "compare")]
    #[arg(value_name = "URL")]
    pub(crate) url: Option<Url>,
    /// Run two servers, A B A B, and print the ratios with their spread.
    #[arg(long, num_args = 2, value_names = ["URL_A", "URL_B"])]
    pub(crate) compare: Option<Vec<Url>>,
    /// Pairs of runs with --compare.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Sessions, each on connections of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,
    /// Files of each session.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) files: u32,
    /// Bytes of all files of a session together: the working set.
    #[arg(long, default_value = "1G", value_parser = working_set)]
    pub(crate) size: u64,
    /// Seconds that a run takes.
    #[arg(long, default_value = "10", value_parser = seconds)]
    pub(crate) time: f64,
    /// Operations at random places instead of one after the other.
    #[arg(long)]
    pub(crate) random: bool,
    /// Of a hundred operations of `rw`, how many read.
    #[arg(long, default_value_t = 70, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) reads: u8,
    /// Check every byte that is read.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Read everything once before the run (the default).
    #[arg(long, conflicts_with = "cold")]
    pub(crate) warm: bool,
    /// Empty the page cache of this host before the run: for a server that runs here, as root.
    #[arg(long)]
    pub(crate) cold: bool,
    /// Exactly what smbtorture's smb2.bench.read does: every request in flight reads the start of
    /// a file of its own, which is one hole.
    #[arg(long, conflicts_with_all = ["random", "verify", "files", "size", "cold"])]
    pub(crate) torture: bool,
    /// Runs every depth and number of channels up to those given, in powers of two, and draws them.
    #[arg(long, value_name = "SVG", conflicts_with = "compare")]
    pub(crate) plot: Option<PathBuf>,
    /// One line of JSON for each run.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// One line of comma-separated values for each run, below one of names.
    #[arg(long)]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArguments,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Read files.
    Read,
    /// Overwrite files.
    Write,
    /// Read and overwrite files.
    Rw,
    /// Create, look at and remove empty files.
    Meta,
    /// Ask whether the server is there.
    Echo,
    /// Connect, log in and leave.
    Connect,
}

impl Workload {
    /// As it is spelt on the command line.
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

    /// Whether it moves the data of files.
    pub(crate) fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Rw)
    }
}

/// A number of bytes, more than none.
fn working_set(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("want at least one byte".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A time in seconds, perhaps with a fraction.
fn seconds(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .trim_end_matches('s')
        .parse()
        .map_err(|_| format!("`{text}` is no time"))?;
    if number > 0.0 && number <= 86_400.0 {
        Ok(number)
    } else {
        Err("more than nothing and at most a day".to_owned())
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
