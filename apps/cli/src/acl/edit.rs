//! Changes of an access control list: entries are added, merged and removed.

use smbeam_client::{AccessMask, Ace, AceFlags, AceType, Acl, Sid};

/// Why a list cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EditError {
    /// The list would be longer than 64 KiB.
    TooLong,
    /// Only entries that the parent directory passes on have these rights.
    IsInherited,
}

/// Adds an entry that allows or denies rights. An own entry of the same type, inheritance and SID
/// gets the rights instead. Entries that deny come first, then those that allow, then the inherited
/// ones.
pub(super) fn add(
    list: &Acl,
    ace_type: AceType,
    sid: Sid,
    mask: AccessMask,
    inheritance: AceFlags,
) -> Result<Acl, EditError> {
    let mut aces = list.aces().to_vec();
    let own = aces.iter_mut().find_map(|ace| match ace {
        Ace::Basic {
            ace_type: its_type,
            flags,
            mask,
            sid: its_sid,
        } if *its_type == ace_type && *flags == inheritance && *its_sid == sid => Some(mask),
        _ => None,
    });
    match own {
        Some(own) => *own |= mask,
        None => {
            let index = position(&aces, ace_type);
            let ace = match ace_type {
                AceType::ACCESS_DENIED => Ace::deny(sid, mask, inheritance),
                _ => Ace::allow(sid, mask, inheritance),
            };
            aces.insert(index, ace);
        }
    }
    list_of(aces)
}

/// Removes rights from the own entries that allow them to `sid`; without `mask`, removes all own
/// entries of `sid`.
pub(super) fn revoke(list: &Acl, sid: &Sid, mask: Option<AccessMask>) -> Result<Acl, EditError> {
    let (mut is_inherited, mut is_changed) = (false, false);
    let mut aces = Vec::new();
    for ace in list.aces() {
        let Ace::Basic {
            ace_type,
            flags,
            mask: own,
            sid: its_sid,
        } = ace
        else {
            aces.push(ace.clone());
            continue;
        };
        let revoked = mask.unwrap_or(*own);
        let is_meant = its_sid == sid
            && (mask.is_none() || *ace_type == AceType::ACCESS_ALLOWED)
            && (mask.is_none() || own.intersects(revoked));
        if !is_meant || flags.contains(AceFlags::INHERITED) {
            is_inherited |= is_meant;
            aces.push(ace.clone());
            continue;
        }
        is_changed = true;
        let left = own.without(revoked);
        // An entry that allows nothing but to wait has no effect.
        if mask.is_some() && !left.without(AccessMask::SYNCHRONIZE).is_empty() {
            aces.push(Ace::allow(*its_sid, left, *flags));
        }
    }
    match is_inherited && !is_changed {
        true => Err(EditError::IsInherited),
        false => list_of(aces),
    }
}

/// The list for a file: entries of a file pass on nothing.
pub(super) fn without_inheritance(flags: AceFlags) -> AceFlags {
    let inheritance = AceFlags::OBJECT_INHERIT
        | AceFlags::CONTAINER_INHERIT
        | AceFlags::NO_PROPAGATE_INHERIT
        | AceFlags::INHERIT_ONLY;
    flags.without(inheritance)
}

/// The place of a new entry in the canonical order.
fn position(aces: &[Ace], ace_type: AceType) -> usize {
    let is_before = |ace: &Ace| {
        let is_own = !ace.flags().contains(AceFlags::INHERITED);
        let is_deny = ace.ace_type() == AceType::ACCESS_DENIED;
        is_own && (is_deny || ace_type != AceType::ACCESS_DENIED)
    };
    aces.iter()
        .position(|ace| !is_before(ace))
        .unwrap_or(aces.len())
}

fn list_of(aces: Vec<Ace>) -> Result<Acl, EditError> {
    let mut list = Acl::new();
    match aces.into_iter().all(|ace| list.push(ace)) {
        true => Ok(list),
        false => Err(EditError::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use smbeam_client::SecurityDescriptor;

    use super::*;

    fn list(text: &str) -> Acl {
        let descriptor: SecurityDescriptor = text.parse().expect("SDDL");
        descriptor.dacl.expect("a DACL")
    }

    fn text(list: Result<Acl, EditError>) -> String {
        let descriptor = SecurityDescriptor {
            dacl: Some(list.expect("a list")),
            ..SecurityDescriptor::default()
        };
        descriptor.to_sddl().expect("printable")
    }

    const READ: AccessMask = AccessMask::FILE_GENERIC_READ;
    const ALLOW: AceType = AceType::ACCESS_ALLOWED;
    const DENY: AceType = AceType::ACCESS_DENIED;

    #[test]
    fn entries_are_added_in_canonical_order() {
        let before = list("D:(D;;FW;;;BU)(A;;FA;;;SY)(A;ID;FA;;;BA)");
        let none = AceFlags::NONE;
        let allowed = add(&before, ALLOW, Sid::EVERYONE, READ, none);
        assert_eq!(
            text(allowed),
            "D:(D;;FW;;;BU)(A;;FA;;;SY)(A;;FR;;;WD)(A;ID;FA;;;BA)"
        );
        let denied = add(&before, DENY, Sid::EVERYONE, READ, none);
        assert_eq!(
            text(denied),
            "D:(D;;FW;;;BU)(D;;FR;;;WD)(A;;FA;;;SY)(A;ID;FA;;;BA)"
        );
        let first = add(&Acl::new(), DENY, Sid::EVERYONE, READ, none);
        assert_eq!(text(first), "D:(D;;FR;;;WD)");
    }

    #[test]
    fn an_entry_of_the_same_kind_is_extended() {
        let before = list("D:(A;OICI;FR;;;WD)");
        let inheritance = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT;
        let write = AccessMask::FILE_GENERIC_WRITE;
        let merged = add(&before, ALLOW, Sid::EVERYONE, write, inheritance);
        assert_eq!(text(merged), "D:(A;OICI;0x12019f;;;WD)");
        let other = add(&before, ALLOW, Sid::EVERYONE, write, AceFlags::NONE);
        assert_eq!(text(other), "D:(A;OICI;FR;;;WD)(A;;FW;;;WD)");
    }

    #[test]
    fn rights_and_entries_are_revoked() {
        let before = list("D:(D;;FW;;;WD)(A;;FA;;;WD)(A;;FR;;;SY)(A;ID;FX;;;BU)");
        let all = revoke(&before, &Sid::EVERYONE, None);
        assert_eq!(text(all), "D:(A;;FR;;;SY)(A;ID;FX;;;BU)");
        let some = revoke(&before, &Sid::EVERYONE, Some(AccessMask(0x001F_01FE)));
        assert_eq!(
            text(some),
            "D:(D;;FW;;;WD)(A;;CC;;;WD)(A;;FR;;;SY)(A;ID;FX;;;BU)"
        );
        let inherited = revoke(&before, &Sid::BUILTIN_USERS, None);
        assert_eq!(inherited, Err(EditError::IsInherited));
        let nothing = revoke(&before, &Sid::BUILTIN_GUESTS, None);
        assert_eq!(nothing, Ok(before));
    }

    #[test]
    fn a_list_has_a_maximum_length() {
        let mut long = Acl::new();
        while long.push(Ace::allow(Sid::LOCAL_SYSTEM, READ, AceFlags::NONE)) {}
        let added = add(&long, ALLOW, Sid::EVERYONE, READ, AceFlags::NONE);
        assert_eq!(added, Err(EditError::TooLong));
    }
}
