//! The access check of security descriptors. \[MS-DTYP\] 2.5.3.2
//!
//! The entries decide in their stored order: for each right, the first entry for the user that
//! names the right allows or denies it. The order is not changed, also if it is not canonical.
//!
//! The owner has READ_CONTROL and WRITE_DAC in addition, unless an entry for OWNER RIGHTS
//! (S-1-3-4) defines the owner's rights. Conditional entries and those of directory services do not
//! count, as in Samba without claims. No entry grants ACCESS_SYSTEM_SECURITY.
//!
//! A missing DACL grants the owner's rights only, a NULL DACL all rights, as in Samba.
//! (libcli/security/access_check.c)

use proto::token::Token;
use wire::access::AccessMask;
use wire::security::{Ace, AceFlags, AceType, Acl, DescriptorControl, SecurityDescriptor, Sid};

use super::owners::Owners;

/// The rights of an owner that no OWNER RIGHTS entry restricts.
const OF_OWNER: AccessMask = AccessMask(AccessMask::READ_CONTROL.0 | AccessMask::WRITE_DAC.0);

/// Returns the rights that a descriptor grants to the user with this token: specific ones, without
/// generic ones. `owners` are the owner and the group of the file in Unix. Root has no privilege
/// here; the caller decides about it.
///
/// Owner and group of the descriptor stand for those of Unix, with any SID: Samba stores the SIDs
/// of its own accounts, which the token does not have.
pub(crate) fn granted(
    descriptor: &SecurityDescriptor,
    token: &Token,
    owners: Owners,
) -> AccessMask {
    let holder = Holder::of(descriptor, token, owners);
    let Some(dacl) = &descriptor.dacl else {
        let is_null = descriptor.control.contains(DescriptorControl::DACL_PRESENT);
        return match (is_null, holder.is_owner) {
            (true, _) => AccessMask::FILE_ALL_ACCESS,
            (false, true) => OF_OWNER,
            (false, false) => AccessMask::NONE,
        };
    };
    let implicit = match holder.owner_administers {
        true => OF_OWNER,
        false => AccessMask::NONE,
    };
    evaluate(dacl, implicit, |entry| holder.has_entry(entry))
}

/// Returns the first entry that denies the user one of these rights: its number in the DACL, from
/// 1, and its SID. `None` if no entry denies them, and none allows them either.
pub(crate) fn first_denial(
    descriptor: &SecurityDescriptor,
    token: &Token,
    owners: Owners,
    rights: AccessMask,
) -> Option<(usize, Sid)> {
    let holder = Holder::of(descriptor, token, owners);
    let entries = descriptor.dacl.iter().flat_map(Acl::aces);
    let mut numbered = (1..).zip(entries.map(Entry::of));
    numbered.find_map(|(number, entry)| {
        let entry = entry.filter(|entry| !entry.allows && entry.mask.intersects(rights))?;
        holder.has_entry(&entry).then_some((number, entry.sid))
    })
}

/// The user in the access check of one descriptor.
struct Holder {
    /// Sorted.
    sids: Vec<Sid>,
    is_owner: bool,
    /// Whether the user has the rights of an owner that no entry restricts.
    owner_administers: bool,
}

impl Holder {
    fn of(descriptor: &SecurityDescriptor, token: &Token, owners: Owners) -> Self {
        let mut sids: Vec<Sid> = token.sids().collect();
        if token.uid == owners.uid {
            sids.extend(descriptor.owner);
        }
        if token.has_group(owners.gid) {
            sids.extend(descriptor.group);
        }
        sids.sort_unstable();
        let has = |sid: &Sid| sids.binary_search(sid).is_ok();
        let is_owner = descriptor.owner.as_ref().is_some_and(has);
        let entries = descriptor.dacl.iter().flat_map(Acl::aces);
        let mut entries = entries.filter_map(Entry::of);
        let restricts_owner = entries.any(|entry| entry.sid == Sid::OWNER_RIGHTS);
        Self {
            sids,
            is_owner,
            owner_administers: is_owner && !restricts_owner,
        }
    }

    /// Whether an entry counts for the user.
    fn has_entry(&self, Entry { sid, allows, .. }: &Entry) -> bool {
        self.sids.binary_search(sid).is_ok()
            || (self.is_owner && *sid == Sid::OWNER_RIGHTS)
            || (self.owner_administers && *allows && is_foreign(sid))
    }
}

