//! One turn of the loop: poll the ready tasks, make one system call, handle its completions.

use std::io;
use std::time::{Duration, Instant};

use crate::config::count;
use crate::runtime::{Backend, Inner};
use crate::task::MAIN;
use crate::wait::Wait;
use crate::waker;

/// Polls of tasks in one turn. A task that is always ready delays I/O by at most this many polls;
/// fewer would submit smaller batches.
const POLLS_PER_TURN: usize = 256;

impl Inner {
    /// Polls the ready tasks. Returns whether the main future was woken.
    pub(crate) fn run_tasks(&self) -> bool {
        let mut is_main_woken = false;
        self.waker.collect();
        for _ in 0..POLLS_PER_TURN {
            let Some(task) = waker::next_ready() else {
                break;
            };
            if task.slot == MAIN {
                task.start_poll();
                is_main_woken = true;
            } else {
                count(&self.stats, |stats| stats.polls += 1);
                self.tasks.poll(&task);
            }
        }
        is_main_woken
    }

    /// Submits, sleeps while no task is ready, and dispatches the events.
    pub(crate) fn turn(&self, is_ready: bool) {
        let wait = if is_ready || waker::has_ready() {
            Wait::No
        } else {
            self.next_wait()
        };
        let wait = if wait != Wait::No && !self.waker.prepare_sleep() {
            Wait::No
        } else {
            wait
        };
        let result = self.drive(wait);
        self.waker.end_sleep();
        result.expect("the driver of a running runtime works");
        self.timers.fire(Instant::now());
    }

    fn drive(&self, wait: Wait) -> io::Result<()> {
        match &self.backend {
            Backend::Uring(uring) => uring.turn(wait),
            Backend::Epoll(epoll) => epoll.turn(wait),
        }
    }

    fn next_wait(&self) -> Wait {
        match self.timers.next() {
            None => Wait::Forever,
            Some(deadline) => match deadline.saturating_duration_since(Instant::now()) {
                Duration::ZERO => Wait::No,
                duration => Wait::For(duration),
            },
        }
    }
}
