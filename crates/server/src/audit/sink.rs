//! The writing side of the audit log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{error, info};

use super::file::{self, AuditFile};
use super::record::Record;
use crate::config::{AuditSection, AuditTarget};
use crate::journal::Journal;
use crate::output_queue::Sink;

/// The place of the records.
pub(super) enum Destination {
    File(AuditFile),
    Journal(Journal),
}

impl Destination {
    /// Opens the place of the records.
    ///
    /// # Errors
    /// The file cannot be opened, or journald does not run.
    pub(super) fn open(target: &AuditTarget, section: &AuditSection) -> io::Result<Self> {
        match target {
            AuditTarget::Journald => {
                Self::check(target).map(|()| Self::Journal(Journal::default()))
            }
            AuditTarget::File(path) => {
                let megabytes = section.max_size_mb as u64;
                let max = (megabytes > 0).then_some(megabytes << 20);
                let keep = u32::try_from(section.keep).unwrap_or(u32::MAX);
                AuditFile::open(path, max, keep).map(Self::File)
            }
        }
    }

    /// Checks that the place can be opened. Makes no file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn check(target: &AuditTarget) -> io::Result<()> {
        match target {
            AuditTarget::Journald if Journal::default().is_present() => Ok(()),
            AuditTarget::Journald => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "journald does not run: name a file",
            )),
            AuditTarget::File(path) => file::check(path),
        }
    }
}

/// Writes records.
pub(super) struct AuditSink {
    destination: Destination,
    target: AuditTarget,
    /// Number of written records since the start of the server.
    written: Arc<AtomicU64>,
    /// Number of lost records that the log has a record of.
    reported: u64,
    /// Whether the last write failed.
    is_failing: bool,
}

impl AuditSink {
    pub(super) fn new(
        destination: Destination,
        target: AuditTarget,
        written: Arc<AtomicU64>,
    ) -> Self {
        Self {
            destination,
            target,
            written,
            reported: 0,
            is_failing: false,
        }
    }

    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let result = match &mut self.destination {
            Destination::File(file) => file.append(record),
            Destination::Journal(journal) => journal.send(record),
        };
        match &result {
            Ok(()) => {
                self.written.fetch_add(1, Ordering::Relaxed);
                if std::mem::replace(&mut self.is_failing, false) {
                    info!(target = %self.target, "the audit log is written again");
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    let target = &self.target;
                    error!(%target, %error, "cannot write the audit log: losing records");
                }
            }
        }
        result
    }

    /// Writes a record of the lost ones.
    fn report_lost(&mut self, all: u64) {
        let lost = all - self.reported;
        if lost > 0 {
            let record = Record::of_loss(lost).encode(&self.target);
            if self.append(&record).is_ok() {
                self.reported = all;
                error!(lost, all, target = %self.target, "records of the audit log are lost");
            }
        }
    }
}

impl Sink<Vec<u8>> for AuditSink {
    fn write(&mut self, record: Vec<u8>) -> io::Result<()> {
        self.append(&record)
    }

    fn idle(&mut self, lost: u64) {
        if !self.is_failing {
            self.report_lost(lost);
        }
    }

    fn check(&mut self, lost: u64) {
        if let Destination::File(file) = &mut self.destination
            && let Err(error) = file.check()
        {
            let target = &self.target;
            error!(%target, %error, "cannot open the audit log again: using the old file");
        }
        self.report_lost(lost);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::UnixDatagram;
    use std::path::Path;

    use super::*;
    use crate::output_queue::{Limits, WritingThread};

    fn sink(path: &Path) -> AuditSink {
        let file = AuditFile::open(path, None, 1).expect("a file");
        let target = AuditTarget::File(path.to_owned());
        AuditSink::new(Destination::File(file), target, Arc::default())
    }

    #[test]
    fn lost_records_are_counted_in_a_record() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.jsonl");
        let mut sink = sink(&path);
        sink.check(3);
        sink.check(3);
        sink.write(b"{}\n".to_vec()).expect("it is written");
        sink.check(5);
        let text = fs::read_to_string(&path).expect("a file");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        for (line, count) in [(lines[0], 3), (lines[2], 2)] {
            let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(record["event"], "records_lost");
            assert_eq!(record["count"], count);
        }
    }

    #[test]
    fn the_end_of_the_queue_writes_all_records() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.jsonl");
        let limits = Limits {
            items: 10_000,
            bytes: 1 << 20,
            flush_timeout: std::time::Duration::from_secs(10),
            pause: std::time::Duration::ZERO,
        };
        let (queue, thread) =
            WritingThread::start("audit", limits, sink(&path), |write| write()).expect("a thread");
        for number in 0..5000 {
            queue.push(format!("{number}\n").into_bytes());
        }
        drop(thread);
        let text = fs::read_to_string(&path).expect("a file");
        let numbers: Vec<usize> = text
            .lines()
            .map(|line| line.parse().expect("a number"))
            .collect();
        assert!(numbers.iter().copied().eq(0..5000), "{}", numbers.len());
        assert_eq!(queue.lost(), 0);
    }

    #[test]
    fn journald_receives_records() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let receiver = UnixDatagram::bind(&path).expect("a socket");
        let journal = Destination::Journal(Journal::at(path));
        let mut sink = AuditSink::new(journal, AuditTarget::Journald, Arc::default());
        sink.check(7);
        let mut bytes = [0; 4096];
        let count = receiver.recv(&mut bytes).expect("a message");
        let text = String::from_utf8_lossy(&bytes[..count]);
        for field in [
            "PRIORITY=4\n",
            "SYSLOG_IDENTIFIER=smbeam\n",
            "SMBEAM_AUDIT=1\n",
            "SMBEAM_EVENT=records_lost\n",
            "SMBEAM_COUNT=7\n",
        ] {
            assert!(text.contains(field), "{text}");
        }
    }
}
