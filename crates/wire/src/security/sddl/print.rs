//! Printing of security descriptors as SDDL.

use alloc::string::{String, ToString};
use core::fmt::Write as _;

use super::{FLAGS, RIGHTS, SIDS, TYPES, WHOLE_MASKS};
use crate::access::AccessMask;
use crate::security::{Ace, AceFlags, Acl, DescriptorControl, SecurityDescriptor, Sid};

impl SecurityDescriptor {
    /// Returns the text form of the descriptor (SDDL). `None` when a list has an entry without a
    /// text form: a conditional entry, or one of a directory service. \[MS-DTYP\] 2.5.1
    pub fn to_sddl(&self) -> Option<String> {
        let mut text = String::new();
        if let Some(owner) = &self.owner {
            text.push_str("O:");
            text.push_str(&owner.to_sddl());
        }
        if let Some(group) = &self.group {
            text.push_str("G:");
            text.push_str(&group.to_sddl());
        }
        let [protected, requested, inherited] = DACL_CONTROL;
        let has = |flag| self.control.contains(flag);
        if self.dacl.is_some() || has(DescriptorControl::DACL_PRESENT) {
            text.push_str("D:");
            let flags = [has(protected), has(requested), has(inherited)];
            print_list(&mut text, flags, self.dacl.as_ref())?;
        }
        let [protected, requested, inherited] = SACL_CONTROL;
        if self.sacl.is_some() || has(DescriptorControl::SACL_PRESENT) {
            text.push_str("S:");
            let flags = [has(protected), has(requested), has(inherited)];
            print_list(&mut text, flags, self.sacl.as_ref())?;
        }
        Some(text)
    }
}

/// The control flags of the DACL with a text form: "P", "AR" and "AI".
pub(super) const DACL_CONTROL: [DescriptorControl; 3] = [
    DescriptorControl::DACL_PROTECTED,
    DescriptorControl::DACL_AUTO_INHERIT_REQ,
    DescriptorControl::DACL_AUTO_INHERITED,
];
/// The control flags of the SACL with a text form: "P", "AR" and "AI".
pub(super) const SACL_CONTROL: [DescriptorControl; 3] = [
    DescriptorControl::SACL_PROTECTED,
    DescriptorControl::SACL_AUTO_INHERIT_REQ,
    DescriptorControl::SACL_AUTO_INHERITED,
];
/// The names of the control flags of a list.
pub(super) const CONTROL_NAMES: [&str; 3] = ["P", "AR", "AI"];
/// The text of a list that is present but NULL.
pub(super) const NULL_LIST: &str = "NO_ACCESS_CONTROL";

impl Sid {
    /// Returns the SID in the form of SDDL: two characters for a well-known SID such as "WD"
    /// (Everyone), otherwise the form S-1-... \[MS-DTYP\] 2.5.1.1
    pub fn to_sddl(&self) -> String {
        let known = SIDS.iter().find(|(_, sid)| sid == self);
        known.map_or_else(|| self.to_string(), |(name, _)| (*name).to_string())
    }
}

fn print_list(text: &mut String, control: [bool; 3], list: Option<&Acl>) -> Option<()> {
    for (name, is_set) in CONTROL_NAMES.iter().zip(control) {
        if is_set {
            text.push_str(name);
        }
    }
    match list {
        Some(list) => list.aces().iter().try_for_each(|ace| print_ace(text, ace)),
        None => {
            text.push_str(NULL_LIST);
            Some(())
        }
    }
}

fn print_ace(text: &mut String, ace: &Ace) -> Option<()> {
    let Ace::Basic {
        ace_type,
        flags,
        mask,
        sid,
    } = ace
    else {
        return None;
    };
    let (name, _) = TYPES.iter().find(|(_, known)| known == ace_type)?;
    text.push('(');
    text.push_str(name);
    text.push(';');
    print_flags(text, *flags);
    text.push(';');
    print_mask(text, *mask);
    text.push_str(";;;");
    text.push_str(&sid.to_sddl());
    text.push(')');
    Some(())
}

fn print_flags(text: &mut String, flags: AceFlags) {
    for (name, flag) in FLAGS {
        if flags.contains(flag) {
            text.push_str(name);
        }
    }
}

/// Prints a whole mask of files by its name, a mask of named rights by their names, and any other
/// mask as a hexadecimal number.
fn print_mask(text: &mut String, mask: AccessMask) {
    if let Some((name, _)) = RIGHTS[..WHOLE_MASKS]
        .iter()
        .find(|(_, whole)| *whole == mask)
    {
        text.push_str(name);
        return;
    }
    let single = &RIGHTS[WHOLE_MASKS..];
    let named = single
        .iter()
        .fold(AccessMask::NONE, |named, (_, right)| named | *right);
    if !named.contains(mask) {
        let _ = write!(text, "{:#x}", mask.0);
        return;
    }
    // Windows prints the specific rights first.
    let (standard, specific) = single.split_at(STANDARD_RIGHTS);
    for (name, right) in specific.iter().chain(standard) {
        if mask.contains(*right) {
            text.push_str(name);
        }
    }
}

/// Number of generic and standard rights in [`RIGHTS`], after the whole masks.
const STANDARD_RIGHTS: usize = 8;
