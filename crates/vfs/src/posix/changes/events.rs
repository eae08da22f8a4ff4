//! Conversion of the kernel's events into changes for the watching clients.

use std::borrow::Cow;

use proto::file::{LocalChange, LocalEvent};
use ring::{Entry, Event, FileHandle};
use wire::change_notify::CompletionFilter;
use wire::file_name::NameMapping;
use wire::fscc::FileAction;

use super::shared::lock;
use super::watcher::{REMEMBERED_MAX, Scan, Watcher};

/// Maximum number of changes in one call of the listener.
const OUTGOING_MAX: usize = 1024;

/// The completion filters that match a change of data.
const DATA: CompletionFilter =
    CompletionFilter(CompletionFilter::SIZE.0 | CompletionFilter::LAST_WRITE.0);
/// The completion filters that match a change of the inode. The kernel does not report which field
/// changed.
const INODE: CompletionFilter = CompletionFilter(
    CompletionFilter::ATTRIBUTES.0
        | CompletionFilter::LAST_WRITE.0
        | CompletionFilter::LAST_ACCESS.0
        | CompletionFilter::SECURITY.0
        | CompletionFilter::EA.0,
);

impl Watcher {
    /// Detects events that may be out of order. The kernel merges events with the same directories,
    /// names and file into one, at the position of the first. For example, it reports two renames
    /// of a file that is renamed forth, back and forth again. So the location of a file that
    /// returned to an earlier location since the queue was empty is unknown.
    fn note_order(&mut self, event: &Event) {
        let Some(target) = event.target.clone() else {
            return;
        };
        if event.is_own && !event.is_directory() {
            return;
        }
        let is_back = self.moved.contains(&(target.clone(), event.entry.clone()));
        self.moved.insert((target, event.from.clone()));
        self.has_overflowed |= is_back || self.moved.len() > REMEMBERED_MAX;
    }

    pub(super) fn take(&mut self, event: &Event) {
        if event.is_overflow() {
            self.has_overflowed = true;
            return;
        }
        if event.is_renamed() {
            return self.take_rename(event);
        }
        let mapping = self.shared.mapping;
        let named_entry = event.entry.as_ref().and_then(|entry| named(entry, mapping));
        let Some((directory, name)) = &named_entry else {
            return self.take_own_attributes(event);
        };
        let filter = of_name(event.is_directory());
        let is_both = event.is_created() && event.is_deleted();
        let is_back = is_both && self.is_target(event, directory, name);
        if event.is_deleted() && is_back {
            self.report(event, (directory, name), FileAction::REMOVED, filter);
        }
        if event.is_created() {
            self.take_creation(event, directory, name);
        }
        let changed = [
            (event.is_modified(), DATA),
            (event.has_new_attributes(), INODE),
        ];
        let changed = changed.iter().filter(|(is_it, _)| *is_it);
        let seen = changed.fold(CompletionFilter::NONE, |seen, (_, filter)| seen | *filter);
        if seen != CompletionFilter::NONE {
            self.report(event, (directory, name), FileAction::MODIFIED, seen);
        }
        if event.is_deleted() && !is_back {
            self.report(event, (directory, name), FileAction::REMOVED, filter);
            self.forget(event);
        }
    }

    /// Reports a change of a directory's own attributes. Its event has no name, so the parent is
    /// known only in a watched tree; other watches do not receive it.
    fn take_own_attributes(&mut self, event: &Event) {
        let is_it = |entry: &&Entry| event.has_new_attributes() && entry.name == b".";
        if let Some(entry) = event.entry.as_ref().filter(is_it) {
            let place = lock(&self.shared.state)
                .tree
                .parent(&entry.directory)
                .cloned();
            if let Some((parent, name)) = place {
                self.report(event, (&parent, &name), FileAction::MODIFIED, INODE);
            }
        }
    }

    fn take_creation(&mut self, event: &Event, directory: &FileHandle, name: &str) {
        let was_found =
            !self.found.is_empty() && self.found.remove(&(directory.clone(), name.to_owned()));
        if !was_found {
            let filter = of_name(event.is_directory());
            self.report(event, (directory, name), FileAction::ADDED, filter);
        }
        if event.is_directory() {
            // A directory created by this process already has its mark, unless the limit was
            // reached.
            let scan = match event.is_own {
                true => Scan::MovedIn,
                false => Scan::Report,
            };
            self.add_directory(event, directory, name, scan);
        }
    }