/// Whether a SID stands for an account that this server does not have: those of another machine or
/// domain, its administrators, and SYSTEM.
///
/// Windows sends them with the files that a user copies to a server, and grants no more to the user
/// itself. The owner of the copy can change the list anyway, so what it grants to them, it grants
/// to the owner. Samba leaves such an owner without access:
/// github.com/Cinchoo/ChoEazyCopy/issues/65
pub(super) fn is_foreign(sid: &Sid) -> bool {
    let is_known = [Sid::LOCAL_SYSTEM, Sid::BUILTIN_ADMINISTRATORS].contains(sid);
    is_known || sid.is_of_machine_or_domain()
}

/// Returns the rights that the entries for some SIDs allow, in addition to those in `allowed`. The
/// entries cannot deny the latter.
pub(super) fn evaluate(
    dacl: &Acl,
    mut allowed: AccessMask,
    applies: impl Fn(&Entry) -> bool,
) -> AccessMask {
    let mut denied = AccessMask::NONE;
    let entries = dacl.aces().iter().filter_map(Entry::of);
    for entry in entries.filter(|entry| applies(entry)) {
        match entry.allows {
            true => allowed |= entry.mask.without(denied),
            false => denied |= entry.mask.without(allowed),
        }
    }
    allowed & AccessMask::FILE_ALL_ACCESS
}

/// An entry that counts for the object itself.
pub(super) struct Entry {
    pub(super) sid: Sid,
    mask: AccessMask,
    pub(super) allows: bool,
}

