//! Mode, owner and group of a file on this machine.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Gid, Mode, Uid, chmodat, chownat};

use super::values::{Unix, Unkept};
use crate::failure::{Failure, Outcome};
use crate::location::shown;

/// Reads mode, owner and group, of a link itself.
pub(super) fn read(path: &Path) -> Outcome<Unix> {
    let metadata = fs::symlink_metadata(path);
    let metadata = metadata.map_err(|error| Failure::local(&shown(path), &error))?;
    Ok(Unix {
        mode: metadata.mode() & 0o7777,
        uid: Some(metadata.uid()),
        gid: Some(metadata.gid()),
    })
}

/// Sets mode, owner and group. The owner comes first: a change of it clears setuid and setgid.
/// chown(2)
pub(super) fn set(path: &Path, unix: &Unix, old: Option<&Unix>, is_link: bool) -> Unkept {
    let failed = |error: rustix::io::Errno| Failure::local(&shown(path), &error.into());
    let mut unkept = Unkept::default();
    if unix.has_other_owner(old) {
        let (uid, gid) = (unix.uid.map(Uid::from_raw), unix.gid.map(Gid::from_raw));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let set = chownat(CWD, path, uid, gid, flags);
        // A user without privileges may still set another of the own groups.
        let set = set.or_else(|errno| match gid {
            Some(_) => chownat(CWD, path, None, gid, flags).and(Err(errno)),
            None => Err(errno),
        });
        unkept.owner = set.err().map(failed);
    }
    if !is_link {
        let set = chmodat(CWD, path, Mode::from_raw_mode(unix.mode), AtFlags::empty());
        unkept.mode = set.err().map(failed);
    }
    unkept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_set_and_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x");
        fs::write(&path, "text").expect("a file");
        let old = read(&path).expect("readable");
        let new = Unix {
            mode: 0o4711,
            ..old
        };
        let unkept = set(&path, &new, Some(&old), false);
        assert!(unkept.mode.is_none() && unkept.owner.is_none());
        assert_eq!(read(&path).expect("readable"), new);
        let missing = set(&directory.path().join("y"), &new, Some(&old), false);
        assert!(missing.mode.is_some());
    }
}
