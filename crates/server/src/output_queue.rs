//! A bounded queue of output, and the thread that writes it: for the log and for the audit log.
//!
//! A thread with output never waits for the thread that writes: if the queue is full, the item is
//! lost and counted. The sink reports the count.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time between two checks of a sink.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// One piece of output.
pub(crate) trait Item: Send + 'static {
    /// Length in bytes.
    fn len(&self) -> usize;
}

impl Item for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }
}

/// The destination of the items. Its functions run on the thread of the queue.
pub(crate) trait Sink<T>: Send + 'static {
    /// Writes an item.
    ///
    /// # Errors
    /// The item is lost.
    fn write(&mut self, item: T) -> io::Result<()>;

    /// The queue is empty. `lost` is the number of lost items since the start.
    fn idle(&mut self, lost: u64);

    /// Runs in regular intervals, whether the queue is empty or not, and when `Queue::wake` asks
    /// for it.
    fn check(&mut self, lost: u64);

    /// Runs once, after all items.
    fn end(&mut self) {}
}

/// Limits of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Most items that wait.
    pub(crate) items: usize,
    /// Most bytes of items that wait.
    pub(crate) bytes: usize,
    /// Longest time in which the end of the queue writes the waiting items.
    pub(crate) flush_timeout: Duration,
    /// Time between the first item in an empty queue and its write. Items that follow it soon do
    /// not wake the thread again.
    pub(crate) pause: Duration,
}

/// The sending side of a queue. A clone refers to the same queue.
pub(crate) struct Queue<T> {
    sender: SyncSender<Message<T>>,
    bytes_max: usize,
    state: Arc<State>,
}

enum Message<T> {
    Item(T),
    /// Runs the check of the sink.
    Wake,
}

#[derive(Default)]
struct State {
    /// Bytes of the waiting items.
    bytes: AtomicUsize,
    /// Number of lost items since the start.
    lost: AtomicU64,
    is_stopping: AtomicBool,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            bytes_max: self.bytes_max,
            state: Arc::clone(&self.state),
        }
    }
}

impl<T: Item> Queue<T> {
    /// Adds an item, or counts it as lost.
    pub(crate) fn push(&self, item: T) {
        let State { bytes, lost, .. } = &*self.state;
        let length = item.len();
        let has_space = bytes.fetch_add(length, Ordering::Relaxed) + length <= self.bytes_max;
        if !has_space || self.sender.try_send(Message::Item(item)).is_err() {
            bytes.fetch_sub(length, Ordering::Relaxed);
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks for a check of the sink. If the queue is full, the thread checks within a second.
    pub(crate) fn wake(&self) {
        let _ = self.sender.try_send(Message::Wake);
    }

    /// Number of lost items since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }

    /// Bytes of the waiting items.
    #[cfg(test)]
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.state.bytes.load(Ordering::Relaxed)
    }
}

/// The thread that writes the items of a queue. Dropping it writes the waiting items and ends it,
/// but gives up after a time limit: nothing may read the output any more.
pub(crate) struct WritingThread<T: Item> {
    queue: Queue<T>,
    flush_timeout: Duration,
    /// Closed when the thread ends.
    has_ended: Mutex<Receiver<()>>,
}

impl<T: Item> WritingThread<T> {
    /// Starts a thread of this name. `inside` runs the function that it gets, which writes until
    /// the queue ends: it may set up the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        name: &str,
        limits: Limits,
        sink: impl Sink<T>,
        inside: impl FnOnce(&mut dyn FnMut()) + Send + 'static,
    ) -> io::Result<(Queue<T>, Self)> {
        let (sender, receiver) = mpsc::sync_channel(limits.items);
        let (ending, has_ended) = mpsc::channel();
        let queue = Queue {
            sender,
            bytes_max: limits.bytes,
            state: Arc::default(),
        };
        let mut writer = Writer {
            receiver,
            state: Arc::clone(&queue.state),
            sink,
            pause: limits.pause,
            checked: Instant::now(),
        };
        let run = move || {
            inside(&mut || writer.run());
            drop((writer, ending));
        };
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        let thread = Self {
            queue: queue.clone(),
            flush_timeout: limits.flush_timeout,
            has_ended: Mutex::new(has_ended),
        };
        Ok((queue, thread))
    }
}

impl<T: Item> Drop for WritingThread<T> {
    fn drop(&mut self) {
        self.queue.state.is_stopping.store(true, Ordering::SeqCst);
        // If the queue is full, the thread is awake.
        self.queue.wake();
        let has_ended = (self.has_ended.get_mut()).unwrap_or_else(PoisonError::into_inner);
        let _ = has_ended.recv_timeout(self.flush_timeout);
    }
}

/// The writing side of a queue.
struct Writer<T, S> {
    receiver: Receiver<Message<T>>,
    state: Arc<State>,
    sink: S,
    pause: Duration,
    /// Time of the last check.
    checked: Instant,
}

impl<T: Item, S: Sink<T>> Writer<T, S> {
    fn run(&mut self) {
        loop {
            // Before the look into the queue: an item that comes between the two is written.
            let is_stopping = self.state.is_stopping.load(Ordering::SeqCst);
            let received = match self.receiver.try_recv() {
                Ok(message) => Ok(message),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {
                    self.sink.idle(self.lost());
                    if is_stopping {
                        break;
                    }
                    self.wait()
                }
            };
            match received {
                Ok(Message::Item(item)) => self.write(item),
                Ok(Message::Wake) => self.check(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.checked.elapsed() >= CHECK_INTERVAL {
                self.check();
            }
        }
        self.sink.end();
    }

    /// Waits for a message in an empty queue.
    fn wait(&self) -> Result<Message<T>, RecvTimeoutError> {
        let received = self.receiver.recv_timeout(CHECK_INTERVAL);
        if matches!(received, Ok(Message::Item(_))) && !self.pause.is_zero() {
            thread::sleep(self.pause);
        }
        received
    }

    fn check(&mut self) {
        self.checked = Instant::now();
        self.sink.check(self.lost());
    }

    fn write(&mut self, item: T) {
        let State { bytes, lost, .. } = &*self.state;
        bytes.fetch_sub(item.len(), Ordering::Relaxed);
        if self.sink.write(item).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }
}
