//! Descriptors for the permissions of Unix, and permissions that come close to a descriptor.

use std::collections::BTreeSet;

use wire::Status;
use wire::access::AccessMask;
use wire::security::{Ace, AceFlags, Acl, DescriptorControl, SecurityDescriptor, Sid};

use super::access::{Entry as Counting, evaluate, is_foreign};
use super::inherit::{Creator, inherited};
use super::owners::Owners;
use super::posix_acl::{Entry, PosixAcl, Tag};

/// Maximum number of users and groups with entries of their own in a list that the server makes.
/// Each costs an evaluation of the whole DACL. ext4 stores about 500 entries.
const NAMED_MAX: usize = 1_024;

/// The rights that need the read permission of a directory. A file that may be executed is read.
const READS: AccessMask = AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_READ_EA.0);
/// The rights that need the write permission.
const WRITES: AccessMask = AccessMask(
    AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_APPEND_DATA.0 | AccessMask::FILE_WRITE_EA.0,
);
/// Permissions that the owner of a file always gets, as in Samba. The descriptor still decides.
const OWNER_OF_FILE: u16 = 0o4;
/// Permissions that the owner of a directory always gets, as in Samba.
const OWNER_OF_DIRECTORY: u16 = 0o7;

/// The rights that the owner of a file has with any mode: chmod(2) and chown(2). A client that adds
/// an entry to the list would take them from the owner if the list did not show them.
const OF_OWNER: AccessMask = AccessMask(AccessMask::WRITE_DAC.0 | AccessMask::WRITE_OWNER.0);

/// The SIDs that every user of the server has.
const EVERYONE: [Sid; 4] = [
    Sid::EVERYONE,
    Sid::AUTHENTICATED_USERS,
    Sid::NETWORK,
    Sid::BUILTIN_USERS,
];

/// Returns the descriptor that stands for owner, group and lists of a file without a stored one.
/// `default` is the default list of a directory; `None` for another file.
pub(crate) fn describe(
    owners: Owners,
    access: &PosixAcl,
    default: Option<&PosixAcl>,
) -> SecurityDescriptor {
    let Owners { uid, gid } = owners;
    let is_directory = default.is_some();
    let default = default.filter(|list| !list.entries().is_empty());
    let (owner, group) = (Sid::unix_user(uid), Sid::unix_group(gid));
    let mut dacl = Acl::new();
    let mut push = |list: &PosixAcl, owner, group, flags| {
        for entry in list.entries() {
            let Some(sid) = sid_of(entry.tag, owner, group) else {
                continue;
            };
            let bits = masked(list, *entry);
            let mut mask = AccessMask::from_unix_permissions(bits.into(), is_directory);
            if entry.tag == Tag::UserObj {
                mask |= OF_OWNER;
            }
            // Lists of Linux with more entries than fit exist on no file system.
            let _ = dacl.push(Ace::allow(sid, mask, flags));
        }
    };
    push(access, owner, group, AceFlags::NONE);
    let inherited = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT | AceFlags::INHERIT_ONLY;
    if let Some(default) = default {
        push(default, Sid::CREATOR_OWNER, Sid::CREATOR_GROUP, inherited);
    }
    SecurityDescriptor {
        control: DescriptorControl::SELF_RELATIVE
            | DescriptorControl::DACL_PRESENT
            | DescriptorControl::DACL_PROTECTED,
        owner: Some(owner),
        group: Some(group),
        dacl: Some(dacl),
        ..SecurityDescriptor::default()
    }
}

/// The SID of an entry; `None` for the mask.
fn sid_of(tag: Tag, owner: Sid, group: Sid) -> Option<Sid> {
    match tag {
        Tag::UserObj => Some(owner),
        Tag::User(uid) => Some(Sid::unix_user(uid)),
        Tag::GroupObj => Some(group),
        Tag::Group(gid) => Some(Sid::unix_group(gid)),
        Tag::Mask => None,
        Tag::Other => Some(Sid::EVERYONE),
    }
}

