//! `smbeam acl set`: changes owner, group and access control list.

use std::sync::Mutex;

use clap::{ArgGroup, Args};
use smbeam_client::{SecurityDescriptor, SecurityInformation, Sid};

use super::change::{self, Change, Entry, Revocation};
use super::{names, walk};
use crate::connect::ConnectArguments;
use crate::descriptor;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, RemotePath};
use crate::location::Url;
use crate::mutex::lock;
use crate::output::Lines;
use crate::report::Report;

/// Arguments of `smbeam acl set`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(crate) struct Arguments {
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Set the parts of a descriptor in SDDL, such as `O:BAD:P(A;OICI;FA;;;WD)`.
    #[arg(long, value_name = "SDDL", group = "change")]
    sddl: Option<SecurityDescriptor>,
    /// Allow rights to a user or group: `Everyone:read`, `uid=1000:modify:files,directories`.
    #[arg(
        long,
        value_name = "USER:RIGHTS[:INHERITANCE]",
        group = "change",
        value_parser = change::parse_entry
    )]
    grant: Vec<Entry>,
    /// Deny rights to a user or group.
    #[arg(
        long,
        value_name = "USER:RIGHTS[:INHERITANCE]",
        group = "change",
        value_parser = change::parse_entry
    )]
    deny: Vec<Entry>,
    /// Remove rights of a user or group, or without RIGHTS all entries. Inherited entries remain.
    #[arg(
        long,
        value_name = "USER[:RIGHTS]",
        group = "change",
        value_parser = change::parse_revocation
    )]
    revoke: Vec<Revocation>,
    /// Set the owner.
    #[arg(long, value_name = "USER", group = "change", value_parser = names::parse)]
    owner: Option<Sid>,
    /// Set the group.
    #[arg(long, value_name = "USER", group = "change", value_parser = names::parse)]
    group: Option<Sid>,
    /// Change everything in directories as well.
    #[arg(short, long)]
    recursive: bool,
    /// Change nothing. Print each path with its new descriptor in SDDL.
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam acl set`.
pub(super) fn run(arguments: &Arguments, report: &Report) {
    let change = Change {
        descriptor: arguments.sddl.clone(),
        owner: arguments.owner,
        group: arguments.group,
        grants: arguments.grant.clone(),
        denials: arguments.deny.clone(),
        revocations: arguments.revoke.clone(),
    };
    if change.parts().is_empty() {
        let reason = "has neither owner, group nor lists";
        return report.failed(&Failure::usage("--sddl", reason));
    }
    let lines = Mutex::new(Lines::new());
    let Arguments { urls, connect, .. } = arguments;
    walk::trees(urls, connect, arguments.recursive, report, &|path, info| {
        set(arguments, &change, (path, info), &lines)
    });
}

fn set(
    arguments: &Arguments,
    change: &Change,
    (path, info): (&RemotePath, &FileInfo),
    lines: &Mutex<Lines>,
) -> Outcome {
    let present = match change.needs_present() {
        true => descriptor::of(path, SecurityInformation::DACL)?,
        false => SecurityDescriptor::default(),
    };
    let new = change.apply(&present, info.is_directory());
    let new = new.map_err(|reason| Failure::new(Exit::Failed, path, reason))?;
    if arguments.dry_run {
        let sddl = new.to_sddl().unwrap_or_else(|| "(no text form)".to_owned());
        lock(lines).line(&format_args!("{path}\t{sddl}"));
        return Ok(());
    }
    descriptor::set(path, change.parts(), &new)
}
