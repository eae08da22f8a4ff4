//! The options that get, put, cp and sync share.

use std::time::Duration;

use clap::Args;

use super::policy::{Compare, Policy};
use crate::connect::ConnectArguments;
use crate::names::LocalNames;

/// Options for transfers.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transfer")]
pub(crate) struct TransferArguments {
    /// Resume an interrupted transfer. The source must not have changed.
    #[arg(long = "continue", conflicts_with = "in_place")]
    resume: bool,
    /// Read source and target again afterwards and compare them.
    #[arg(long)]
    verify: bool,
    /// Write even the smallest file under a temporary name and rename it at the end. Files of more
    /// than one request are always written this way.
    #[arg(long, visible_alias = "temporary", conflicts_with = "in_place")]
    atomic: bool,
    /// Write files under their final names from the beginning, so that their permissions and hard
    /// links on the target remain.
    #[arg(long)]
    in_place: bool,
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
    /// Keep everything that belongs to a file: times, attributes, named streams, extended
    /// attributes, links, and between servers owners and permissions. On this machine they are
    /// stored so that an upload with --archive restores them.
    #[arg(short, long, conflicts_with = "follow")]
    archive: bool,
    /// Copy symbolic links as links. Without it, links inside directories are skipped.
    #[arg(long, conflicts_with = "follow")]
    links: bool,
    /// Follow local symbolic links. Without it, links inside directories are skipped.
    #[arg(long)]
    follow: bool,
    /// Seconds to keep reconnecting after the connection is lost. Then the transfer continues. 0
    /// gives up at once.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    reconnect: u64,
    /// Number of files to transfer at the same time. Small files from a server share messages.
    /// [default: 16; for a server on this machine two per processor, from 4 to 16]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
}

impl TransferArguments {
    /// Whether the transfer must read the source more than once.
    pub(crate) fn reads_source_again(&self) -> bool {
        self.resume || self.verify
    }

    /// Whether everything that belongs to a file is kept.
    pub(crate) fn archive(&self) -> bool {
        self.archive
    }

    /// Whether links are copied as links.
    pub(crate) fn links(&self) -> bool {
        self.archive || self.links
    }

    /// How names pass between this machine and servers.
    pub(crate) fn names(&self) -> LocalNames {
        self.map_names
    }

    /// How long to keep reconnecting after the connection is lost.
    pub(crate) fn reconnect(&self) -> Duration {
        Duration::from_secs(self.reconnect)
    }

    /// The policy of a copy without comparison.
    pub(crate) fn policy(&self, preserve: bool, connect: &ConnectArguments) -> Policy {
        Policy {
            compare: Compare::Never,
            delete: false,
            dry_run: false,
            preserve: preserve || self.archive,
            archive: self.archive,
            links: self.links(),
            follow: self.follow,
            resume: self.resume,
            atomic: self.atomic,
            in_place: self.in_place,
            verify: self.verify,
            reconnect: self.reconnect(),
            jobs: self.jobs.unwrap_or(0).into(),
            io_size: connect.io_size.unwrap_or(0),
            depth: connect.depth.unwrap_or(0) as usize,
        }
    }
}
