//! The lease on a directory, and what the kernel caches under it: names, also of files that do not
//! exist, attributes, and the listing.
//!
//! A break of the lease ends that. No request waits for it on the server ([MS-SMB2] 3.3.4.7), so a
//! reply with a long time is sent under the lock that the end of the lease takes: afterwards the
//! kernel drops every name that a reply has given it.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::lock::Mutex as Gate;
use smbeam_client::{File, LeaseState};

use crate::cached_names::CachedNames;
use crate::handles::lock;

/// Time for which a directory without a lease asks for none again.
const REFUSAL: Duration = Duration::from_secs(1);
/// Largest number of names that the kernel caches under the lease of one directory.
const NAMES_MAX: usize = 1 << 16;
/// Time without a change of a directory or a file after which the kernel may use what a lease on
/// the directory protects. The break of that lease can arrive after the change has returned to
/// another client, and a write through an open of another client breaks it only when that client
/// closes the file ([MS-SMB2] 3.3.4.7; Windows and Samba do the same). So a file that several
/// clients use has no such cache.
pub(crate) const QUIET: Duration = Duration::from_secs(5);
/// Number of names that programs look up in a directory before it asks for a lease.
const LOOKUPS: u32 = 2;
/// Time for which the kernel may use what a lease protects. The end of the lease ends it.
pub(crate) const LEASED: Duration = Duration::from_secs(3600);

/// The lease on a directory. Other inodes have none.
pub(crate) struct DirectoryLease {
    inner: Mutex<Inner>,
    /// Counts the names of all directories of the mount.
    counted: Arc<CachedNames>,
    /// One task at a time asks for the lease.
    pub(crate) gate: Gate<()>,
}

#[derive(Default)]
struct Inner {
    file: Option<File>,
    /// When the lease was granted.
    granted: Option<Instant>,
    /// Number of leases that have ended.
    ends: u64,
    lookups: u32,
    refused: Option<Instant>,
    /// Names that the kernel caches, and whether they are directories.
    names: HashMap<OsString, bool>,
    /// Whether the kernel caches the listing of the present lease.
    is_listed: bool,
    /// Names and opens of leases that have ended. The kernel has not dropped them yet.
    stale: HashMap<OsString, bool>,
    /// Whether the kernel must drop further names, for which `stale` has no space.
    has_more: bool,
    closing: Vec<File>,
}

/// The lease that protects the response to a request: the one that was held when it was sent.
#[derive(Clone)]
pub(crate) struct Leased {
    directory: Arc<DirectoryLease>,
    ends: u64,
    name: Option<OsString>,
}

/// A lease that is held until this is dropped.
pub(crate) struct Confirmed<'a>(MutexGuard<'a, Inner>);

/// What the kernel must drop, and the opens to close.
#[derive(Default)]
pub(crate) struct Ended {
    /// Names of entries, and whether they are directories.
    pub(crate) names: HashMap<OsString, bool>,
    /// Whether the kernel must drop all names that it knows of existing files, too.
    pub(crate) has_more: bool,
    pub(crate) files: Vec<File>,
}

impl DirectoryLease {
    /// No lease yet. `counted` counts the names of all directories of the mount.
    pub(crate) fn new(counted: &Arc<CachedNames>) -> Self {
        Self {
            inner: Mutex::default(),
            counted: Arc::clone(counted),
            gate: Gate::default(),
        }
    }

    /// Whether the lease is held.
    pub(crate) fn is_held(&self) -> bool {
        lock(&self.inner).is_held()
    }

    /// Counts the lookup of a name. Returns whether the directory must ask for a lease.
    pub(crate) fn is_wanted(&self, is_listed: bool) -> bool {
        let mut inner = lock(&self.inner);
        inner.lookups = inner.lookups.saturating_add(1);
        let is_used = is_listed || inner.lookups >= LOOKUPS;
        let is_refused = inner.refused.is_some_and(|at| at.elapsed() < REFUSAL);
        is_used && !is_refused && !inner.is_held()
    }

    /// Takes note of an open with the lease. Returns false if the server granted none.
    pub(crate) fn set(&self, file: &File) -> bool {
        let mut inner = lock(&self.inner);
        inner.file = Some(file.clone());
        if !inner.is_held() {
            inner.file = None;
            inner.refused = Some(Instant::now());
            return false;
        }
        inner.granted = Some(Instant::now());
        true
    }

    /// Takes note that the directory cannot be opened.
    pub(crate) fn refuse(&self) {
        lock(&self.inner).refused = Some(Instant::now());
    }

    /// The lease ends. Returns whether the kernel has something to drop.
    pub(crate) fn end(&self) -> bool {
        let mut inner = lock(&self.inner);
        let Some(file) = inner.file.take() else {
            return false;
        };
        inner.ends += 1;
        inner.closing.push(file);
        inner.is_listed = false;
        inner.retire_names(&self.counted);
        true
    }

    /// Whether the directory has an open with a lease, or one of an ended lease to close.
    pub(crate) fn has_open(&self) -> bool {
        let inner = lock(&self.inner);
        inner.file.is_some() || !inner.closing.is_empty()
    }

    /// Returns the opens of leases that have ended, which the caller closes.
    pub(crate) fn take_closing(&self) -> Vec<File> {
        std::mem::take(&mut lock(&self.inner).closing)
    }

    /// The kernel has moved a name here, with the time that it had. The lease does not know it.
    pub(crate) fn add_stale(&self, name: OsString, is_directory: bool) {
        let mut inner = lock(&self.inner);
        let is_known = inner.stale.contains_key(&name);
        if is_known || inner.stale.len() < NAMES_MAX && self.counted.take() {
            inner.stale.insert(name, is_directory);
        } else {
            inner.has_more = true;
        }
    }

