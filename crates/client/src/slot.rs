//! A value that one thread puts down and a future picks up.

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
    /// Who would have filled it is gone.
    Broken,
    /// Nobody waits any more.
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

/// The end that puts the value down.
pub(crate) struct Filler<T> {
    state: Option<Arc<Mutex<State<T>>>>,
}

impl<T> Filler<T> {
    /// Puts the value down; it comes back where nobody waits for it.
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

/// Who would have answered is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The end that waits.
pub(crate) struct Pickup<T> {
    state: Arc<Mutex<State<T>>>,
}

impl<T> Pickup<T> {
    /// Whether the value is neither there nor given up.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(*lock(&self.state), State::Waiting(_))
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
        let left = std::mem::replace(&mut *lock(&self.state), State::Abandoned);
        // Outside of the lock: it may own memory, or a waker.
        drop(left);
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
        assert!(!pickup.is_waiting());
        assert_eq!(pickup.wait(), Err(Broken));
        let (filler, pickup) = slot();
        assert!(pickup.is_waiting());
        drop(pickup);
        assert_eq!(filler.fill(7), Err(7));
    }
}
