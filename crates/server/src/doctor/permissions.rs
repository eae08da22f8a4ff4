//! Checks of the permissions of a user on each component of a path, and of its accesses to the last
//! one.
//!
//! The accesses are tried with the identity of the user by the code that serves clients. An open
//! for writing does not change a file. So the kernel and the descriptor decide.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use proto::file::{Existing, FileOp, KindWanted, OpenPlan, Opened, Operation, Outcome, ShareId};
use proto::path::SharePath;
use proto::report::NeededAccess;
use proto::token::Token;
use vfs::{Denial, Effort, Permission};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

use super::account::{group, user};
use super::check::Check;
use super::diagnosis::Diagnosis;
use super::examined::{Entered, Found};
use super::question::{Access, Question};
use crate::codes::{Reason as _, RefusedAccess};
use crate::{status, unix_account};

/// The identifier of the only share that the doctor opens.
const SHARE: ShareId = ShareId(1);

pub(super) fn examine(
    entered: &Entered<'_>,
    found: &[Found],
    question: &Question,
    checks: &mut Vec<Check>,
) {
    let (last, directories) = found.split_last().expect("the root is the first");
    // The descriptor of a directory does not decide about the search.
    let attributes = NeededAccess::Open(AccessMask::FILE_READ_ATTRIBUTES);
    let denial = denial(entered, &last.path, attributes);
    let denial = denial.filter(|denial| denial.missing == Some(Permission::Search));
    for directory in directories {
        if let Some(denial) = denial
            .as_ref()
            .filter(|denial| denial.path == directory.path)
        {
            checks.push(refused(entered, found, "search it", denial));
            return compute(entered, found, checks);
        }
        checks.push(Check::ok(directory.local.display(), shown(directory)));
    }
    checks.push(Check::ok(last.local.display(), shown(last)));
    for access in Access::ALL {
        // No client deletes the root of a share.
        if access == Access::Delete && last.path.is_root() {
            continue;
        }
        let is_needed = question.access.contains(&access);
        checks.push(try_access(entered, found, access, is_needed));
    }
    compute(entered, found, checks);
}

/// Mode and owner of a file or directory.
fn shown(found: &Found) -> String {
    let metadata = &found.metadata;
    permissions_shown(metadata.mode(), metadata.uid(), metadata.gid())
}

fn permissions_shown(mode: u32, uid: u32, gid: u32) -> String {
    let (mode, user, group) = (mode & 0o7777, user(uid), group(gid));
    format!("mode {mode:04o}, owner {user}, group {group}")
}

fn denial(entered: &Entered<'_>, path: &SharePath, access: NeededAccess) -> Option<Denial> {
    let needs = [(path.clone(), access)];
    entered.file_system.find_denial(&entered.token, &needs)
}

fn is_refusal(denial: &Denial) -> bool {
    denial.missing.is_some() || denial.by_descriptor.is_some()
}

/// The rights of an access.
fn rights(access: Access) -> AccessMask {
    match access {
        Access::Read => AccessMask::FILE_READ_DATA,
        Access::Write => AccessMask::FILE_WRITE_DATA,
        Access::Delete => AccessMask::DELETE,
    }
}

/// The words for an access to a file or directory.
fn words(access: Access, is_directory: bool) -> &'static str {
    match (access, is_directory) {
        (Access::Read, false) => "read it",
        (Access::Read, true) => "list it",
        (Access::Write, false) => "write to it",
        (Access::Write, true) => "create files in it",
        (Access::Delete, _) => "delete or rename it",
    }
}

fn try_access(entered: &Entered<'_>, found: &[Found], access: Access, is_needed: bool) -> Check {
    let last = found.last().expect("the root is the first");
    let (subject, name) = (last.local.display(), &entered.user.name);
    let words = words(access, last.metadata.is_dir());
    let check = if entered.user.is_reader(entered.section) && access != Access::Read {
        let rule = match entered.section.read_only {
            true => "the share has read_only = true",
            false => "read_users of the share has the user",
        };
        let message = format!("{name} cannot {words}: {rule}");
        let code = Diagnosis::ShareReadOnly.code();
        Check::refused(subject, code, message).mended_by(format!(
            "add \"{name}\" to write_users of the share, or set read_only = false; smbeam reload"
        ))
    } else {
        match open(entered, &last.path, rights(access)) {
            Ok(opened) => {
                let granted = status::access_names(opened.maximal).join(", ");
                let message = format!("{name} can {words} (rights: {granted})");
                return Check::ok(subject, message);
            }
            Err(status) => explained(entered, found, access, status),
        }
    };
    match is_needed {
        true => check,
        false => check.softened(),
    }
}

