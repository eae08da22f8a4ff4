//! Transfer of directory trees. Several threads list directories, and files are transferred as they
//! are found. The whole tree is never in memory.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::upcase::upcased;

use super::extras::without_data;
use super::item::Item;
use super::pool::{self, InitialJobs, Queue};
use super::queued::{Existing, QueuedFile};
use super::remove::{Doomed, each_in_tree, fail};
use super::target_entries::TargetEntries;
use super::{Compare, Transfer, jobs, part};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, Entry, FileInfo, FilePath, Kind};
use crate::filter::Filter;

/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: u32 = 512;

enum Job {
    Directory(DirectoryJob),
    File(FileJob),
    Link(LinkJob),
    Remove(RemoveJob),
}

/// A further name of a file, which needs the data of the first one.
struct LinkJob {
    first: FilePath,
    file: QueuedFile,
    _parent: Option<Arc<Directory>>,
}

struct DirectoryJob {
    source: FilePath,
    info: FileInfo,
    target: FilePath,
    /// The parent directory.
    parent: Option<Arc<Directory>>,
    depth: u32,
    /// The path from the root of the transfer, for filters.
    relative: PathBuf,
}

struct FileJob {
    file: QueuedFile,
    /// The parent directory. It is complete when the last reference is dropped.
    _parent: Option<Arc<Directory>>,
}

struct RemoveJob {
    doomed: Doomed,
    _parent: Option<Arc<Directory>>,
}

impl Job {
    fn file(&self) -> Option<&QueuedFile> {
        match self {
            Self::File(job) => Some(&job.file),
            _ => None,
        }
    }

    /// Whether the job can run together with `others`.
    fn can_join(&self, others: &[Self]) -> bool {
        let files = || others.iter().filter_map(Self::file);
        let is_with_files = files().count() == others.len();
        is_with_files && self.file().is_some_and(|file| file.can_join(files()))
    }
}

/// A directory during the transfer of its entries. Its times are set at the end.
struct Directory {
    source: FilePath,
    target: FilePath,
    info: FileInfo,
    source_is_remote: bool,
    parent: Option<Arc<Directory>>,
    relative: PathBuf,
}

