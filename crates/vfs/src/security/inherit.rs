//! Inheritance of access control entries by new files. \[MS-DTYP\] 2.5.3.4
//!
//! Both lists are inherited, as on Windows; Samba inherits the DACL only. A new file without
//! inheritable entries in its directory's DACL gets none: its permissions follow from the mode.

use wire::Status;
use wire::access::AccessMask;
use wire::security::{Ace, AceFlags, Acl, DescriptorControl, SecurityDescriptor, Sid};

/// The flags that say which access an entry of a SACL logs.
const LOGGED: AceFlags = AceFlags(AceFlags::SUCCESSFUL_ACCESS.0 | AceFlags::FAILED_ACCESS.0);

/// The owner and the group of a new file, which replace CREATOR OWNER and CREATOR GROUP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Creator {
    pub(crate) owner: Sid,
    pub(crate) group: Sid,
}

/// Returns the descriptor of a new file or directory in the directory with the descriptor
/// `parent`. It has the lists with inherited entries only. `None` if the directory has no entries
/// to inherit.
///
/// If a list of the directory is AUTO_INHERITED, so is the new one, and its entries are marked as
/// inherited. smbtorture smb2.acls-with-sysacl.INHERITFLAGS
///
/// # Errors
/// INVALID_ACL if an inherited list would exceed 64 KiB, because entries for the creator become
/// two: the file must not be created with a part of the list.
pub(crate) fn inherited(
    parent: &SecurityDescriptor,
    creator: Creator,
    is_directory: bool,
) -> Result<Option<SecurityDescriptor>, Status> {
    let mut control = DescriptorControl::SELF_RELATIVE;
    let mut list = |from: &Option<Acl>, present, automatic| {
        let is_automatic = parent.control.contains(automatic);
        let list = inherited_list(from.as_ref(), is_automatic, creator, is_directory)?;
        if list.is_some() {
            control |= present;
            if is_automatic {
                control |= automatic;
            }
        }
        Ok(list)
    };
    let dacl = list(
        &parent.dacl,
        DescriptorControl::DACL_PRESENT,
        DescriptorControl::DACL_AUTO_INHERITED,
    )?;
    let sacl = list(
        &parent.sacl,
        DescriptorControl::SACL_PRESENT,
        DescriptorControl::SACL_AUTO_INHERITED,
    )?;
    if dacl.is_none() && sacl.is_none() {
        return Ok(None);
    }
    Ok(Some(SecurityDescriptor {
        control,
        owner: Some(creator.owner),
        group: Some(creator.group),
        dacl,
        sacl,
        ..SecurityDescriptor::default()
    }))
}

/// The list of a new file; `None` if it inherits no entry.
fn inherited_list(
    from: Option<&Acl>,
    is_automatic: bool,
    creator: Creator,
    is_directory: bool,
) -> Result<Option<Acl>, Status> {
    let mark = match is_automatic {
        true => AceFlags::INHERITED,
        false => AceFlags::NONE,
    };
    let mut list = Acl::new();
    for ace in from.iter().flat_map(|from| from.aces()) {
        for inherited in inherited_entries(ace, creator, is_directory) {
            let inherited = inherited.with_flags(inherited.flags() | mark);
            // An entry for the creator can become equal to another one.
            if !list.aces().contains(&inherited) && !list.push(inherited) {
                return Err(Status::INVALID_ACL);
            }
        }
    }
    Ok((!list.aces().is_empty()).then_some(list))
}

/// Returns the whole descriptor of a new file from what it inherits. Without a list to inherit, its
/// owner and SYSTEM get full access, as by the default list of a token of Windows.
pub(crate) fn with_default_list(
    inherited: Option<SecurityDescriptor>,
    creator: Creator,
) -> SecurityDescriptor {
    let mut descriptor = inherited.unwrap_or_default();
    descriptor.control |= DescriptorControl::SELF_RELATIVE | DescriptorControl::DACL_PRESENT;
    descriptor.owner = Some(creator.owner);
    descriptor.group = Some(creator.group);
    descriptor.dacl.get_or_insert_with(|| {
        let mut dacl = Acl::new();
        for sid in [creator.owner, Sid::LOCAL_SYSTEM] {
            let ace = Ace::allow(sid, AccessMask::FILE_ALL_ACCESS, AceFlags::NONE);
            assert!(dacl.push(ace), "two entries fit in a list");
        }
        dacl
    });
    descriptor
}