/// The permissions of an entry, within the mask if that applies.
fn masked(list: &PosixAcl, entry: Entry) -> u16 {
    let mask = match entry.tag {
        Tag::UserObj | Tag::Other => None,
        Tag::User(_) | Tag::GroupObj | Tag::Group(_) | Tag::Mask => list.permissions(Tag::Mask),
    };
    entry.permissions & mask.unwrap_or(0o7)
}

/// Returns the access list of a file that comes closest to a descriptor: it grants a permission if
/// the descriptor grants one of its rights. The owner always gets the permissions to read a file
/// and to use a directory.
///
/// # Errors
/// INVALID_ACL if the descriptor names more than 1,024 users and groups of Unix.
pub(crate) fn approximate(
    descriptor: &SecurityDescriptor,
    owners: Owners,
    is_directory: bool,
) -> Result<PosixAcl, Status> {
    let Some(dacl) = &descriptor.dacl else {
        return Ok(PosixAcl::of_mode(0o777));
    };
    let sids = || {
        dacl.aces()
            .iter()
            .filter_map(Counting::of)
            .map(|entry| entry.sid)
    };
    if let Some(mode) = sids().find_map(|sid| sid.to_unix_mode()) {
        return Ok(PosixAcl::of_mode(mode));
    }
    let everyone = |sid: &Sid| EVERYONE.contains(sid);
    let is_owner = |sid: &Sid| {
        sid.to_unix_user() == Some(owners.uid)
            || (descriptor.owner == Some(*sid) && !everyone(sid))
            || *sid == Sid::OWNER_RIGHTS
    };
    let is_group = |sid: &Sid| {
        sid.to_unix_group() == Some(owners.gid)
            || (descriptor.group == Some(*sid) && !everyone(sid))
    };
    let bits = |applies: &dyn Fn(&Sid) -> bool| {
        let rights = evaluate(dacl, AccessMask::NONE, |entry| {
            applies(&entry.sid) || everyone(&entry.sid)
        });
        permissions(rights, is_directory)
    };
    let restricts_owner = sids().any(|sid| sid == Sid::OWNER_RIGHTS);
    let of_owner = evaluate(dacl, AccessMask::NONE, |entry| {
        let is_foreign = entry.allows && !restricts_owner && is_foreign(&entry.sid);
        is_owner(&entry.sid) || everyone(&entry.sid) || is_foreign
    });
    let mut owner = permissions(of_owner, is_directory);
    if !sids().any(|sid| is_owner(&sid)) {
        // The owner may be in any of the groups.
        owner |= bits(&|sid| sid.to_unix_group().is_some());
    }
    owner |= match is_directory {
        true => OWNER_OF_DIRECTORY,
        false => OWNER_OF_FILE,
    };
    let named = sids().filter(|sid| !is_owner(sid) && !is_group(sid));
    let named: BTreeSet<Tag> = named.filter_map(|sid| named_tag(&sid)).collect();
    if named.len() > NAMED_MAX {
        return Err(Status::INVALID_ACL);
    }
    let mut entries = vec![
        (Tag::UserObj, owner),
        (Tag::GroupObj, bits(&is_group)),
        (Tag::Other, bits(&|_| false)),
    ];
    if !named.is_empty() {
        let of = |tag: Tag| (tag, bits(&|sid| named_tag(sid) == Some(tag)));
        entries.extend(named.into_iter().map(of));
        let limited = entries
            .iter()
            .filter(|(tag, _)| !matches!(tag, Tag::UserObj | Tag::Other));
        let mask = limited.fold(0, |mask, (_, bits)| mask | bits);
        entries.push((Tag::Mask, mask));
    }
    let entries = entries
        .into_iter()
        .map(|(tag, permissions)| Entry { tag, permissions });
    Ok(PosixAcl::new(entries.collect()))
}

