//! The changes that `smbeam acl set` makes to a descriptor.

use smbeam_client::{
    AccessMask, AceFlags, AceType, Acl, DescriptorControl, SecurityDescriptor, SecurityInformation,
    Sid,
};

use super::edit::{self, EditError};
use super::{names, rights};

/// A grant or denial from the command line: `USER-or-SID:RIGHTS[:INHERITANCE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    sid: Sid,
    mask: AccessMask,
    inheritance: AceFlags,
}

/// A revocation from the command line: `USER-or-SID[:RIGHTS]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Revocation {
    sid: Sid,
    mask: Option<AccessMask>,
}

/// All changes of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    /// A whole descriptor; its parts replace those of the file.
    pub(super) descriptor: Option<SecurityDescriptor>,
    /// The new owner.
    pub(super) owner: Option<Sid>,
    /// The new group.
    pub(super) group: Option<Sid>,
    /// Entries to add that allow.
    pub(super) grants: Vec<Entry>,
    /// Entries to add that deny.
    pub(super) denials: Vec<Entry>,
    /// Entries to remove.
    pub(super) revocations: Vec<Revocation>,
}

/// Parses `USER-or-SID:RIGHTS[:INHERITANCE]`.
pub(super) fn parse_entry(text: &str) -> Result<Entry, String> {
    let mut parts = text.split(':');
    let sid = names::parse(parts.next().unwrap_or_default())?;
    let mask = parts
        .next()
        .ok_or("want USER:RIGHTS, such as Everyone:read")?;
    let inheritance = parts.next().map(rights::parse_inheritance).transpose()?;
    match parts.next() {
        None => Ok(Entry {
            sid,
            mask: rights::parse(mask)?,
            inheritance: inheritance.unwrap_or_default(),
        }),
        Some(_) => Err("want USER:RIGHTS[:INHERITANCE]".to_owned()),
    }
}

/// Parses `USER-or-SID[:RIGHTS]`.
pub(super) fn parse_revocation(text: &str) -> Result<Revocation, String> {
    let (sid, mask) = match text.split_once(':') {
        Some((sid, mask)) => (sid, Some(rights::parse(mask)?)),
        None => (text, None),
    };
    Ok(Revocation {
        sid: names::parse(sid)?,
        mask,
    })
}

impl Change {
    /// Whether the change needs the present descriptor of the file.
    pub(super) fn needs_present(&self) -> bool {
        self.edits() > 0 && self.descriptor.as_ref().is_none_or(|it| it.dacl.is_none())
    }

    /// Number of entries to add and to remove.
    fn edits(&self) -> usize {
        self.grants.len() + self.denials.len() + self.revocations.len()
    }

    /// The parts of a descriptor that the change sets.
    pub(super) fn parts(&self) -> SecurityInformation {
        let own = self.descriptor.as_ref();
        let has = |flag| own.is_some_and(|own| own.control.contains(flag));
        let is_edited = self.edits() > 0;
        [
            (
                self.owner.is_some() || own.is_some_and(|own| own.owner.is_some()),
                SecurityInformation::OWNER,
            ),
            (
                self.group.is_some() || own.is_some_and(|own| own.group.is_some()),
                SecurityInformation::GROUP,
            ),
            (
                is_edited || has(DescriptorControl::DACL_PRESENT),
                SecurityInformation::DACL,
            ),
            (
                has(DescriptorControl::SACL_PRESENT),
                SecurityInformation::SACL,
            ),
        ]
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .fold(SecurityInformation::NONE, |parts, (_, part)| parts | part)
    }

