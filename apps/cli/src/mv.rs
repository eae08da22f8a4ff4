//! `smbeam mv`: another name in the same share.

use std::collections::HashSet;

use clap::Args;

use crate::connect::{ConnectArguments, Connector, is_one_session};
use crate::copying::is_taken;
use crate::exit::{Failure, Outcome, Report};
use crate::location::Url;
use crate::names::folded;
use crate::place::{Detail, Place, Remote};

/// What to rename.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or folders, and where they go: a new name for one, or a folder for any number. `*` and
    /// `?` in the last component stand for any characters, or one.
    #[arg(required = true, num_args = 2.., value_name = "URL")]
    urls: Vec<Url>,
    /// Leave a file alone that has the name already.
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
    let (target, is_folder) = match target_of(&connector, target, sources) {
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
    if !is_folder && found.len() > 1 {
        return report.failed(&not_a_folder(target));
    }
    let mut taken = HashSet::new();
    for source in found {
        if let Place::Remote(source) = source.place {
            let target = target_for(&source, &target, is_folder);
            let renamed = match taken.insert(folded(&target.path)) {
                true => move_to(&source, &target, !arguments.no_clobber),
                false => Err(is_taken(&source)),
            };
            report.take(renamed);
        }
        if report.is_over() {
            break;
        }
    }
}

fn not_a_folder(target: impl ToString) -> Failure {
    Failure::usage(target, "not a folder")
}

fn target_of(connector: &Connector, url: &Url, sources: &[Url]) -> Outcome<(Remote, bool)> {
    let share = |url: &Url| url.share.as_deref().map(folded);
    let is_other = |source: &&Url| !is_one_session(source, url) || share(source) != share(url);
    if let Some(source) = sources.iter().find(is_other) {
        let reason = "the target is in another share: use cp, then rm";
        return Err(Failure::usage(source, reason));
    }
    let remote = connector.remote(url)?;
    let facts = Place::Remote(remote.clone()).look(true)?;
    let is_folder = facts.is_some_and(|facts| facts.is_folder());
    if !is_folder && (sources.len() > 1 || url.is_folder) {
        return Err(not_a_folder(url));
    }
    Ok((remote, is_folder))
}

fn target_for(source: &Remote, target: &Remote, into_folder: bool) -> Remote {
    // The same name with other letters large or small names the folder itself.
    if !into_folder || source.is_same_file(target) {
        return target.clone();
    }
    let name = source.path.rsplit('/').next().unwrap_or_default();
    target.below(name)
}

/// Servers have different words for what cannot be; Samba says that somebody has it open.
fn move_to(source: &Remote, target: &Remote, replace: bool) -> Outcome {
    if source.path.is_empty() {
        let reason = "the root of a share cannot be moved";
        return Err(Failure::usage(source, reason));
    }
    if source.holds(target) && !source.is_same_file(target) {
        let reason = "a folder cannot be moved into itself";
        return Err(Failure::usage(target, reason));
    }
    source.rename(target, replace)
}
