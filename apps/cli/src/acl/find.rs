//! `smbeam acl find`: finds files by the users and rights in their access control lists.

use std::sync::Mutex;

use clap::{ArgGroup, Args};
use smbeam_client::{AccessMask, Ace, AceType, SecurityDescriptor, Sid};

use super::{names, readable, rights, walk};
use crate::connect::ConnectArguments;
use crate::descriptor;
use crate::failure::Outcome;
use crate::file_path::RemotePath;
use crate::location::Url;
use crate::mutex::lock;
use crate::output::Lines;
use crate::report::Report;

/// Arguments of `smbeam acl find`. A file must meet all conditions.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("condition").required(true).multiple(true))]
pub(crate) struct Arguments {
    /// The directories to search.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Find files with this user or group as owner or group, or in the list.
    #[arg(
        long,
        value_name = "USER",
        group = "condition",
        value_parser = names::parse
    )]
    sid: Option<Sid>,
    /// Find files with an entry that allows all of these rights; with --sid, to that user.
    #[arg(long, value_name = "RIGHTS", group = "condition", value_parser = rights::parse)]
    grants: Option<AccessMask>,
    /// Print one object of JSON per line, with the whole list.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam acl find`.
pub(super) fn run(arguments: &Arguments, report: &Report) {
    let lines = Mutex::new(Lines::new());
    let Arguments { urls, connect, .. } = arguments;
    walk::trees(urls, connect, true, report, &|path, _| {
        check(arguments, path, &lines)
    });
}

fn check(arguments: &Arguments, path: &RemotePath, lines: &Mutex<Lines>) -> Outcome {
    let found = descriptor::of(path, descriptor::PARTS)?;
    if matches(&found, arguments.sid.as_ref(), arguments.grants) {
        let name = path.to_string();
        match arguments.json {
            true => lock(lines).line(&readable::json_line(&name, &found)),
            false => lock(lines).line(&name),
        }
    }
    Ok(())
}

/// Whether a descriptor names `sid`, or has an entry that allows `grants` (to `sid`).
fn matches(descriptor: &SecurityDescriptor, sid: Option<&Sid>, grants: Option<AccessMask>) -> bool {
    let is_meant = |ace: &Ace| {
        let Ace::Basic {
            ace_type,
            flags: _,
            mask,
            sid: its_sid,
        } = ace
        else {
            return false;
        };
        let allows = |rights: AccessMask| {
            let rights = rights.without_generic();
            *ace_type == AceType::ACCESS_ALLOWED && mask.without_generic().contains(rights)
        };
        sid.is_none_or(|sid| sid == its_sid) && grants.is_none_or(allows)
    };
    let is_account = |account: &Option<Sid>| grants.is_none() && account.as_ref() == sid;
    // Without a list everyone has full access.
    let Some(list) = &descriptor.dacl else {
        return grants.is_some() && sid.is_none_or(|sid| *sid == Sid::EVERYONE);
    };
    list.aces().iter().any(is_meant)
        || is_account(&descriptor.owner)
        || is_account(&descriptor.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str, sid: Option<Sid>, grants: Option<&str>) -> bool {
        let descriptor = text.parse().expect("SDDL");
        let grants = grants.map(|grants| rights::parse(grants).expect("rights"));
        matches(&descriptor, sid.as_ref(), grants)
    }

    #[test]
    fn users_and_rights_are_found() {
        let text = "O:SYG:BUD:(D;;FW;;;AN)(A;;FR;;;WD)";
        let everyone = Some(Sid::EVERYONE);
        assert!(finds(text, everyone, None));
        assert!(finds(text, Some(Sid::LOCAL_SYSTEM), None));
        assert!(finds(text, Some(Sid::BUILTIN_USERS), None));
        assert!(finds(text, Some(Sid::ANONYMOUS), None));
        assert!(!finds(text, Some(Sid::BUILTIN_GUESTS), None));
        assert!(finds(text, everyone, Some("read-data")));
        assert!(finds(text, None, Some("generic-read")));
        assert!(!finds(text, everyone, Some("write-data")));
        assert!(!finds(text, Some(Sid::LOCAL_SYSTEM), Some("read-data")));
        assert!(finds("D:NO_ACCESS_CONTROL", everyone, Some("full")));
        assert!(!finds("D:", None, Some("read-data")));
    }
}
