//! The caches of the kernel: they are valid while a lease protects them.
//!
//! The kernel has pages of a file only from reads and writes while a lease with READ_CACHING is
//! held. A break runs [`Volume::broke`]: the kernel drops pages and attributes, and then the client
//! acknowledges. A later read first asks for a lease again. If the server grants none, the kernel
//! drops the pages of that read right after it.
//!
//! A server waits for the acknowledgment only if the lease has WRITE_CACHING. Without it, a write
//! of another client can return before the break has arrived here. So the kernel asks for the
//! attributes before each read(2) then, and [`Volume::before_read`] asks the server: its response
//! comes after the break. Mappings have no such step; they see the write when the break arrives.

use std::sync::Arc;

use fuser::{FopenFlags, INodeNo};
use smbeam_client::{File, LeaseBreak, LeaseState, OpenOptions};

use crate::opens::{OpenFile, Opens};
use crate::options::Cache;
use crate::volume::Volume;

/// Offset with which the kernel drops attributes and no pages.
const ATTRIBUTES: i64 = -1;
/// Read and handle caching: several clients can hold both.
const SHARED: LeaseState = LeaseState(LeaseState::READ_CACHING.0 | LeaseState::HANDLE_CACHING.0);

impl Volume {
    /// Registers the callback for breaks of the lease of an open.
    pub(crate) fn watch(self: &Arc<Self>, opens: &Arc<Opens>, file: &File) {
        let Some(lease) = file.lease() else {
            return;
        };
        if opens.watch(lease.key) {
            let (volume, opens) = (Arc::downgrade(self), Arc::downgrade(opens));
            file.on_lease_break(move |event| {
                if let Some((volume, opens)) = volume.upgrade().zip(opens.upgrade()) {
                    volume.broke(&opens, event);
                }
            });
        }
    }

    /// The server breaks a lease. Runs on a thread of the client, which acknowledges the break
    /// afterwards. It waits for reads in flight of the kernel, which do not wait for this thread.
    fn broke(&self, opens: &Opens, event: LeaseBreak) {
        self.counters.breaks.add(1);
        let loses = |right| event.from.contains(right) && !event.to.contains(right);
        if loses(LeaseState::WRITE_CACHING) {
            self.end_holding(opens);
            self.drop_attributes(opens.ino);
        }
        if loses(LeaseState::READ_CACHING) {
            self.drop_pages(opens.ino);
        }
        if loses(LeaseState::HANDLE_CACHING) {
            self.end_keeping(opens);
        }
    }

    /// Lets the kernel drop pages and attributes of an inode.
    pub(crate) fn drop_pages(&self, ino: u64) {
        self.counters.invalidations.add(1);
        if let Some(notifier) = self.notifier.get()
            && let Err(error) = notifier.inval_inode(INodeNo(ino), 0, 0)
        {
            tracing::debug!(ino, %error, "the kernel did not drop the pages");
        }
    }

    /// Lets the kernel drop the attributes of an inode, and no pages.
    pub(crate) fn drop_attributes(&self, ino: u64) {
        if let Some(notifier) = self.notifier.get() {
            // The kernel may have forgotten the inode.
            let _ = notifier.inval_inode(INodeNo(ino), ATTRIBUTES, 0);
        }
    }

    /// The flags of an open. `was_protected`: whether a lease protected the pages of the file
    /// before.
    pub(crate) fn open_flags(&self, opens: &Opens, was_protected: bool) -> FopenFlags {
        let is_protected = opens.holds(LeaseState::READ_CACHING);
        match self.options.cache {
            Cache::None => FopenFlags::FOPEN_DIRECT_IO,
            Cache::Loose => FopenFlags::FOPEN_KEEP_CACHE,
            Cache::Strict if was_protected && is_protected => FopenFlags::FOPEN_KEEP_CACHE,
            Cache::Strict if is_protected => FopenFlags::empty(),
            // The kernel uses its cache for mappings only.
            Cache::Strict => FopenFlags::FOPEN_DIRECT_IO,
        }
    }

    /// Prepares a read(2) that may find its data in the pages of the kernel. The server has
    /// responded to a request of this read.
    pub(crate) async fn before_read(&self, opens: &Opens) {
        if self.options.cache != Cache::Strict {
            return;
        }
        let is_stale = opens.take_stale_pages();
        if is_stale || !opens.holds(LeaseState::READ_CACHING) {
            self.invalidator.finish(opens.ino).await;
        }
    }

    /// Asks for a lease if the file has none, so that the kernel may cache the data of a request.
    /// Returns whether a lease protects them.
    pub(crate) async fn protect(self: &Arc<Self>, open: &OpenFile) -> bool {
        let opens = &open.opens;
        let is_protected = || opens.holds(LeaseState::READ_CACHING);
        if self.options.cache != Cache::Strict || is_protected() {
            return true;
        }
        let _gate = opens.gate.lock().await;
        if is_protected() {
            return true;
        }
        // The break of the earlier lease can still be in progress.
        opens.note_stale_pages();
        if opens.is_refused() {
            return false;
        }
        self.ask_for_lease(open).await;
        if !is_protected() {
            opens.refuse();
            return false;
        }
        true
    }

    /// A further open of the file raises the lease that all opens of the path share.
    async fn ask_for_lease(self: &Arc<Self>, open: &OpenFile) {
        // Breaks must find the callback of the present lease.
        self.watch(&open.opens, &open.file);
        let Ok(path) = self.path(open.ino) else {
            return;
        };
        let options = OpenOptions::new()
            .read(open.is_readable)
            .write(!open.is_readable)
            .directory(false)
            .follow(false)
            .lease(SHARED)
            .durable(false);
        if let Ok(file) = self.share.open(&path, &options).await {
            self.watch(&open.opens, &file);
            // Its lease stays, because the other open has the same.
            let _ = file.close().await;
        }
    }

    /// Lets the kernel drop the pages of an inode soon, if any is given: no lease protects what the
    /// reply to a request left in them.
    pub(crate) fn drop_later(&self, ino: Option<u64>) {
        if let Some(ino) = ino {
            self.invalidator.add(ino);
        }
    }
}
