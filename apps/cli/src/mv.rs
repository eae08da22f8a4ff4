//! `smbeam mv`: renames and moves files within a share.

use std::collections::HashSet;

use clap::Args;
use smbeam_profile::is_one_session;
use wire::upcase::upcased;

use crate::connect::{ConnectArguments, Connector};
use crate::copying::duplicate_target;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, FilePath, RemotePath};
use crate::location::Url;
use crate::report::Report;

/// Arguments of `smbeam mv`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories, followed by the target: a new name for a single source, or a
    /// directory. `*` and `?` in the last component are wildcards.
    #[arg(required = true, num_args = 2.., value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Do not replace an existing file.
    #[arg(short, long)]
    no_clobber: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam mv`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    let Some((target, sources)) = arguments.urls.split_last() else {
        return;
    };
    let (target, is_directory) = match target_of(&connector, target, sources) {
        Ok(target) => target,
        Err(failure) => return report.failed(&failure),
    };
    let mut found = Vec::new();
    for source in sources {
        found.extend(report.found(connector.expand(source, Detail::Brief)));
        if report.is_over() {
            return;
        }
    }
    if !is_directory && found.len() > 1 {
        return report.failed(&not_a_directory(target));
    }
    let mut taken = HashSet::new();
    for source in found {
        if let FilePath::Remote(source) = source.path {
            let target = target_for(&source, &target, is_directory);
            let renamed = match taken.insert(upcased(&target.path)) {
                true => move_to(&source, &target, !arguments.no_clobber),
                false => Err(duplicate_target(&source)),
            };
            report.take(renamed);
        }
        if report.is_over() {
            break;
        }
    }
}

fn not_a_directory(target: impl ToString) -> Failure {
    Failure::usage(target, "not a directory")
}

fn target_of(connector: &Connector, url: &Url, sources: &[Url]) -> Outcome<(RemotePath, bool)> {
    let share = |url: &Url| url.share.as_deref().map(upcased);
    let is_other = |source: &&Url| !is_one_session(source, url) || share(source) != share(url);
    if let Some(source) = sources.iter().find(is_other) {
        let reason = "the target is on another share: copy with cp, then remove with rm";
        return Err(Failure::usage(source, reason));
    }
    let remote = connector.remote_path(url)?;
    let info = FilePath::Remote(remote.clone()).lookup(true)?;
    let is_directory = info.is_some_and(|info| info.is_directory());
    if !is_directory && (sources.len() > 1 || url.is_directory) {
        return Err(not_a_directory(url));
    }
    Ok((remote, is_directory))
}

fn target_for(source: &RemotePath, target: &RemotePath, into_directory: bool) -> RemotePath {
    // A target that differs in case only is the directory itself: the rename changes its case.
    if !into_directory || source.is_same_file(target) {
        return target.clone();
    }
    let name = source.path.rsplit('/').next().unwrap_or_default();
    target.child(name)
}

/// Renames one file or directory. The checks come first, because servers report these errors
/// differently: Samba returns a sharing violation.
fn move_to(source: &RemotePath, target: &RemotePath, replace: bool) -> Outcome {
    if source.path.is_empty() {
        let reason = "the root of a share cannot be moved";
        return Err(Failure::usage(source, reason));
    }
    if source.contains(target) && !source.is_same_file(target) {
        let reason = "a directory cannot be moved into itself";
        return Err(Failure::usage(target, reason));
    }
    source.rename(target, replace)
}
