//! A pool of threads that take jobs from a queue and can add jobs to it.
//!
//! Jobs that find more jobs (directories) and other jobs (files) have separate queues. Files come
//! first, so that the queue stays short. The most recent directory comes next, so that few
//! directories are known at a time. If the queue of files is full, a job runs its file itself. So
//! memory is bounded, and no thread blocks on the queue.
//!
//! A thread takes several files together if they can share a request and enough remain for the
//! other threads.
//!
//! Threads are started on demand: the number that was busy at the same time, and one that waits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Maximum number of files in the queue.
const MAX_WAITING_FILES: usize = 4096;

/// Waiting jobs, and the state of the threads.
pub(crate) struct Queue<J> {
    workers: usize,
    /// Whether a file can run together with the files that were chosen before it.
    can_join: fn(&J, &[J]) -> bool,
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    files: VecDeque<J>,
    directories: Vec<J>,
    /// Jobs that need the results of all others.
    last: Vec<J>,
    running: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// All threads.
    threads: usize,
}

impl<J: Send> Queue<J> {
    /// Adds a job that finds no other jobs. If the queue is full, it returns the job, and the
    /// caller runs it.
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

    /// Adds a job that can find other jobs.
    pub(crate) fn push_directory(&self, job: J) {
        self.lock().directories.push(job);
        self.changed.notify_one();
    }

    /// Adds a job that runs after all others. It finds no other jobs.
    pub(crate) fn push_last(&self, job: J) {
        self.lock().last.push(job);
    }

