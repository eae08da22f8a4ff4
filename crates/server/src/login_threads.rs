//! Threads for the parts of a login that may block: the user file, look-ups of Unix accounts (which
//! may ask a directory server), and mechanisms that block.
//!
//! A slow login delays neither a worker nor the threads for file operations.

use ring::{JobSource, ThreadPool};

/// Most threads. Directory servers answer in milliseconds; a stuck one delays all logins anyway.
const THREADS_MAX: usize = 8;
/// Most queued jobs. The server refuses further logins.
const JOBS_MAX: usize = 1024;

/// Threads for the parts of a login that may block. They have the credentials of the process.
pub(crate) struct LoginThreads(ThreadPool);

impl Default for LoginThreads {
    fn default() -> Self {
        Self(ThreadPool::new("login", THREADS_MAX))
    }
}

impl LoginThreads {
    /// Runs a closure on a thread and waits for its result. `None` if too many jobs wait, or if no
    /// thread with the credentials of the process can be started.
    ///
    /// # Panics
    /// The closure has panicked.
    pub(crate) async fn run<T, F>(&self, closure: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        // A new thread inherits the credentials of the thread that starts it.
        let closure = || vfs::identity::own().is_ok().then(closure);
        let done = self.0.try_run(JobSource::default(), JOBS_MAX, closure);
        done.await.flatten()
    }
}
