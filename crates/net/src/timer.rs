//! The timer that server and client share: a task sleeps until the next time-out of a core.
//!
//! The driver calls [`Timer::arm`] after each call into its core, because each call may change the
//! time of the next time-out.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use proto::time::Instant;
use ring::{Either, Handle, Signal, either};

/// Shortest sleep. Without it, a time-out in the past would start a task at once, again and again.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// The owner of a protocol core (the state of one connection without I/O) with time-outs. A
/// [`Timer`] calls it when the next time-out of the core is due. The connections of server and
/// client implement this trait.
pub trait TimeoutHandler: 'static {
    /// Returns the timer of this owner. Each core has one.
    fn timer(&self) -> &Timer;

    /// Returns the handle of the runtime on which the timer sleeps.
    fn runtime(&self) -> &Handle;

    /// Returns the signal that the owner raises when it ends. The timer then stops.
    fn ended(&self) -> &Signal;

    /// Returns the current time on the clock of the core.
    fn now(&self) -> Instant;

    /// Returns the time of the next time-out of the core; `None` if the core waits for nothing.
    fn next_timeout(&self) -> Option<Instant>;

    /// Handles a due time-out: calls the core's `timeout`, performs its effects, and arms the timer
    /// again. The timer calls it from a separate task: a panic would end this task only.
    fn timeout(self: &Rc<Self>);
}

/// State of the timer of one protocol core (the state of one connection without I/O): the time
/// until which a task sleeps. The owner of the core stores it and returns it from
/// [`TimeoutHandler::timer`].
#[derive(Debug, Default)]
pub struct Timer {
    /// Earliest time for which a task sleeps.
    armed: Cell<Option<Instant>>,
}

impl Timer {
    /// Starts a task that sleeps until the next time-out of the handler's core and then calls
    /// [`TimeoutHandler::timeout`]. The owner calls this after each call into its core. The call
    /// has no effect if the core has no time-out, if the owner has ended, or if another task
    /// already sleeps until that time or an earlier one.
    pub fn arm<H: TimeoutHandler>(handler: &Rc<H>) {
        let Some(next) = handler.next_timeout() else {
            return;
        };
        let armed = &handler.timer().armed;
        if handler.ended().is_raised() || armed.get().is_some_and(|armed| armed <= next) {
            return;
        }
        armed.set(Some(next));
        let sleeper = sleep_until(Rc::clone(handler), next);
        handler.runtime().spawn(sleeper);
    }
}

async fn sleep_until<H: TimeoutHandler>(handler: Rc<H>, deadline: Instant) {
    let left = deadline.0.saturating_sub(handler.now().0);
    let sleep = pin!(handler.runtime().sleep(left.max(MIN_SLEEP)));
    if let Either::Second(()) = either(sleep, pin!(handler.ended().raised())).await {
        return;
    }
    let armed = &handler.timer().armed;
    if armed.get() == Some(deadline) {
        armed.set(None);
    }
    handler.timeout();
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use ring::Runtime;

    use super::*;

    /// Far longer than the test takes: only a failing test waits for it.
    const TIME_LIMIT: Duration = Duration::from_secs(20);

    struct Handler {
        timer: Timer,
        runtime: Handle,
        ended: Signal,
        started: std::time::Instant,
        /// Times that the core still waits for, latest first.
        pending: RefCell<Vec<Instant>>,
    }

    impl TimeoutHandler for Handler {
        fn timer(&self) -> &Timer {
            &self.timer
        }

        fn runtime(&self) -> &Handle {
            &self.runtime
        }

        fn ended(&self) -> &Signal {
            &self.ended
        }

        fn now(&self) -> Instant {
            Instant(self.started.elapsed())
        }

        fn next_timeout(&self) -> Option<Instant> {
            self.pending.borrow().last().copied()
        }

        fn timeout(self: &Rc<Self>) {
            let now = self.now();
            self.pending.borrow_mut().retain(|time| *time > now);
            if self.pending.borrow().is_empty() {
                self.ended.raise();
            }
            Timer::arm(self);
        }
    }

    #[test]
    fn every_timeout_passes_also_an_earlier_one_that_is_armed_later() {
        let runtime = Runtime::new(&ring::Config::default()).expect("a runtime");
        let handle = runtime.handle();
        runtime.block_on(async {
            let at = |ms| Instant(Duration::from_millis(ms));
            let handler = Rc::new(Handler {
                timer: Timer::default(),
                runtime: handle.clone(),
                ended: Signal::default(),
                started: std::time::Instant::now(),
                pending: RefCell::new(vec![at(20)]),
            });
            Timer::arm(&handler);
            handler.pending.borrow_mut().extend([at(5), at(0)]);
            Timer::arm(&handler);
            let ended = handle.timeout(TIME_LIMIT, handler.ended.raised());
            assert!(ended.await.is_ok(), "left: {:?}", handler.pending);
            // An ended owner starts no task.
            handler.pending.borrow_mut().push(at(0));
            Timer::arm(&handler);
            assert_eq!(handler.timer.armed.get(), None);
        });
    }
}
