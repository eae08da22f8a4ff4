//! One turn of the loop: poll the ready tasks, make one system call, handle its completions.

use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::config::count;
use crate::runtime::{Backend, Inner};
use crate::wait::Wait;
use crate::waker;

/// Polls of tasks in one turn. A task that is always ready delays I/O by at most this many polls;
/// fewer would submit smaller batches.
const POLLS_PER_TURN: usize = 256;

impl Inner {
    /// Polls the main future if it is woken, and then the ready tasks. Returns the output of
    /// `poll_main`.
    ///
    /// The main future receives the messages of other threads. A message that was sent before the
    /// data of a task arrived is thus handled before the task processes these data. Later messages
    /// wait for the next turn, so that one poll handles many.
    pub(crate) fn run_tasks<T>(&self, poll_main: impl FnOnce() -> Poll<T>) -> Poll<T> {
        self.waker.collect();
        if let Some(main) = waker::take_main() {
            main.start_poll();
            let polled = poll_main();
            if polled.is_ready() {
                return polled;
            }
        }
        for _ in 0..POLLS_PER_TURN {
            let Some(task) = waker::next_ready() else {
                break;
            };
            count(&self.stats, |stats| stats.polls += 1);
            self.tasks.poll(&task);
        }
        Poll::Pending
    }

    /// Submits, sleeps while no task is ready, and dispatches the events.
    pub(crate) fn turn(&self) {
        let wait = match waker::has_ready() {
            true => Wait::No,
            false => self.next_wait(),
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
        // Tasks that are always ready must not delay them for ever.
        waker::wake_yielded();
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
