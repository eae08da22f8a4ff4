//! The text form of security descriptors (SDDL). \[MS-DTYP\] 2.5.1
//!
//! Entries of the types allow, deny, audit, integrity label and central policy have a text form.
//! Conditional entries and entries of directory services do not:
//! [`to_sddl`](super::SecurityDescriptor::to_sddl) returns `None` for them, and the parser refuses
//! them.

mod parse;
mod print;

use core::fmt;

use super::acl::{AceFlags, AceType};
use super::sid::Sid;
use crate::access::AccessMask;

/// The error for a text that is not a security descriptor in SDDL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseSddlError {
    /// Offset of the part that is wrong, in bytes from the start of the text.
    pub offset: usize,
    /// The part that the parser expects there.
    pub expected: &'static str,
}

impl fmt::Display for ParseSddlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, expected } = self;
        write!(f, "not SDDL: expected {expected} at offset {offset}")
    }
}

impl core::error::Error for ParseSddlError {}

/// Types of entries with a text form. \[MS-DTYP\] 2.5.1.1, ace-type
const TYPES: [(&str, AceType); 5] = [
    ("A", AceType::ACCESS_ALLOWED),
    ("D", AceType::ACCESS_DENIED),
    ("AU", AceType::SYSTEM_AUDIT),
    ("ML", AceType::SYSTEM_MANDATORY_LABEL),
    ("SP", AceType::SYSTEM_SCOPED_POLICY_ID),
];

/// Flags of an entry, in the order in which Windows prints them. \[MS-DTYP\] 2.5.1.1, ace-flag
const FLAGS: [(&str, AceFlags); 7] = [
    ("OI", AceFlags::OBJECT_INHERIT),
    ("CI", AceFlags::CONTAINER_INHERIT),
    ("NP", AceFlags::NO_PROPAGATE_INHERIT),
    ("IO", AceFlags::INHERIT_ONLY),
    ("ID", AceFlags::INHERITED),
    ("SA", AceFlags::SUCCESSFUL_ACCESS),
    ("FA", AceFlags::FAILED_ACCESS),
];

/// Names of access masks. The first ones are whole masks of files, which the printer prefers.
/// \[MS-DTYP\] 2.5.1.1, rights
const RIGHTS: [(&str, AccessMask); 21] = [
    ("FA", AccessMask::FILE_ALL_ACCESS),
    ("FR", AccessMask::FILE_GENERIC_READ),
    ("FW", AccessMask::FILE_GENERIC_WRITE),
    ("FX", AccessMask::FILE_GENERIC_EXECUTE),
    ("GA", AccessMask::GENERIC_ALL),
    ("GR", AccessMask::GENERIC_READ),
    ("GW", AccessMask::GENERIC_WRITE),
    ("GX", AccessMask::GENERIC_EXECUTE),
    ("RC", AccessMask::READ_CONTROL),
    ("SD", AccessMask::DELETE),
    ("WD", AccessMask::WRITE_DAC),
    ("WO", AccessMask::WRITE_OWNER),
    ("CC", AccessMask(0x0001)),
    ("DC", AccessMask(0x0002)),
    ("LC", AccessMask(0x0004)),
    ("SW", AccessMask(0x0008)),
    ("RP", AccessMask(0x0010)),
    ("WP", AccessMask(0x0020)),
    ("DT", AccessMask(0x0040)),
    ("LO", AccessMask(0x0080)),
    ("CR", AccessMask(0x0100)),
];
/// Number of names in [`RIGHTS`] that stand for whole masks of files.
const WHOLE_MASKS: usize = 4;

