//! The options that get, put, cp and sync share.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::backup::Backup;
use super::pace::{Rate, parse_rate};
use super::policy::Policy;
use crate::connect::{ConnectArguments, Connector};
use crate::failure::Outcome;
use crate::file_path::FilePath;
use crate::filter::FilterArguments;
use crate::location::Location;
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
    /// Limit the data of all files and connections together to this many bytes per second: `512K`,
    /// `10M`; without a unit KiB. 0 is no limit. Copies within a server are not limited.
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = parse_rate)]
    bwlimit: Rate,
    /// Move files that are replaced or removed to this directory, with their paths below the
    /// target. It is on the share of the target, or like the target on this machine. A path without
    /// a `/` at the start is below the target.
    #[arg(long, value_name = "DIR", conflicts_with = "in_place")]
    backup_dir: Option<Location>,
    #[command(flatten)]
    filter: FilterArguments,
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

    /// The directory for replaced and removed files of the target; `None` if they are not kept.
    pub(crate) fn backup(
        &self,
        connector: &Connector,
        target: &FilePath,
    ) -> Outcome<Option<Backup>> {
        let Some(location) = &self.backup_dir else {
            return Ok(None);
        };
        let root = match location {
            Location::Local(path) if path.is_relative() => directory(target)?.descendant(path)?,
            location => connector.resolve(location)?,
        };
        Backup::new(root, target.clone()).map(Some)
    }

    /// The policy of a copy without comparison.
    pub(crate) fn policy(&self, preserve: bool, connect: &ConnectArguments) -> Outcome<Policy> {
        let request = self.bwlimit.request();
        let (io_size, depth) = request.unwrap_or((0, 0));
        Ok(Policy {
            filter: Arc::new(self.filter.filter()?),
            rate: self.bwlimit,
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
            io_size: connect.io_size.unwrap_or(io_size),
            depth: connect.depth.map_or(depth, |depth| depth as usize),
            ..Policy::default()
        })
    }
}

/// The target itself, or the directory of a target that is a file.
fn directory(target: &FilePath) -> Outcome<FilePath> {
    let is_file = target
        .lookup(true)?
        .is_some_and(|info| !info.is_directory());
    let parent = target.parent().filter(|_| is_file);
    Ok(parent.unwrap_or_else(|| target.clone()))
}
