//! The queue of effects.

use alloc::collections::VecDeque;

/// The effects of a call into a core, in order. The driver owns the queue and reuses it.
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
    /// Returns an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an effect. Only a core calls this.
    pub fn push(&mut self, effect: E) {
        self.queue.push_back(effect);
    }

    /// Removes and returns the first effect; `None` if the queue is empty.
    pub fn pop(&mut self) -> Option<E> {
        self.queue.pop_front()
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
