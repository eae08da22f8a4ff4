//! Files on their way: between this machine and a server, or from server to server.
//!
//! [`tree`] finds what is to be done, many files at once; [`mod@file`] moves one of them by
//! the way that fits its sides and its size. What a command wants stands in its [`Policy`].

pub(crate) mod arguments;
mod compare;
mod download;
mod file;
mod holes;
mod jobs;
mod part;
pub(crate) mod pool;
mod queued;
mod recover;
mod remote_copy;
mod remove;
mod same_file;
mod stream;
mod tree;
mod upload;

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use smbeam_client::Wait as _;
use smbeam_client::transfer::TransferOptions;

use crate::exit::{Failure, Outcome, Report, lock};
use crate::interrupt::Interrupt;
use crate::place::{Facts, Place, Remote};
use crate::progress::Progress;

pub(crate) use arguments::TransferArguments;
pub(crate) use remove::remove_trees;
pub(crate) use tree::Item;

/// Large files that are on their way at once: each has a window of requests of its own.
const LARGE_AT_ONCE: usize = 4;

/// When a file that is there already is transferred again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Always.
    Never,
    /// When size or time of last write differ, the time by more than this.
    SizeAndTime(Duration),
    /// When the bytes differ.
    Contents,
}

/// What a command wants.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// When a file that is there already is transferred again.
    pub(crate) compare: Compare,
    /// Whether what the source lacks is removed.
    pub(crate) delete: bool,
    /// Whether nothing is done but said.
    pub(crate) dry_run: bool,
    /// Whether times and attributes go along.
    pub(crate) preserve: bool,
    /// Whether links of this machine are followed.
    pub(crate) follow: bool,
    /// Whether a transfer that broke is continued.
    pub(crate) resume: bool,
    /// Whether even a small file gets its name when it is whole only.
    pub(crate) atomic: bool,
    /// Whether files are written under their own name from the beginning.
    pub(crate) in_place: bool,
    /// Whether both sides are read again and compared.
    pub(crate) verify: bool,
    /// How long to try to connect anew after the last connection was lost.
    pub(crate) reconnect: Duration,
    /// Files at once; 0: as many as suit both sides.
    pub(crate) jobs: usize,
    /// Bytes of one request; 0: as many as suit the file and the transport.
    pub(crate) io_size: u32,
    /// Requests in flight for one large file; 0: as many as suit the transport.
    pub(crate) depth: usize,
}

impl Policy {
    /// Bytes that go in one request without further thought.
    fn request_bytes(&self) -> u64 {
        match self.io_size {
            0 => u64::from(smbeam_client::REQUEST_BYTES),
            size => u64::from(size),
        }
    }
}

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
    large: Arc<Permits>,
    /// Held by whoever connects anew: the others find what it brings. Since when nobody gets
    /// through.
    reconnecting: Arc<Mutex<Option<Instant>>>,
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
    fn resumed(&self) -> Self {
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

    fn options(&self) -> TransferOptions {
        TransferOptions {
            io_size: self.policy.io_size as usize,
            depth: self.policy.depth,
            span: part::SPAN,
        }
    }

    /// Whether a file goes in one request.
    fn is_small(&self, size: u64) -> bool {
        size <= self.policy.request_bytes()
    }

    /// Whether to stop.
    fn is_over(&self) -> bool {
        self.report.is_over() || self.interrupt.is_raised()
    }

    /// Fails once somebody wants the work to end.
    fn check(&self, subject: &Place) -> Outcome {
        if self.interrupt.is_raised() {
            return Err(Failure::interrupted(subject));
        }
        Ok(())
    }

    /// Waits for work that asks for no bytes here, unless somebody wants it to end: then there is
    /// nothing.
    fn until_over<T>(&self, moving: impl Future<Output = T>) -> Option<T> {
        let mut moving = pin!(moving);
        let work = poll_fn(|context| match self.interrupt.is_raised() {
            true => Poll::Ready(None),
            false => moving.as_mut().poll(context).map(Some),
        });
        work.wait()
    }

    /// For the callbacks of a transfer: an error that ends it.
    fn check_io(&self) -> io::Result<()> {
        if self.interrupt.is_raised() {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        Ok(())
    }
}

/// Why a transfer that was under way ended: for this machine's file, or for the server's.
fn ended(error: &smbeam_client::Error, local: &Place, remote: &Remote) -> Failure {
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
fn is_same_state(before: &Facts, after: &Facts) -> bool {
    before.size == after.size && before.written == after.written
}

/// So many may do something at once.
struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

/// The right to go on; given back when it is dropped.
struct Permit<'a>(&'a Permits);

impl Permits {
    fn new(free: usize) -> Self {
        Self {
            free: Mutex::new(free),
            freed: Condvar::new(),
        }
    }

    fn take(&self) -> Permit<'_> {
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
