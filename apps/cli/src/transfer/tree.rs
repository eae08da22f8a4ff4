//! What is to be done with a tree: folders are walked by many threads at once, and what they hold
//! is transferred as it is found. No list of the whole tree is ever made.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::pool::{self, First, Queue};
use super::queued::{Old, Queued};
use super::{Compare, Transfer, jobs, part};
use crate::exit::{Exit, Failure, Outcome};
use crate::names;
use crate::place::{Detail, Entry, Facts, Kind, Place};

/// Folders within folders. A server can pretend to have any number.
const MAX_DEPTH: u32 = 512;

/// Something to transfer.
pub(crate) struct Item {
    /// From here.
    pub(crate) source: Place,
    /// What it is.
    pub(crate) facts: Facts,
    /// To there.
    pub(crate) target: Place,
}

enum Job {
    Folder(FolderJob),
    File(FileJob),
    Remove(RemoveJob),
}

struct FolderJob {
    source: Place,
    facts: Facts,
    target: Place,
    /// The folder that it is in.
    within: Option<Arc<Folder>>,
    depth: u32,
}

struct FileJob {
    file: Queued,
    /// The folder that it is in. When nobody holds it any more, all in it is done.
    _within: Option<Arc<Folder>>,
}

struct RemoveJob {
    place: Place,
    facts: Facts,
    _within: Option<Arc<Folder>>,
}

impl Job {
    fn file(&self) -> Option<&Queued> {
        match self {
            Self::File(job) => Some(&job.file),
            _ => None,
        }
    }

    /// Whether it can be done together with others.
    fn goes_with(&self, others: &[Self]) -> bool {
        let files = || others.iter().filter_map(Self::file);
        let is_with_files = files().count() == others.len();
        is_with_files && self.file().is_some_and(|file| file.goes_with(files()))
    }
}

/// A folder that is being filled. Its times are set when that is over.
struct Folder {
    target: Place,
    facts: Facts,
    source_is_remote: bool,
    within: Option<Arc<Folder>>,
}

/// What stands in a target folder, by the name that its side compares.
type Present = BTreeMap<String, Entry>;

