//! Changes of mode and owner by security descriptors, for servers without the SMB3 POSIX
//! extensions.
//!
//! A mode has an entry for the SID S-1-5-88-3-mode, which cifs.ko reads with the mount option
//! `modefromsid`, and entries for owner, group and everyone, which servers enforce.

use smbeam_client::{AccessMask, Ace, AceFlags, Acl, SecurityDescriptor, SecurityInformation, Sid};

use super::values::Unix;
use crate::descriptor::{self, PARTS};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::RemotePath;

/// The bits of a mode that entries can express: read, write and execute.
const EXPRESSED: u32 = 0o777;

/// Which part of a mode the server keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The whole mode, in an entry for S-1-5-88-3-mode.
    Mode,
    /// Only what entries for owner, group and everyone express.
    Entries,
}

/// Reads mode, owner and group.
pub(super) fn read(remote: &RemotePath) -> Outcome<Unix> {
    let descriptor = descriptor::of(remote, PARTS)?;
    Ok(Unix {
        mode: mode_entry(&descriptor).unwrap_or_else(|| expressed(&descriptor)),
        uid: descriptor.owner.and_then(|sid| sid.to_unix_user()),
        gid: descriptor.group.and_then(|sid| sid.to_unix_group()),
    })
}

/// Sets the mode, and returns which part the server keeps.
pub(super) fn set_mode(remote: &RemotePath, mode: u32, is_directory: bool) -> Outcome<Stored> {
    let present = descriptor::of(remote, PARTS)?;
    let new = with_mode(&present, mode, is_directory);
    descriptor::set(remote, SecurityInformation::DACL, &new)?;
    let stored = descriptor::of(remote, PARTS)?;
    if mode_entry(&stored) == Some(mode) {
        return Ok(Stored::Mode);
    }
    let now = expressed(&stored);
    match now == mode & EXPRESSED {
        true => Ok(Stored::Entries),
        false => {
            let reason = format!("the server accepted mode {mode:04o}, but it keeps {now:04o}");
            Err(Failure::new(Exit::Failed, remote, reason))
        }
    }
}

/// Sets owner and group by the SIDs of Samba for numbers of Unix, or if the server refuses them by
/// those of the NFS service of Windows.
pub(super) fn set_owner(remote: &RemotePath, uid: Option<u32>, gid: Option<u32>) -> Outcome {
    let forms: [(MakeSid, MakeSid); 2] = [
        (Sid::unix_user, Sid::unix_group),
        (Sid::nfs_user, Sid::nfs_group),
    ];
    let mut refused = None;
    for (user, group) in forms {
        match try_owner(remote, uid.map(user), gid.map(group)) {
            Ok(()) => return check_owner(remote, uid, gid),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Makes the SID of a number.
type MakeSid = fn(u32) -> Sid;

fn try_owner(remote: &RemotePath, owner: Option<Sid>, group: Option<Sid>) -> Outcome {
    let mut parts = SecurityInformation::NONE;
    if owner.is_some() {
        parts |= SecurityInformation::OWNER;
    }
    if group.is_some() {
        parts |= SecurityInformation::GROUP;
    }
    let new = SecurityDescriptor {
        owner,
        group,
        ..SecurityDescriptor::default()
    };
    descriptor::set(remote, parts, &new)
}

/// Fails if the server accepted owner and group, and keeps others.
fn check_owner(remote: &RemotePath, uid: Option<u32>, gid: Option<u32>) -> Outcome {
    let now = read(remote)?;
    let is_kept = |new: Option<u32>, now: Option<u32>| new.is_none() || now.is_none() || new == now;
    match is_kept(uid, now.uid) && is_kept(gid, now.gid) {
        true => Ok(()),
        false => {
            let reason = "the server accepted the owner, but it keeps another one";
            Err(Failure::new(Exit::Failed, remote, reason))
        }
    }
}

/// The mode in an entry for S-1-5-88-3-mode.
fn mode_entry(descriptor: &SecurityDescriptor) -> Option<u32> {
    let entries = descriptor.dacl.as_ref()?.aces().iter();
    let mut modes = entries.filter_map(|ace| match ace {
        Ace::Basic { sid, .. } => sid.to_unix_mode(),
        Ace::Other { .. } => None,
    });
    modes.next().map(|mode| mode & 0o7777)
}

/// The bits that the entries for owner, group and everyone allow.
fn expressed(descriptor: &SecurityDescriptor) -> u32 {
    let allowed = |of: Option<Sid>| {
        let entries = descriptor.dacl.iter().flat_map(Acl::aces);
        let masks = entries.filter_map(|ace| match ace {
            Ace::Basic { sid, mask, .. } if Some(*sid) == of && *ace == allow(*sid, *mask, ace) => {
                Some(*mask)
            }
            _ => None,
        });
        masks.fold(AccessMask::NONE, |all, mask| all | mask)
    };
    let bits = |of: Option<Sid>| {
        let mask = allowed(of);
        [
            (AccessMask::FILE_READ_DATA, 4),
            (AccessMask::FILE_WRITE_DATA, 2),
            (AccessMask::FILE_EXECUTE, 1),
        ]
        .into_iter()
        .filter(|(right, _)| mask.contains(*right))
        .fold(0, |bits, (_, bit)| bits | bit)
    };
    bits(descriptor.owner) << 6 | bits(descriptor.group) << 3 | bits(Some(Sid::EVERYONE))
}

fn allow(sid: Sid, mask: AccessMask, like: &Ace) -> Ace {
    Ace::allow(sid, mask, like.flags())
}

/// The descriptor with a DACL for the mode.
fn with_mode(present: &SecurityDescriptor, mode: u32, is_directory: bool) -> SecurityDescriptor {
    let owner = present.owner.unwrap_or(Sid::CREATOR_OWNER);
    let group = present.group.unwrap_or(Sid::CREATOR_GROUP);
    let mut dacl = Acl::new();
    let flags = AceFlags::NONE;
    let mut fits = dacl.push(Ace::deny(Sid::nfs_mode(mode), AccessMask::NONE, flags));
    for (sid, shift) in [(owner, 6), (group, 3), (Sid::EVERYONE, 0)] {
        let mask = AccessMask::from_unix_permissions(mode >> shift, is_directory);
        fits &= dacl.push(Ace::allow(sid, mask, flags));
    }
    assert!(fits, "four entries fit in a list");
    SecurityDescriptor {
        dacl: Some(dacl),
        ..SecurityDescriptor::from_unix_mode(0, 0, mode, is_directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_read_from_what_was_set() {
        let present = SecurityDescriptor::from_unix_mode(1000, 100, 0o644, false);
        assert_eq!((mode_entry(&present), expressed(&present)), (None, 0o644));
        let new = with_mode(&present, 0o4751, false);
        assert_eq!(mode_entry(&new), Some(0o4751));
        let stored = SecurityDescriptor {
            owner: present.owner,
            group: present.group,
            ..new
        };
        assert_eq!(expressed(&stored), 0o751);
    }
}
