//! The state of a transfer, which the other files of this directory work on.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::Instant;

use smbeam_client::Wait as _;
use smbeam_client::transfer::TransferOptions;

use super::part;
use super::policy::Policy;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath, RemotePath};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::{Report, lock};

/// Large files that are on their way at once: each has a window of requests of its own.
const LARGE_AT_ONCE: usize = 4;

/// A transfer under way.
pub(crate) struct Transfer<'a> {
    /// What is wanted.
    pub(crate) policy: Policy,
    /// What went wrong.
    pub(crate) report: &'a Report,
    /// How far it is.
    pub(crate) progress: &'a Progress,
    /// Whether it shall end.
    pub(crate) interrupt: &'a Interrupt,
    pub(super) large: Arc<Permits>,
    /// Held by whoever connects anew: the others find what it brings. Since when nobody gets
    /// through.
    pub(super) reconnecting: Arc<Mutex<Option<Instant>>>,
}

impl<'a> Transfer<'a> {
    /// Begins one.
    pub(crate) fn new(
        policy: Policy,
        report: &'a Report,
        progress: &'a Progress,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self {
            policy,
            report,
            progress,
            interrupt,
            large: Arc::new(Permits::new(LARGE_AT_ONCE)),
            reconnecting: Arc::default(),
        }
    }

    /// The same, going on with what it has begun.
    pub(super) fn resumed(&self) -> Self {
        let mut policy = self.policy.clone();
        // Of a file under its own name nobody knows which bytes are new.
        policy.resume |= !policy.in_place;
        Self {
            policy,
            large: Arc::clone(&self.large),
            reconnecting: Arc::clone(&self.reconnecting),
            ..*self
        }
    }

    pub(super) fn options(&self) -> TransferOptions {
        TransferOptions {
            io_size: self.policy.io_size as usize,
            depth: self.policy.depth,
            span: part::SPAN,
        }
    }

    /// Whether a file goes in one request.
    pub(super) fn is_small(&self, size: u64) -> bool {
        size <= self.policy.request_bytes()
    }

    /// Whether to stop.
    pub(super) fn is_over(&self) -> bool {
        self.report.is_over() || self.interrupt.is_raised()
    }

    /// Fails once somebody wants the work to end.
    pub(super) fn check(&self, subject: &FilePath) -> Outcome {
        if self.interrupt.is_raised() {
            return Err(Failure::interrupted(subject));
        }
        Ok(())
    }

    /// Waits for work that asks for no bytes here, unless somebody wants it to end: then there is
    /// nothing.
    pub(super) fn unless_interrupted<T>(&self, moving: impl Future<Output = T>) -> Option<T> {
        let mut moving = pin!(moving);
        let work = poll_fn(|context| match self.interrupt.is_raised() {
            true => Poll::Ready(None),
            false => moving.as_mut().poll(context).map(Some),
        });
        work.wait()
    }

    /// For the callbacks of a transfer: an error that ends it.
    pub(super) fn check_io(&self) -> io::Result<()> {
        if self.interrupt.is_raised() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        Ok(())
    }
}

/// Why a transfer that was under way ended: for this machine's file, or for the server's.
pub(super) fn transfer_failure(
    error: &smbeam_client::Error,
    local: &FilePath,
    remote: &RemotePath,
) -> Failure {
    match error {
        smbeam_client::Error::Local { error, .. } => match error.kind() {
            io::ErrorKind::Interrupted => Failure::interrupted(local),
            // It ends where it had more before.
            io::ErrorKind::UnexpectedEof => Transfer::changed_meanwhile(local),
            _ => Failure::local(local, error),
        },
        _ => remote.failure(error),
    }
}

/// Whether a file is still what it was when it was looked at.
pub(super) fn is_same_state(before: &FileInfo, after: &FileInfo) -> bool {
    before.size == after.size && before.written == after.written
}

/// So many may do something at once.
pub(super) struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

/// The right to go on; given back when it is dropped.
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
