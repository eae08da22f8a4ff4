//! Comparison of two trees without a transfer.

use std::path::PathBuf;

use super::pool::{self, Queue};
use super::target_entries::TargetEntries;
use super::{Compare, Item, Transfer, jobs};
use crate::archive::Link;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, Entry, FileInfo, FilePath, Kind};
use crate::filter::Filter;

/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: u32 = 512;

/// A difference between two trees.
pub(crate) struct Difference {
    /// The kind.
    pub(crate) kind: DifferenceKind,
    /// The path in the target, also of a file that is missing there.
    pub(crate) path: FilePath,
    /// The size of the file in bytes, of the source if it exists there; 0 for a directory.
    pub(crate) bytes: u64,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DifferenceKind {
    /// The target does not have the file.
    Missing,
    /// The source does not have the file.
    Extra,
    /// One is a file, and the other a directory, link or special file.
    Type,
    /// The names differ in case only.
    Name,
    /// The sizes differ.
    Size,
    /// The times of last write differ.
    Time,
    /// The contents differ.
    Contents,
    /// The targets of the links differ.
    LinkTarget,
}

/// A pair to compare.
struct Job {
    source: FilePath,
    info: FileInfo,
    target: FilePath,
    target_info: FileInfo,
    relative: PathBuf,
    depth: u32,
}

/// What the comparison reports: `None` for a pair without a difference.
type Found<'a> = &'a (dyn Fn(Option<Difference>) + Sync);

impl Transfer<'_> {
    /// Compares two trees, or two files. `found` gets each difference, and `None` for each pair of
    /// files without one. With `is_one_way`, files that only the target has are no differences.
    pub(crate) fn compare_trees(&self, item: Item, is_one_way: bool, found: Found<'_>) {
        let Some(target_info) = self.noted_info(&item.target) else {
            return;
        };
        let at_once = match self.policy.jobs {
            0 => jobs::suitable(std::slice::from_ref(&item)),
            jobs => jobs,
        };
        let first = Job {
            source: item.source,
            info: item.info,
            target: item.target,
            target_info,
            relative: item.relative,
            depth: 0,
        };
        let comparison = Comparison {
            transfer: self,
            is_one_way,
            found,
        };
        pool::run(at_once, vec![first], &|job, queue| {
            comparison.work(&job, queue);
        });
        if self.interrupt.is_raised() {
            self.report.failed(&Failure::interrupted("comparison"));
        }
    }

    fn noted_info(&self, path: &FilePath) -> Option<FileInfo> {
        let info = path.info(true);
        info.map_err(|failure| self.report.failed(&failure)).ok()
    }
}

/// A comparison of trees.
struct Comparison<'a> {
    transfer: &'a Transfer<'a>,
    is_one_way: bool,
    found: Found<'a>,
}

