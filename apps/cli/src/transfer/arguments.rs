//! What get, put, cp and sync have in common on the command line.

use std::time::Duration;

use clap::Args;

use super::policy::{Compare, Policy};
use crate::connect::ConnectArguments;

/// How files are transferred.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transfer")]
pub(crate) struct TransferArguments {
    /// Go on where an earlier transfer of the same state of the source broke off.
    #[arg(long = "continue", conflicts_with = "in_place")]
    resume: bool,
    /// Read both sides again afterwards and compare them.
    #[arg(long)]
    verify: bool,
    /// Give even the smallest file its name only when it is whole. Files of more than one request
    /// always are treated so.
    #[arg(long, visible_alias = "temporary", conflicts_with = "in_place")]
    atomic: bool,
    /// Write files under their own names from the beginning, so that what the server keeps with a
    /// file (rights, links) stays.
    #[arg(long)]
    in_place: bool,
    /// Follow symbolic links of this machine; otherwise those in directories are skipped.
    #[arg(long)]
    follow: bool,
    /// Seconds that connecting anew may take when the last connection is lost; then the transfer
    /// goes on where it was. 0 gives up at once.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    reconnect: u64,
    /// Files at once. Of small files on a server this is messages that bring several of them.
    /// [default: 16; with a server on this machine two for each processor, from 4 to 16]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

impl TransferArguments {
    /// Whether what is transferred has to be read more than once.
    pub(crate) fn wants_to_return(&self) -> bool {
        self.resume || self.verify
    }

    /// The policy of a plain copy.
    pub(crate) fn policy(&self, preserve: bool, connect: &ConnectArguments) -> Policy {
        Policy {
            compare: Compare::Never,
            delete: false,
            dry_run: false,
            preserve,
            follow: self.follow,
            resume: self.resume,
            atomic: self.atomic,
            in_place: self.in_place,
            verify: self.verify,
            reconnect: Duration::from_secs(self.reconnect),
            jobs: self.jobs.unwrap_or(0).into(),
            io_size: connect.io_size.unwrap_or(0),
            depth: connect.depth.unwrap_or(0) as usize,
        }
    }
}