impl Entry {
    /// The entry; `None` if it does not count for the object itself.
    pub(super) fn of(ace: &Ace) -> Option<Self> {
        let Ace::Basic {
            ace_type,
            flags,
            mask,
            sid,
        } = ace
        else {
            return None;
        };
        let allows = match *ace_type {
            AceType::ACCESS_ALLOWED => true,
            AceType::ACCESS_DENIED => false,
            _ => return None,
        };
        let counts = !flags.contains(AceFlags::INHERIT_ONLY);
        counts.then(|| Self {
            sid: *sid,
            mask: mask.without_generic(),
            allows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: u32 = 2001;
    /// A file of another user.
    const OTHERS: Owners = Owners { uid: 7, gid: 7 };

    fn rights(sddl: &str) -> AccessMask {
        let token = Token::new(ALICE, 100, vec![24]);
        let sddl = sddl.replace("ALICE", "S-1-22-1-2001");
        let sddl = sddl.replace("GROUP", "S-1-22-2-24");
        granted(&sddl.parse().expect("SDDL"), &token, OTHERS)
    }

    #[test]
    fn each_right_is_decided_by_the_first_entry_that_names_it() {
        assert_eq!(rights("D:(D;;FW;;;ALICE)(A;;FA;;;WD)").0, 0x000D_00E9);
        assert_eq!(rights("D:(A;;FA;;;WD)(D;;FW;;;ALICE)").0, 0x001F_01FF);
        let twice = "D:(A;;0x3;;;ALICE)(D;;0x6;;;WD)(A;;0xC;;;GROUP)";
        assert_eq!(rights(twice).0, 0x3 | 0x8);
    }

    #[test]
    fn the_denying_entry_is_found() {
        let token = Token::new(ALICE, 100, vec![24]);
        let denial = |sddl: &str, rights| {
            let descriptor = sddl.parse().expect("SDDL");
            first_denial(&descriptor, &token, OTHERS, AccessMask(rights))
        };
        let list = "D:(A;;FR;;;WD)(D;;0x2;;;AN)(D;IO;0x2;;;WD)(D;;0x6;;;AU)";
        assert_eq!(denial(list, 0x2), Some((4, Sid::AUTHENTICATED_USERS)));
        assert_eq!(denial(list, 0x8), None);
        assert_eq!(denial("D:", 0x2), None);
    }

    #[test]
    fn entries_for_others_do_not_count() {
        assert_eq!(rights("D:(A;;FA;;;S-1-22-1-2002)"), AccessMask::NONE);
        assert_eq!(
            rights("D:(D;;FA;;;S-1-22-2-25)(A;;FR;;;GROUP)").0,
            0x0012_0089
        );
        assert_eq!(rights("D:(A;OICIIO;FA;;;WD)"), AccessMask::NONE);
        assert_eq!(rights("D:(A;;FA;;;CO)"), AccessMask::NONE, "CREATOR OWNER");
    }

    #[test]
    fn the_owner_reads_and_writes_the_list() {
        assert_eq!(rights("O:ALICED:"), OF_OWNER);
        assert_eq!(rights("O:ALICED:(D;;FA;;;WD)"), OF_OWNER);
        assert_eq!(rights("O:BAD:"), AccessMask::NONE);
        assert_eq!(rights("O:GROUPD:"), OF_OWNER, "a group can be the owner");
    }

    #[test]
    fn owner_rights_replace_those_of_the_owner() {
        assert_eq!(
            rights("O:ALICED:(A;;0x2;;;OW)(A;;FR;;;ALICE)").0,
            0x0012_008B
        );
        assert_eq!(
            rights("O:ALICED:(D;;0x1;;;OW)(A;;FR;;;ALICE)").0,
            0x0012_0088
        );
        let trailing = "O:ALICED:(A;;FR;;;ALICE)(A;;0x2;;;OW)(D;;0x3;;;OW)";
        assert_eq!(rights(trailing).0, 0x0012_008B);
        assert_eq!(rights("O:BAD:(A;;FA;;;OW)"), AccessMask::NONE);
        assert_eq!(rights("O:ALICED:(A;IO;FA;;;OW)"), OF_OWNER, "inherit only");
    }

    #[test]
    fn lists_that_are_null_or_missing() {
        assert_eq!(
            rights("O:BAD:NO_ACCESS_CONTROL"),
            AccessMask::FILE_ALL_ACCESS
        );
        assert_eq!(rights("O:ALICE"), OF_OWNER);
        assert_eq!(rights("O:BA"), AccessMask::NONE);
    }

    #[test]
    fn the_owner_has_what_accounts_of_another_machine_have() {
        let stranger = "S-1-5-21-1-2-3-1001";
        let of_owner = |entries: &str| rights(&format!("O:ALICED:{entries}"));
        for sid in ["SY", "BA", stranger] {
            assert_eq!(of_owner(&format!("(A;;FA;;;{sid})")).0, 0x001F_01FF);
            assert_eq!(rights(&format!("O:BGD:(A;;FA;;;{sid})")).0, 0, "of another");
            assert_eq!(of_owner(&format!("(D;;FA;;;{sid})")), OF_OWNER);
        }
        let denied = of_owner("(D;;FW;;;ALICE)(A;;FA;;;SY)");
        assert!(!denied.contains(AccessMask::FILE_WRITE_DATA));
        assert_eq!(of_owner("(A;;FR;;;OW)(A;;FA;;;SY)").0, 0x0012_0089);
    }

    #[test]
    fn generic_rights_are_mapped_and_the_sacl_stays_closed() {
        assert_eq!(rights("D:(A;;GR;;;WD)").0, 0x0012_0089);
        assert_eq!(
            rights("D:(A;;0xFFFFFFFF;;;WD)"),
            AccessMask::FILE_ALL_ACCESS
        );
    }

    #[test]
    fn every_user_is_in_the_group_of_all_users() {
        assert_eq!(rights("D:(A;;FR;;;WD)").0, 0x0012_0089);
        assert_eq!(rights("D:(A;;FR;;;AU)").0, 0x0012_0089);
        assert_eq!(rights("D:(A;;FR;;;NU)").0, 0x0012_0089);
        assert_eq!(rights("D:(A;;FR;;;BU)").0, 0x0012_0089);
        assert_eq!(rights("D:(A;;FR;;;AN)(A;;FR;;;BG)(A;;FR;;;IU)").0, 0);
    }

    #[test]
    fn the_owner_of_unix_is_the_owner_of_the_descriptor() {
        let samba = "S-1-5-21-1-2-3";
        let sddl =
            format!("O:{samba}-1000G:{samba}-513D:(A;;FA;;;{samba}-1000)(A;;FR;;;{samba}-513)");
        let descriptor = sddl.parse().expect("SDDL");
        let rights = |uid, gid| {
            let token = Token::new(ALICE, 100, vec![24]);
            granted(&descriptor, &token, Owners { uid, gid }).0
        };
        assert_eq!(rights(7, 7), 0);
        assert_eq!(rights(ALICE, 7), 0x001F_01FF);
        assert_eq!(rights(7, 24), 0x0012_0089);
    }
}
