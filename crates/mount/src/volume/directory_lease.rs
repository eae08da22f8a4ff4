//! Leases on directories: when the mount asks for one, and what its end does.

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Weak};

use fuser::{INodeNo, Notifier};
use smbeam_client::{AccessMask, LeaseState, OpenOptions, Wait as _};

use super::Volume;
use crate::handles::lock;
use crate::leased::Leased;
use crate::opens::Opens;
use crate::options::Cache;

/// Read and handle caching. Without the latter the server does not ask before it renames or removes
/// the directory.
const SHARED: LeaseState = LeaseState(LeaseState::READ_CACHING.0 | LeaseState::HANDLE_CACHING.0);
/// Largest number of leases on directories. The oldest one is given back.
const LEASES_MAX: usize = 4096;

impl Volume {
    /// The lease of a directory for a request about its entry `name`; `None` if it has none. A
    /// directory that programs use asks for one.
    pub(crate) async fn leased(self: &Arc<Self>, ino: u64, name: Option<&OsStr>) -> Option<Leased> {
        if self.options.cache != Cache::Strict || self.options.attribute_time.is_zero() {
            return None;
        }
        let opens = self.opens(ino).ok()?;
        let directory = opens.directory(&self.cached_names);
        if directory.is_wanted(name.is_none()) {
            let _gate = directory.gate.lock().await;
            if !directory.is_held() {
                self.ask_for_directory_lease(&opens).await;
            }
        }
        Leased::of(directory, name)
    }

    async fn ask_for_directory_lease(self: &Arc<Self>, opens: &Arc<Opens>) {
        let options = OpenOptions::new()
            .access(
                AccessMask::FILE_LIST_DIRECTORY
                    | AccessMask::FILE_READ_ATTRIBUTES
                    | AccessMask::SYNCHRONIZE,
            )
            .directory(true)
            .follow(false)
            .lease(SHARED)
            .cache_directory(true)
            .durable(false);
        let Ok(path) = self.path(opens.ino) else {
            return;
        };
        let Ok(file) = self.share.open(&path, &options).await else {
            return opens.directory(&self.cached_names).refuse();
        };
        let (volume, weak) = (Arc::downgrade(self), Arc::downgrade(opens));
        file.on_lease_break(move |_| {
            if let Some((volume, opens)) = volume.upgrade().zip(weak.upgrade()) {
                volume.counters.breaks.add(1);
                volume.end_directory_lease(&opens);
            }
        });
        if opens.directory(&self.cached_names).set(&file) {
            self.count_directory_lease(opens);
        } else {
            let _ = file.close().await;
        }
    }

    /// Gives the oldest lease back if the mount has too many leases, or too many names under them.
    fn count_directory_lease(&self, opens: &Arc<Opens>) {
        let has_too_many_names = self.cached_names.is_full();
        let oldest = {
            let mut leases = lock(&self.directory_leases);
            let oldest = match leases.len() >= LEASES_MAX || has_too_many_names {
                true => leases.pop_front(),
                false => None,
            };
            leases.push_back(Arc::downgrade(opens));
            oldest
        };
        if let Some(oldest) = oldest.and_then(|oldest| oldest.upgrade()) {
            self.end_directory_lease(&oldest);
        }
    }

    /// A lease on a directory has ended. The kernel drops what it caches soon: it waits for
    /// requests about the directory, which can wait for the server.
    fn end_directory_lease(&self, opens: &Opens) {
        if opens.directory(&self.cached_names).end() {
            self.name_invalidator.add(opens.ino);
        }
    }

    /// Gives back the leases on the directory of a path and on those below it, and waits until
    /// their opens are closed: a server can refuse to rename or remove a directory that is open. If
    /// an open of a removed directory remains, smbd 4.25 even removes a directory that takes its
    /// name.
    pub(super) async fn release_directories(&self, path: &str) {
        let below = format!("{path}/");
        let leased: Vec<_> = {
            let leases = lock(&self.directory_leases);
            let all = leases.iter().filter_map(Weak::upgrade);
            all.filter(|opens| opens.directory(&self.cached_names).has_open())
                .collect()
        };
        for opens in leased {
            let at = self.path(opens.ino);
            if at.is_ok_and(|at| at == path || at.starts_with(&below)) {
                self.end_directory_lease(&opens);
                for file in opens.directory(&self.cached_names).take_closing() {
                    let _ = file.close().await;
                }
            }
        }
    }

    /// Lets the kernel drop what a lease on a directory has protected, and closes the open with the
    /// lease. Blocks the thread.
    pub(super) fn drop_names(&self, ino: u64) {
        let Ok(opens) = self.opens(ino) else {
            // The kernel has forgotten the directory.
            return;
        };
        let ended = opens.directory(&self.cached_names).take_ended();
        self.counters.invalidations.add(1);
        if let Some(notifier) = self.notifier.get() {
            for (name, is_directory) in &ended.names {
                self.drop_name(notifier, ino, (name, *is_directory));
            }
            if ended.has_more {
                for (name, is_directory) in self.children(ino) {
                    self.drop_name(notifier, ino, (&name, is_directory));
                }
            }
            let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
        }
        for file in ended.files {
            let _ = file.close().wait();
        }
    }

    fn drop_name(&self, notifier: &Notifier, ino: u64, (name, is_directory): (&OsStr, bool)) {
        // The kernel would also remove the working directories of programs from the tree. So the
        // names of directories have a short time.
        if !is_directory {
            // A name that the kernel does not have is no error that matters.
            let _ = notifier.inval_entry(INodeNo(ino), name);
        }
        if let Some(child) = self.child(ino, name) {
            self.drop_attributes(child);
        }
    }

    /// The names in a directory that the kernel knows, and whether they are directories.
    fn children(&self, ino: u64) -> Vec<(OsString, bool)> {
        let children = lock(&self.inodes).children(ino);
        let shown = children.into_iter();
        shown
            .filter_map(|(name, is_directory)| Some((self.names().to_kernel(&name)?, is_directory)))
            .collect()
    }

    /// The kernel moves a name when it has the reply to a rename. It asks for the name again then.
    pub(super) fn has_moved(&self, parent: u64, name: &OsStr) {
        if let (Ok(opens), Some(child)) = (self.opens(parent), self.child(parent, name)) {
            let is_directory = lock(&self.inodes).is_directory(child);
            opens
                .directory(&self.cached_names)
                .add_stale(name.to_owned(), is_directory);
            self.name_invalidator.add(parent);
        }
    }

    fn child(&self, parent: u64, name: &OsStr) -> Option<u64> {
        let name = self.names().to_server(name).ok()?;
        lock(&self.inodes).child(parent, &name)
    }

    /// The leases that protect the attributes of an inode together: none for a file that is open
    /// here, or that has several names. A directory needs its own one too, because its times change
    /// with its entries.
    pub(crate) fn leases_of(&self, ino: u64) -> Option<Vec<Leased>> {
        let (parent, opens, is_directory) = {
            let inodes = lock(&self.inodes);
            let is_directory = inodes.is_directory(ino);
            (inodes.only_name(ino), inodes.opens(ino).ok()?, is_directory)
        };
        let mut leases = Vec::new();
        if let Some((parent, name)) = parent {
            let name = self.names().to_kernel(&name)?;
            let above = self.opens(parent).ok()?;
            leases.push(Leased::of(
                above.directory(&self.cached_names),
                Some(&name),
            )?);
        } else if ino != crate::inodes::ROOT {
            return None;
        }
        if is_directory {
            leases.push(Leased::of(opens.directory(&self.cached_names), None)?);
        }
        opens.is_empty().then_some(leases)
    }
}
