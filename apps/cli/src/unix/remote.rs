//! Mode, owner and group of a file on a server.

use smbeam_client::{Metadata, PosixChanges, Wait as _};

use super::attributes;
use super::values::{Unix, Unkept};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, Kind, RemotePath};

/// Setuid, setgid and sticky.
const SPECIAL: u32 = 0o7000;
/// Types in `st_mode`. inode(7)
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Reads mode, owner and group by the extensions. `None` on a server without them.
pub(super) fn read(remote: &RemotePath) -> Outcome<Option<Unix>> {
    if !remote.has_posix() {
        return Ok(None);
    }
    let metadata = remote.by_exact_name(|path| remote.share.posix_metadata(path).wait())?;
    Ok(metadata.unix.map(|unix| Unix {
        mode: unix.permissions(),
        uid: unix.uid(),
        gid: unix.gid(),
    }))
}

/// Sets mode, owner and group, by the extensions or in extended attributes.
pub(super) fn set(remote: &RemotePath, unix: &Unix, old: Option<&Unix>, info: &FileInfo) -> Unkept {
    match remote.has_posix() {
        true => set_posix(remote, unix, old, info.kind == Kind::Link),
        false => set_attributes(remote, unix, old, info),
    }
}

/// The owner comes first: a change of it clears setuid and setgid.
fn set_posix(remote: &RemotePath, unix: &Unix, old: Option<&Unix>, is_link: bool) -> Unkept {
    let mut unkept = Unkept::default();
    let has_other_owner = unix.has_other_owner(old);
    if has_other_owner {
        unkept.owner = set_owner(remote, unix.uid, unix.gid).err();
    }
    let has_other_mode = old.is_none_or(|old| old.mode != unix.mode);
    if !is_link && (has_other_mode || has_other_owner) {
        unkept.mode = set_mode(remote, unix.mode).err();
    }
    unkept
}

/// Sets the mode by the extensions. A server can accept setuid, setgid and sticky bits and not
/// keep them.
pub(super) fn set_mode(remote: &RemotePath, mode: u32) -> Outcome {
    let metadata = change(remote, &PosixChanges::default().mode(Some(mode)))?;
    match metadata.unix.map(|unix| unix.permissions()) {
        Some(now) if mode & SPECIAL != 0 && now != mode => {
            let reason = format!("the server accepted mode {mode:04o}, but it keeps {now:04o}");
            Err(Failure::new(Exit::Failed, remote, reason))
        }
        _ => Ok(()),
    }
}

/// Sets owner and group by the extensions.
pub(super) fn set_owner(remote: &RemotePath, uid: Option<u32>, gid: Option<u32>) -> Outcome {
    change(remote, &PosixChanges::default().owner(uid, gid)).map(drop)
}

fn change(remote: &RemotePath, changes: &PosixChanges) -> Outcome<Metadata> {
    remote.by_exact_name(|path| remote.share.change_posix(path, changes).wait())
}

/// Only files and directories have extended attributes on every server.
fn set_attributes(remote: &RemotePath, unix: &Unix, old: Option<&Unix>, info: &FileInfo) -> Unkept {
    let file_type = match info.kind {
        Kind::File => REGULAR,
        Kind::Directory => DIRECTORY,
        Kind::Link | Kind::Other => return unkept_of_reparse_point(remote, unix, info.kind),
    };
    if old == Some(unix) {
        return Unkept::default();
    }
    let attributes = attributes::of(unix, file_type);
    let set = remote
        .share
        .set_extended_attributes(&remote.path, &attributes);
    Unkept {
        mode: set.wait().map_err(remote.failed()).err(),
        owner: None,
    }
}

/// A reparse point has no extended attributes: listings have one field for its tag or their size.
/// \[MS-FSCC\] 2.4.8. So it keeps neither owner nor mode. The mode of a symbolic link has no
/// meaning.
fn unkept_of_reparse_point(remote: &RemotePath, unix: &Unix, kind: Kind) -> Unkept {
    let reason = "the server has no SMB3 POSIX extensions";
    let failure = || Failure::new(Exit::Failed, remote, reason);
    Unkept {
        mode: (kind == Kind::Other).then(failure),
        owner: unix.has_other_owner(None).then(failure),
    }
}
