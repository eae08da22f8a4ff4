//! The lines of the log: a queue, and the sink that writes them to standard error or to journald.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{Dispatch, error};
use tracing_subscriber::fmt::MakeWriter;

use super::rate::{RateLimit, report};
use crate::journal::Journal;
use crate::output_queue::{Item, Limits, Sink, WritingThread};

/// Limits of the lines that wait for the writing thread.
const LIMITS: Limits = Limits {
    items: 8192,
    bytes: 4 << 20,
    flush_timeout: Duration::from_secs(5),
    pause: Duration::ZERO,
};
/// Pause before a file in non-blocking mode that accepts no bytes is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// A line of the log.
pub(super) enum Line {
    /// Text with its line end, for standard error.
    Text(Vec<u8>),
    /// A message for journald.
    Journal(Vec<u8>),
}

impl Item for Line {
    fn len(&self) -> usize {
        match self {
            Self::Text(bytes) | Self::Journal(bytes) => bytes.len(),
        }
    }
}

/// The sending side of the queue of lines. A clone refers to the same queue.
pub(super) type Queue = crate::output_queue::Queue<Line>;
/// The thread that writes the lines.
pub(super) type LogThread = WritingThread<Line>;

impl<'a> MakeWriter<'a> for Queue {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> &'a Self {
        self
    }
}

impl Write for &Queue {
    /// Takes a whole line: the formatters write each event with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(Line::Text(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the thread that writes to `output` and to journald. Its own events go to `reports`, past
/// the queue.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn start(
    output: Arc<File>,
    rate_limit: Arc<RateLimit>,
    reports: Dispatch,
) -> io::Result<(Queue, LogThread)> {
    start_with(LIMITS, output, rate_limit, reports)
}

fn start_with(
    limits: Limits,
    output: Arc<File>,
    rate_limit: Arc<RateLimit>,
    reports: Dispatch,
) -> io::Result<(Queue, LogThread)> {
    let sink = LogSink {
        output,
        journal: Journal::default(),
        rate_limit,
        reported: 0,
    };
    WritingThread::start("log", limits, sink, move |write| {
        tracing::dispatcher::with_default(&reports, write);
    })
}

/// The destinations of lines.
struct LogSink {
    output: Arc<File>,
    journal: Journal,
    rate_limit: Arc<RateLimit>,
    /// Number of lost lines that are reported.
    reported: u64,
}

impl Sink<Line> for LogSink {
    fn write(&mut self, line: Line) -> io::Result<()> {
        match line {
            Line::Text(line) => write_all(&self.output, &line),
            Line::Journal(message) => self.journal.send(&message),
        }
    }

    fn idle(&mut self, lost: u64) {
        // The lost lines follow the written ones.
        self.report_lost(lost);
    }

    fn check(&mut self, lost: u64) {
        self.report_lost(lost);
        report(&self.rate_limit.sums(Instant::now()));
    }

    fn end(&mut self) {
        report(&self.rate_limit.all_sums());
    }
}

impl LogSink {
    fn report_lost(&mut self, all: u64) {
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
        let limits = Limits {
            items: 16,
            ..LIMITS
        };
        let (queue, thread) =
            start_with(limits, output, Arc::default(), Dispatch::new(reports)).expect("a thread");
        // More than a pipe and the queue hold. No call waits, because nothing reads yet.
        let mut line = vec![b'x'; 16 << 10];
        line.push(b'\n');
        for _ in 0..200 {
            queue.push(Line::Text(line.clone()));
        }
        let lost = queue.lost();
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
        let (queue, _thread) = start(output, Arc::default(), Dispatch::none()).expect("a thread");
        let line = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            queue.push(Line::Text(line.clone()));
        }
        assert!(queue.lost() >= 14);
        assert!(queue.waiting_bytes() <= LIMITS.bytes);
    }
}
