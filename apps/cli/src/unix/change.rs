//! Changes of mode and owner on servers, by the best way that a server has.

use super::acl::{self, Stored};
use super::mode::ModeChange;
use super::remote;
use super::values::Unix;
use crate::failure::Outcome;
use crate::file_path::{FileInfo, FilePath, RemotePath};

/// The way in which a change was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the SMB3 POSIX extensions.
    Posix,
    /// By an entry with the mode and entries for owner, group and everyone.
    ModeEntry,
    /// By entries for owner, group and everyone alone.
    Entries,
    /// By the SIDs of owner and group.
    Sids,
}

impl Way {
    /// The way in words; `None` for the extensions, which need no remark.
    pub(crate) fn remark(self) -> Option<&'static str> {
        Some(match self {
            Self::Posix => return None,
            Self::ModeEntry => {
                "by access control entries: one with the mode, and those for owner, group and \
                 everyone"
            }
            Self::Entries => {
                "by access control entries for owner, group and everyone; the server keeps no \
                 setuid, setgid and sticky bits"
            }
            Self::Sids => "by the SIDs of owner and group",
        })
    }
}

/// Changes the mode of a file. Returns the new mode, and the way.
pub(crate) fn change_mode(
    path: &RemotePath,
    info: &FileInfo,
    change: &ModeChange,
) -> Outcome<(u32, Way)> {
    let present = match change {
        ModeChange::Set(_) => 0,
        ModeChange::Clauses(_) => present(path)?.mode,
    };
    let mode = change.apply(present, info.is_directory());
    if path.has_posix() {
        remote::set_mode(path, mode)?;
        return Ok((mode, Way::Posix));
    }
    let way = match acl::set_mode(path, mode, info.is_directory())? {
        Stored::Mode => Way::ModeEntry,
        Stored::Entries => Way::Entries,
    };
    Ok((mode, way))
}

/// Changes owner and group of a file; `None` leaves one as it is. Returns the way.
pub(crate) fn change_owner(path: &RemotePath, uid: Option<u32>, gid: Option<u32>) -> Outcome<Way> {
    if !path.has_posix() {
        acl::set_owner(path, uid, gid)?;
        return Ok(Way::Sids);
    }
    remote::set_owner(path, uid, gid)?;
    Ok(Way::Posix)
}

fn present(path: &RemotePath) -> Outcome<Unix> {
    match FilePath::Remote(path.clone()).unix()? {
        Some(unix) => Ok(unix),
        None => acl::read(path),
    }
}
