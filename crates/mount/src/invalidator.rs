//! A thread that lets the kernel drop pages of files without a lease, and one for names in
//! directories.
//!
//! The kernel waits for reads in flight of the file, so a thread that answers such reads must not
//! wait for it. A task can.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread::Builder;

use crate::handles::lock;

/// The queue of the thread. Dropping it ends the thread.
pub(crate) struct Invalidator {
    sender: Sender<u64>,
    queued: Arc<Mutex<Queued>>,
}

/// The other end of the queue.
pub(crate) struct Queue {
    receiver: Receiver<u64>,
    queued: Arc<Mutex<Queued>>,
}

/// The inodes in the queue, each once, with the tasks that wait for it.
type Queued = HashMap<u64, Vec<Arc<Mutex<Done>>>>;

/// The wait of a task.
#[derive(Default)]
struct Done {
    is_done: bool,
    waker: Option<Waker>,
}

impl Invalidator {
    pub(crate) fn new() -> (Self, Queue) {
        let (sender, receiver) = channel();
        let queued = Arc::new(Mutex::default());
        let queue = Queue {
            receiver,
            queued: Arc::clone(&queued),
        };
        (Self { sender, queued }, queue)
    }

    /// Adds an inode: the kernel must drop its pages.
    pub(crate) fn add(&self, ino: u64) {
        self.push(ino, None);
    }

    /// Adds an inode, and waits until the kernel has dropped its pages.
    pub(crate) async fn finish(&self, ino: u64) {
        let done = Arc::new(Mutex::new(Done::default()));
        self.push(ino, Some(Arc::clone(&done)));
        poll_fn(|context| {
            let mut done = lock(&done);
            if done.is_done {
                return Poll::Ready(());
            }
            done.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn push(&self, ino: u64, done: Option<Arc<Mutex<Done>>>) {
        let mut queued = lock(&self.queued);
        let is_new = !queued.contains_key(&ino);
        queued.entry(ino).or_default().extend(done);
        if is_new {
            // Without the thread the mount has ended.
            let _ = self.sender.send(ino);
        }
    }
}

impl Queue {
    /// Starts the thread. `invalidate` lets the kernel drop what it has of an inode.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn start(
        self,
        name: &str,
        invalidate: impl Fn(u64) + Send + 'static,
    ) -> io::Result<()> {
        let run = move || {
            for ino in &self.receiver {
                // A request from here on adds the inode again.
                let waiting = lock(&self.queued).remove(&ino).unwrap_or_default();
                invalidate(ino);
                waiting.iter().for_each(Done::finish);
            }
        };
        Builder::new().name(name.to_owned()).spawn(run).map(drop)
    }
}

impl Done {
    fn finish(this: &Arc<Mutex<Self>>) {
        let mut done = lock(this);
        done.is_done = true;
        if let Some(waker) = done.waker.take() {
            waker.wake();
        }
    }
}
