//! Changes of stored descriptors. \[MS-FSA\] 2.1.5.17

use proto::file::SecurityChange;
use wire::security::{DescriptorControl, SecurityDescriptor, SecurityInformation};

/// The flags of the DACL that a request sets.
const OF_DACL: DescriptorControl = DescriptorControl(
    DescriptorControl::DACL_PRESENT.0
        | DescriptorControl::DACL_DEFAULTED.0
        | DescriptorControl::DACL_TRUSTED.0
        | DescriptorControl::DACL_AUTO_INHERIT_REQ.0
        | DescriptorControl::DACL_AUTO_INHERITED.0
        | DescriptorControl::DACL_PROTECTED.0,
);
/// The flags of the SACL that a request sets.
const OF_SACL: DescriptorControl = DescriptorControl(
    DescriptorControl::SACL_PRESENT.0
        | DescriptorControl::SACL_DEFAULTED.0
        | DescriptorControl::SACL_AUTO_INHERIT_REQ.0
        | DescriptorControl::SACL_AUTO_INHERITED.0
        | DescriptorControl::SACL_PROTECTED.0,
);

/// Returns the descriptor `current` with the parts that `change` replaces. Lists are kept as the
/// client sent them, with specific rights instead of generic ones.
pub(crate) fn apply(current: &SecurityDescriptor, change: &SecurityChange) -> SecurityDescriptor {
    let SecurityChange { parts, descriptor } = change;
    let mut new = descriptor.clone();
    new.map_generic();
    let mut result = current.clone();
    result.control |= DescriptorControl::SELF_RELATIVE;
    if parts.contains(SecurityInformation::OWNER) && new.owner.is_some() {
        result.owner = new.owner;
    }
    if parts.contains(SecurityInformation::GROUP) && new.group.is_some() {
        result.group = new.group;
    }
    if parts.contains(SecurityInformation::DACL) {
        let sent = inherited_flags(
            new.control & OF_DACL,
            DescriptorControl::DACL_AUTO_INHERITED,
            DescriptorControl::DACL_AUTO_INHERIT_REQ,
        );
        result.control = result.control.without(OF_DACL) | sent | DescriptorControl::DACL_PRESENT;
        result.dacl = new.dacl;
    }
    if parts.contains(SecurityInformation::SACL) {
        let sent = inherited_flags(
            new.control & OF_SACL,
            DescriptorControl::SACL_AUTO_INHERITED,
            DescriptorControl::SACL_AUTO_INHERIT_REQ,
        );
        result.control = result.control.without(OF_SACL) | sent | DescriptorControl::SACL_PRESENT;
        result.sacl = new.sacl;
    }
    result
}

/// AUTO_INHERITED is stored only together with the request for it, which is never stored.
/// smbtorture smb2.acls-with-sysacl.INHERITFLAGS
fn inherited_flags(
    sent: DescriptorControl,
    inherited: DescriptorControl,
    requested: DescriptorControl,
) -> DescriptorControl {
    let kept = sent.without(requested);
    match sent.contains(inherited | requested) {
        true => kept,
        false => kept.without(inherited),
    }
}

/// Returns the change that the descriptor of a CREATE request makes to the descriptor of the new
/// file: the parts that it has. \[MS-SMB2\] 2.2.13.2.2
pub(crate) fn change_of_new(descriptor: &SecurityDescriptor) -> SecurityChange {
    let has = |flag| descriptor.control.contains(flag);
    let parts = [
        (descriptor.owner.is_some(), SecurityInformation::OWNER),
        (descriptor.group.is_some(), SecurityInformation::GROUP),
        (
            has(DescriptorControl::DACL_PRESENT),
            SecurityInformation::DACL,
        ),
        (
            has(DescriptorControl::SACL_PRESENT),
            SecurityInformation::SACL,
        ),
    ];
    let present = parts.iter().filter(|(is_present, _)| *is_present);
    SecurityChange {
        parts: present.fold(SecurityInformation::NONE, |all, (_, part)| all | *part),
        descriptor: descriptor.clone(),
    }
}