/// Names of well-known SIDs. \[MS-DTYP\] 2.4.2.4, 2.5.1.1
const SIDS: [(&str, Sid); 14] = [
    ("WD", Sid::EVERYONE),
    ("CO", Sid::CREATOR_OWNER),
    ("CG", Sid::CREATOR_GROUP),
    ("OW", Sid::OWNER_RIGHTS),
    ("NU", Sid::NETWORK),
    ("IU", Sid::INTERACTIVE),
    ("AN", Sid::ANONYMOUS),
    ("AU", Sid::AUTHENTICATED_USERS),
    ("SY", Sid::LOCAL_SYSTEM),
    ("LS", Sid::LOCAL_SERVICE),
    ("NS", Sid::NETWORK_SERVICE),
    ("BA", Sid::BUILTIN_ADMINISTRATORS),
    ("BU", Sid::BUILTIN_USERS),
    ("BG", Sid::BUILTIN_GUESTS),
];

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::super::{Ace, AceFlags, AceType, Acl, DescriptorControl, SecurityDescriptor, Sid};
    use super::*;

    fn parse(text: &str) -> SecurityDescriptor {
        text.parse().expect("SDDL")
    }

    #[test]
    fn a_descriptor_of_windows_is_read_and_printed() {
        let text = "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(D;;DCLCRPDTCRSD;;;BU)(A;OICIIO;GA;;;CO)\
                    (A;ID;0x1200a9;;;S-1-5-21-1-2-3-1000)S:AI(AU;SAFA;FA;;;WD)";
        let descriptor = parse(text);
        assert_eq!(descriptor.owner, Some(Sid::BUILTIN_ADMINISTRATORS));
        assert_eq!(descriptor.group, Some(Sid::LOCAL_SYSTEM));
        let control = DescriptorControl::DACL_PRESENT
            | DescriptorControl::DACL_PROTECTED
            | DescriptorControl::DACL_AUTO_INHERITED
            | DescriptorControl::SACL_PRESENT
            | DescriptorControl::SACL_AUTO_INHERITED
            | DescriptorControl::SELF_RELATIVE;
        assert_eq!(descriptor.control, control);
        let dacl = descriptor.dacl.as_ref().expect("a DACL").aces();
        assert_eq!(dacl.len(), 4);
        let inherited = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT;
        let system = Ace::allow(Sid::LOCAL_SYSTEM, AccessMask(0x001F_01FF), inherited);
        assert_eq!(dacl[0], system);
        assert_eq!(descriptor.to_sddl().expect("printable"), text);
    }

    #[test]
    fn empty_missing_and_null_lists_differ() {
        let empty = parse("O:WDD:");
        assert_eq!(empty.dacl, Some(Acl::new()));
        assert_eq!(empty.to_sddl().as_deref(), Some("O:WDD:"));
        let none = parse("O:WD");
        assert_eq!(none.dacl, None);
        assert!(!none.control.contains(DescriptorControl::DACL_PRESENT));
        let null = parse("D:NO_ACCESS_CONTROL");
        assert_eq!(null.dacl, None);
        assert!(null.control.contains(DescriptorControl::DACL_PRESENT));
        assert_eq!(null.to_sddl().as_deref(), Some("D:NO_ACCESS_CONTROL"));
    }

    #[test]
    fn spaces_between_parts_are_ignored() {
        assert_eq!(
            parse("O:WD G:WD D: (A;;FR;;;WD) (D;;FW;;;AN)"),
            parse("O:WDG:WDD:(A;;FR;;;WD)(D;;FW;;;AN)")
        );
    }

    #[test]
    fn numbers_stand_for_masks() {
        let mask = |text: &str| match parse(text).dacl.expect("a DACL").aces() {
            [Ace::Basic { mask, .. }] => *mask,
            other => panic!("{other:?}"),
        };
        assert_eq!(mask("D:(A;;0x1f01ff;;;WD)"), AccessMask::FILE_ALL_ACCESS);
        assert_eq!(mask("D:(A;;2032127;;;WD)"), AccessMask::FILE_ALL_ACCESS);
        assert_eq!(mask("D:(A;;;;;WD)"), AccessMask::NONE);
        assert_eq!(mask("D:(A;;FRFW;;;WD)"), AccessMask(0x0012_019F));
    }

    #[test]
    fn errors_have_a_place() {
        for (text, offset) in [
            ("X:WD", 0),
            ("O:ZZ", 2),
            ("D:(A;;FR;;;WD", 13),
            ("D:(Q;;FR;;;WD)", 3),
            ("D:(A;XX;FR;;;WD)", 5),
            ("D:(A;;ZZ;;;WD)", 6),
            ("D:(A;;0x1ffffffff;;;WD)", 6),
            ("O:WDO:WD", 4),
        ] {
            let error = text.parse::<SecurityDescriptor>().expect_err(text);
            assert_eq!(error.offset, offset, "{text}: {error}");
        }
    }

    #[test]
    fn an_entry_without_a_text_form_is_not_printed() {
        let mut dacl = Acl::new();
        let other = Ace::Other {
            ace_type: AceType::ACCESS_ALLOWED_CALLBACK,
            flags: AceFlags::NONE,
            body: alloc::vec![0; 8],
        };
        assert!(dacl.push(other));
        let descriptor = SecurityDescriptor {
            dacl: Some(dacl),
            ..SecurityDescriptor::default()
        };
        assert_eq!(descriptor.to_sddl(), None);
    }

    #[test]
    fn sids_have_short_names() {
        assert_eq!(Sid::EVERYONE.to_sddl(), "WD");
        let user = Sid::unix_user(1000);
        assert_eq!(user.to_sddl(), user.to_string());
    }
}
