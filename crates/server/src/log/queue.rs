//! The queue of log lines, and the thread that writes them.
//!
//! A thread that logs never waits for the reader of the log: if the queue is full, the line is lost
//! and counted. The writing thread reports the count.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{Dispatch, error};
use tracing_subscriber::fmt::MakeWriter;

use super::rate::{RateLimit, report};

/// Most lines that wait for the writing thread.
const LINES_MAX: usize = 8192;
/// Most bytes of lines that wait for the writing thread.
const BYTES_MAX: usize = 4 << 20;
/// Longest time between two checks for lost and left out lines.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Pause before a file in non-blocking mode that accepts no bytes is tried again.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time in which the end of a log writes the waiting lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The sending side of the queue. A clone refers to the same queue.
#[derive(Clone)]
pub(super) struct Queue {
    sender: SyncSender<Vec<u8>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of the waiting lines.
    bytes: AtomicUsize,
    /// Number of lost lines since the start.
    lost: AtomicU64,
    is_stopping: AtomicBool,
}

impl Queue {
    /// Adds a line with its line end, or counts it as lost.
    pub(super) fn push(&self, line: &[u8]) {
        let State { bytes, lost, .. } = &*self.state;
        let length = line.len();
        let has_space = bytes.fetch_add(length, Ordering::Relaxed) + length <= BYTES_MAX;
        if !has_space || self.sender.try_send(line.to_vec()).is_err() {
            bytes.fetch_sub(length, Ordering::Relaxed);
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

impl Write for &Queue {
    /// Takes a whole line: the formatters write each event with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The thread that writes the lines of a queue. Dropping it writes the waiting lines and ends it.
pub(super) struct LogThread {
    queue: Queue,
    /// Closed when the thread ends.
    has_ended: Receiver<()>,
}

impl LogThread {
    /// Starts a thread that writes to `output`. Its own events go to `reports`, past the queue.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(
        output: Arc<File>,
        rate_limit: Arc<RateLimit>,
        reports: Dispatch,
    ) -> io::Result<(Queue, Self)> {
        Self::with_capacity(LINES_MAX, output, rate_limit, reports)
    }

    fn with_capacity(
        lines: usize,
        output: Arc<File>,
        rate_limit: Arc<RateLimit>,
        reports: Dispatch,
    ) -> io::Result<(Queue, Self)> {
        let (sender, receiver) = mpsc::sync_channel(lines);
        let (ending, has_ended) = mpsc::channel();
        let queue = Queue {
            sender,
            state: Arc::default(),
        };
        let writer = Writer {
            receiver,
            state: Arc::clone(&queue.state),
            output,
            rate_limit,
            reported: 0,
            checked: Instant::now(),
        };
        let run = move || {
            tracing::dispatcher::with_default(&reports, || writer.run());
            drop(ending);
        };
        thread::Builder::new().name("log".to_owned()).spawn(run)?;
        let thread = Self {
            queue: queue.clone(),
            has_ended,
        };
        Ok((queue, thread))
    }
}

impl Drop for LogThread {
    /// Gives up after a time limit: nothing may read the log any more.
    fn drop(&mut self) {
        self.queue.state.is_stopping.store(true, Ordering::SeqCst);
        // It wakes the thread. If the queue is full, the thread is awake.
        let _ = self.queue.sender.try_send(Vec::new());
        let _ = self.has_ended.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// The writing side of the queue.
struct Writer {
    receiver: Receiver<Vec<u8>>,
    state: Arc<State>,
    output: Arc<File>,
    rate_limit: Arc<RateLimit>,
    /// Number of lost lines that are reported.
    reported: u64,
    /// Time of the last check.
    checked: Instant,
}

impl Writer {
    fn run(mut self) {
        loop {
            let received = match self.receiver.try_recv() {
                Ok(line) => Ok(line),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {
                    // The lost lines follow the written ones.
                    self.report_lost();
                    if self.state.is_stopping.load(Ordering::SeqCst) {
                        break;
                    }
                    self.receiver.recv_timeout(CHECK_INTERVAL)
                }
            };
            match received {
                Ok(line) => self.write(&line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.checked.elapsed() >= CHECK_INTERVAL {
                self.checked = Instant::now();
                self.report_lost();
                report(&self.rate_limit.sums(self.checked));
            }
        }
        report(&self.rate_limit.all_sums());
    }

    fn write(&self, line: &[u8]) {
        let State { bytes, lost, .. } = &*self.state;
        bytes.fetch_sub(line.len(), Ordering::Relaxed);
        if write_all(&self.output, line).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn report_lost(&mut self) {
        let all = self.state.lost.load(Ordering::Relaxed);
        let lost = all - self.reported;
        if lost > 0 {
            error!(
                lost,
                all, "log lines are lost: the log was not read or written in time"
            );
            self.reported = all;
        }
    }
}

/// Writes all bytes, also to a file in non-blocking mode.
fn write_all(mut output: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::fd::OwnedFd;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn a_log_that_nothing_reads_loses_lines_and_reports_them() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let output = Arc::new(File::from(OwnedFd::from(writer)));
        let layer = tracing_subscriber::fmt::layer().event_format(super::super::text::Text);
        let reports = tracing_subscriber::registry().with(layer.with_writer(Arc::clone(&output)));
        let (queue, thread) =
            LogThread::with_capacity(16, output, Arc::default(), Dispatch::new(reports))
                .expect("a thread");
        // More than a pipe and the queue hold. No call waits, because nothing reads yet.
        let mut line = vec![b'x'; 16 << 10];
        line.push(b'\n');
        for _ in 0..200 {
            queue.push(&line);
        }
        let lost = queue.state.lost.load(Ordering::Relaxed);
        assert!(lost >= 100, "{lost}");
        let reading = thread::spawn(move || {
            let lines = BufReader::new(reader).lines();
            lines.map(|line| line.expect("text")).collect::<Vec<_>>()
        });
        drop(thread);
        drop(queue);
        let lines = reading.join().expect("no panic");
        let (reports, lines): (Vec<_>, Vec<_>) =
            lines.iter().partition(|line| line.contains("lost="));
        assert_eq!(lines.len() as u64 + lost, 200);
        assert_eq!(reports.len(), 1);
        assert!(
            reports[0].contains(&format!("lost={lost} all={lost}")),
            "{reports:?}"
        );
    }

    #[test]
    fn the_bytes_of_waiting_lines_are_limited() {
        let (_reader, writer) = io::pipe().expect("a pipe");
        let output = Arc::new(File::from(OwnedFd::from(writer)));
        let (queue, _thread) =
            LogThread::start(output, Arc::default(), Dispatch::none()).expect("a thread");
        let line = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            queue.push(&line);
        }
        assert!(queue.state.lost.load(Ordering::Relaxed) >= 14);
        assert!(queue.state.bytes.load(Ordering::Relaxed) <= BYTES_MAX);
    }
}
