//! A one-shot channel: one thread fills a slot, and a future takes the value.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Locks; a panic of another holder leaves these plain values consistent.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

enum State<T> {
    Waiting(Option<Waker>),
    Filled(T),
    /// The filler was dropped.
    Broken,
    /// The pickup gave up.
    Abandoned,
}

/// Makes both ends.
pub(crate) fn slot<T>() -> (Filler<T>, Pickup<T>) {
    let state = Arc::new(Mutex::new(State::Waiting(None)));
    (
        Filler {
            state: Some(Arc::clone(&state)),
        },
        Pickup { state },
    )
}

/// The end that fills the slot.
pub(crate) struct Filler<T> {
    state: Option<Arc<Mutex<State<T>>>>,
}

impl<T> Filler<T> {
    /// Fills the slot.
    ///
    /// # Errors
    /// The value, if the pickup gave up.
    pub(crate) fn fill(mut self, value: T) -> Result<(), T> {
        let state = self.state.take().expect("filled once");
        let mut state = lock(&state);
        match std::mem::replace(&mut *state, State::Broken) {
            State::Waiting(waker) => {
                *state = State::Filled(value);
                drop(state);
                waker.into_iter().for_each(Waker::wake);
                Ok(())
            }
            other => {
                *state = other;
                Err(value)
            }
        }
    }
}

impl<T> Drop for Filler<T> {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else {
            return;
        };
        let mut state = lock(&state);
        if let State::Waiting(waker) = &mut *state {
            let waker = waker.take();
            *state = State::Broken;
            drop(state);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

/// The filler was dropped without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The state of the slot when the pickup gave up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GivenUp<T> {
    /// The slot was empty.
    Early,
    /// The slot had this value.
    Late(T),
    /// The value was taken before, or the filler was dropped.
    Done,
}

/// The end that waits.
pub(crate) struct Pickup<T> {
    state: Arc<Mutex<State<T>>>,
}

impl<T> Pickup<T> {
    /// Gives up waiting. Returns the value if the slot has one; a later value goes back to the
    /// filler.
    pub(crate) fn give_up(&self) -> GivenUp<T> {
        let left = std::mem::replace(&mut *lock(&self.state), State::Abandoned);
        match left {
            State::Waiting(_) => GivenUp::Early,
            State::Filled(value) => GivenUp::Late(value),
            State::Broken | State::Abandoned => GivenUp::Done,
        }
    }
}

impl<T> Future for Pickup<T> {
    type Output = Result<T, Broken>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Waiting(Some(waker)) => waker.clone_from(context.waker()),
            State::Waiting(waker) => *waker = Some(context.waker().clone()),
            _ => {
                return match std::mem::replace(&mut *state, State::Broken) {
                    State::Filled(value) => Poll::Ready(Ok(value)),
                    _ => Poll::Ready(Err(Broken)),
                };
            }
        }
        Poll::Pending
    }
}

impl<T> Drop for Pickup<T> {
    fn drop(&mut self) {
        // Dropped outside of the lock: it may own memory.
        drop(self.give_up());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wait;

    #[test]
    fn a_value_crosses_threads() {
        let (filler, pickup) = slot();
        let thread = std::thread::spawn(move || filler.fill(7));
        assert_eq!(pickup.wait(), Ok(7));
        assert_eq!(thread.join().expect("no panic"), Ok(()));
    }

    #[test]
    fn either_end_may_go() {
        let (filler, pickup) = slot::<u8>();
        drop(filler);
        assert_eq!(pickup.wait(), Err(Broken));
        let (filler, pickup) = slot();
        drop(pickup);
        assert_eq!(filler.fill(7), Err(7));
    }

    #[test]
    fn a_value_that_was_not_taken_is_returned_when_the_pickup_gives_up() {
        let (filler, pickup) = slot();
        assert_eq!(pickup.give_up(), GivenUp::Early);
        assert_eq!(filler.fill(7), Err(7));
        let (filler, pickup) = slot();
        assert_eq!(filler.fill(7), Ok(()));
        assert_eq!(pickup.give_up(), GivenUp::Late(7));
        assert_eq!(pickup.give_up(), GivenUp::Done);
    }
}
