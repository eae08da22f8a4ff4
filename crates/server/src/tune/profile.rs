//! The kinds of load that the advice depends on.

use serde::{Deserialize, Serialize};

/// The kind of load that a server is tuned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Many clients read large files in random order, each file once in an epoch.
    Training,
    /// Few clients write and read very large files, with a flush at the end.
    Checkpoint,
    /// Many files below 1 MiB: their opens and closes cost more than their data.
    SmallFiles,
    /// No load prevails.
    #[default]
    Mixed,
}

impl Profile {
    /// Returns the name of the profile on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Checkpoint => "checkpoint",
            Self::SmallFiles => "small-files",
            Self::Mixed => "mixed",
        }
    }

    /// Whether large sequential transfers prevail.
    pub(crate) fn is_streaming(self) -> bool {
        matches!(self, Self::Training | Self::Checkpoint)
    }
}
