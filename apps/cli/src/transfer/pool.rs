//! Many jobs at once: threads that take jobs from a queue and may put more into it.
//!
//! Jobs that find more jobs (folders) and jobs that do not (files) wait apart. Files come first, so
//! that the queue stays short, and the folder found last comes before the others, so that few are
//! known at a time. A job that finds the queue full does a file itself: memory is bounded and
//! nobody waits for anybody.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Files that wait at most.
const MAX_WAITING_FILES: usize = 4096;

/// Jobs that wait, and who works.
pub(crate) struct Queue<J> {
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    files: VecDeque<J>,
    folders: Vec<J>,
    running: usize,
}

impl<J: Send> Queue<J> {
    /// Adds a job that finds no others. Gives it back where too many wait: do it at once.
    #[must_use]
    pub(crate) fn push_file(&self, job: J) -> Option<J> {
        let mut state = self.lock();
        if state.files.len() >= MAX_WAITING_FILES {
            return Some(job);
        }
        state.files.push_back(job);
        self.changed.notify_one();
        None
    }

    /// Adds a job that may find others.
    pub(crate) fn push_folder(&self, job: J) {
        self.lock().folders.push(job);
        self.changed.notify_one();
    }

    /// The next job; none when all is done.
    fn next(&self) -> Option<J> {
        let mut state = self.lock();
        loop {
            let job = state.files.pop_front().or_else(|| state.folders.pop());
            if job.is_some() {
                state.running += 1;
                return job;
            }
            if state.running == 0 {
                self.changed.notify_all();
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job that runs; it has ended when this is dropped, even by a panic.
struct Running<'a, J: Send>(&'a Queue<J>);

impl<J: Send> Drop for Running<'_, J> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        // Who waits is woken for each new job; now there will be none, or this was the last.
        if state.running == 0 {
            self.0.changed.notify_all();
        }
    }
}

/// Does `first` and everything that comes of it with so many threads.
pub(crate) fn run<J: Send>(workers: usize, first: Vec<J>, work: &(dyn Fn(J, &Queue<J>) + Sync)) {
    let queue = Queue {
        state: Mutex::new(State {
            files: VecDeque::new(),
            folders: first,
            running: 0,
        }),
        changed: Condvar::new(),
    };
    let worker = || {
        while let Some(job) = queue.next() {
            let _running = Running(&queue);
            work(job, &queue);
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers.max(1) {
            // A thread too few is a slower transfer, not a failed one.
            let _ = thread::Builder::new().spawn_scoped(scope, worker);
        }
        worker();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A folder with so many levels below it, or a file.
    enum Job {
        Folder(u32),
        File,
    }

    fn count(workers: usize, levels: u32, files: u64) -> (u64, u64) {
        let (folders_seen, files_seen) = (AtomicU64::new(0), AtomicU64::new(0));
        run(
            workers,
            vec![Job::Folder(levels)],
            &|job, queue| match job {
                Job::File => {
                    files_seen.fetch_add(1, Ordering::Relaxed);
                }
                Job::Folder(level) => {
                    folders_seen.fetch_add(1, Ordering::Relaxed);
                    for _ in 0..files {
                        if queue.push_file(Job::File).is_some() {
                            files_seen.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    if level > 0 {
                        queue.push_folder(Job::Folder(level - 1));
                        queue.push_folder(Job::Folder(level - 1));
                    }
                }
            },
        );
        (folders_seen.into_inner(), files_seen.into_inner())
    }

    #[test]
    fn every_job_is_done_once() {
        for workers in [1, 2, 16] {
            assert_eq!(count(workers, 6, 5), (127, 635));
        }
    }

    #[test]
    fn a_full_queue_stops_nobody() {
        assert_eq!(count(1, 0, 10_000), (1, 10_000));
        assert_eq!(count(4, 2, 10_000), (7, 70_000));
    }

    #[test]
    fn no_jobs_are_done_at_once() {
        run(4, Vec::<u32>::new(), &|_, _| panic!("no job"));
    }
}