/// Returns the default list of a directory that comes closest to the inheritable entries of a
/// descriptor; empty if there are none.
///
/// # Errors
/// As [`approximate`].
pub(crate) fn approximate_default(
    descriptor: &SecurityDescriptor,
    owners: Owners,
) -> Result<PosixAcl, Status> {
    let creator = Creator {
        owner: Sid::unix_user(owners.uid),
        group: Sid::unix_group(owners.gid),
    };
    let of = |is_directory| inherited(descriptor, creator, is_directory);
    let lists = |child: &SecurityDescriptor| child.dacl.is_some();
    match of(false)?.filter(lists).or(of(true)?.filter(lists)) {
        Some(child) => approximate(&child, owners, true),
        None => Ok(PosixAcl::default()),
    }
}

/// Returns the nine bits of a mode that come closest to a descriptor.
///
/// # Errors
/// As [`approximate`].
pub(crate) fn mode_of(
    descriptor: &SecurityDescriptor,
    owners: Owners,
    is_directory: bool,
) -> Result<u32, Status> {
    let list = approximate(descriptor, owners, is_directory)?;
    Ok(list.mode())
}

/// The tag of a user or group with a Unix identifier.
fn named_tag(sid: &Sid) -> Option<Tag> {
    let user = sid.to_unix_user().map(Tag::User);
    user.or(sid.to_unix_group().map(Tag::Group))
}

