//! The arguments of `smbeam tune`.

use clap::{Args, ValueEnum};
use smbeam_server::tune::Profile;

use super::apply;
use crate::connect::ConnectArguments;
use crate::local_server::ServerArguments;
use crate::location::Url;

/// Arguments of `smbeam tune`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Measure from this machine a writable directory of a server. Without it, the command examines
    /// this machine and its server.
    #[arg(value_name = "URL", value_parser = crate::location::url)]
    pub(super) url: Option<Url>,
    #[command(flatten)]
    pub(super) server: ServerArguments,
    /// The load to tune for.
    #[arg(long, value_enum, default_value_t = ProfileName::Mixed)]
    pub(super) profile: ProfileName,
    /// Apply the safe changes: parameters of the kernel, and keys of the configuration that no file
    /// sets. Needs root.
    #[arg(long, conflicts_with_all = ["url", "watch", "undo"])]
    pub(super) apply: bool,
    /// Take the changes of --apply back. Needs root.
    #[arg(long, conflicts_with_all = ["url", "watch"])]
    pub(super) undo: bool,
    /// Show the changes of --apply or --undo, and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Name the limit of the load of a running server, again and again.
    #[arg(long, conflicts_with = "url")]
    pub(super) watch: bool,
    /// Time between two lines of --watch in seconds, 0.1 to 3600.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 2.0,
        value_parser = crate::top::interval
    )]
    pub(super) interval: f64,
    /// End after this number of lines of --watch.
    #[arg(long, value_name = "N", requires = "watch")]
    pub(super) count: Option<u64>,
    /// Also measure the time of a flush in the directory of each share, with an unnamed file.
    #[arg(long, conflicts_with_all = ["url", "watch", "undo"])]
    pub(super) measure: bool,
    /// Print JSON: one object, or one object per line with --watch.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) files: apply::Files,
    /// Time of each measurement with a URL in seconds.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0.5,
        value_parser = crate::top::interval
    )]
    pub(super) time: f64,
    #[command(flatten)]
    pub(super) connect: ConnectArguments,
}

/// The load to tune for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProfileName {
    /// Many clients read large files, each once in an epoch.
    Training,
    /// Few clients write and read very large files.
    Checkpoint,
    /// Many files below 1 MiB.
    SmallFiles,
    /// No load prevails.
    Mixed,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Training => Self::Training,
            ProfileName::Checkpoint => Self::Checkpoint,
            ProfileName::SmallFiles => Self::SmallFiles,
            ProfileName::Mixed => Self::Mixed,
        }
    }
}
