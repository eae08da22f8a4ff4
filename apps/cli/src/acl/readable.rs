//! Security descriptors in words, and as JSON.

use serde::Serialize;
use smbeam_client::{Ace, AceFlags, AceType, Acl, DescriptorControl, SecurityDescriptor, Sid};

use super::{names, rights};
use crate::describe::json;

/// A descriptor as JSON.
#[derive(Serialize)]
struct Description<'a> {
    path: &'a str,
    owner: Option<Account>,
    group: Option<Account>,
    protected: bool,
    /// `None`: everyone has full access.
    entries: Option<Vec<EntryDescription>>,
    audit: Option<Vec<EntryDescription>>,
    /// `None` if an entry has no text form.
    sddl: Option<String>,
}

/// A user or group.
#[derive(Serialize)]
struct Account {
    sid: String,
    name: Option<String>,
}

/// An entry of a list.
#[derive(Serialize)]
struct EntryDescription {
    #[serde(rename = "type")]
    kind: String,
    sid: Option<String>,
    name: Option<String>,
    rights: Vec<String>,
    mask: Option<u32>,
    inheritance: Vec<&'static str>,
    inherited: bool,
}

/// The JSON object of a descriptor, on one line.
pub(super) fn json_line(path: &str, descriptor: &SecurityDescriptor) -> String {
    let entries = |list: &Acl| list.aces().iter().map(describe).collect();
    json(&Description {
        path,
        owner: descriptor.owner.as_ref().map(account),
        group: descriptor.group.as_ref().map(account),
        protected: is_protected(descriptor),
        entries: descriptor.dacl.as_ref().map(entries),
        audit: descriptor.sacl.as_ref().map(entries),
        sddl: descriptor.to_sddl(),
    })
}

/// The descriptor in words: a line for owner and group, and one for each entry.
pub(super) fn text(path: &str, descriptor: &SecurityDescriptor) -> String {
    let mut lines = vec![path.to_owned()];
    for (key, sid) in [("owner", &descriptor.owner), ("group", &descriptor.group)] {
        if let Some(sid) = sid {
            lines.push(format!("  {key:<8}{}", with_sid(sid)));
        }
    }
    if is_protected(descriptor) {
        lines.push("  the directory above passes no entries on".to_owned());
    }
    match &descriptor.dacl {
        Some(list) if list.aces().is_empty() => {
            lines.push("  no entries: no user has access".to_owned());
        }
        Some(list) => lines.extend(list.aces().iter().map(line)),
        None => lines.push("  no list: everyone has full access".to_owned()),
    }
    if let Some(list) = &descriptor.sacl {
        lines.extend(list.aces().iter().map(line));
    }
    lines.join("\n")
}

fn is_protected(descriptor: &SecurityDescriptor) -> bool {
    let flag = DescriptorControl::DACL_PROTECTED;
    descriptor.control.contains(flag)
}

fn account(sid: &Sid) -> Account {
    Account {
        sid: sid.to_string(),
        name: names::name_of(sid),
    }
}

fn with_sid(sid: &Sid) -> String {
    match names::name_of(sid) {
        Some(name) => format!("{name} ({sid})"),
        None => sid.to_string(),
    }
}

fn line(ace: &Ace) -> String {
    let entry = describe(ace);
    let account = match (entry.name, entry.sid) {
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => "(an entry that this version cannot show)".to_owned(),
    };
    let mut notes = entry.inheritance.join(", ");
    if !notes.is_empty() {
        notes = format!("  passed on to: {notes}");
    }
    if entry.inherited {
        notes += "  (inherited)";
    }
    let rights = entry.rights.join(", ");
    format!("  {:<8}{account}  {rights}{notes}", entry.kind)
}

fn describe(ace: &Ace) -> EntryDescription {
    let (sid, mask) = match ace {
        Ace::Basic { mask, sid, .. } => (Some(sid), Some(*mask)),
        Ace::Other { .. } => (None, None),
    };
    EntryDescription {
        kind: kind(ace.ace_type()),
        sid: sid.map(ToString::to_string),
        name: sid.and_then(names::name_of),
        rights: mask.map(rights::words).unwrap_or_default(),
        mask: mask.map(|mask| mask.0),
        inheritance: rights::inheritance_words(ace.flags()),
        inherited: ace.flags().contains(AceFlags::INHERITED),
    }
}

fn kind(ace_type: AceType) -> String {
    match ace_type {
        AceType::ACCESS_ALLOWED => "allow".to_owned(),
        AceType::ACCESS_DENIED => "deny".to_owned(),
        AceType::SYSTEM_AUDIT => "audit".to_owned(),
        AceType::SYSTEM_MANDATORY_LABEL => "label".to_owned(),
        AceType::SYSTEM_SCOPED_POLICY_ID => "policy".to_owned(),
        other => format!("type-{}", other.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_shown_in_words() {
        let text_form = "O:S-1-22-1-2001G:BUD:P(D;;WD;;;AN)(A;OICIID;FA;;;WD)";
        let descriptor = text_form.parse().expect("SDDL");
        let expected = "x\n  \
            owner   Unix User\\2001 (S-1-22-1-2001)\n  \
            group   Users (S-1-5-32-545)\n  \
            the directory above passes no entries on\n  \
            deny    ANONYMOUS LOGON  change-permissions\n  \
            allow   Everyone  full  passed on to: files, directories  (inherited)";
        assert_eq!(text("x", &descriptor), expected);
        let line = json_line("x", &descriptor);
        let parsed: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(parsed["owner"]["sid"], "S-1-22-1-2001");
        assert_eq!(parsed["entries"][1]["rights"][0], "full");
        assert_eq!(parsed["entries"][1]["inherited"], true);
        assert_eq!(parsed["sddl"], text_form);
    }

    #[test]
    fn empty_and_missing_lists_differ() {
        let none = text("x", &"D:NO_ACCESS_CONTROL".parse().expect("SDDL"));
        assert!(none.contains("everyone has full access"));
        let empty = text("x", &"D:".parse().expect("SDDL"));
        assert!(empty.contains("no user has access"));
    }
}