/// The entries that a new file inherits from one entry: none, one, or two for a directory that
/// passes a CREATOR entry on.
fn inherited_entries(ace: &Ace, creator: Creator, is_directory: bool) -> impl Iterator<Item = Ace> {
    let flags = ace.flags();
    let (objects, containers) = (
        flags.contains(AceFlags::OBJECT_INHERIT),
        flags.contains(AceFlags::CONTAINER_INHERIT),
    );
    let stops = flags.contains(AceFlags::NO_PROPAGATE_INHERIT);
    let replaced = ace.with_creator(creator);
    let is_creator = replaced != *ace;
    let effective = replaced.with_flags(flags & LOGGED);
    let passed_on = ace.with_flags(flags.without(AceFlags::INHERITED) | AceFlags::INHERIT_ONLY);
    let (first, second) = match is_directory {
        false => (objects.then_some(effective), None),
        // A directory holds an entry for files for its own files.
        true if !containers => ((objects && !stops).then_some(passed_on), None),
        true if stops => (Some(effective), None),
        true if is_creator => (Some(effective), Some(passed_on)),
        true => {
            let kept = flags.without(AceFlags::INHERITED | AceFlags::INHERIT_ONLY);
            (Some(ace.with_flags(kept)), None)
        }
    };
    first.into_iter().chain(second)
}

/// Changed copies of an entry.
trait Changed {
    fn with_flags(&self, flags: AceFlags) -> Ace;
    fn with_creator(&self, creator: Creator) -> Ace;
}

impl Changed for Ace {
    fn with_flags(&self, new: AceFlags) -> Ace {
        let mut ace = self.clone();
        let (Ace::Basic { flags, .. } | Ace::Other { flags, .. }) = &mut ace;
        *flags = new;
        ace
    }

