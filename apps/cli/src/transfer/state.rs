//! The common state of a transfer.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::task::Poll;
use std::time::Instant;

use smbeam_client::Wait as _;
use smbeam_client::transfer::TransferOptions;

use super::backup::Backup;
use super::linked_files::HardLinks;
use super::pace::Pace;
use super::part;
use super::part_key::PartKey;
use super::policy::Policy;
use crate::archive::Losses;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, RemotePath};
use crate::interrupt::Interrupt;
use crate::mutex::lock;
use crate::progress::Progress;
use crate::report::Report;

/// Large files that are transferred at the same time. Each has its own requests in flight.
const LARGE_AT_ONCE: usize = 4;

/// A running transfer. Its threads share it.
pub(crate) struct Transfer<'a> {
    /// The options.
    pub(crate) policy: Policy,
    /// Reports failures.
    pub(crate) report: &'a Report,
    /// Counts completed work.
    pub(crate) progress: &'a Progress,
    /// The flag for Ctrl-C.
    pub(crate) interrupt: &'a Interrupt,
    pub(super) large: Arc<Permits>,
    /// The lock is held by the thread that reconnects; other threads then find the new session. The
    /// value is the time of the first failed attempt.
    pub(super) reconnecting: Arc<Mutex<Option<Instant>>>,
    /// Whether an upload of a small file has found its name in use. Then others will, because the
    /// tree was uploaded before.
    pub(super) replaces_files: Arc<AtomicBool>,
    /// What the target cannot hold, with `--archive`.
    pub(super) losses: Arc<Losses>,
    /// The files with several names, with `--archive`.
    pub(super) hard_links: Arc<HardLinks>,
    /// Removals so far, with `--max-delete`.
    pub(super) removals: Arc<AtomicU64>,
    /// Where replaced and removed files go.
    pub(super) backup: Option<Arc<Backup>>,
    /// The limit of `--bwlimit`.
    pace: Option<Arc<Pace>>,
    /// The secret for the names of incomplete files, after its first use.
    part_key: Arc<OnceLock<PartKey>>,
}

impl<'a> Transfer<'a> {
    /// A new transfer.
    pub(crate) fn new(
        policy: Policy,
        report: &'a Report,
        progress: &'a Progress,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self {
            pace: policy.rate.0.map(|rate| Arc::new(Pace::new(rate))),
            policy,
            report,
            progress,
            interrupt,
            removals: Arc::default(),
            hard_links: Arc::default(),
            backup: None,
            large: Arc::new(Permits::new(LARGE_AT_ONCE)),
            reconnecting: Arc::default(),
            replaces_files: Arc::default(),
            losses: Arc::default(),
            part_key: Arc::default(),
        }
    }

    /// The same transfer with a directory for replaced and removed files.
    pub(crate) fn with_backup(mut self, backup: Option<Backup>) -> Self {
        self.backup = backup.map(Arc::new);
        self
    }

    /// The same transfer with resume, after a reconnect.
    pub(super) fn resumed(&self) -> Self {
        let mut policy = self.policy.clone();
        // A file that is written under its final name cannot be resumed, because its old and new
        // data look alike.
        policy.resume |= !policy.in_place;
        self.with(policy)
    }

    /// The same transfer of the data alone.
    pub(super) fn plain(&self) -> Self {
        self.with(Policy {
            archive: false,
            preserve: false,
            ..self.policy.clone()
        })
    }

    fn with(&self, policy: Policy) -> Self {
        Self {
            policy,
            large: Arc::clone(&self.large),
            reconnecting: Arc::clone(&self.reconnecting),
            replaces_files: Arc::clone(&self.replaces_files),
            losses: Arc::clone(&self.losses),
            removals: Arc::clone(&self.removals),
            hard_links: Arc::clone(&self.hard_links),
            backup: self.backup.clone(),
            pace: self.pace.clone(),
            part_key: Arc::clone(&self.part_key),
            ..*self
        }
    }

    /// The secret for the names of incomplete files.
    pub(super) fn part_key(&self) -> &PartKey {
        self.part_key.get_or_init(|| {
            let key = PartKey::load();
            if let (true, Some(reason)) = (self.policy.resume, key.not_stored()) {
                self.report.note(&format!(
                    "--continue finds no file of an earlier transfer: cannot store a key: {reason}"
                ));
            }
            key
        })
    }

    pub(super) fn options(&self) -> TransferOptions {
        TransferOptions::default()
            .io_size(self.policy.io_size as usize)
            .depth(self.policy.depth)
            .span(part::SPAN)
    }

    /// Counts transferred bytes, and sleeps until `--bwlimit` allows more.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.progress.add_bytes(bytes);
        self.keep_pace(bytes);
    }

    /// Sleeps until `--bwlimit` allows more than these bytes, which were read or written.
    pub(super) fn keep_pace(&self, bytes: u64) {
        if let Some(pace) = &self.pace {
            pace.take(bytes, &|| self.is_over());
        }
    }

    /// Whether a file of this size is transferred with one request.
    pub(super) fn is_small(&self, size: u64) -> bool {
        size <= self.policy.request_bytes()
    }

    /// Whether to stop, because of a fatal failure or an interrupt.
    pub(super) fn is_over(&self) -> bool {
        self.report.is_over() || self.interrupt.is_raised()
    }

    /// Fails if the user interrupted the command.
    pub(super) fn check(&self, subject: &FilePath) -> Outcome {
        if self.interrupt.is_raised() {
            return Err(Failure::interrupted(subject));
        }
        Ok(())
    }

    /// Waits for `moving`, or returns `None` if the user interrupts the command.
    pub(super) fn unless_interrupted<T>(&self, moving: impl Future<Output = T>) -> Option<T> {
        let mut moving = pin!(moving);
        let work = poll_fn(|context| match self.interrupt.is_raised() {
            true => Poll::Ready(None),
            false => moving.as_mut().poll(context).map(Some),
        });
        work.wait()
    }

    /// Ends a transfer of the client library if the user interrupted the command.
    pub(super) fn check_io(&self) -> io::Result<()> {
        if self.interrupt.is_raised() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        Ok(())
    }
}

/// Converts an error of a transfer into a failure of the local or the remote file.
pub(super) fn transfer_failure(
    error: &smbeam_client::Error,
    local: &FilePath,
    remote: &RemotePath,
) -> Failure {
    match error {
        smbeam_client::Error::Local { error, .. } => match error.kind() {
            io::ErrorKind::Interrupted => Failure::interrupted(local),
            // The file became shorter.
            io::ErrorKind::UnexpectedEof => Transfer::changed_meanwhile(local),
            _ => Failure::local(local, error),
        },
        _ => remote.failure(error),
    }
}

/// Whether size and time of a file are unchanged.
pub(super) fn is_same_state(before: &FileInfo, after: &FileInfo) -> bool {
    before.size == after.size && before.written == after.written
}

/// A counting semaphore.
pub(super) struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A permit of the semaphore. Dropping it returns the permit.
pub(super) struct Permit<'a>(&'a Permits);

impl Permits {
    fn new(free: usize) -> Self {
        Self {
            free: Mutex::new(free),
            freed: Condvar::new(),
        }
    }

    pub(super) fn take(&self) -> Permit<'_> {
        let mut free = lock(&self.free);
        while *free == 0 {
            free = self
                .freed
                .wait(free)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.freed.notify_one();
    }
}
