//! The audit log: a record for each selected operation of a client, as a line of JSON in a file or
//! as a message for journald.
//!
//! The core makes events (`proto::audit`). A worker makes a record of an event (`record`) and puts
//! it into a queue. A thread (`sink`) writes the records. docs/audit.md describes them.

mod file;
mod names;
mod record;
mod sink;
mod text;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::config::{AuditSection, AuditTarget};
use crate::output_queue::{Limits, Queue, WritingThread};

pub(crate) use self::record::{Client, Record};
use self::sink::{AuditSink, Destination};

/// Most bytes of the queue for each of its records.
const BYTES_PER_RECORD: usize = 4096;
/// Time between a record in an empty queue and its write: a wake-up of the thread costs as much as
/// several records.
const PAUSE: Duration = Duration::from_millis(2);
/// Longest time in which the end of the log writes the waiting records.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// The audit log of a server. A change of the configuration replaces its output.
#[derive(Default)]
pub(crate) struct Audit {
    output: RwLock<Option<Output>>,
    /// Number of records that were written since the start.
    written: Arc<AtomicU64>,
    /// Number of records that former outputs lost.
    lost_before: AtomicU64,
}

/// The queue of the log, and its thread.
pub(crate) struct Output {
    target: AuditTarget,
    queue: Queue<Vec<u8>>,
    _thread: WritingThread<Vec<u8>>,
}

/// Numbers of records since the start of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Records that were written.
    pub(crate) written: u64,
    /// Records that were lost: the queue was full, or a write failed.
    pub(crate) lost: u64,
}

impl Audit {
    /// Writes a record, if the server has an audit log. It does not wait.
    pub(crate) fn write(&self, record: impl FnOnce() -> Record) {
        let output = self.output.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(output) = &*output {
            output.queue.push(record().encode(&output.target));
        }
    }

    /// Opens the output of a configuration; `None` for a server without an audit log. The server
    /// does not use it yet.
    ///
    /// # Errors
    /// The file cannot be opened, journald does not run, or the thread cannot be started.
    pub(crate) fn open(&self, section: &AuditSection) -> io::Result<Option<Output>> {
        let Some(target) = &section.target else {
            return Ok(None);
        };
        let target = target.get_ref();
        let destination = Destination::open(target, section)?;
        let sink = AuditSink::new(destination, target.clone(), Arc::clone(&self.written));
        let items = section.queue;
        let limits = Limits {
            items,
            bytes: items.saturating_mul(BYTES_PER_RECORD),
            flush_timeout: FLUSH_TIMEOUT,
            pause: PAUSE,
        };
        let (queue, thread) = WritingThread::start("audit", limits, sink, |write| write())?;
        Ok(Some(Output {
            target: target.clone(),
            queue,
            _thread: thread,
        }))
    }

    /// Replaces the output. The former one writes its records first, which may take some seconds.
    pub(crate) fn replace(&self, output: Option<Output>) {
        let former = {
            let mut current = self.output.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, output)
        };
        if let Some(Output {
            target: _,
            queue,
            _thread: thread,
        }) = former
        {
            drop(thread);
            self.lost_before.fetch_add(queue.lost(), Ordering::Relaxed);
        }
        // The former output may have rotated the same file.
        self.reopen();
    }

    /// Opens the file again if another program has renamed it.
    pub(crate) fn reopen(&self) {
        let output = self.output.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(output) = &*output {
            output.queue.wake();
        }
    }

    /// Returns the target of the log, such as a path; `None` without an audit log.
    pub(crate) fn target(&self) -> Option<String> {
        let output = self.output.read().unwrap_or_else(PoisonError::into_inner);
        output.as_ref().map(|output| output.target.to_string())
    }

    /// Returns the numbers of records.
    pub(crate) fn totals(&self) -> Totals {
        let output = self.output.read().unwrap_or_else(PoisonError::into_inner);
        let lost = output.as_ref().map_or(0, |output| output.queue.lost());
        Totals {
            written: self.written.load(Ordering::Relaxed),
            lost: self.lost_before.load(Ordering::Relaxed) + lost,
        }
    }
}

/// Checks that a server with this configuration can open its audit log. Makes no file.
///
/// # Errors
/// As [`Audit::open`], as far as it can be known.
pub(crate) fn check(section: &AuditSection) -> io::Result<()> {
    match section.target.as_ref().map(toml::Spanned::get_ref) {
        None => Ok(()),
        Some(target) => Destination::check(target),
    }
}