impl Comparison<'_> {
    fn work(&self, job: &Job, queue: &Queue<Job>) {
        if !self.transfer.is_over() {
            self.transfer.report.take(self.compare(job, queue));
        }
    }

    fn compare(&self, job: &Job, queue: &Queue<Job>) -> Outcome {
        if job.is_directories() {
            return self.compare_entries(job, queue);
        }
        let kind = self.difference(job)?;
        (self.found)(kind.map(|kind| job.difference(kind)));
        Ok(())
    }

    /// The difference of two files or links.
    fn difference(&self, job: &Job) -> Outcome<Option<DifferenceKind>> {
        let (info, other) = (&job.info, &job.target_info);
        if info.kind != other.kind {
            return Ok(Some(DifferenceKind::Type));
        }
        if info.kind == Kind::Link {
            let link = Link::read(&job.source, info)?;
            let is_same = link.is_same(&Link::read(&job.target, other)?);
            return Ok((!is_same).then_some(DifferenceKind::LinkTarget));
        }
        if info.kind != Kind::File {
            return Ok(None);
        }
        if info.size != other.size {
            return Ok(Some(DifferenceKind::Size));
        }
        let transfer = self.transfer;
        let is_same = transfer.is_up_to_date(&job.source, info, &job.target, other)?;
        Ok((!is_same).then_some(match transfer.policy.compare {
            Compare::Contents => DifferenceKind::Contents,
            _ => DifferenceKind::Time,
        }))
    }

    /// Compares the entries of two directories.
    fn compare_entries(&self, job: &Job, queue: &Queue<Job>) -> Outcome {
        if job.depth > MAX_DEPTH {
            let reason = "directories are nested too deeply";
            return Err(Failure::new(Exit::Failed, &job.source, reason));
        }
        let mut others = TargetEntries::default();
        self.selected(&job.target, job, &mut |entry| {
            others.insert(entry);
            Ok(())
        })?;
        let mut left = Vec::new();
        let is_whole = self.selected(&job.source, job, &mut |entry| {
            match others.take(&entry.name) {
                Some(other) => self.queue(job, (&entry, &other), queue)?,
                None => left.push(entry),
            }
            Ok(())
        })?;
        for entry in left {
            let ignores_case = |_: &Entry| job.target.is_remote();
            let other = others.take_other_case(&entry.name, ignores_case);
            let name = other.as_ref().map_or(&entry.name, |other| &other.name);
            let kind = match other {
                Some(_) => DifferenceKind::Name,
                None => DifferenceKind::Missing,
            };
            (self.found)(Some(job.of_entry(name, &entry, kind)?));
            if let Some(other) = &other {
                self.queue(job, (&entry, other), queue)?;
            }
        }
        if is_whole && !self.is_one_way {
            for entry in others.into_entries() {
                let extra = job.of_entry(&entry.name, &entry, DifferenceKind::Extra)?;
                (self.found)(Some(extra));
            }
        }
        Ok(())
    }

    /// Passes the entries of a directory that take part to `each`. Returns whether the listing was
    /// complete. Failures of single entries are reported.
    fn selected(
        &self,
        directory: &FilePath,
        job: &Job,
        each: &mut dyn FnMut(Entry) -> Outcome,
    ) -> Outcome<bool> {
        let mut is_whole = true;
        let detail = match self.transfer.policy.follow {
            true => Detail::Followed,
            false => Detail::Brief,
        };
        directory.list(detail, &mut |entry| {
            let taken = entry.and_then(|entry| match self.is_selected(job, &entry) {
                true => each(entry),
                false => Ok(()),
            });
            if let Err(failure) = taken {
                is_whole = false;
                self.transfer.report.failed(&failure);
            }
            !self.transfer.is_over()
        })?;
        Ok(is_whole)
    }

    fn is_selected(&self, job: &Job, entry: &Entry) -> bool {
        let path = Filter::path_of(&job.relative, &entry.name);
        let filter = &self.transfer.policy.filter;
        filter.is_empty() || filter.includes(&path, entry.info.is_directory())
    }

    /// Queues the pair of two entries.
    fn queue(&self, job: &Job, (entry, other): (&Entry, &Entry), queue: &Queue<Job>) -> Outcome {
        let listed = |directory: &FilePath, name: &str| {
            let path = directory.listed(name);
            path.map_err(|error| Failure::name(directory, error))
        };
        let pair = Job {
            source: listed(&job.source, &entry.name)?,
            info: entry.info,
            target: listed(&job.target, &other.name)?,
            target_info: other.info,
            relative: Filter::path_of(&job.relative, &entry.name),
            depth: job.depth + 1,
        };
        if pair.is_directories() {
            queue.push_directory(pair);
        } else if let Some(pair) = queue.push_file(pair) {
            self.work(&pair, queue);
        }
        Ok(())
    }
}

impl Job {
    /// Whether both sides are directories.
    fn is_directories(&self) -> bool {
        self.info.is_directory() && self.target_info.is_directory()
    }

    /// A difference of the entry `name` of the target directory.
    fn of_entry(&self, name: &str, entry: &Entry, kind: DifferenceKind) -> Outcome<Difference> {
        let path = self.target.listed(name);
        Ok(Difference {
            kind,
            path: path.map_err(|error| Failure::name(&self.target, error))?,
            bytes: match entry.info.is_directory() {
                true => 0,
                false => entry.info.size,
            },
        })
    }

    fn difference(&self, kind: DifferenceKind) -> Difference {
        Difference {
            kind,
            path: self.target.clone(),
            bytes: self.info.size,
        }
    }
}
