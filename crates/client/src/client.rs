//! The threads of a client, and how a session begins.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use net::Transport;
use proto::client::{Config, Role};
use wire::Guid;

use crate::error::{ConnectCause, Error};
use crate::fork::Bound;
use crate::io::dispatch::Dispatch;
use crate::io::message::{Message, Open, Target};
use crate::io::slot::{GivenUp, Pickup, lock, slot};
use crate::io::smbdirect::Rdma;
use crate::io::thread::IoThread;
use crate::options::{Credentials, Options};

/// Bytes of one READ or WRITE where frames have 17 bits of length. RFC 1002 4.3.1
const SMALL_FRAME_IO: u32 = 64 << 10;

/// A client: the threads that all its sessions share. Cheap to clone.
///
/// When the last clone and the last of its sessions, shares and files are gone, the connections
/// are closed in good order and the threads end.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) rdma: Arc<Rdma>,
    guid: Guid,
    pub(crate) threads: Bound<Vec<IoThread>>,
    next: AtomicUsize,
    /// GUIDs so far.
    guids: AtomicU64,
    /// Those that are still held by somebody.
    sessions: Mutex<Vec<Weak<Dispatch>>>,
}

impl Client {
    /// Starts the I/O threads.
    ///
    /// # Errors
    /// When there are no threads or rings to be had.
    pub fn new(options: Options) -> Result<Self, Error> {
        let failed = |error| Error::local("start", "the client", error);
        let threads: Result<Vec<_>, _> = (0..options.threads())
            .map(|_| IoThread::start(options.io))
            .collect();
        let entropy = auth::fresh_entropy();
        let guid = *entropy.first_chunk().expect("there are 32 bytes");
        let inner = Inner {
            rdma: Rdma::new(options.rdma.clone(), options.rdma_busy_poll),
            options,
            guid: Guid(guid),
            threads: Bound::new(threads.map_err(failed)?),
            next: AtomicUsize::new(0),
            guids: AtomicU64::new(0),
            sessions: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Logs off from all servers at once and waits for their answers, some seconds at most. Nothing
    /// can be done with the sessions any more. \[MS-SMB2\] 3.2.4.23
    ///
    /// For a program that is about to end, and does not drop what it holds: its connections of TCP
    /// stay as they are and are closed by the kernel when it has ended, others are closed. What a
    /// server does when a client is gone it does then, and not beside the program's last steps.
    pub async fn log_off(&self) {
        if !self.inner.threads.is_here() {
            return;
        }
        let sessions = std::mem::take(&mut *lock(&self.inner.sessions));
        let sessions: Vec<_> = sessions.iter().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(Dispatch::log_off);
        let told = self.inner.threads.iter().map(|thread| {
            let (filler, pickup) = slot();
            // Where the thread is gone, so is the other end of the slot.
            let _ = thread.sender.send(Message::Settle(filler));
            pickup
        });
        for settled in told.collect::<Vec<_>>() {
            let _ = settled.await;
        }
    }

    /// A GUID that nobody else has: half of it is as random as the client's own.
    pub(crate) fn fresh_guid(&self) -> Guid {
        let mut bytes = self.inner.guid.0;
        let count = self.inner.guids.fetch_add(1, Ordering::Relaxed);
        bytes[8..].copy_from_slice(&count.to_le_bytes());
        Guid(bytes)
    }
}

impl Inner {
    /// Opens a channel; done when it carries the session.
    pub(crate) async fn open(&self, target: Target, role: Role) -> Result<(), ConnectCause> {
        let (ready, opened) = slot();
        let mut opening = Opening {
            dispatch: Arc::clone(&target.dispatch),
            is_first: matches!(role, Role::First),
            opened,
        };
        let open = Open {
            target,
            role,
            ready,
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let thread = &self.threads[turn % self.threads.len()];
        // Where the thread is gone, so is the other end of the slot.
        let _ = thread.sender.send(Message::Open(Box::new(open)));
        let gone = || std::io::Error::other("the client was closed");
        let opened = (&mut opening.opened).await;
        opened.unwrap_or_else(|_| Err(ConnectCause::Io(Arc::new(gone()))))
    }

    /// Keeps in mind who is to log off.
    pub(crate) fn remember(&self, session: &Arc<Dispatch>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    pub(crate) fn config(&self, host: &str, first: Transport, credentials: &Credentials) -> Config {
        let options = &self.options;
        let max_io = if first.has_large_frames() {
            options.most_bytes()
        } else {
            options.most_bytes().min(SMALL_FRAME_IO)
        };
        Config {
            dialects: options.dialects.clone(),
            ciphers: options.ciphers.clone(),
            signing_algorithms: options.signing_algorithms.clone(),
            protection: options.protection,
            transport_security: options.transport_security,
            rdma_threshold: options.rdma_threshold,
            allow_guest: options.allow_guest || credentials.is_anonymous(),
            credits: options.credits,
            max_io,
            request_timeout: options.request_timeout,
            login_timeout: options.login_timeout,
            echo_interval: options.echo_interval,
            ..Config::new(self.guid, host.trim_matches(['[', ']']))
        }
    }
}

/// A channel that somebody waits for.
struct Opening {
    dispatch: Arc<Dispatch>,
    /// Whether it makes the session, rather than join it.
    is_first: bool,
    opened: Pickup<Result<(), ConnectCause>>,
}

impl Drop for Opening {
    /// The first channel of a session that nobody will hold is closed. One that comes later finds
    /// that out by itself.
    fn drop(&mut self) {
        if self.dispatch.is_here()
            && let GivenUp::Late(Ok(())) = self.opened.give_up()
            && self.is_first
        {
            self.dispatch.close();
        }
    }
}
