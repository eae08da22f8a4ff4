//! The expected files, and what their names and sizes were a short time ago.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The number of a file. A file keeps it when it is renamed.
pub(crate) type FileId = usize;

/// The state of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No file has the name.
    Absent,
    /// A directory.
    Directory,
    /// A file.
    File(FileId),
}

/// The expected files.
#[derive(Debug, Default)]
pub(crate) struct Model {
    contents: Vec<Vec<u8>>,
    inodes: Vec<Option<u64>>,
    names: BTreeMap<String, Option<FileId>>,
    /// The former states of each name, with the time of their end.
    history: BTreeMap<String, Vec<(Instant, State)>>,
    /// The former sizes of each file in bytes, with the time of their end.
    sizes: BTreeMap<FileId, Vec<(Instant, u64)>>,
}

impl Model {
    /// The present state of a name.
    pub(crate) fn state(&self, path: &str) -> State {
        match self.names.get(path) {
            None => State::Absent,
            Some(None) => State::Directory,
            Some(Some(id)) => State::File(*id),
        }
    }

    /// The states that a name had until less than `age` ago.
    pub(crate) fn recent_states(&self, path: &str, age: Duration) -> impl Iterator<Item = State> {
        let former = self.history.get(path).into_iter().flatten();
        former
            .filter(move |(end, _)| end.elapsed() < age)
            .map(|(_, state)| *state)
    }

    /// The files that ever had a name.
    pub(crate) fn former_files(&self, path: &str) -> impl Iterator<Item = FileId> {
        let former = self.history.get(path).into_iter().flatten();
        former.filter_map(|(_, state)| match state {
            State::File(id) => Some(*id),
            _ => None,
        })
    }

    /// The size of a file in bytes.
    pub(crate) fn size(&self, id: FileId) -> u64 {
        self.contents[id].len() as u64
    }

    /// Whether a file has the size, or had it until less than `age` ago.
    pub(crate) fn had_size(&self, id: FileId, size: u64, age: Duration) -> bool {
        let mut former = self.sizes.get(&id).into_iter().flatten();
        let was = former.any(|(end, former)| end.elapsed() < age && *former == size);
        was || self.size(id) == size
    }

    /// The names of all files.
    pub(crate) fn files(&self) -> Vec<String> {
        let files = self.names.iter().filter(|(_, file)| file.is_some());
        files.map(|(path, _)| path.clone()).collect()
    }

    /// The names directly in a directory, former ones included.
    pub(crate) fn names_in(&self, directory: &str) -> Vec<String> {
        let present = self.names.keys().chain(self.history.keys());
        let name = |path: &String| match path.rsplit_once('/') {
            Some((parent, name)) if parent == directory => Some(name.to_owned()),
            None if directory == "." => Some(path.clone()),
            _ => None,
        };
        let mut names: Vec<String> = present.filter_map(name).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The bytes of a file.
    pub(crate) fn content(&self, id: FileId) -> &[u8] {
        &self.contents[id]
    }

    /// Whether a file has this inode number.
    pub(crate) fn has_inode(&self, id: FileId, inode: Option<u64>) -> bool {
        self.inodes[id] == inode
    }

    /// A new empty file.
    pub(crate) fn create(&mut self, path: &str, inode: Option<u64>) -> FileId {
        self.remember(path);
        self.contents.push(Vec::new());
        self.inodes.push(inode);
        let id = self.contents.len() - 1;
        self.names.insert(path.into(), Some(id));
        id
    }

    /// A new directory.
    pub(crate) fn make_directory(&mut self, path: &str) {
        self.remember(path);
        self.names.insert(path.into(), None);
    }

    /// Deletes a file or a directory.
    pub(crate) fn remove(&mut self, path: &str) {
        self.remember(path);
        self.names.remove(path);
    }

    /// Renames a file.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        self.remember(from);
        self.remember(to);
        let file = self.names.remove(from).flatten();
        self.names.insert(to.into(), file);
    }

    /// Writes to a file.
    pub(crate) fn write(&mut self, id: FileId, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.contents[id].len() {
            self.resize(id, end);
        }
        self.contents[id][offset..end].copy_from_slice(bytes);
    }

    /// Changes the size of a file.
    pub(crate) fn resize(&mut self, id: FileId, size: usize) {
        let former = (Instant::now(), self.size(id));
        self.sizes.entry(id).or_default().push(former);
        self.contents[id].resize(size, 0);
    }

    fn remember(&mut self, path: &str) {
        let state = self.state(path);
        let former = self.history.entry(path.into()).or_default();
        former.push((Instant::now(), state));
    }
}