impl Transfer<'_> {
    /// Transfers all of it, many files at once. What fails is told, and the rest goes on.
    pub(crate) fn run(&self, items: Vec<Item>) {
        let at_once = match self.policy.jobs {
            0 => jobs::suitable(&items),
            jobs => jobs,
        };
        let (folders, files): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.facts.is_folder());
        let first = |items: Vec<Item>| items.into_iter().map(|item| self.first_job(item)).collect();
        let first = First {
            files: first(files),
            folders: first(folders),
        };
        pool::run_together(at_once, first, Job::goes_with, &|jobs, queue| {
            self.work_all(jobs, queue);
        });
        if self.interrupt.is_raised() {
            self.report.failed(&Failure::interrupted("transfer"));
            self.report
                .note("the same command with --continue goes on with what was begun");
        }
    }

    fn first_job(&self, item: Item) -> Job {
        if item.facts.is_folder() {
            return Job::Folder(FolderJob {
                source: item.source,
                facts: item.facts,
                target: item.target,
                within: None,
                depth: 0,
            });
        }
        self.progress.found(item.facts.size);
        Job::File(FileJob {
            file: self.queued(item, Old::Unknown),
            _within: None,
        })
    }

    fn work_all(&self, mut jobs: Vec<Job>, queue: &Queue<Job>) {
        if jobs.len() > 1 && !self.is_over() {
            let files = jobs.iter_mut().filter_map(|job| match job {
                Job::File(job) => Some(&mut job.file),
                _ => None,
            });
            self.read_together(files.collect());
        }
        for job in jobs {
            if self.is_over() {
                return;
            }
            self.work(job, queue);
        }
    }

    fn work(&self, job: Job, queue: &Queue<Job>) {
        let within = match job {
            Job::Folder(job) => self.folder(job, queue),
            Job::File(mut job) => {
                self.report.take(self.persist(&mut job.file));
                job._within
            }
            Job::Remove(job) => {
                self.remove_one(&job.place, &job.facts);
                job._within
            }
        };
        self.leave(within);
    }

    /// Does a folder: makes it, transfers or queues what is in it, and removes what should not be.
    fn folder(&self, mut job: FolderJob, queue: &Queue<Job>) -> Option<Arc<Folder>> {
        // It may have waited since the connection was lost.
        let sides = [&mut job.source, &mut job.target];
        if let Err(failure) = self.reconnect(sides) {
            self.report.failed(&failure);
            return job.within;
        }
        let folder = Arc::new(Folder {
            target: job.target,
            facts: job.facts,
            source_is_remote: job.source.is_remote(),
            within: job.within,
        });
        let filled = self.fill(&job.source, &folder, job.depth, queue);
        match filled {
            Ok(()) => self.report.succeeded(),
            Err(failure) => self.report.failed(&failure),
        }
        Some(folder)
    }

    fn fill(
        &self,
        source: &Place,
        folder: &Arc<Folder>,
        depth: u32,
        queue: &Queue<Job>,
    ) -> Outcome {
        if depth > MAX_DEPTH {
            return Err(Failure::new(
                Exit::Failed,
                source,
                "too many folders within folders",
            ));
        }
        let is_new = self.make(&folder.target)?;
        let mut present = match is_new {
            true => Present::new(),
            false => self.present(&folder.target)?,
        };
        let mut seen = HashSet::new();
        let mut is_whole = true;
        let detail = match self.policy.follow {
            true => Detail::Followed,
            false => Detail::Brief,
        };
        source.list(detail, &mut |entry| {
            match entry {
                Ok(entry) => {
                    self.spare_part(&mut present, source, &folder.target, &entry);
                    let old = match self.take_present(&mut present, folder, &entry.name) {
                        Some(old) => Old::Known(Some(old)),
                        None if is_new => Old::Known(None),
                        // A file system may take another name for the same.
                        None => Old::Unknown,
                    };
                    let found = self.found(source, folder, &entry, old, depth, &mut seen, queue);
                    if let Err(failure) = found {
                        self.report.failed(&failure);
                    }
                }
                Err(failure) => {
                    is_whole = false;
                    self.report.failed(&failure);
                }
            }
            !self.is_over()
        })?;
        // What could not be seen is not known to be gone.
        if self.policy.delete && is_whole && !self.is_over() {
            for entry in present.into_values() {
                self.queue_removal(folder, &entry, queue);
            }
        }
        Ok(())
    }

    /// Makes a folder, or says that it would. Says whether it is new.
    fn make(&self, target: &Place) -> Outcome<bool> {
        if self.policy.dry_run {
            let is_new = target.look(true)?.is_none();
            if is_new {
                self.progress.say(&format_args!("would make {target}"));
            }
            return Ok(is_new);
        }
        let is_new = target.make_folder()?;
        if is_new {
            self.progress.folder_made();
        }
        Ok(is_new)
    }

    /// Whether it is asked what stands in a target folder: not where everything is written anyway.
    fn is_present_known(&self) -> bool {
        self.policy.compare != Compare::Never || self.policy.delete
    }

    fn present(&self, target: &Place) -> Outcome<Present> {
        let mut present = Present::new();
        if !self.is_present_known() {
            return Ok(present);
        }
        target.list(Detail::Brief, &mut |entry| {
            match entry {
                Ok(entry) => {
                    present.insert(target.key_of(&entry.name), entry);
                }
                Err(failure) => self.report.failed(&failure),
            }
            true
        })?;
        Ok(present)
    }

    fn take_present(&self, present: &mut Present, folder: &Folder, name: &str) -> Option<Facts> {
        let entry = present.remove(&folder.target.key_of(name));
        entry.map(|entry| entry.facts)
    }

    /// What is not whole yet of a file of the source is no stranger in the target.
    fn spare_part(&self, present: &mut Present, source: &Place, target: &Place, entry: &Entry) {
        let is_kept = self.policy.delete && !self.policy.in_place;
        let (true, Ok(place)) = (is_kept, source.listed(&entry.name)) else {
            return;
        };
        let name = part::name(&entry.name, &place, &entry.facts);
        present.remove(&target.key_of(&name));
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what is known of an entry, from both sides"
    )]
    fn found(
        &self,
        source: &Place,
        folder: &Arc<Folder>,
        entry: &Entry,
        mut old: Old,
        depth: u32,
        seen: &mut HashSet<String>,
        queue: &Queue<Job>,
    ) -> Outcome {
        let place = source.listed(&entry.name).map_err(|error| {
            Failure::name(&format!("{source}/{}", entry.name.escape_debug()), error)
        })?;
        let target = folder
            .target
            .join(&entry.name)
            .map_err(|error| Failure::name(&place, error))?;
        if folder.target.is_remote() && !seen.insert(names::folded(&entry.name)) {
            return Err(Failure::new(
                Exit::Exists,
                place,
                "another name in this folder differs from it in case only, which SMB takes for one",
            ));
        }
        // What is not copied replaces nothing.
        if matches!(entry.facts.kind, Kind::Link | Kind::Other) {
            self.skip(&place, entry.facts.kind);
            return Ok(());
        }
        if let Old::Known(Some(facts)) = old
            && facts.is_folder() != entry.facts.is_folder()
        {
            self.replace(&target, &facts)?;
            old = Old::Known(None);
        }
        match entry.facts.is_folder() {
            true => queue.push_folder(Job::Folder(FolderJob {
                source: place,
                facts: entry.facts,
                target,
                within: Some(Arc::clone(folder)),
                depth: depth + 1,
            })),
            false => self.queue_file(place, entry.facts, target, old, folder, queue),
        }
        Ok(())
    }

    fn queue_file(
        &self,
        source: Place,
        facts: Facts,
        target: Place,
        old: Old,
        folder: &Arc<Folder>,
        queue: &Queue<Job>,
    ) {
        self.progress.found(facts.size);
        let item = Item {
            source,
            facts,
            target,
        };
        let job = Job::File(FileJob {
            file: self.queued(item, old),
            _within: Some(Arc::clone(folder)),
        });
        if let Some(job) = queue.push_file(job) {
            self.work(job, queue);
        }
    }

    fn skip(&self, place: &Place, kind: Kind) {
        let why = match kind {
            Kind::Link if !place.is_remote() => {
                "a symbolic link is skipped (--follow copies what it leads to)"
            }
            Kind::Link => "a link on the server is skipped",
            _ => "neither a file nor a folder: skipped",
        };
        self.report.note(&format!("{place}: {why}"));
    }

    /// A file stands where a folder is to be, or the other way round.
    fn replace(&self, target: &Place, old: &Facts) -> Outcome {
        if !self.policy.delete {
            let what = old.kind.name();
            return Err(Failure::new(
                Exit::Exists,
                target,
                format!("there is a {what} of this name"),
            ));
        }
        self.remove_one(target, old);
        Ok(())
    }

    fn queue_removal(&self, folder: &Arc<Folder>, entry: &Entry, queue: &Queue<Job>) {
        let place = match folder.target.listed(&entry.name) {
            Ok(place) => place,
            Err(error) => {
                let name = format!("{}/{}", folder.target, entry.name.escape_debug());
                return self.report.failed(&Failure::name(&name, error));
            }
        };
        let job = Job::Remove(RemoveJob {
            place,
            facts: entry.facts,
            _within: Some(Arc::clone(folder)),
        });
        if let Some(job) = queue.push_file(job) {
            self.work(job, queue);
        }
    }

    fn remove_one(&self, place: &Place, facts: &Facts) {
        if self.policy.dry_run {
            self.progress.say(&format_args!("would remove {place}"));
            return;
        }
        super::remove::remove_tree(place, facts, self.report, &mut |place| {
            self.progress.removed(place);
            !self.is_over()
        });
    }

    /// Something in a folder is done. If it was the last, the folder gets its times, and its own
    /// folder is looked at.
    fn leave(&self, folder: Option<Arc<Folder>>) {
        let mut next = folder;
        while let Some(mut folder) = next.and_then(Arc::into_inner) {
            if self.policy.preserve && !self.policy.dry_run && !self.is_over() {
                let set = self.reconnect([&mut folder.target]).and_then(|_| {
                    let Folder { target, facts, .. } = &folder;
                    target.set_facts(facts, folder.source_is_remote)
                });
                if let Err(failure) = set {
                    self.report.failed(&failure);
                }
            }
            next = folder.within;
        }
    }
}
