//! The options that get, put, cp and sync share.

use std::time::Duration;

use clap::Args;

use super::backup::Backup;
use super::file_arguments::FileArguments;
use super::policy::Policy;
use crate::connect::{ConnectArguments, Connector};
use crate::failure::Outcome;
use crate::file_path::FilePath;
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
    /// Move files that are replaced or removed to this directory, with their paths below the
    /// target. It is on the share of the target, or like the target on this machine. A path without
    /// a `/` at the start is below the target.
    #[arg(long, value_name = "DIR", conflicts_with = "in_place")]
    backup_dir: Option<Location>,
    #[command(flatten)]
    files: FileArguments,
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
        self.files.names()
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
        Ok(Policy {
            preserve: preserve || self.archive,
            archive: self.archive,
            links: self.links(),
            follow: self.follow,
            resume: self.resume,
            atomic: self.atomic,
            in_place: self.in_place,
            verify: self.verify,
            reconnect: self.reconnect(),
            ..self.files.policy(connect)?
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
