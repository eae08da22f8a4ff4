//! What a core wants done, in order.

use alloc::collections::VecDeque;

/// What a core wants done, in order. The driver owns and reuses it.
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
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what is to be done next.
    pub fn push(&mut self, effect: E) {
        self.queue.push_back(effect);
    }

    /// Takes what is to be done first.
    pub fn pop(&mut self) -> Option<E> {
        self.queue.pop_front()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
