//! The options of get, put, cp, sync and check for the files of a tree: which ones, and how fast.

use std::sync::Arc;

use clap::Args;

use super::pace::{Rate, parse_rate};
use super::policy::Policy;
use crate::connect::ConnectArguments;
use crate::failure::Outcome;
use crate::filter::FilterArguments;
use crate::names::LocalNames;

/// Options for the files of a tree.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transfer")]
pub(crate) struct FileArguments {
    /// Map names that the other end cannot have: reserved characters as macOS and the Linux client
    /// do, and bytes that are not UTF-8. `no` keeps names as they are.
    #[arg(
        long,
        value_name = "yes|no",
        default_value = "yes",
        default_missing_value = "yes",
        num_args = 0..=1,
        require_equals = true,
        value_parser = LocalNames::parse
    )]
    map_names: LocalNames,
    /// Number of files to transfer or compare at the same time. Small files from a server share
    /// messages. [default: 16; for a server on this machine two per processor, from 4 to 16]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Limit the data of all files and connections together to this many bytes per second: `512K`,
    /// `10M`; without a unit KiB. 0 is no limit. Copies within a server are not limited.
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = parse_rate)]
    bwlimit: Rate,
    #[command(flatten)]
    filter: FilterArguments,
}

impl FileArguments {
    /// How names pass between this machine and servers.
    pub(crate) fn names(&self) -> LocalNames {
        self.map_names
    }

    /// The policy with these options, and with the default of every other one.
    pub(crate) fn policy(&self, connect: &ConnectArguments) -> Outcome<Policy> {
        let request = self.bwlimit.request();
        let (io_size, depth) = request.unwrap_or((0, 0));
        Ok(Policy {
            filter: Arc::new(self.filter.filter()?),
            rate: self.bwlimit,
            jobs: self.jobs.unwrap_or(0).into(),
            io_size: connect.io_size.unwrap_or(io_size),
            depth: connect.depth.map_or(depth, |depth| depth as usize),
            ..Policy::default()
        })
    }
}
