//! The client: its I/O threads and its open sessions.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use net::Transport;
use proto::client::{Config, Role};
use wire::Guid;

use crate::error::{ConnectCause, Error};
use crate::fork::Bound;
use crate::further_channels::Further;
use crate::io::dispatch::Dispatch;
use crate::io::message::{Message, Open, Target};
use crate::io::slot::{GivenUp, Pickup, lock, slot};
use crate::io::smbdirect::Rdma;
use crate::io::thread::IoThread;
use crate::options::{Credentials, Options};

/// Largest READ or WRITE in bytes where a frame has a length of 17 bits. RFC 1002 4.3.1
const SMALL_FRAME_IO: u32 = 64 << 10;

/// A client for any number of servers: its I/O threads and options, which all its sessions share. A
/// clone is cheap and refers to the same client.
///
/// Dropping the last clone and the last of its sessions, shares and files logs off, closes the
/// connections and ends the threads.
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
    /// Count of GUIDs that were generated.
    guids: AtomicU64,
    /// The sessions; those that were dropped do not upgrade.
    sessions: Mutex<Vec<Weak<Dispatch>>>,
}

impl Client {
    /// Makes a client with these options and starts its I/O threads. Does not connect to a server.
    ///
    /// # Errors
    /// [`Error::Local`]: the system refuses a thread, an `io_uring` instance or an epoll instance.
    pub fn new(options: Options) -> Result<Self, Error> {
        let failed = |error| Error::local("start", "the client", error);
        let threads: Result<Vec<_>, _> = (0..options.thread_count())
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

    /// Logs off all sessions of this client and waits until the servers have responded, but only
    /// for a few seconds. Later requests of these sessions fail. \[MS-SMB2\] 3.2.4.23
    ///
    /// A program calls this before it exits while it still holds sessions, shares or files. The
    /// client closes all connections except those over TCP, which the kernel closes when the
    /// process ends.
    pub async fn log_off(&self) {
        if !self.inner.threads.is_here() {
            return;
        }
        let sessions = std::mem::take(&mut *lock(&self.inner.sessions));
        let sessions: Vec<_> = sessions.iter().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(Dispatch::log_off);
        let settled = self.inner.threads.iter().map(|thread| {
            let (filler, pickup) = slot();
            // If the thread has ended, it has dropped its end of the slot.
            let _ = thread.sender.send(Message::Settle(filler));
            pickup
        });
        for done in settled.collect::<Vec<_>>() {
            let _ = done.await;
        }
    }

    /// Generates a unique GUID: half of it is as random as the client's own.
    pub(crate) fn fresh_guid(&self) -> Guid {
        let mut bytes = self.inner.guid.0;
        let count = self.inner.guids.fetch_add(1, Ordering::Relaxed);
        bytes[8..].copy_from_slice(&count.to_le_bytes());
        Guid(bytes)
    }
}

impl Inner {
    /// Opens a channel, and returns when the channel carries the session.
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
            after: Duration::ZERO,
            ready,
        };
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let thread = &self.threads[turn % self.threads.len()];
        // If the thread has ended, it has dropped its end of the slot.
        let _ = thread.sender.send(Message::Open(Box::new(open)));
        let gone = || std::io::Error::other("the client was closed");
        let opened = (&mut opening.opened).await;
        opened.unwrap_or_else(|_| Err(ConnectCause::Io(Arc::new(gone()))))
    }

    /// Waits for a time.
    pub(crate) async fn pause(&self, time: Duration) {
        let (filler, pickup) = slot();
        // If the thread has ended, it has dropped its end of the slot.
        let _ = self.threads[0].sender.send(Message::Pause(time, filler));
        let _ = pickup.await;
    }

    /// Remembers a session for [`Client::log_off`].
    pub(crate) fn remember(&self, session: &Arc<Dispatch>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    /// The configuration of a session with a server at these addresses.
    pub(crate) fn config(
        &self,
        host: &str,
        first: Transport,
        addresses: &[SocketAddr],
        credentials: &Credentials,
    ) -> Config {
        let options = &self.options;
        let further = options.expected_channels(addresses, || self.rdma.may_reach(addresses));
        let max_io = if first.has_large_frames() {
            options.most_bytes()
        } else {
            options.most_bytes().min(SMALL_FRAME_IO)
        };
        Config {
            dialects: options.dialects.clone(),
            ciphers: options.ciphers.clone(),
            signing_algorithms: further.signing_algorithms(&options.signing_algorithms),
            multichannel: further != Further::None,
            protection: options.protection,
            transport_security: options.transport_security,
            posix: options.posix,
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

/// A caller that waits for a channel.
struct Opening {
    dispatch: Arc<Dispatch>,
    /// Whether the channel is the first one of its session.
    is_first: bool,
    opened: Pickup<Result<(), ConnectCause>>,
}

impl Drop for Opening {
    /// Closes the first channel of a session whose caller does not wait any more. A further channel
    /// finds that out itself.
    fn drop(&mut self) {
        if self.dispatch.is_here()
            && let GivenUp::Late(Ok(())) = self.opened.give_up()
            && self.is_first
        {
            self.dispatch.close();
        }
    }
}
