//! Removing trees: files of a folder many at once, the folder when it is empty.

use std::sync::Arc;

use super::pool::{self, Queue};
use crate::exit::{Exit, Failure, Outcome, Report};
use crate::interrupt::Interrupt;
use crate::place::{Detail, Facts, Kind, Place};

/// Folders within folders. A server can pretend to have any number.
const MAX_DEPTH: usize = 512;

struct Job {
    place: Place,
    /// What it is by a listing, or looked at itself at depth 0.
    kind: Kind,
    depth: usize,
    within: Option<Arc<Folder>>,
}

/// A folder that is being emptied.
struct Folder {
    place: Place,
    within: Option<Arc<Folder>>,
}

/// Removes trees with many threads. `each` is told what was removed.
pub(crate) fn remove_trees(
    trees: Vec<(Place, Facts)>,
    jobs: usize,
    report: &Report,
    interrupt: &Interrupt,
    each: &(dyn Fn(&Place) + Sync),
) {
    let jobs_first = trees
        .into_iter()
        .map(|(place, facts)| Job {
            place,
            kind: facts.kind,
            depth: 0,
            within: None,
        })
        .collect();
    pool::run(jobs, jobs_first, &|job: Job, queue: &Queue<Job>| {
        if report.is_over() || interrupt.is_raised() {
            return;
        }
        work(job, queue, report, each);
    });
    if interrupt.is_raised() {
        report.failed(&Failure::interrupted("removal"));
    }
}

fn work(job: Job, queue: &Queue<Job>, report: &Report, each: &(dyn Fn(&Place) + Sync)) {
    let kind = match job.depth {
        0 => Ok(job.kind),
        _ => own_kind(&job.place, job.kind),
    };
    match kind {
        Ok(Kind::Folder) => {}
        Ok(kind) => {
            remove(&job.place, kind, report, each);
            return leave(job.within, report, each);
        }
        Err(failure) => {
            fail(report, &failure);
            return leave(job.within, report, each);
        }
    }
    let folder = Arc::new(Folder {
        place: job.place,
        within: job.within,
    });
    if let Err(failure) = queue_entries(&folder, job.depth, queue, report, each) {
        fail(report, &failure);
    }
    leave(Some(folder), report, each);
}

/// What it is itself: servers list a link as what it leads to, and what that holds must stay.
fn own_kind(place: &Place, listed: Kind) -> Outcome<Kind> {
    match place.is_remote() && listed == Kind::Folder {
        true => place.facts(false).map(|facts| facts.kind),
        false => Ok(listed),
    }
}

fn queue_entries(
    folder: &Arc<Folder>,
    depth: usize,
    queue: &Queue<Job>,
    report: &Report,
    each: &(dyn Fn(&Place) + Sync),
) -> Outcome {
    if depth > MAX_DEPTH {
        return Err(Failure::new(
            Exit::Failed,
            &folder.place,
            "too many folders within folders",
        ));
    }
    folder.place.list(Detail::Brief, &mut |entry| {
        let job = entry.and_then(|entry| {
            let place = folder.place.listed(&entry.name);
            Ok(Job {
                place: place.map_err(|error| Failure::name(&folder.place, error))?,
                kind: entry.facts.kind,
                depth: depth + 1,
                within: Some(Arc::clone(folder)),
            })
        });
        match job {
            Ok(job) if job.kind == Kind::Folder => queue.push_folder(job),
            Ok(job) => {
                if let Some(job) = queue.push_file(job) {
                    work(job, queue, report, each);
                }
            }
            Err(failure) => report.failed(&failure),
        }
        !report.is_over()
    })
}

/// One less in a folder; the last one takes the folder along.
fn leave(folder: Option<Arc<Folder>>, report: &Report, each: &(dyn Fn(&Place) + Sync)) {
    let mut next = folder;
    while let Some(folder) = next.and_then(Arc::into_inner) {
        if !report.is_over() {
            remove(&folder.place, Kind::Folder, report, each);
        }
        next = folder.within;
    }
}

fn remove(place: &Place, kind: Kind, report: &Report, each: &(dyn Fn(&Place) + Sync)) {
    match place.remove_protected(kind) {
        Ok(()) => {
            report.succeeded();
            each(place);
        }
        Err(failure) => fail(report, &failure),
    }
}

/// Tells a failure, unless it is that what was there is gone: with the folder it was in, which was
/// to be removed as well, or by somebody else.
fn fail(report: &Report, failure: &Failure) {
    match failure.exit {
        Exit::NotFound => report.succeeded(),
        _ => report.failed(failure),
    }
}

/// Removes one tree on this thread, for somebody who has many threads already. `each` is told what
/// was removed and says whether to go on.
pub(super) fn remove_tree(
    place: &Place,
    facts: &Facts,
    report: &Report,
    each: &mut dyn FnMut(&Place) -> bool,
) {
    let mut stack = vec![(place.clone(), facts.kind, false)];
    while let Some((place, kind, is_empty)) = stack.pop() {
        let kind = match is_empty {
            true => Ok(kind),
            false => own_kind(&place, kind),
        };
        let kind = match kind {
            Ok(kind) => kind,
            Err(failure) => {
                fail(report, &failure);
                continue;
            }
        };
        if kind != Kind::Folder || is_empty {
            match place.remove_protected(kind) {
                Ok(()) if each(&place) => {}
                Ok(()) => return,
                Err(failure) => fail(report, &failure),
            }
            continue;
        }
        if stack.len() > MAX_WAITING {
            let reason = "too many folders within folders";
            report.failed(&Failure::new(Exit::Failed, &place, reason));
            return;
        }
        stack.push((place.clone(), kind, true));
        if let Err(failure) = push_entries(&place, &mut stack, report) {
            fail(report, &failure);
        }
    }
}

/// Entries that wait to be removed, at most.
const MAX_WAITING: usize = 1 << 20;

fn push_entries(folder: &Place, stack: &mut Vec<(Place, Kind, bool)>, report: &Report) -> Outcome {
    folder.list(Detail::Brief, &mut |entry| {
        let entry = entry.and_then(|entry| {
            let place = folder.listed(&entry.name);
            let place = place.map_err(|error| Failure::name(folder, error))?;
            Ok((place, entry.facts.kind, false))
        });
        match entry {
            Ok(entry) => stack.push(entry),
            Err(failure) => report.failed(&failure),
        }
        stack.len() <= MAX_WAITING
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_tree_is_removed_from_its_leaves() {
        let scratch = tempfile::tempdir().expect("a folder");
        let root = scratch.path().join("root");
        for folder in ["a/b/c", "a/d", "e"] {
            fs::create_dir_all(root.join(folder)).expect("a folder");
            for number in 0..20 {
                fs::write(root.join(folder).join(number.to_string()), "x").expect("a file");
            }
        }
        std::os::unix::fs::symlink(scratch.path(), root.join("link")).expect("a link");
        let place = Place::Local(root.clone());
        let facts = place.facts(false).expect("facts");
        let (report, interrupt) = (Report::new("rm"), Interrupt::default());
        let removed = AtomicU64::new(0);
        remove_trees(vec![(place, facts)], 8, &report, &interrupt, &|_| {
            removed.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(report.failures(), 0);
        assert!(!root.exists() && scratch.path().exists());
        assert_eq!(removed.into_inner(), 60 + 6 + 1);
    }
}
