//! Messages to a runtime from any thread: many sends, one wake-up.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::lock::lock;

struct Shared<T> {
    state: Mutex<State<T>>,
    senders: AtomicUsize,
    limit: usize,
}

struct State<T> {
    queue: VecDeque<T>,
    waker: Option<Waker>,
    is_closed: bool,
}

/// Creates a queue of messages from any thread to one task, with at most `limit` queued messages.
/// `None` sets no limit, for senders that limit their messages themselves.
///
/// The first message wakes the receiver. Further messages need no wake-up until the receiver has
/// read the queue. A thread with an io_uring runtime sends the wake-up as `MSG_RING` with its next
/// submit. Other threads use an eventfd.
#[must_use]
pub fn mailbox<T: Send>(limit: Option<usize>) -> (Sender<T>, Receiver<T>) {
    let state = State {
        queue: VecDeque::new(),
        waker: None,
        is_closed: false,
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        senders: AtomicUsize::new(1),
        limit: limit.unwrap_or(usize::MAX),
    });
    (
        Sender {
            shared: Arc::clone(&shared),
        },
        Receiver { shared },
    )
}

/// Reason why [`Sender::send`] refused a message. Each variant returns the message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendError<T> {
    /// The queue has its maximum number of messages. The value is the message.
    Full(T),
    /// The receiver was dropped, so that no message can arrive any more. The value is the message.
    Closed(T),
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Closed(_) => "Closed",
        })
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the mailbox is full",
            Self::Closed(_) => "the mailbox is closed",
        })
    }
}

impl<T> std::error::Error for SendError<T> {}

/// The sending end of a [`mailbox`]. Any thread may send; clones send to the same receiver.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Appends a message to the queue and wakes the task that waits in [`Receiver::recv`]. Never
    /// waits: the receiver gets the messages of one sender in the order of its calls.
    ///
    /// # Errors
    /// The queue has its maximum number of messages, or the receiver was dropped. The error returns
    /// the message.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let mut state = lock(&self.shared.state);
        if state.is_closed {
            return Err(SendError::Closed(message));
        }
        if state.queue.len() >= self.shared.limit {
            return Err(SendError::Full(message));
        }
        state.queue.push_back(message);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waker = lock(&self.shared.state).waker.take();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// The receiving end of a [`mailbox`]. It may move to the thread that reads it. Dropping it drops
/// the waiting messages, and later sends fail.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Receiver<T> {
    /// Waits for the next message and returns it. Returns `None` when the queue is empty and all
    /// senders were dropped.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Returns the next message without waiting; `None` if the queue is empty.
    pub fn try_recv(&mut self) -> Option<T> {
        lock(&self.shared.state).queue.pop_front()
    }

    /// Returns the number of messages in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shared.state).queue.len()
    }

    /// Returns true if the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Polls for the next message, as [`recv`](Self::recv) does: `Ready` with the message, or
    /// `Ready(None)` when the queue is empty and all senders were dropped. Otherwise the waker of
    /// `context` is woken when a message arrives; only the waker of the last call counts.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = lock(&self.shared.state);
        if let Some(message) = state.queue.pop_front() {
            return Poll::Ready(Some(message));
        }
        if self.shared.senders.load(Ordering::Acquire) == 0 {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.is_closed = true;
        let left = (std::mem::take(&mut state.queue), state.waker.take());
        drop(state);
        drop(left);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
