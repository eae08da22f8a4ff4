//! Many jobs at once: threads that take jobs from a queue and may put more into it.
//!
//! Jobs that find more jobs (directories) and jobs that do not (files) wait apart. Files come first, so
//! that the queue stays short, and the directory found last comes before the others, so that few are
//! known at a time. A job that finds the queue full does a file itself: memory is bounded and
//! nobody waits for anybody.
//!
//! Files that can be done together are given to a thread together, as long as enough are left for
//! the others.
//!
//! There are as many threads as have been needed at once, and one that waits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Files that wait at most.
const MAX_WAITING_FILES: usize = 4096;

/// Jobs that wait, and who works.
pub(crate) struct Queue<J> {
    workers: usize,
    /// Whether a file can be done together with those that were chosen before it.
    can_join: fn(&J, &[J]) -> bool,
    state: Mutex<State<J>>,
    changed: Condvar,
}

struct State<J> {
    files: VecDeque<J>,
    directories: Vec<J>,
    running: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// All threads.
    threads: usize,
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
    pub(crate) fn push_directory(&self, job: J) {
        self.lock().directories.push(job);
        self.changed.notify_one();
    }

    /// The next jobs to be done together, and whether there is to be one thread more: none waits
    /// for those after them. None when all is done.
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
                return None;
            }
            state.idle += 1;
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// A share of the files that wait, as far as they go together; or a directory.
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

/// Jobs to begin with.
pub(crate) struct InitialJobs<J> {
    /// Those that find no others.
    pub(crate) files: Vec<J>,
    /// Those that may find others.
    pub(crate) directories: Vec<J>,
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

/// Does `directories` and everything that comes of them with so many threads.
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

/// The same where a thread gets files that go together at once.
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
            running: 0,
            idle: 0,
            threads: 1,
        }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| serve(scope, &queue, work));
}

/// Does jobs until there are no more.
fn serve<'scope, J: Send>(
    scope: &'scope Scope<'scope, '_>,
    queue: &'scope Queue<J>,
    work: &'scope (dyn Fn(Vec<J>, &Queue<J>) + Sync),
) {
    while let Some((jobs, wants_another)) = queue.next() {
        let _running = Running(queue);
        if wants_another {
            // A thread too few is a slower transfer, not a failed one.
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

    /// A directory with so many levels below it, or a file.
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
    fn every_job_is_done_once() {
        for workers in [1, 2, 16] {
            let count = count(workers, 6, 5);
            assert_eq!((count.directories, count.files), (127, 635));
        }
    }

    #[test]
    fn a_full_queue_stops_nobody() {
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