    /// A rename within a directory is one change; between two directories it is a removal and an
    /// addition.
    fn take_rename(&mut self, event: &Event) {
        let mapping = self.shared.mapping;
        let from = event.from.as_ref().and_then(|entry| named(entry, mapping));
        let to = event.entry.as_ref().and_then(|entry| named(entry, mapping));
        let from = from.as_ref().map(|(directory, name)| (*directory, &**name));
        let to = to.as_ref().map(|(directory, name)| (*directory, &**name));
        let filter = of_name(event.is_directory());
        self.note_order(event);
        match (from, to) {
            (Some(from), Some(to)) if from.0 == to.0 => {
                self.report_rename(event, from, to, filter);
            }
            _ => {
                if let Some(from) = from {
                    self.report(event, from, FileAction::REMOVED, filter);
                }
                if let Some(to) = to {
                    self.report(event, to, FileAction::ADDED, filter);
                }
            }
        }
        if event.is_directory() {
            self.move_directory(event, from, to);
        }
    }

    fn move_directory(
        &mut self,
        event: &Event,
        from: Option<(&FileHandle, &str)>,
        to: Option<(&FileHandle, &str)>,
    ) {
        let mut state = lock(&self.shared.state);
        let is_covered = |at: &(&FileHandle, &str)| state.tree.is_covered(at.0);
        let (was_covered, to) = (
            from.is_some_and(|at| is_covered(&at)),
            to.filter(is_covered),
        );
        let place = to.map(|(directory, name)| (directory.clone(), name.to_owned()));
        let target = event.target.as_ref();
        let is_known = target.is_some_and(|target| state.tree.move_to(target, place));
        state.must_sweep |= to.is_none() && is_known;
        drop(state);
        // A directory that should be in the tree but is not was renamed before this thread read it.
        // A directory from outside arrives with its contents, which are not reported.
        if let Some((directory, name)) = to.filter(|_| !is_known) {
            let scan = match was_covered && !event.is_own {
                true => Scan::Report,
                false => Scan::MovedIn,
            };
            self.add_directory(event, directory, name, scan);
        }
    }

    /// Removes a deleted directory from the tree, and notifies its watches.
    fn forget(&mut self, event: &Event) {
        let Some(target) = event.target.as_ref().filter(|_| event.is_directory()) else {
            return;
        };
        let watched = lock(&self.shared.state).tree.remove(target);
        if let Some(key) = watched.filter(|_| !event.is_own) {
            self.outgoing.push(LocalEvent::Removed(key));
        }
    }

    /// Reports a change of a name, unless this process caused it.
    fn report(
        &mut self,
        event: &Event,
        (directory, name): (&FileHandle, &str),
        action: FileAction,
        filter: CompletionFilter,
    ) {
        if !event.is_own {
            self.report_change(directory, name, action, filter);
        }
    }

    pub(super) fn report_change(
        &mut self,
        directory: &FileHandle,
        name: &str,
        action: FileAction,
        filter: CompletionFilter,
    ) {
        let observers = lock(&self.shared.state).tree.observers(directory, name);
        for (directory, path) in observers {
            self.outgoing.push(LocalEvent::Change(LocalChange {
                directory,
                path,
                action,
                filter,
            }));
        }
        if self.outgoing.len() >= OUTGOING_MAX {
            self.flush();
        }
    }

    /// Reports a rename within a directory, unless this process caused it: both names, one directly
    /// after the other.
    fn report_rename(
        &mut self,
        event: &Event,
        (directory, from): (&FileHandle, &str),
        (_, to): (&FileHandle, &str),
        filter: CompletionFilter,
    ) {
        if event.is_own {
            return;
        }
        let state = lock(&self.shared.state);
        let old = state.tree.observers(directory, from);
        let new = state.tree.observers(directory, to);
        drop(state);
        for ((directory, old), (_, new)) in old.into_iter().zip(new) {
            let change = |path, action| {
                LocalEvent::Change(LocalChange {
                    directory,
                    path,
                    action,
                    filter,
                })
            };
            self.outgoing
                .push(change(old, FileAction::RENAMED_OLD_NAME));
            self.outgoing
                .push(change(new, FileAction::RENAMED_NEW_NAME));
        }
    }
}

/// The directory and the name of an entry; `None` for a name that clients cannot see.
fn named(entry: &Entry, mapping: NameMapping) -> Option<(&FileHandle, Cow<'_, str>)> {
    let name = mapping.to_wire(&entry.name)?;
    (name != ".").then_some((&entry.directory, name))
}

/// The completion filter that matches the creation, removal and rename of a name.
pub(super) fn of_name(is_directory: bool) -> CompletionFilter {
    match is_directory {
        true => CompletionFilter::DIR_NAME,
        false => CompletionFilter::FILE_NAME,
    }
}