impl Transfer<'_> {
    /// Transfers the items, many files at the same time. Failures are reported, and the transfer
    /// continues.
    pub(crate) fn run(&self, items: Vec<Item>) {
        let at_once = match self.policy.jobs {
            0 => jobs::suitable(&items),
            jobs => jobs,
        };
        let (directories, files): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| item.info.is_directory());
        let is_one_file = directories.is_empty() && files.len() == 1;
        let first = |items: Vec<Item>| items.into_iter().map(|item| self.first_job(item)).collect();
        let first = InitialJobs {
            files: first(files),
            directories: first(directories),
        };
        pool::run_together(at_once, first, Job::can_join, &|jobs, queue| {
            self.work_all(jobs, queue);
        });
        self.losses.report(self.report);
        if self.interrupt.is_raised() {
            self.report.failed(&Failure::interrupted("transfer"));
            self.report
                .note("run the same command with --continue to resume the transfer");
        }
        if self.report.fatal() == Some(Exit::Full) && !is_one_file {
            self.report.note(
                "the disk is full: files without a message may not have been transferred either",
            );
        }
    }

    fn first_job(&self, item: Item) -> Job {
        if item.info.is_directory() {
            return Job::Directory(DirectoryJob {
                source: item.source,
                info: item.info,
                target: item.target,
                parent: None,
                depth: 0,
                relative: item.relative,
            });
        }
        self.progress.file_found(item.info.size);
        Job::File(FileJob {
            file: self.queued(item, Existing::Unknown),
            _parent: None,
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
        let parent = match job {
            Job::Directory(job) => self.directory(job, queue),
            Job::File(mut job) => {
                self.report
                    .take(self.transfer_with_reconnects(&mut job.file));
                job._parent
            }
            Job::Link(mut job) => {
                self.report.take(self.hard_link(&job.first, &mut job.file));
                job._parent
            }
            Job::Remove(job) => {
                self.remove_one(job.doomed);
                job._parent
            }
        };
        self.entry_done(parent);
    }

    /// Transfers a directory: creates it, queues its entries, and removes surplus entries.
    fn directory(&self, mut job: DirectoryJob, queue: &Queue<Job>) -> Option<Arc<Directory>> {
        // The connection may have been lost while the job was in the queue.
        let sides = [&mut job.source, &mut job.target];
        if let Err(failure) = self.reconnect(sides) {
            self.report.failed(&failure);
            return job.parent;
        }
        let directory = Arc::new(Directory {
            source: job.source.clone(),
            target: job.target,
            info: job.info,
            source_is_remote: job.source.is_remote(),
            parent: job.parent,
            relative: job.relative,
        });
        let filled = self.fill(&job.source, &directory, job.depth, queue);
        match filled {
            Ok(()) => self.report.succeeded(),
            Err(failure) => self.report.failed(&failure),
        }
        Some(directory)
    }

    fn fill(
        &self,
        source: &FilePath,
        directory: &Arc<Directory>,
        depth: u32,
        queue: &Queue<Job>,
    ) -> Outcome {
        if depth > MAX_DEPTH {
            return Err(Failure::new(
                Exit::Failed,
                source,
                "directories are nested too deeply",
            ));
        }
        let target = &directory.target;
        let make = || self.make(target, depth, &directory.relative);
        let is_new = self.repeated(target, make)?;
        let mut target_entries = match is_new {
            true => TargetEntries::default(),
            false => self.repeated(target, || self.present(target))?,
        };
        let mut seen = HashSet::new();
        let mut is_whole = true;
        // The source may have an entry with the other name too, which comes later.
        let mut other_case = Vec::new();
        let detail = match (self.policy.follow, self.policy.archive) {
            (true, _) => Detail::Followed,
            (false, true) => Detail::Links,
            (false, false) => Detail::Brief,
        };
        // A listing that is repeated after a lost connection shows entries again.
        let mut listed = HashSet::new();
        let mut take = |entry: Outcome<Entry>| {
            match entry {
                Ok(entry) if source.is_remote() && !listed.insert(entry.name.clone()) => {}
                Ok(entry) if !self.takes_part(directory, &entry) => {
                    target_entries.take(&entry.name);
                }
                Ok(entry) => {
                    self.keep_partial_file(&mut target_entries, source, &entry);
                    let old = match target_entries.take(&entry.name) {
                        Some(old) => Existing::Known(Some(old.info)),
                        None if target_entries.has_other_case(&entry.name) => {
                            other_case.push(entry);
                            return !self.is_over();
                        }
                        None if is_new => Existing::Known(None),
                        // The file system may treat different names as equal.
                        None => Existing::Unknown,
                    };
                    let found = self.found(source, directory, &entry, old, depth, &mut seen, queue);
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
        };
        self.repeated(source, || source.list(detail, &mut take))?;
        for entry in other_case {
            let found = self
                .take_renamed(&mut target_entries, directory, &entry, is_whole)
                .and_then(|old| {
                    self.found(source, directory, &entry, old, depth, &mut seen, queue)
                });
            if let Err(failure) = found {
                self.report.failed(&failure);
            }
        }
        // A directory that was not listed completely may contain the entry.
        if self.policy.delete && is_whole && !self.is_over() {
            for entry in target_entries.into_entries() {
                self.queue_removal(directory, &entry, queue);
            }
        }
        Ok(())
    }

    /// Creates a directory, or prints that it would. Returns whether it is new. Where links are
    /// copied, a link is no directory: an earlier copy of a hostile tree could lead elsewhere.
    fn make(&self, target: &FilePath, depth: u32, relative: &Path) -> Outcome<bool> {
        // The user names the target of a sync. All other targets have names of the source.
        let is_named = depth == 0 && self.policy.compare != Compare::Never;
        if self.policy.links
            && !is_named
            && let Some(old) = target.lookup(false)?
            && old.kind == Kind::Link
        {
            self.replace(target, &old, relative)?;
        }
        let is_new = match self.policy.dry_run {
            true => target.lookup(true)?.is_none(),
            false => target.create_directory()?,
        };
        if is_new {
            self.progress.directory_created(target);
        }
        Ok(is_new)
    }

    /// Whether target directories are listed. A copy without comparison writes every file anyway.
    fn is_present_known(&self) -> bool {
        self.policy.compare != Compare::Never || self.policy.delete
    }

    fn present(&self, target: &FilePath) -> Outcome<TargetEntries> {
        let mut target_entries = TargetEntries::default();
        if !self.is_present_known() {
            return Ok(target_entries);
        }
        target.list(Detail::Brief, &mut |entry| {
            match entry {
                Ok(entry) => target_entries.insert(entry),
                Err(failure) => self.report.failed(&failure),
            }
            true
        })?;
        Ok(target_entries)
    }

    /// Takes the target of `entry` with a name that differs in case only, and renames it.
    fn take_renamed(
        &self,
        target_entries: &mut TargetEntries,
        directory: &Directory,
        entry: &Entry,
        is_whole: bool,
    ) -> Outcome<Existing> {
        let target = &directory.target;
        let is_meant = |old: &Entry| target.is_remote() || is_whole && self.is_copy(entry, old);
        let Some(old) = target_entries.take_other_case(&entry.name, is_meant) else {
            // The file system may treat different names as equal.
            return Ok(Existing::Unknown);
        };
        let is_copied = matches!(entry.info.kind, Kind::File | Kind::Directory);
        if is_copied && old.info.kind == entry.info.kind {
            let named = |name: &str, error| Failure::name(&format!("{target}/{name}"), error);
            let from = target.listed(&old.name);
            let from = from.map_err(|error| named(&old.name, error))?;
            let to = target.join(&entry.name);
            let to = to.map_err(|error| named(&entry.name, error))?;
            self.rename(&from, &to)?;
        }
        Ok(Existing::Known(Some(old.info)))
    }

    /// Whether a local entry with a name that differs in case only is the copy of the source, and
    /// not another file beside it: with `--delete` no other file may exist, and without it only the
    /// name changes.
    fn is_copy(&self, entry: &Entry, old: &Entry) -> bool {
        let Compare::SizeAndTime(tolerance) = self.policy.compare else {
            return self.policy.delete && entry.info.kind == old.info.kind;
        };
        let (one, other) = (entry.info.written, old.info.written);
        let distance = one
            .duration_since(other)
            .unwrap_or_else(|error| error.duration());
        let is_equal = distance <= tolerance
            && (entry.info.is_directory() || entry.info.size == old.info.size);
        entry.info.kind == old.info.kind && (self.policy.delete || is_equal)
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Outcome {
        if !self.policy.dry_run {
            from.rename(to)?;
        }
        self.progress.renamed(from, to);
        Ok(())
    }

    /// Keeps the incomplete file of a source file from being removed.
    fn keep_partial_file(
        &self,
        target_entries: &mut TargetEntries,
        source: &FilePath,
        entry: &Entry,
    ) {
        let is_kept = self.policy.delete && !self.policy.in_place;
        let (true, Ok(path)) = (is_kept, source.listed(&entry.name)) else {
            return;
        };
        let name = part::name(self.part_key(), &entry.name, &path, &entry.info);
        target_entries.take(&name);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what is known of an entry, from both sides"
    )]
    fn found(
        &self,
        source: &FilePath,
        directory: &Arc<Directory>,
        entry: &Entry,
        mut old: Existing,
        depth: u32,
        seen: &mut HashSet<String>,
        queue: &Queue<Job>,
    ) -> Outcome {
        let path = source.listed(&entry.name).map_err(|error| {
            Failure::name(&format!("{source}/{}", entry.name.escape_debug()), error)
        })?;
        let target = directory
            .target
            .join(&entry.name)
            .map_err(|error| Failure::name(&path, error))?;
        if directory.target.is_remote() && !seen.insert(upcased(&entry.name)) {
            return Err(Failure::new(
                Exit::Exists,
                path,
                "another name in this directory differs from it in case only, and SMB ignores case",
            ));
        }
        // Servers that do not map names themselves can have several names for one local name.
        if directory.target.is_mapped(&entry.name) && !seen.insert(target.key()) {
            return Err(Failure::new(
                Exit::Exists,
                path,
                "another name in this directory has the same form on this machine",
            ));
        }
        let relative = Filter::path_of(&directory.relative, &entry.name);
        if self.is_copied_link(&entry.info) {
            let info = without_data(entry.info);
            if let Existing::Known(Some(info)) = old
                && info.is_directory()
            {
                self.replace(&target, &info, &relative)?;
                old = Existing::Known(None);
            }
            self.queue_file(path, info, target, old, directory, queue);
            return Ok(());
        }
        // Links and special files are not copied, so they replace nothing.
        if matches!(entry.info.kind, Kind::Link | Kind::Other) {
            self.skip(&path, entry.info.kind);
            return Ok(());
        }
        if let Existing::Known(Some(info)) = old
            && info.kind == Kind::Link
            && self.policy.links
            && !entry.info.is_directory()
        {
            // The copy replaces the link, and does not write to its target.
            if !self.policy.dry_run {
                self.set_aside(&target, Kind::Link)?;
            }
            old = Existing::Known(None);
        }
        if let Existing::Known(Some(info)) = old
            && info.is_directory() != entry.info.is_directory()
        {
            self.replace(&target, &info, &relative)?;
            old = Existing::Known(None);
        }
        match entry.info.is_directory() {
            true => queue.push_directory(Job::Directory(DirectoryJob {
                source: path,
                info: entry.info,
                target,
                parent: Some(Arc::clone(directory)),
                depth: depth + 1,
                relative,
            })),
            false => self.queue_file(path, entry.info, target, old, directory, queue),
        }
        Ok(())
    }

    fn queue_file(
        &self,
        source: FilePath,
        info: FileInfo,
        target: FilePath,
        old: Existing,
        directory: &Arc<Directory>,
        queue: &Queue<Job>,
    ) {
        self.progress.file_found(info.size);
        let item = Item {
            source,
            info,
            target,
            // A file has no entries that filters select.
            relative: PathBuf::new(),
        };
        let item = self.counted(item);
        let first = self.hard_links.first_of(&item);
        let file = self.queued(item, old);
        let parent = Some(Arc::clone(directory));
        if let Some(first) = first {
            return queue.push_last(Job::Link(LinkJob {
                first,
                file,
                _parent: parent,
            }));
        }
        let job = Job::File(FileJob {
            file,
            _parent: parent,
        });
        if let Some(job) = queue.push_file(job) {
            self.work(job, queue);
        }
    }

    fn skip(&self, path: &FilePath, kind: Kind) {
        let why = match kind {
            Kind::Link if !path.is_remote() => {
                "a symbolic link is skipped (--links copies it, --follow copies its target)"
            }
            Kind::Link => "a link on the server is skipped (--links copies it)",
            _ => "neither a file nor a directory: skipped",
        };
        self.report.note(&format!("{path}: {why}"));
    }

    /// Removes a file in place of a directory, or a directory in place of a file, if `--delete` is
    /// given.
    fn replace(&self, target: &FilePath, old: &FileInfo, relative: &Path) -> Outcome {
        if !self.policy.delete {
            let what = old.kind.name();
            return Err(Failure::new(
                Exit::Exists,
                target,
                format!("a {what} with this name exists already"),
            ));
        }
        self.remove_one(Doomed {
            path: target.clone(),
            info: *old,
            relative: relative.to_owned(),
        });
        Ok(())
    }

    fn queue_removal(&self, directory: &Arc<Directory>, entry: &Entry, queue: &Queue<Job>) {
        let path = match directory.target.listed(&entry.name) {
            Ok(path) => path,
            Err(error) => {
                let name = format!("{}/{}", directory.target, entry.name.escape_debug());
                return self.report.failed(&Failure::name(&name, error));
            }
        };
        let job = Job::Remove(RemoveJob {
            doomed: Doomed {
                path,
                info: entry.info,
                relative: Filter::path_of(&directory.relative, &entry.name),
            },
            _parent: Some(Arc::clone(directory)),
        });
        if let Some(job) = queue.push_file(job) {
            self.work(job, queue);
        }
    }

    /// Removes a tree of the target, except for what filters exclude.
    fn remove_one(&self, tree: Doomed) {
        let is_kept = |doomed: &Doomed| {
            let is_directory = doomed.info.is_directory();
            self.is_backup(&doomed.path)
                || !self.policy.filter.includes(&doomed.relative, is_directory)
        };
        each_in_tree(tree, self.report, &is_kept, &mut |doomed| {
            let removed = self.remove_entry(&doomed.path, &doomed.info);
            if let Err(failure) = &removed {
                fail(self.report, failure);
            }
            !self.is_over()
        });
    }

    fn remove_entry(&self, path: &FilePath, info: &FileInfo) -> Outcome {
        self.may_remove(path)?;
        if !self.policy.dry_run {
            self.set_aside(path, info.kind)?;
        }
        let bytes = if info.is_directory() { 0 } else { info.size };
        self.progress.removed(path, bytes);
        Ok(())
    }

    /// Whether filters let an entry of the source take part.
    fn takes_part(&self, directory: &Directory, entry: &Entry) -> bool {
        let filter = &self.policy.filter;
        filter.is_empty() || {
            let path = Filter::path_of(&directory.relative, &entry.name);
            filter.includes(&path, entry.info.is_directory())
        }
    }

    /// Releases an entry of a directory. After the last entry the directory gets its times, and its
    /// parent is released.
    fn entry_done(&self, directory: Option<Arc<Directory>>) {
        let mut next = directory;
        while let Some(mut directory) = next.and_then(Arc::into_inner) {
            if self.policy.preserve && !self.policy.dry_run && !self.is_over() {
                let Directory { source, target, .. } = &mut directory;
                let set = self.reconnect([source, target]).and_then(|_| {
                    let Directory {
                        source,
                        target,
                        info,
                        ..
                    } = &directory;
                    match self.policy.archive {
                        true => self.copy_extras(source, info, target, None),
                        false => target.set_info(info, directory.source_is_remote),
                    }
                });
                if let Err(failure) = set {
                    self.report.failed(&failure);
                }
            }
            next = directory.parent;
        }
    }
}
