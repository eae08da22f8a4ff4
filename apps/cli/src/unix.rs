//! Mode, owner and group of Unix, of files on this machine and on servers.
//!
//! A server with the SMB3 POSIX extensions has them itself. For the others, `--archive` keeps them
//! in the extended attributes of the Windows subsystem for Linux ([`attributes`]).

mod acl;
pub(crate) mod attributes;
mod change;
mod local;
mod mode;
mod remote;
mod values;
mod ways;

pub(crate) use change::{change_mode, change_owner};
pub(crate) use mode::ModeChange;
pub(crate) use values::{Unix, Unkept};
pub(crate) use ways::Ways;

use crate::failure::Outcome;
use crate::file_path::{FileInfo, FilePath, Kind};

impl FilePath {
    /// Reads mode, owner and group, without following links. `None` if the server has none.
    pub(crate) fn unix(&self) -> Outcome<Option<Unix>> {
        match self {
            Self::Local(path) => local::read(path).map(Some),
            Self::Remote(remote) => remote::read(remote),
        }
    }

    /// Sets mode, owner and group of a file with the metadata `info`. `old` has the present values,
    /// if they are known. Links have no mode.
    pub(crate) fn set_unix(&self, unix: &Unix, old: Option<&Unix>, info: &FileInfo) -> Unkept {
        match self {
            Self::Local(path) => local::set(path, unix, old, info.kind == Kind::Link),
            Self::Remote(remote) => remote::set(remote, unix, old, info),
        }
    }

    /// Whether the side has modes and owners itself, so that DOS attributes and descriptors that
    /// only express them are not copied.
    pub(crate) fn is_unix(&self) -> bool {
        match self {
            Self::Local(_) => true,
            Self::Remote(remote) => remote.has_posix(),
        }
    }
}
