//! The arguments of sync and check: two trees, and how their files are compared.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::policy::Compare;
use crate::connect::Connector;
use crate::failure::{Failure, Outcome};
use crate::file_path::FilePath;
use crate::location::Location;

/// The resolution of times in SMB: 100 ns. \[MS-DTYP\] 2.3.3
const TIME_RESOLUTION: Duration = Duration::from_nanos(100);

/// Two trees to compare.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompareArguments {
    /// The source: a directory or a file.
    #[arg(value_name = "SOURCE")]
    source: Location,
    /// The target: a directory or a file. Source or target must be on a server.
    #[arg(value_name = "TARGET")]
    target: Location,
    /// Compare the contents of files of equal size, instead of their times.
    #[arg(short = 'c', long, conflicts_with = "modify_window")]
    checksum: bool,
    /// Treat times that differ by at most this many seconds as equal.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = parse_seconds)]
    modify_window: Duration,
}

impl CompareArguments {
    /// Source and target.
    pub(crate) fn resolve(&self, connector: &Connector) -> Outcome<(FilePath, FilePath)> {
        if let (Location::Local(_), Location::Local(_)) = (&self.source, &self.target) {
            let reason = "neither source nor target is on a server";
            return Err(Failure::usage(&self.target, reason));
        }
        let source = connector.resolve(&self.source)?;
        Ok((source, connector.resolve(&self.target)?))
    }

    /// How files are compared.
    pub(crate) fn compare(&self) -> Compare {
        match self.checksum {
            true => Compare::Contents,
            false => Compare::SizeAndTime(self.modify_window.max(TIME_RESOLUTION)),
        }
    }
}

/// The path of the source that actions show: empty for a directory, because its entries are shown.
pub(crate) fn relative(source: &FilePath, is_directory: bool) -> PathBuf {
    match is_directory {
        true => PathBuf::new(),
        false => source.relative(),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "want a number of seconds, such as 0 or 2".into())
}
