//! The queue of effects.

use alloc::collections::VecDeque;

/// A queue of effects: the actions that a call into a protocol core requests from the I/O driver,
/// in order. The driver owns and reuses the queue.
#[derive(Debug)]
pub struct Queue<E> {
    queue: VecDeque<E>,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
        }
    }
}

impl<E> Queue<E> {
    /// Makes an empty queue. The I/O driver reuses it for all calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an effect at the end of the queue. Only the protocol core calls this; the I/O driver
    /// removes the effects with [`pop`](Self::pop).
    pub fn push(&mut self, effect: E) {
        self.queue.push_back(effect);
    }

    /// Removes and returns the first effect, which the I/O driver then performs; `None` if the
    /// queue is empty.
    pub fn pop(&mut self) -> Option<E> {
        self.queue.pop_front()
    }

    /// Returns whether the queue is empty: the I/O driver has removed all effects.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
