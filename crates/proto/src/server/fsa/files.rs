//! The map behind the table of open files: files by their identity, streams within a file.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;

use wire::Guid;

use super::caching::{DirectoryName, LeaseId, LeasedDirectories};
use super::removals::Removals;
use super::{FileRecord, OpenRecord, StreamRecord};
use crate::file::{FileKey, ShareId};
use crate::path::SharePath;

/// The open files.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// By the key of the unnamed data stream.
    files: BTreeMap<FileKey, FileRecord>,
    /// The leases.
    leases: BTreeMap<LeaseId, Leased>,
    /// The directories with leases.
    pub(super) directories: LeasedDirectories,
    /// Number of leases of each client.
    leases_of: BTreeMap<Guid, usize>,
    /// The last removals of names.
    pub(super) removals: Removals,
}

/// The place of a lease.
#[derive(Debug)]
struct Leased {
    /// The stream that the lease is on.
    key: FileKey,
    /// The name under which the directory of the lease is in the list of directories; `None` for a
    /// file. Boxed, because most leases are on files.
    directory: Option<Box<DirectoryName>>,
}

impl Files {
    /// The file of a stream, a new record if it has none.
    pub(super) fn entry(&mut self, key: FileKey) -> &mut FileRecord {
        self.files.entry(key.of_file()).or_default()
    }

    /// The file of a stream.
    pub(super) fn file(&self, key: FileKey) -> Option<&FileRecord> {
        self.files.get(&key.of_file())
    }

    /// The same, to change it.
    pub(super) fn file_mut(&mut self, key: FileKey) -> Option<&mut FileRecord> {
        self.files.get_mut(&key.of_file())
    }

    /// Removes a file that has no open.
    pub(super) fn remove(&mut self, key: FileKey) {
        let removed = self.files.remove(&key.of_file());
        let has_opens = removed.is_some_and(|file| file.has_opens());
        assert!(!has_opens, "an open file stays in the table");
    }

    /// The stream that a lease is on.
    pub(super) fn leased(&self, lease: LeaseId) -> Option<FileKey> {
        self.leases.get(&lease).map(|leased| leased.key)
    }

    /// Number of leases of a client.
    pub(super) fn leases_of(&self, client: Guid) -> usize {
        self.leases_of.get(&client).copied().unwrap_or(0)
    }

    /// Number of leases of all clients.
    pub(super) fn leases(&self) -> usize {
        self.leases.len()
    }

    /// Adds a lease on a stream; without effect if the lease exists.
    pub(super) fn add_lease(&mut self, lease: LeaseId, key: FileKey) {
        let Entry::Vacant(vacant) = self.leases.entry(lease) else {
            return;
        };
        vacant.insert(Leased {
            key,
            directory: None,
        });
        *self.leases_of.entry(lease.client).or_default() += 1;
    }

    /// Enters the directory of a lease in the list of directories, and removes a previous name.
    /// Returns whether the lease had none.
    pub(super) fn lease_directory(&mut self, lease: LeaseId, name: DirectoryName) -> bool {
        let Some(leased) = self.leases.get_mut(&lease) else {
            return false;
        };
        let key = leased.key;
        let previous = leased.directory.replace(Box::new(name.clone()));
        if let Some(previous) = &previous {
            self.directories.remove(previous, key);
        }
        self.directories.add(name, key);
        previous.is_none()
    }

    /// Whether a lease is on a directory.
    pub(super) fn is_directory_lease(&self, lease: LeaseId) -> bool {
        let leased = self.leases.get(&lease);
        leased.is_some_and(|leased| leased.directory.is_some())
    }

    /// Removes a lease. Returns whether it was on a directory.
    pub(super) fn remove_lease(&mut self, lease: LeaseId) -> bool {
        let Some(Leased { key, directory }) = self.leases.remove(&lease) else {
            return false;
        };
        if let Some(name) = &directory {
            self.directories.remove(name, key);
        }
        if let Some(count) = self.leases_of.get_mut(&lease.client) {
            *count -= 1;
            if *count == 0 {
                self.leases_of.remove(&lease.client);
            }
        }
        directory.is_some()
    }

    /// A stream.
    pub(super) fn stream(&self, key: FileKey) -> Option<&StreamRecord> {
        self.file(key)?.streams.get(key.stream)
    }

    /// The same, to change it.
    pub(super) fn stream_mut(&mut self, key: FileKey) -> Option<&mut StreamRecord> {
        self.file_mut(key)?.streams.get_mut(key.stream)
    }

    /// All open streams of a file.
    pub(super) fn streams_mut(
        &mut self,
        key: FileKey,
    ) -> impl Iterator<Item = (FileKey, &mut StreamRecord)> {
        let file = self.file_mut(key);
        let streams = file.into_iter().flat_map(|file| file.streams.iter_mut());
        streams.map(move |(stream, record)| (key.with_stream(stream), record))
    }

    /// All open streams of all files.
    pub(super) fn all_streams_mut(&mut self) -> impl Iterator<Item = (FileKey, &mut StreamRecord)> {
        self.files.iter_mut().flat_map(|(key, file)| {
            let streams = file.streams.iter_mut();
            streams.map(|(stream, record)| (key.with_stream(stream), record))
        })
    }

    /// A directory has another name: replaces the names of the opens below it.
    pub(super) fn rename_below(&mut self, share: ShareId, from: &SharePath, to: &SharePath) {
        let mut leases = Vec::new();
        for file in self.files.values_mut() {
            for stream in file.streams.values_mut() {
                for open in stream.opens.iter_mut().filter(|it| it.file.share == share) {
                    let Some(path) = open.path.moved(from, to) else {
                        continue;
                    };
                    leases.extend(open.holder.lease().map(|lease| (lease, path.clone())));
                    open.path = path;
                }
            }
            for delete in file.deletes.iter_mut().filter(|it| it.file.share == share) {
                if let Some(path) = delete.path.moved(from, to) {
                    delete.path = path;
                }
            }
        }
        for (lease, path) in leases {
            if self.is_directory_lease(lease) {
                self.lease_directory(lease, DirectoryName::new(share, &path));
            }
        }
    }

    /// All opens.
    pub(super) fn opens(&self) -> impl Iterator<Item = &OpenRecord> {
        let streams = self.files.values().flat_map(|file| file.streams.values());
        streams.flat_map(|stream| &stream.opens)
    }
}

impl FileRecord {
    /// Whether any stream has an open, or is being deleted.
    pub(super) fn has_opens(&self) -> bool {
        let is_used = |it: &StreamRecord| !it.opens.is_empty() || it.delete.is_some();
        self.streams.values().any(is_used)
    }
}
