//! Threads that make calls with fixed credentials.
//!
//! The kernel accepts writes to the descriptors of RDMA-CM and of a device only with the same
//! credentials object that opened them (`ib_safe_file_access`); equal credentials are not enough.
//! The threads of a server switch to the credentials of a session's user and back, and then have a
//! new, equal object. So these threads make all calls that open or write such descriptors: the
//! calls of RDMA-CM, and on the fast path the posts to software devices, siw and rxe. Posts to
//! hardware devices do not enter the kernel.

use std::io;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;

/// A thread that makes calls. It lives as long as the process.
pub(super) struct CallThread {
    sender: Sender<Job>,
}

struct Job(Box<dyn FnOnce()>);

// SAFETY: the thread that passes a job waits until it has finished (`CallThread::run`), so no two
// threads use its content at the same time; it holds pointers and libraries, nothing that is bound
// to a thread.
unsafe impl Send for Job {}

impl CallThread {
    /// Starts a thread with the credentials of the caller.
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let (sender, jobs) = mpsc::channel::<Job>();
        let thread = thread::Builder::new().name(name.to_owned());
        thread.spawn(move || jobs.into_iter().for_each(|job| (job.0)()))?;
        Ok(Self { sender })
    }

    /// Runs `job` on the thread and waits for its result. The job itself must read errno.
    pub(super) fn run<'a, R: 'a>(&self, job: impl FnOnce() -> R + 'a) -> R {
        let (sender, result): (SyncSender<R>, _) = mpsc::sync_channel(1);
        let job: Box<dyn FnOnce() + 'a> = Box::new(move || {
            // The waiting thread still has the receiver.
            let _ = sender.send(job());
        });
        // SAFETY: only the lifetime changes. `recv` below returns when the sender in the job is
        // used or dropped, and nothing uses the job after that: it has run, or unwound.
        let job = unsafe {
            std::mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce() + 'static>>(job)
        };
        let is_alive = self.sender.send(Job(job)).is_ok();
        assert!(is_alive, "the thread ends with the process");
        result.recv().expect("a job does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_on_another_thread_one_after_the_other() {
        let thread = CallThread::start("calls").expect("a thread");
        let mut threads = Vec::new();
        for _ in 0..3 {
            thread.run(|| threads.push(thread::current().id()));
        }
        assert_eq!(threads[1..], [threads[0]; 2]);
        assert_ne!(threads[0], thread::current().id());
    }
}
