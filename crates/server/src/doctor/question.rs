//! The question to the doctor.

use std::path::PathBuf;

/// The question to the doctor.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Name of the user that logs in; `None` examines the server only.
    pub user: Option<String>,
    /// Name of the share; `None` stands for the share that contains the path, else for all shares.
    pub share: Option<String>,
    /// A path from the root of the share, or a path of this machine below the directory of a share.
    pub path: Option<PathBuf>,
    /// The accesses that must be possible. A refusal of any other access is only a warning.
    pub access: Vec<Access>,
    /// Whether a server with this configuration runs, so that its ports are in use.
    pub is_running: bool,
}

/// An access of a user to a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read a file, or list a directory.
    Read,
    /// Write to a file, or create files in a directory.
    Write,
    /// Delete or rename it.
    Delete,
}

impl Access {
    /// All accesses.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delete];

    /// Returns the word of the access for output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}
