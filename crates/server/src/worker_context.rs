//! What the connections of one worker share.

use std::cell::{Cell, Ref, RefCell};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use proto::carrier::Carrier;
use proto::file::ShareId;
use proto::id::ConnectionId;
use proto::server;
use proto::time::Now;
use proto::token::Token;
use ring::{Handle, NoView, Personality, Signal, View, Views};
use vfs::FileSystem;
use wire::Status;

use crate::counters::WorkerCounters;
use crate::live::Live;
use crate::personalities::Personalities;
use crate::shared::Shared;

/// Most mapped windows of files of one worker: 4 GiB of addresses, for which the kernel needs page
/// tables of 8 MiB.
const MAX_WINDOWS: usize = 64;
/// Time between two searches for mapped windows that are no longer read.
const UNMAP_INTERVAL: Duration = Duration::from_secs(1);

/// What the connections of one worker share. It lives on the thread of the worker.
pub(crate) struct WorkerContext {
    pub(crate) handle: Handle,
    /// Index of the worker.
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    /// The counters that this worker alone changes.
    pub(crate) counters: Arc<WorkerCounters>,
    /// The configuration that this worker has seen last, and its generation.
    live: RefCell<Arc<Live>>,
    generation: Cell<u64>,
    personalities: RefCell<Personalities>,
    /// Files that are sent from the page cache without a copy in this process.
    views: RefCell<Views>,
    /// A task unmaps windows that are no longer read.
    is_unmapping: Cell<bool>,
    /// Raised when a request begins to wait for a buffer of the pool.
    pub(crate) shortage: Signal,
    /// Raised when the server stops.
    pub(crate) stopping: Signal,
}

impl WorkerContext {
    pub(crate) fn new(handle: Handle, index: usize, shared: Arc<Shared>) -> Rc<Self> {
        let counters = Arc::clone(&shared.counters[index]);
        Rc::new(Self {
            handle,
            index,
            // Before the value: a change in between is seen later.
            generation: Cell::new(shared.live.generation()),
            live: RefCell::new(shared.live.latest()),
            shared,
            counters,
            personalities: RefCell::default(),
            views: RefCell::new(Views::new(MAX_WINDOWS)),
            is_unmapping: Cell::default(),
            shortage: Signal::default(),
            stopping: Signal::default(),
        })
    }

    /// Makes the core of a new connection.
    pub(crate) fn new_core(&self, id: ConnectionId, carrier: Carrier) -> server::Connection {
        self.refresh_live();
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy).expect("the kernel has random bytes");
        let server = Arc::clone(&self.shared.core);
        server::Connection::new(server, id, carrier, entropy, self.now())
    }

    /// Current time, in the form that the core takes.
    pub(crate) fn now(&self) -> Now {
        self.shared.now()
    }

    /// Takes the latest configuration, if it has changed.
    pub(crate) fn refresh_live(&self) {
        let generation = self.shared.live.generation();
        if self.generation.replace(generation) != generation {
            let live = self.shared.live.latest();
            self.live.replace(live);
        }
    }

    /// The configuration that this worker has seen last.
    pub(crate) fn live(&self) -> Ref<'_, Live> {
        Ref::map(self.live.borrow(), |live| &**live)
    }

    /// The file system of a share.
    pub(crate) fn file_system(&self, share: ShareId) -> Arc<dyn FileSystem> {
        if let Some(found) = self.live.borrow().shares.find(share) {
            return Arc::clone(found);
        }
        // Another worker or the core has seen a newer configuration.
        self.refresh_live();
        let live = self.live.borrow();
        let found = live.shares.find(share);
        Arc::clone(found.expect("a share has a file system before the core knows it"))
    }

    pub(crate) fn frame_timeout(&self) -> Duration {
        self.live.borrow().times.frame_timeout
    }

    pub(crate) fn shutdown_grace(&self) -> Duration {
        self.live.borrow().times.shutdown_grace
    }

    /// A view of a file range that is in the page cache; `None` if it is not there, or if the
    /// kernel does not report it. The kernel reports it only to a thread that may write the file,
    /// so a second attempt runs with the rights of the process.
    pub(crate) fn view(
        self: &Rc<Self>,
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
    ) -> Option<View> {
        if !self.is_unmapping.replace(true) {
            self.handle.spawn(Rc::clone(self).unmap_unused());
        }
        let mut views = self.views.borrow_mut();
        let mut found = views.find(file, offset, bytes);
        if matches!(found, Err(NoView::Hidden)) && vfs::identity::own().is_ok() {
            found = views.find(file, offset, bytes);
        }
        found.ok()
    }

    /// Unmaps all windows of files that no response refers to, at the end of a connection that read
    /// files. An administrator may wait for it to unmount a disk.
    pub(crate) fn unmap_idle(&self) {
        self.views.borrow_mut().unmap_idle();
    }

    /// Unmaps windows of files that are no longer read. Ends when none are left.
    async fn unmap_unused(self: Rc<Self>) {
        loop {
            self.handle.sleep(UNMAP_INTERVAL).await;
            if !self.views.borrow_mut().forget_unused() {
                self.is_unmapping.set(false);
                return;
            }
        }
    }

    /// The registered credentials with which the ring writes for a token. `None` if writes must run
    /// on a thread because the ring cannot switch credentials.
    pub(crate) fn personality(&self, token: &Arc<Token>) -> Result<Option<Personality>, Status> {
        let register = || {
            vfs::identity::assume(token)?;
            Ok(self.handle.register_personality().ok())
        };
        self.personalities.borrow_mut().of(token, register)
    }
}