/// The reason why an open was refused.
fn explained(entered: &Entered<'_>, found: &[Found], access: Access, status: Status) -> Check {
    let last = found.last().expect("the root is the first");
    let words = words(access, last.metadata.is_dir());
    let needed = NeededAccess::Open(rights(access));
    if let Some(denial) = denial(entered, &last.path, needed).filter(is_refusal) {
        return refused(entered, found, words, &denial);
    }
    let name = &entered.user.name;
    let message = format!("{name} cannot {words}: {status:?}");
    let check = Check::refused(last.local.display(), RefusedAccess::Other.code(), message);
    check.mended_by(format!(
        "try it as the account: sudo -u {} ls -la '{}'; lsattr; dmesg",
        user_name(&entered.token),
        last.local.display()
    ))
}

/// Opens a file as the server does, and closes it.
fn open(entered: &Entered<'_>, path: &SharePath, access: AccessMask) -> Result<Opened, Status> {
    let file_system = &entered.file_system;
    let plan = OpenPlan {
        share: SHARE,
        token: Arc::clone(&entered.token),
        path: path.clone(),
        access,
        implied_access: AccessMask(0),
        existing: Existing::Open,
        kind: KindWanted::Any,
        attributes: FileAttributes(0),
        allocation: 0,
        security: None,
        open_link: false,
        posix: None,
    };
    let done = |op: &FileOp| {
        let attempt = file_system.execute(op, Effort::Blocking);
        attempt.done().unwrap_or(Err(Status::INTERNAL_ERROR))
    };
    let outcome = done(&FileOp::Open(plan));
    // The look-ups of this program need its own identity.
    let outcome = match vfs::identity::own() {
        Ok(()) => outcome?,
        Err(status) => return Err(status),
    };
    let Outcome::Opened(opened) = outcome else {
        return Err(Status::INTERNAL_ERROR);
    };
    // A close never fails.
    let _ = done(&FileOp::OnOpen(opened.file, Operation::Close));
    Ok(opened)
}

/// The place and the permission that refuse an access.
fn refused(entered: &Entered<'_>, found: &[Found], words: &str, denial: &Denial) -> Check {
    let Denial {
        path,
        missing,
        by_descriptor,
        mode,
        uid,
        gid,
    } = denial;
    let at = found.iter().find(|found| found.path == *path);
    let at = at.or(found.last()).expect("the root is the first");
    let (subject, name) = (at.local.display(), &entered.user.name);
    let shown = permissions_shown(*mode, *uid, *gid);
    let Some(missing) = missing else {
        let rights = by_descriptor.map(crate::connection::refusal);
        let rights = rights.unwrap_or_default();
        let message = format!("{name} cannot {words}: the access list of Windows denies {rights}");
        let check = Check::refused(subject, RefusedAccess::Descriptor.code(), message);
        return check.mended_by("smbeam acl, smbcacls, or the security dialog of Windows");
    };
    let message = format!("{name} cannot {words}: {missing} is missing: {shown}");
    let check = Check::refused(&subject, RefusedAccess::Unix.code(), message);
    check.mended_by(remedy(&entered.token, *missing, &at.local))
}

fn user_name(token: &Token) -> String {
    unix_account::account_name(token.uid).unwrap_or_else(|| token.uid.to_string())
}

/// The command that gives the missing permission.
fn remedy(token: &Token, missing: Permission, path: &Path) -> String {
    let (user, is_directory) = (user_name(token), path.is_dir());
    let path = path.display();
    let bits = match (missing, is_directory) {
        (Permission::Search, _) => "x",
        (Permission::Read, true) => "rx",
        (Permission::Read, false) => "r",
        (Permission::Write, true) => "rwx",
        (Permission::Write, false) => "rw",
        (Permission::Ownership, _) => return format!("chown {user} '{path}'"),
    };
    format!("setfacl -m u:{user}:{bits} '{path}'")
}

/// What a server of root would decide, if this process is not root: computed from mode and access
/// list.
fn compute(entered: &Entered<'_>, found: &[Found], checks: &mut Vec<Check>) {
    if unix_account::may_assume_identities() || entered.section.force_user.is_some() {
        return;
    }
    let unix = entered.user.unix.as_deref();
    let Some(token) = unix.and_then(unix_account::token_of_account) else {
        return;
    };
    let (last, directories) = found.split_last().expect("the root is the first");
    let lacks = |found: &Found, has: fn(&vfs::rights::Permissions) -> bool| {
        let computed = vfs::computed_permissions(&found.local, &token);
        computed.is_ok_and(|permissions| !has(&permissions))
    };
    let search = directories
        .iter()
        .find(|found| lacks(found, |has| has.execute));
    let search = search.map(|found| (found, Permission::Search));
    let read = || lacks(last, |has| has.read).then_some((last, Permission::Read));
    let name = &entered.user.name;
    let Some((found, missing)) = search.or_else(read) else {
        let message = format!("computed: a server of root lets {name} read it");
        return checks.push(Check::ok(last.local.display(), message));
    };
    let message = format!(
        "computed from mode and access list: a server of root refuses {name}: {missing} is \
         missing: {}",
        shown(found)
    );
    let code = RefusedAccess::Unix.code();
    let check = Check::warning(found.local.display(), code, message);
    checks.push(check.mended_by(remedy(&token, missing, &found.local)));
}