    /// Takes the next jobs to run together. The flag says whether to start another thread, because
    /// none is idle. `None` when all jobs are done.
    fn next(&self) -> Option<(Vec<J>, bool)> {
        let mut state = self.lock();
        loop {
            let jobs = self.take(&mut state);
            if !jobs.is_empty() {
                state.running += 1;
                let wants_another = state.idle == 0 && state.threads < self.workers;
                state.threads += usize::from(wants_another);
                return Some((jobs, wants_another));
            }
            if state.running == 0 {
                self.changed.notify_all();
                if state.last.is_empty() {
                    return None;
                }
                let last = std::mem::take(&mut state.last);
                state.files.extend(last);
                continue;
            }
            state.idle += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Takes files that can run together, at most an equal share per thread, or one directory.
    fn take(&self, state: &mut State<J>) -> Vec<J> {
        let share = (state.files.len() / self.workers).max(1);
        let mut jobs = Vec::new();
        while jobs.len() < share
            && let Some(job) = state.files.front()
            && (jobs.is_empty() || (self.can_join)(job, &jobs))
        {
            jobs.extend(state.files.pop_front());
        }
        if jobs.is_empty() {
            jobs.extend(state.directories.pop());
        }
        jobs
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first jobs.
pub(crate) struct InitialJobs<J> {
    /// Jobs that find no other jobs.
    pub(crate) files: Vec<J>,
    /// Jobs that can find other jobs.
    pub(crate) directories: Vec<J>,
}

/// A running job. Dropping it ends the job, also after a panic.
struct Running<'a, J: Send>(&'a Queue<J>);

impl<J: Send> Drop for Running<'_, J> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        // New jobs wake idle threads one by one. After the last job all threads must wake to end.
        if state.running == 0 {
            self.0.changed.notify_all();
        }
    }
}

/// Runs the jobs `directories` and all jobs that they add, with at most `workers` threads.
pub(crate) fn run<J: Send>(
    workers: usize,
    directories: Vec<J>,
    work: &(dyn Fn(J, &Queue<J>) + Sync),
) {
    let first = InitialJobs {
        files: Vec::new(),
        directories,
    };
    let work_all =
        |jobs: Vec<J>, queue: &Queue<J>| jobs.into_iter().for_each(|job| work(job, queue));
    run_together(workers, first, |_, _| false, &work_all);
}

/// As [`run`], but a thread gets several files if `can_join` allows it.
pub(crate) fn run_together<J: Send>(
    workers: usize,
    first: InitialJobs<J>,
    can_join: fn(&J, &[J]) -> bool,
    work: &(dyn Fn(Vec<J>, &Queue<J>) + Sync),
) {
    let queue = Queue {
        workers: workers.max(1),
        can_join,
        state: Mutex::new(State {
            files: first.files.into(),
            directories: first.directories,
            last: Vec::new(),
            running: 0,
            idle: 0,
            threads: 1,
        }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| serve(scope, &queue, work));
}

/// Runs jobs until none is left.
fn serve<'scope, J: Send>(
    scope: &'scope Scope<'scope, '_>,
    queue: &'scope Queue<J>,
    work: &'scope (dyn Fn(Vec<J>, &Queue<J>) + Sync),
) {
    while let Some((jobs, wants_another)) = queue.next() {
        let _running = Running(queue);
        if wants_another {
            // The transfer works with fewer threads, only slower.
            let other = move || serve(scope, queue, work);
            if thread::Builder::new().spawn_scoped(scope, other).is_err() {
                queue.lock().threads -= 1;
            }
        }
        work(jobs, queue);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A directory with this many levels below it, or a file.
    enum Job {
        Directory(u32),
        File,
    }

    struct Count {
        directories: u64,
        files: u64,
        most_at_once: u64,
    }

    fn count(workers: usize, levels: u32, files: u64) -> Count {
        let [directories_seen, files_seen, most] = [const { AtomicU64::new(0) }; 3];
        let three = |_: &Job, others: &[Job]| others.len() < 3;
        let first = InitialJobs {
            files: Vec::new(),
            directories: vec![Job::Directory(levels)],
        };
        run_together(workers, first, three, &|jobs, queue| {
            most.fetch_max(jobs.len() as u64, Ordering::Relaxed);
            for job in jobs {
                let Job::Directory(level) = job else {
                    files_seen.fetch_add(1, Ordering::Relaxed);
                    continue;
                };
                directories_seen.fetch_add(1, Ordering::Relaxed);
                for _ in 0..files {
                    if queue.push_file(Job::File).is_some() {
                        files_seen.fetch_add(1, Ordering::Relaxed);
                    }
                }
                if level > 0 {
                    queue.push_directory(Job::Directory(level - 1));
                    queue.push_directory(Job::Directory(level - 1));
                }
            }
        });
        Count {
            directories: directories_seen.into_inner(),
            files: files_seen.into_inner(),
            most_at_once: most.into_inner(),
        }
    }

    #[test]
    fn the_last_jobs_come_after_all_others() {
        let order = Mutex::new(Vec::new());
        run(4, vec![100, 200], &|job: u32, queue: &Queue<u32>| {
            if job >= 100 {
                queue.push_last(job / 100);
                for below in 0..50 {
                    assert!(queue.push_file(10 + below).is_none());
                }
            }
            order.lock().expect("no panic").push(job);
        });
        let order = order.into_inner().expect("no panic");
        assert_eq!(order.len(), 104);
        let mut last = order[102..].to_vec();
        last.sort_unstable();
        assert_eq!(last, [1, 2]);
    }

    #[test]
    fn every_job_is_done_once() {
        for workers in [1, 2, 16] {
            let count = count(workers, 6, 5);
            assert_eq!((count.directories, count.files), (127, 635));
        }
    }

    #[test]
    fn a_full_queue_does_not_block() {
        let count_1 = count(1, 0, 10_000);
        assert_eq!((count_1.directories, count_1.files), (1, 10_000));
        let count_4 = count(4, 2, 10_000);
        assert_eq!((count_4.directories, count_4.files), (7, 70_000));
    }

    #[test]
    fn files_go_together_as_long_as_there_are_enough() {
        assert_eq!(count(1, 0, 100).most_at_once, 3);
        assert_eq!(count(1, 0, 2).most_at_once, 2);
        assert_eq!(count(2, 0, 3).most_at_once, 1);
    }

    #[test]
    fn files_to_begin_with_go_together_too() {
        let (seen, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let first = InitialJobs {
            files: (0..100).map(|_| Job::File).collect(),
            directories: vec![Job::Directory(0)],
        };
        run_together(2, first, |_, others| others.len() < 3, &|jobs, _| {
            seen.fetch_add(jobs.len() as u64, Ordering::Relaxed);
            most.fetch_max(jobs.len() as u64, Ordering::Relaxed);
        });
        assert_eq!((seen.into_inner(), most.into_inner()), (101, 3));
    }

    #[test]
    fn as_many_are_done_at_once_as_there_may_be() {
        let all = Barrier::new(5);
        run(5, vec![Job::Directory(0)], &|job, queue| match job {
            Job::File => drop(all.wait()),
            Job::Directory(_) => {
                for _ in 0..10 {
                    assert!(queue.push_file(Job::File).is_none());
                }
            }
        });
    }

    #[test]
    fn no_jobs_are_done_at_once() {
        run(4, Vec::<Job>::new(), &|_, _| panic!("no job"));
    }
}
