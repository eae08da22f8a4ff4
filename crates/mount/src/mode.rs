//! Bits of the mode of a file, and changes of attributes that the server may not have.

use smbeam_client::{Metadata, PosixChanges};

/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;
/// Setuid, setgid and sticky.
pub(crate) const SPECIAL: u32 = 0o7000;
pub(crate) const SETUID: u32 = 0o4000;
pub(crate) const SETGID: u32 = 0o2000;
/// Permission of the group to execute. Without it, setgid has another meaning.
const GROUP_EXECUTES: u32 = 0o010;

/// The permissions of a file after a write of an ordinary user, if they differ.
pub(crate) fn cleared(metadata: &Metadata) -> Option<u32> {
    let mode = metadata.unix?.permissions();
    let setgid = match mode & GROUP_EXECUTES {
        0 => 0,
        _ => SETGID,
    };
    let left = mode & !(SETUID | setgid);
    (left != mode).then_some(left)
}

/// Lets the metadata of a file show changes that the server may not have. They leave the owner as
/// it is.
pub(crate) fn show_changes(metadata: &mut Metadata, changes: &PosixChanges) {
    let PosixChanges {
        uid,
        gid,
        mode,
        basic,
        ..
    } = *changes;
    if (uid.is_some() || gid.is_some())
        && let (Some(left), Some(unix)) = (cleared(metadata), &mut metadata.unix)
    {
        unix.mode = unix.mode & !PERMISSIONS | left;
    }
    if let (Some(mode), Some(unix)) = (mode, &mut metadata.unix) {
        unix.mode = unix.mode & !PERMISSIONS | mode & PERMISSIONS;
    }
    metadata.accessed = basic.accessed.unwrap_or(metadata.accessed);
    metadata.written = basic.written.unwrap_or(metadata.written);
}