    /// Returns what must be dropped.
    pub(crate) fn take_ended(&self) -> Ended {
        let mut inner = lock(&self.inner);
        self.counted.release(inner.stale.len());
        Ended {
            names: std::mem::take(&mut inner.stale),
            has_more: std::mem::take(&mut inner.has_more),
            files: std::mem::take(&mut inner.closing),
        }
    }
}

/// The kernel has forgotten the directory and the names in it.
impl Drop for DirectoryLease {
    fn drop(&mut self) {
        let inner = lock(&self.inner);
        self.counted.release(inner.names.len() + inner.stale.len());
    }
}

impl Inner {
    /// The names of the lease must be dropped.
    fn retire_names(&mut self, counted: &CachedNames) {
        for (name, is_directory) in self.names.drain() {
            if self.stale.insert(name, is_directory).is_some() {
                counted.release(1);
            }
        }
    }

    /// Takes note of a name that the kernel caches. Returns false if that is too many.
    fn remember(&mut self, name: &OsStr, is_directory: bool, counted: &CachedNames) -> bool {
        let is_known = self.names.contains_key(name);
        let fits = is_known || self.names.len() < NAMES_MAX && counted.take();
        if fits {
            self.names.insert(name.to_owned(), is_directory);
        }
        fits
    }

    fn is_held(&self) -> bool {
        let lease = self.file.as_ref().and_then(File::lease);
        lease.is_some_and(|lease| lease.state.contains(LeaseState::READ_CACHING))
    }
}

impl Leased {
    /// The present lease of a directory; `None` if it has none. `name`: the entry of the response.
    pub(crate) fn of(directory: &Arc<DirectoryLease>, name: Option<&OsStr>) -> Option<Self> {
        let inner = lock(&directory.inner);
        inner.is_held().then(|| Self {
            directory: Arc::clone(directory),
            ends: inner.ends,
            name: name.map(OsStr::to_owned),
        })
    }

    /// Whether the lease still protects the response. The reply must be sent before the result is
    /// dropped. `is_directory`: the kind of the entry.
    pub(crate) fn confirm(&self, is_directory: bool) -> Option<Confirmed<'_>> {
        let mut inner = lock(&self.directory.inner);
        let is_quiet = inner.granted.is_some_and(|at| at.elapsed() >= QUIET);
        if !inner.is_held() || inner.ends != self.ends || !is_quiet {
            return None;
        }
        if let Some(name) = &self.name
            && !inner.remember(name, is_directory, &self.directory.counted)
        {
            return None;
        }
        Some(Confirmed(inner))
    }
}

impl Confirmed<'_> {
    /// The kernel opens the directory, and caches the listing. Returns whether it has cached it
    /// under this lease before.
    pub(crate) fn list(&mut self) -> bool {
        std::mem::replace(&mut self.0.is_listed, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> OsString {
        OsString::from(format!("name {number}"))
    }

    fn remember(lease: &DirectoryLease, number: usize) -> bool {
        lock(&lease.inner).remember(&name(number), false, &lease.counted)
    }

    /// Lets the names of the lease end, as its break does.
    fn retire(lease: &DirectoryLease) {
        lock(&lease.inner).retire_names(&lease.counted);
    }

    #[test]
    fn all_directories_share_one_limit_of_names() {
        let counted = Arc::new(CachedNames::new(3));
        let (one, two) = (DirectoryLease::new(&counted), DirectoryLease::new(&counted));
        assert!(remember(&one, 1) && remember(&one, 2) && remember(&two, 1));
        assert!(!remember(&two, 2), "the mount has three");
        assert!(remember(&two, 1), "it is known");
        retire(&one);
        assert!(!remember(&two, 2), "the kernel has not dropped them");
        assert_eq!(one.take_ended().names.len(), 2);
        assert!(remember(&two, 2));
        assert_eq!(counted.count(), 2);
        drop(two);
        assert_eq!(counted.count(), 0);
    }

    #[test]
    fn a_name_under_two_leases_is_dropped_once() {
        let counted = Arc::new(CachedNames::new(3));
        let lease = DirectoryLease::new(&counted);
        assert!(remember(&lease, 1));
        retire(&lease);
        assert!(remember(&lease, 1) && remember(&lease, 2));
        retire(&lease);
        assert_eq!(counted.count(), 2);
        assert_eq!(lease.take_ended().names.len(), 2);
        assert_eq!(counted.count(), 0);
    }

    #[test]
    fn moved_names_beyond_the_limit_are_all_dropped() {
        let counted = Arc::new(CachedNames::new(2));
        let lease = DirectoryLease::new(&counted);
        lease.add_stale(name(1), false);
        lease.add_stale(name(1), true);
        lease.add_stale(name(2), false);
        assert_eq!(counted.count(), 2);
        assert!(!lock(&lease.inner).has_more);
        lease.add_stale(name(3), false);
        let ended = lease.take_ended();
        assert!(ended.has_more && ended.names.len() == 2);
        assert!(!lease.take_ended().has_more);
        assert_eq!(counted.count(), 0);
    }

    #[test]
    fn a_directory_has_a_limit_of_names() {
        let counted = Arc::new(CachedNames::default());
        let lease = DirectoryLease::new(&counted);
        assert!((0..NAMES_MAX).all(|number| remember(&lease, number)));
        assert!(!remember(&lease, NAMES_MAX));
        assert!(remember(&lease, 0), "it is known");
    }
}
