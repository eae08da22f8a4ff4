//! The mode of a file that an open of the SMB3 POSIX extensions creates.
//!
//! The client has applied the umask of its user, so that of the server must not count. The kernel
//! has no call without the umask; a default access list of the directory replaces it. So the mode
//! is corrected after the creation, unless the directory has such a list.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, fchmod, getxattr};
use rustix::io::Errno;

use super::directory::Directory;
use super::stat::{Stat, by_descriptor, stat};
use crate::security::DEFAULT_LIST;

/// The bits of a mode that chmod(2) sets.
const ALL: u32 = 0o7777;
/// The bit of a directory that hands its group down to new files.
pub(super) const SET_GROUP_ID: u32 = 0o2000;
/// The permissions of owner, group and others.
const PERMISSIONS: u32 = 0o777;
/// The permissions of the owner, which a new directory has until its mode is corrected: the server
/// opens it with the credentials of the user.
pub(super) const OWNER: u32 = 0o700;

/// Corrects the mode of a new file. `made`: the attributes that it was created with; a change of
/// the owner since then may have removed bits. `wanted` has the permission bits that the client
/// sent.
pub(super) fn correct(
    fd: &OwnedFd,
    made: &Stat,
    parent: &Directory,
    wanted: u32,
) -> Result<(), Errno> {
    let is = u32::from(made.0.stx_mode) & ALL;
    let is_reduced = wanted & PERMISSIONS & !is != 0;
    let permissions = match is_reduced && !has_default_list(parent) {
        true => wanted & PERMISSIONS,
        false => wanted & is & PERMISSIONS,
    };
    // A directory inherits the set-group-id bit; the kernel decides about the others.
    let mode = permissions | is & ALL & !PERMISSIONS;
    match mode == u32::from(stat(fd)?.0.stx_mode) & ALL {
        true => Ok(()),
        false => fchmod(fd, Mode::from_raw_mode(mode)),
    }
}

/// Whether new files in a directory get a list of their own.
fn has_default_list(directory: &Directory) -> bool {
    getxattr(by_descriptor(&*directory.fd), DEFAULT_LIST, &mut [0_u8; 0]).is_ok()
}