/// Returns the change that gives a new file the lists that it inherits. Owner and group are those
/// of the file already. The flags are those of [`inherited`](super::inherited).
pub(crate) fn change_of_inherited(mut descriptor: SecurityDescriptor) -> SecurityChange {
    let mut parts = SecurityInformation::NONE;
    if descriptor.dacl.is_some() {
        parts |= SecurityInformation::DACL;
    }
    if descriptor.sacl.is_some() {
        parts |= SecurityInformation::SACL;
    }
    for (automatic, requested) in [
        (
            DescriptorControl::DACL_AUTO_INHERITED,
            DescriptorControl::DACL_AUTO_INHERIT_REQ,
        ),
        (
            DescriptorControl::SACL_AUTO_INHERITED,
            DescriptorControl::SACL_AUTO_INHERIT_REQ,
        ),
    ] {
        if descriptor.control.contains(automatic) {
            descriptor.control |= requested;
        }
    }
    SecurityChange { parts, descriptor }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(current: &str, parts: SecurityInformation, sent: &str) -> String {
        let change = SecurityChange {
            parts,
            descriptor: sent.parse().expect("SDDL"),
        };
        let result = apply(&current.parse().expect("SDDL"), &change);
        result.to_sddl().expect("printable")
    }

    #[test]
    fn only_the_named_parts_change() {
        let current = "O:BAG:BUD:P(A;;FA;;;SY)S:(AU;SA;FA;;;WD)";
        let sent = "O:SYG:SYD:(A;;FR;;;WD)S:P";
        let with = |parts| applied(current, parts, sent);
        assert_eq!(with(SecurityInformation::NONE), current);
        let owner = "O:SYG:BUD:P(A;;FA;;;SY)S:(AU;SA;FA;;;WD)";
        assert_eq!(with(SecurityInformation::OWNER), owner);
        let group = "O:BAG:SYD:P(A;;FA;;;SY)S:(AU;SA;FA;;;WD)";
        assert_eq!(with(SecurityInformation::GROUP), group);
        let dacl = "O:BAG:BUD:(A;;FR;;;WD)S:(AU;SA;FA;;;WD)";
        assert_eq!(with(SecurityInformation::DACL), dacl);
        let sacl = "O:BAG:BUD:P(A;;FA;;;SY)S:P";
        assert_eq!(with(SecurityInformation::SACL), sacl);
    }

    #[test]
    fn the_flag_of_automatic_inheritance_needs_its_request() {
        let with = |sent| applied("O:BAD:AI", SecurityInformation::DACL, sent);
        assert_eq!(with("D:AI"), "O:BAD:");
        assert_eq!(with("D:AR"), "O:BAD:");
        assert_eq!(with("D:ARAI"), "O:BAD:AI");
        assert_eq!(with("D:PARAI"), "O:BAD:PAI");
    }

    #[test]
    fn generic_rights_are_stored_as_specific_ones() {
        let with = |sent| applied("O:BA", SecurityInformation::DACL, sent);
        assert_eq!(with("D:(A;OICI;GA;;;WD)"), "O:BAD:(A;OICI;FA;;;WD)");
        assert_eq!(with("D:(D;;GW;;;WD)"), "O:BAD:(D;;FW;;;WD)");
    }

    #[test]
    fn a_new_file_gets_the_parts_that_are_present() {
        let parts = |sddl: &str| change_of_new(&sddl.parse().expect("SDDL")).parts;
        assert_eq!(parts("D:"), SecurityInformation::DACL);
        assert_eq!(parts("D:NO_ACCESS_CONTROL"), SecurityInformation::DACL);
        assert_eq!(parts(""), SecurityInformation::NONE);
        let owners = SecurityInformation::OWNER | SecurityInformation::GROUP;
        assert_eq!(parts("O:BAG:BA"), owners);
        assert_eq!(parts("S:"), SecurityInformation::SACL);
    }
}
