//! Removal of directory trees: many files at the same time, and each directory when it is empty.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::pool::{self, Queue};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, FileInfo, FilePath, Kind};
use crate::filter::Filter;
use crate::interrupt::Interrupt;
use crate::report::Report;

/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: usize = 512;

struct Job {
    path: FilePath,
    /// The kind from a listing, or from a query at depth 0.
    kind: Kind,
    depth: usize,
    parent: Option<Arc<Directory>>,
}

/// A directory during the removal of its entries.
struct Directory {
    path: FilePath,
    parent: Option<Arc<Directory>>,
}

/// Removes directory trees with several threads. `each` is called for each removed path.
pub(crate) fn remove_trees(
    trees: Vec<(FilePath, FileInfo)>,
    jobs: usize,
    report: &Report,
    interrupt: &Interrupt,
    each: &(dyn Fn(&FilePath) + Sync),
) {
    let jobs_first = trees
        .into_iter()
        .map(|(path, info)| Job {
            path,
            kind: info.kind,
            depth: 0,
            parent: None,
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

fn work(job: Job, queue: &Queue<Job>, report: &Report, each: &(dyn Fn(&FilePath) + Sync)) {
    let kind = match job.depth {
        0 => Ok(job.kind),
        _ => own_kind(&job.path, job.kind),
    };
    match kind {
        Ok(Kind::Directory) => {}
        Ok(kind) => {
            remove(&job.path, kind, report, each);
            return entry_done(job.parent, report, each);
        }
        Err(failure) => {
            fail(report, &failure);
            return entry_done(job.parent, report, each);
        }
    }
    let directory = Arc::new(Directory {
        path: job.path,
        parent: job.parent,
    });
    if let Err(failure) = queue_entries(&directory, job.depth, queue, report, each) {
        fail(report, &failure);
    }
    entry_done(Some(directory), report, each);
}

/// The kind without following links. Servers can list a link with the kind of its target, and the
/// contents of the target must remain.
fn own_kind(path: &FilePath, listed: Kind) -> Outcome<Kind> {
    match path.is_remote() && listed == Kind::Directory {
        true => path.info(false).map(|info| info.kind),
        false => Ok(listed),
    }
}

fn queue_entries(
    directory: &Arc<Directory>,
    depth: usize,
    queue: &Queue<Job>,
    report: &Report,
    each: &(dyn Fn(&FilePath) + Sync),
) -> Outcome {
    if depth > MAX_DEPTH {
        return Err(Failure::new(
            Exit::Failed,
            &directory.path,
            "directories are nested too deeply",
        ));
    }
    directory.path.list(Detail::Brief, &mut |entry| {
        let job = entry.and_then(|entry| {
            let path = directory.path.listed(&entry.name);
            Ok(Job {
                path: path.map_err(|error| Failure::name(&directory.path, error))?,
                kind: entry.info.kind,
                depth: depth + 1,
                parent: Some(Arc::clone(directory)),
            })
        });
        match job {
            Ok(job) if job.kind == Kind::Directory => queue.push_directory(job),
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

/// Releases an entry of a directory. The release of the last entry removes the directory.
fn entry_done(
    directory: Option<Arc<Directory>>,
    report: &Report,
    each: &(dyn Fn(&FilePath) + Sync),
) {
    let mut next = directory;
    while let Some(directory) = next.and_then(Arc::into_inner) {
        if !report.is_over() {
            remove(&directory.path, Kind::Directory, report, each);
        }
        next = directory.parent;
    }
}

fn remove(path: &FilePath, kind: Kind, report: &Report, each: &(dyn Fn(&FilePath) + Sync)) {
    match path.force_remove(kind) {
        Ok(()) => {
            report.succeeded();
            each(path);
        }
        Err(failure) => fail(report, &failure),
    }
}

/// Reports a failure. A missing file is not a failure: another client has removed it, or it was
/// removed with its directory.
pub(super) fn fail(report: &Report, failure: &Failure) {
    match failure.exit {
        Exit::NotFound => report.succeeded(),
        _ => report.failed(failure),
    }
}

/// An entry of a tree that a removal reaches.
pub(super) struct Doomed {
    /// The path.
    pub(super) path: FilePath,
    /// Its metadata, of the entry itself and not of the target of a link.
    pub(super) info: FileInfo,
    /// The path from the root of the transfer, for filters.
    pub(super) relative: PathBuf,
}

/// Calls `each` for the entries of a tree and then for the tree itself, on this thread. `each`
/// returns whether to continue. An entry that `is_kept` selects stays, with the directories above
/// it.
pub(super) fn each_in_tree(
    tree: Doomed,
    report: &Report,
    is_kept: &dyn Fn(&Doomed) -> bool,
    each: &mut dyn FnMut(&Doomed) -> bool,
) {
    let mut kept_directories: HashSet<PathBuf> = HashSet::new();
    let mut stack = vec![(tree, false)];
    while let Some((mut doomed, is_empty)) = stack.pop() {
        if is_empty {
            if !kept_directories.contains(&doomed.relative) && !each(&doomed) {
                return;
            }
            continue;
        }
        if is_kept(&doomed) {
            let above = doomed.relative.ancestors().skip(1).map(Path::to_owned);
            kept_directories.extend(above);
            continue;
        }
        match own_kind(&doomed.path, doomed.info.kind) {
            Ok(kind) => doomed.info.kind = kind,
            Err(failure) => {
                fail(report, &failure);
                continue;
            }
        }
        if doomed.info.kind != Kind::Directory {
            if !each(&doomed) {
                return;
            }
            continue;
        }
        if stack.len() > MAX_WAITING {
            let reason = "directories are nested too deeply";
            report.failed(&Failure::new(Exit::Failed, &doomed.path, reason));
            return;
        }
        let (path, relative) = (doomed.path.clone(), doomed.relative.clone());
        stack.push((doomed, true));
        if let Err(failure) = push_entries((&path, &relative), &mut stack, report) {
            fail(report, &failure);
        }
    }
}

/// Maximum number of entries that wait for removal.
const MAX_WAITING: usize = 1 << 20;

fn push_entries(
    (directory, relative): (&FilePath, &Path),
    stack: &mut Vec<(Doomed, bool)>,
    report: &Report,
) -> Outcome {
    directory.list(Detail::Brief, &mut |entry| {
        let entry = entry.and_then(|entry| {
            let path = directory.listed(&entry.name);
            Ok(Doomed {
                path: path.map_err(|error| Failure::name(directory, error))?,
                info: entry.info,
                relative: Filter::path_of(relative, &entry.name),
            })
        });
        match entry {
            Ok(entry) => stack.push((entry, false)),
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
        let scratch = tempfile::tempdir().expect("a directory");
        let root = scratch.path().join("root");
        for directory in ["a/b/c", "a/d", "e"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
            for number in 0..20 {
                fs::write(root.join(directory).join(number.to_string()), "x").expect("a file");
            }
        }
        std::os::unix::fs::symlink(scratch.path(), root.join("link")).expect("a link");
        let path = FilePath::Local(root.clone().into());
        let info = path.info(false).expect("info");
        let (report, interrupt) = (Report::new("rm"), Interrupt::default());
        let removed = AtomicU64::new(0);
        remove_trees(vec![(path, info)], 8, &report, &interrupt, &|_| {
            removed.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(report.failures(), 0);
        assert!(!root.exists() && scratch.path().exists());
        assert_eq!(removed.into_inner(), 60 + 6 + 1);
    }

    #[test]
    fn kept_entries_keep_their_directories() {
        let scratch = tempfile::tempdir().expect("a directory");
        let root = scratch.path().join("root");
        for directory in ["a/b", "c"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
            for name in ["x", "y.keep"] {
                fs::write(root.join(directory).join(name), "x").expect("a file");
            }
        }
        fs::remove_file(root.join("c/y.keep")).expect("removed");
        let path = FilePath::Local(root.into());
        let tree = Doomed {
            info: path.info(false).expect("info"),
            path,
            relative: "root".into(),
        };
        let is_kept = |doomed: &Doomed| doomed.relative.extension().is_some();
        let mut removed = Vec::new();
        each_in_tree(tree, &Report::new("sync"), &is_kept, &mut |doomed| {
            removed.push(doomed.relative.display().to_string());
            true
        });
        removed.sort();
        assert_eq!(removed, ["root/a/b/x", "root/c", "root/c/x"]);
    }
}