    /// The new descriptor of a file with the descriptor `present`.
    ///
    /// # Errors
    /// The reason why the list cannot be changed.
    pub(super) fn apply(
        &self,
        present: &SecurityDescriptor,
        is_directory: bool,
    ) -> Result<SecurityDescriptor, &'static str> {
        let mut new = self.descriptor.clone().unwrap_or_default();
        if self.needs_present() {
            new.control |= present.control;
            new.dacl = match &present.dacl {
                Some(list) => Some(list.clone()),
                None => {
                    return Err(
                        "the file has no DACL, so everyone has full access: set a whole \
                                one with --sddl",
                    );
                }
            };
        }
        if let Some(list) = &new.dacl {
            new.dacl = Some(self.edited(list, is_directory)?);
        }
        new.owner = self.owner.or(new.owner);
        new.group = self.group.or(new.group);
        Ok(new)
    }

    fn edited(&self, list: &Acl, is_directory: bool) -> Result<Acl, &'static str> {
        let mut list = list.clone();
        for Revocation { sid, mask } in &self.revocations {
            list = edit::revoke(&list, sid, *mask).map_err(reason)?;
        }
        for (ace_type, entries) in [
            (AceType::ACCESS_ALLOWED, &self.grants),
            (AceType::ACCESS_DENIED, &self.denials),
        ] {
            for entry in entries {
                let flags = match is_directory {
                    true => entry.inheritance,
                    false if entry.inheritance.contains(AceFlags::INHERIT_ONLY) => continue,
                    false => edit::without_inheritance(entry.inheritance),
                };
                list = edit::add(&list, ace_type, entry.sid, entry.mask, flags).map_err(reason)?;
            }
        }
        Ok(list)
    }
}

fn reason(error: EditError) -> &'static str {
    match error {
        EditError::TooLong => "the access control list would be longer than 64 KiB",
        EditError::IsInherited => {
            "the entry is inherited: change it at the directory that passes it on"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(text: &str) -> SecurityDescriptor {
        text.parse().expect("SDDL")
    }

    #[test]
    fn entries_are_parsed() {
        let entry = parse_entry("Everyone:read,write:files,directories").expect("an entry");
        assert_eq!(entry.sid, Sid::EVERYONE);
        assert_eq!(entry.mask, AccessMask(0x0012_019F));
        let all = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT;
        assert_eq!(entry.inheritance, all);
        let entry = parse_entry("uid=5:full").expect("an entry");
        assert_eq!(entry.sid, Sid::unix_user(5));
        for wrong in ["Everyone", "Everyone:x", ":read", "Everyone:read:all:x"] {
            assert!(parse_entry(wrong).is_err(), "{wrong}");
        }
        let whole = parse_revocation("Everyone").expect("a revocation");
        assert_eq!(whole.mask, None);
    }

    #[test]
    fn a_file_passes_nothing_on() {
        let change = Change {
            grants: vec![
                parse_entry("Everyone:read:all").expect("an entry"),
                parse_entry("Users:read:all,only").expect("an entry"),
            ],
            ..Change::default()
        };
        let present = descriptor("O:SYD:AI(A;ID;FA;;;BA)");
        let file = change.apply(&present, false).expect("changed");
        assert_eq!(
            file.to_sddl().as_deref(),
            Some("D:AI(A;;FR;;;WD)(A;ID;FA;;;BA)")
        );
        let directory = change.apply(&present, true).expect("changed");
        let text = "D:AI(A;OICI;FR;;;WD)(A;OICIIO;FR;;;BU)(A;ID;FA;;;BA)";
        assert_eq!(directory.to_sddl().as_deref(), Some(text));
        assert_eq!(change.parts(), SecurityInformation::DACL);
    }

    #[test]
    fn only_given_parts_are_set() {
        let change = Change {
            owner: Some(Sid::LOCAL_SYSTEM),
            ..Change::default()
        };
        assert_eq!(change.parts(), SecurityInformation::OWNER);
        assert!(!change.needs_present());
        let change = Change {
            descriptor: Some(descriptor("G:WDD:(A;;FA;;;WD)")),
            ..Change::default()
        };
        let parts = SecurityInformation::GROUP | SecurityInformation::DACL;
        assert_eq!(change.parts(), parts);
        let none = change.apply(&SecurityDescriptor::default(), false);
        assert_eq!(none.expect("changed").owner, None);
    }

    #[test]
    fn a_null_list_is_not_edited() {
        let change = Change {
            grants: vec![parse_entry("Everyone:read").expect("an entry")],
            ..Change::default()
        };
        let null = descriptor("D:NO_ACCESS_CONTROL");
        assert!(change.apply(&null, false).is_err());
    }
}
