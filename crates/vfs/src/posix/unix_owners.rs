//! Owner and group of files, set by opens of the SMB3 POSIX extensions: chown(2) with the
//! credentials of the user. The permissions of Unix decide, and the security descriptor has no
//! part in it.

use proto::file::SecurityChange;
use rustix::fs::{AtFlags, Gid, Uid, chownat};
use rustix::io::Errno;
use wire::Status;
use wire::security::{Ace, AceType, SecurityDescriptor, SecurityInformation, Sid};

use super::Posix;
use super::file_ref::FileRef;
use crate::errno::{Context, status};
use crate::{Step, accounts};

/// The parts of a descriptor that are owner and group.
const OWNERS: SecurityInformation =
    SecurityInformation(SecurityInformation::OWNER.0 | SecurityInformation::GROUP.0);

/// The parts of a change that remain after a change of the owners. cifs.ko sends with them the list
/// that it has read, in which it has replaced the former owner. chown(2) changes no permissions, so
/// a list with nothing but permissions of Unix has no effect.
pub(super) fn rest_of_chown(change: &SecurityChange) -> SecurityInformation {
    let rest = change.parts.without(OWNERS);
    let dacl = change.descriptor.dacl.as_ref();
    match dacl.is_some_and(|list| list.aces().iter().all(is_of_unix)) {
        true => rest.without(SecurityInformation::DACL),
        false => rest,
    }
}

/// Whether a change has an owner or a group.
pub(super) fn is_chown(change: &SecurityChange) -> bool {
    change.parts.intersects(OWNERS)
}

/// Whether an entry grants something to a user or group of Unix or to every user.
fn is_of_unix(ace: &Ace) -> bool {
    let Ace::Basic { ace_type, sid, .. } = ace else {
        return false;
    };
    let is_unix = sid.to_unix_user().is_some() || sid.to_unix_group().is_some();
    *ace_type == AceType::ACCESS_ALLOWED && (is_unix || *sid == Sid::EVERYONE)
}

impl Posix {
    /// Changes owner and group of a file, as chown(2).
    ///
    /// # Errors
    /// INVALID_OWNER for a SID without a uid or gid. PRIVILEGE_NOT_HELD, which is EPERM in cifs.ko,
    /// if the kernel does not permit the change.
    pub(super) fn change_unix_owners(
        &self,
        file: FileRef<'_>,
        change: &SecurityChange,
    ) -> Step<()> {
        let SecurityChange { parts, descriptor } = change;
        let (uid, gid) = self.unix_owners(descriptor);
        let uid = parts.contains(SecurityInformation::OWNER).then_some(uid);
        let gid = parts.contains(SecurityInformation::GROUP).then_some(gid);
        if uid == Some(None) || gid == Some(None) {
            return Err(Status::INVALID_OWNER.into());
        }
        match change_owners(file, uid.flatten(), gid.flatten()) {
            Err(Errno::PERM) => Err(Status::PRIVILEGE_NOT_HELD.into()),
            changed => Ok(changed.map_err(|errno| status(errno, Context::Attributes))?),
        }
    }

    /// Gives a new file the owner and the group that the client asks for, where the kernel permits
    /// it. cifs.ko asks for those of the local process with the mount option `idsfromsid`, also
    /// where the session of the mount may not have them: Samba creates the file nevertheless.
    /// `keeps_group`: the file has the group of its directory.
    pub(super) fn own_new(
        &self,
        file: FileRef<'_>,
        descriptor: &SecurityDescriptor,
        keeps_group: bool,
    ) -> Step<()> {
        let (uid, gid) = self.unix_owners(descriptor);
        let gid = gid.filter(|_| !keeps_group);
        for (uid, gid) in [(None, gid), (uid, None)] {
            match change_owners(file, uid, gid) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(errno) => return Err(status(errno, Context::Attributes).into()),
            }
        }
        Ok(())
    }

    /// The uid and the gid that the owner and the group of a descriptor stand for.
    fn unix_owners(&self, descriptor: &SecurityDescriptor) -> (Option<u32>, Option<u32>) {
        let descriptor = accounts::with_unix_sids(&*self.accounts, descriptor);
        let SecurityDescriptor { owner, group, .. } = &*descriptor;
        let uid = owner.as_ref().and_then(Sid::to_unix_user);
        let gid = group.as_ref().and_then(Sid::to_unix_group);
        (uid, gid)
    }
}

fn change_owners(file: FileRef<'_>, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
    // The number of all ones means: no change.
    let is_number = |id: &u32| *id != u32::MAX;
    let uid = uid.filter(is_number).map(Uid::from_raw);
    let gid = gid.filter(is_number).map(Gid::from_raw);
    match (uid, gid) {
        (None, None) => Ok(()),
        _ => chownat(file.fd, "", uid, gid, AtFlags::EMPTY_PATH),
    }
}
