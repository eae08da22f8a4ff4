//! Lookups that wait for the security descriptors of new files. See [`super::unfinished`].

use proto::path::SharePath;

use super::Posix;
use super::directory::{Directory, Entry, Parent, Run};
use crate::Step;

impl Posix {
    /// As [`entry`](Self::entry), but waits until the file has its descriptor.
    pub(super) fn finished_entry(
        &self,
        directory: &Directory,
        name: &str,
        run: Run<'_>,
    ) -> Step<Option<Entry>> {
        let ended = self.unfinished.ended();
        let found = self.entry(directory, name, run)?;
        if found.is_none() || !self.unfinished.overlaps(ended) {
            return Ok(found);
        }
        drop(self.index.lock_name(directory, name, run.effort)?);
        self.entry(directory, name, run)
    }

    /// As [`directory`](Self::directory), but waits until the directory has its descriptor.
    pub(super) fn finished_directory(&self, path: &SharePath, run: Run<'_>) -> Step<Parent> {
        let ended = self.unfinished.ended();
        let found = self.directory(path, run)?;
        if path.is_root() || !self.unfinished.overlaps(ended) {
            return Ok(found);
        }
        let above = self.directory(&path.parent(), run)?;
        drop(
            self.index
                .lock_name(&above.directory, path.name(), run.effort)?,
        );
        self.directory(path, run)
    }
}