    /// The entry for the creator instead of CREATOR OWNER or CREATOR GROUP.
    fn with_creator(&self, creator: Creator) -> Ace {
        let mut ace = self.clone();
        if let Ace::Basic { sid, .. } = &mut ace {
            match *sid {
                Sid::CREATOR_OWNER => *sid = creator.owner,
                Sid::CREATOR_GROUP => *sid = creator.group,
                _ => {}
            }
        }
        ace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn creator() -> Creator {
        Creator {
            owner: Sid::unix_user(7),
            group: Sid::unix_group(8),
        }
    }

    fn inherits(parent: &str, is_directory: bool) -> Option<String> {
        let parent = parent.parse().expect("SDDL");
        let child = inherited(&parent, creator(), is_directory).expect("short")?;
        assert_eq!(child.owner, Some(creator().owner));
        let text = child.to_sddl().expect("printable");
        let (_, dacl) = text.split_once("D:").expect("a DACL");
        Some(dacl.to_owned())
    }

    fn file(parent: &str) -> Option<String> {
        inherits(parent, false)
    }

    fn directory(parent: &str) -> Option<String> {
        inherits(parent, true)
    }

    #[test]
    fn entries_without_inheritance_stay_with_the_directory() {
        for parent in [
            "D:(A;;FA;;;WD)",
            "D:(A;NP;FA;;;WD)",
            "D:(A;IO;FA;;;WD)",
            "D:",
        ] {
            assert_eq!(file(parent), None, "{parent}");
            assert_eq!(directory(parent), None, "{parent}");
        }
    }

    #[test]
    fn files_inherit_entries_for_objects() {
        assert_eq!(file("D:(A;OI;FR;;;WD)").as_deref(), Some("(A;;FR;;;WD)"));
        assert_eq!(file("D:(A;OIIO;FR;;;WD)").as_deref(), Some("(A;;FR;;;WD)"));
        assert_eq!(file("D:(A;OINP;FR;;;WD)").as_deref(), Some("(A;;FR;;;WD)"));
        assert_eq!(file("D:(A;CI;FR;;;WD)"), None);
        let order = "D:(D;OI;FW;;;AN)(A;;FX;;;WD)(A;OI;FA;;;SY)";
        assert_eq!(file(order).as_deref(), Some("(D;;FW;;;AN)(A;;FA;;;SY)"));
    }

    #[test]
    fn directories_pass_entries_on() {
        let inherited = |entry: &str| directory(&format!("D:(A;{entry};FR;;;WD)"));
        let entry = |flags: &str| Some(format!("(A;{flags};FR;;;WD)"));
        assert_eq!(inherited("OI"), entry("OIIO"));
        assert_eq!(inherited("CI"), entry("CI"));
        assert_eq!(inherited("OICI"), entry("OICI"));
        assert_eq!(inherited("OINP"), None);
        assert_eq!(inherited("CINP"), entry(""));
        assert_eq!(inherited("OICINP"), entry(""));
        assert_eq!(inherited("OIIO"), entry("OIIO"));
        assert_eq!(inherited("CIIO"), entry("CI"));
        assert_eq!(inherited("OICIIO"), entry("OICI"));
    }

    #[test]
    fn the_creator_replaces_creator_owner_and_creator_group() {
        let parent = "D:(A;OICI;FA;;;CO)(A;OICI;FR;;;CG)";
        let child = "(A;;FA;;;S-1-22-1-7)(A;;FR;;;S-1-22-2-8)";
        assert_eq!(file(parent).as_deref(), Some(child));
        let child = "(A;;FA;;;S-1-22-1-7)(A;OICIIO;FA;;;CO)\
                     (A;;FR;;;S-1-22-2-8)(A;OICIIO;FR;;;CG)";
        assert_eq!(directory(parent).as_deref(), Some(child));
        let once = "D:(A;CINP;FA;;;CO)";
        assert_eq!(directory(once).as_deref(), Some("(A;;FA;;;S-1-22-1-7)"));
        let files = "D:(A;OI;FA;;;CO)";
        assert_eq!(directory(files).as_deref(), Some("(A;OIIO;FA;;;CO)"));
    }

    #[test]
    fn automatic_inheritance_marks_the_entries() {
        let parent = "D:AI(A;OICI;FA;;;CO)(A;ID;FR;;;WD)";
        assert_eq!(file(parent).as_deref(), Some("AI(A;ID;FA;;;S-1-22-1-7)"));
        let child = "AI(A;ID;FA;;;S-1-22-1-7)(A;OICIIOID;FA;;;CO)";
        assert_eq!(directory(parent).as_deref(), Some(child));
        let manual = "D:P(A;OIID;FA;;;WD)";
        assert_eq!(file(manual).as_deref(), Some("(A;;FA;;;WD)"));
    }

    #[test]
    fn lists_for_auditing_are_inherited() {
        let inherits = |parent: &str, is_directory| {
            let parent = parent.parse().expect("SDDL");
            let child = inherited(&parent, creator(), is_directory).expect("short")?;
            let text = child.to_sddl().expect("printable");
            Some(text.replace("O:S-1-22-1-7G:S-1-22-2-8", ""))
        };
        let parent = "D:(A;;FA;;;WD)S:AI(AU;OICISAFA;FW;;;WD)(AU;SA;FR;;;WD)";
        let file = "S:AI(AU;IDSAFA;FW;;;WD)";
        assert_eq!(inherits(parent, false).as_deref(), Some(file));
        let directory = "S:AI(AU;OICIIDSAFA;FW;;;WD)";
        assert_eq!(inherits(parent, true).as_deref(), Some(directory));
        let both = "D:(A;OI;FR;;;CO)S:(AU;OIFA;FA;;;CO)";
        let file = "D:(A;;FR;;;S-1-22-1-7)S:(AU;FA;FA;;;S-1-22-1-7)";
        assert_eq!(inherits(both, false).as_deref(), Some(file));
        assert_eq!(inherits("D:(A;;FA;;;WD)S:(AU;SA;FA;;;WD)", true), None);
    }

    #[test]
    fn equal_entries_are_inherited_once() {
        let parent = "D:(A;OI;FA;;;CO)(A;OI;FA;;;S-1-22-1-7)";
        assert_eq!(file(parent).as_deref(), Some("(A;;FA;;;S-1-22-1-7)"));
    }

    #[test]
    fn a_list_that_grows_too_long_is_refused() {
        let mut dacl = Acl::new();
        let mut user = 0;
        let flags = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT;
        let mask = AccessMask(1);
        assert!(dacl.push(Ace::allow(Sid::CREATOR_OWNER, mask, flags)));
        while dacl.push(Ace::deny(Sid::unix_user(user), mask, flags)) {
            user += 1;
        }
        let parent = SecurityDescriptor {
            dacl: Some(dacl),
            ..SecurityDescriptor::default()
        };
        let child = |is_directory| inherited(&parent, creator(), is_directory);
        assert_eq!(child(true), Err(Status::INVALID_ACL));
        assert!(child(false).is_ok_and(|child| child.is_some()));
    }
}