/// The permissions without which the kernel would refuse one of the rights.
fn permissions(rights: AccessMask, is_directory: bool) -> u16 {
    let executes = rights.contains(AccessMask::FILE_EXECUTE);
    let reads = rights.intersects(READS) || (executes && !is_directory);
    let deletes = is_directory && rights.contains(AccessMask::FILE_DELETE_CHILD);
    let writes = rights.intersects(WRITES) || deletes;
    u16::from(reads) << 2 | u16::from(writes) << 1 | u16::from(executes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNERS: Owners = Owners { uid: 7, gid: 8 };

    fn file(dacl: &str) -> PosixAcl {
        let sddl = dacl
            .replace("OWNER", "S-1-22-1-7")
            .replace("GROUP", "S-1-22-2-8");
        approximate(&sddl.parse().expect("SDDL"), OWNERS, false).expect("few entries")
    }

    #[test]
    fn the_three_classes_become_a_mode() {
        let list = file("D:(A;;FA;;;OWNER)(A;;FR;;;GROUP)");
        assert!(list.is_mode());
        assert_eq!(list.mode(), 0o740);
        assert_eq!(file("D:(A;;FA;;;WD)").mode(), 0o777);
        assert_eq!(file("D:(A;;FR;;;AU)").mode(), 0o444);
        assert_eq!(file("D:NO_ACCESS_CONTROL").mode(), 0o777);
        assert_eq!(file("D:").mode(), 0o400, "the owner reads");
        assert_eq!(file("D:(A;;0x2;;;OWNER)").mode(), 0o600);
        assert_eq!(file("D:(A;;FX;;;GROUP)").mode() & 0o70, 0o50);
    }

    #[test]
    fn the_order_of_entries_counts() {
        assert_eq!(file("D:(D;;FW;;;GROUP)(A;;FA;;;WD)").mode(), 0o757);
        assert_eq!(file("D:(A;;FA;;;WD)(D;;FW;;;GROUP)").mode(), 0o777);
        assert_eq!(
            file("D:(D;;0x4;;;WD)(A;;FRFW;;;WD)").mode(),
            0o666,
            "append alone"
        );
    }

    #[test]
    fn an_owner_without_entries_may_be_in_the_groups() {
        assert_eq!(file("D:(A;;FRFW;;;GROUP)").mode(), 0o660);
        assert_eq!(
            file("D:(A;;FRFW;;;S-1-22-2-9)").permissions(Tag::UserObj),
            Some(6)
        );
    }

    #[test]
    fn other_users_and_groups_get_entries() {
        let list = file("D:(A;;FA;;;OWNER)(A;;FRFW;;;S-1-22-1-9)(A;;FR;;;S-1-22-2-5)");
        assert_eq!(list.permissions(Tag::User(9)), Some(6));
        assert_eq!(list.permissions(Tag::Group(5)), Some(4));
        assert_eq!(list.permissions(Tag::GroupObj), Some(0));
        assert_eq!(list.permissions(Tag::Mask), Some(6));
        assert_eq!(list.mode(), 0o760);
        assert!(file("D:(A;;FA;;;BA)(A;;FA;;;S-1-5-21-1-2-3-500)").is_mode());
        assert!(file("D:(A;IO;FA;;;S-1-22-1-9)").is_mode());
    }

    #[test]
    fn the_mode_of_the_nfs_service_is_taken_over() {
        assert_eq!(file("D:(D;;;;;S-1-5-88-3-33188)(A;;FA;;;WD)").mode(), 0o644);
    }

    #[test]
    fn directories() {
        let of = |sddl: &str| {
            let descriptor = sddl.parse().expect("SDDL");
            let list = approximate(&descriptor, OWNERS, true).expect("few entries");
            let default = approximate_default(&descriptor, OWNERS).expect("few entries");
            (list.mode(), default)
        };
        assert_eq!(of("D:(A;;0x40;;;WD)").0, 0o722 | 0o500);
        let (mode, default) = of("D:(A;;FX;;;WD)(A;OICIIO;FA;;;CO)(A;OI;FR;;;WD)");
        assert_eq!(mode, 0o755);
        assert_eq!(default.mode(), 0o744);
        assert_eq!(of("D:(A;;FA;;;WD)").1, PosixAcl::default());
    }

    #[test]
    fn lists_are_described() {
        let list = file("D:(A;;FA;;;OWNER)(A;;FRFW;;;S-1-22-1-9)");
        let text = |list: &PosixAcl, default| {
            let descriptor = describe(OWNERS, list, default);
            descriptor.to_sddl().expect("printable")
        };
        let expected = "O:S-1-22-1-7G:S-1-22-2-8D:P(A;;0x1e01ff;;;S-1-22-1-7)\
                        (A;;0x12019f;;;S-1-22-1-9)(A;;;;;S-1-22-2-8)(A;;;;;WD)";
        assert_eq!(text(&list, None), expected);
        let mode = PosixAcl::of_mode(0o750);
        let default = PosixAcl::of_mode(0o700);
        let expected = "O:S-1-22-1-7G:S-1-22-2-8D:P(A;;FA;;;S-1-22-1-7)(A;;0x1200a9;;;S-1-22-2-8)\
                        (A;;;;;WD)(A;OICIIO;FA;;;CO)(A;OICIIO;;;;CG)(A;OICIIO;;;;WD)";
        assert_eq!(text(&mode, Some(&default)), expected);
        let of_mode = SecurityDescriptor::from_unix_mode(7, 8, 0o750, true);
        assert_eq!(describe(OWNERS, &mode, Some(&PosixAcl::default())), of_mode);
        // The owner changes mode and group with any mode.
        let expected = "O:S-1-22-1-7G:S-1-22-2-8D:P(A;;0x1e0089;;;S-1-22-1-7)\
                        (A;;FR;;;S-1-22-2-8)(A;;;;;WD)";
        assert_eq!(text(&PosixAcl::of_mode(0o440), None), expected);
    }

    #[test]
    fn a_list_with_too_many_users_is_refused() {
        let mut dacl = Acl::new();
        for uid in 0..=NAMED_MAX as u32 + 8 {
            let ace = Ace::allow(Sid::unix_user(uid), AccessMask(1), AceFlags::NONE);
            assert!(dacl.push(ace));
        }
        let descriptor = SecurityDescriptor {
            dacl: Some(dacl),
            ..SecurityDescriptor::default()
        };
        let refused = approximate(&descriptor, OWNERS, false);
        assert_eq!(refused, Err(Status::INVALID_ACL));
    }
}
