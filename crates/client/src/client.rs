//! The threads of a client, and how a session begins.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use net::{Endpoint, Transport};
use proto::client::{Config, Role};
use wire::Guid;

use crate::error::{ConnectCause, Error};
use crate::fork::Bound;
use crate::io::connect;
use crate::io::dispatch::Dispatch;
use crate::io::message::{Message, Open, Target};
use crate::io::quic::Tls;
use crate::io::slot::{GivenUp, Pickup, lock, slot};
use crate::io::smbdirect::Rdma;
use crate::io::thread::IoThread;
use crate::options::{Credentials, Options};
use crate::session::{self, Session};
use crate::transports::Way;

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
    rdma: Arc<Rdma>,
    guid: Guid,
    threads: Bound<Vec<IoThread>>,
    next: AtomicUsize,
    /// GUIDs so far.
    guids: AtomicU64,
    /// Those that are still held by somebody.
    sessions: Mutex<Vec<Weak<session::Inner>>>,
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
        sessions.iter().for_each(|session| session.log_off());
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

    /// Connects to a server and logs in. `port` is that of the first transport; without it, it is
    /// the one that [`Options::transports`] names. Every transport is tried in turn, at every
    /// address of the host, until one answers.
    ///
    /// # Errors
    /// When the host is not found, nobody answers, or the login is refused.
    pub async fn connect(
        &self,
        host: &str,
        port: Option<u16>,
        credentials: &Credentials,
    ) -> Result<Session, Error> {
        if let Err(cause) = self.inner.threads.check() {
            return Err(cause.of("connect to", host));
        }
        let endpoints = self.inner.options.first_channel(port);
        let addresses = connect::resolve(host, endpoints[0].port).await?;
        let tls = Tls::new(self.inner.options.tls.clone(), host);
        let mut tried = Vec::new();
        for endpoint in endpoints {
            let login = Login {
                config: Arc::new(self.inner.config(host, endpoint.transport, credentials)),
                credentials: Arc::new(credentials.for_login()),
                tls: Arc::clone(&tls),
            };
            let given = session::Login {
                port,
                credentials: credentials.clone(),
            };
            match self
                .connect_by(host, endpoint, &addresses, login, given)
                .await
            {
                Ok(session) => return Ok(session),
                Err(error @ Error::Connect(..)) => {
                    tracing::debug!(host, %endpoint, %error, "the transport leads nowhere");
                    tried.push((endpoint, error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::of_transports(host, tried))
    }

    /// Tries one transport at every address.
    async fn connect_by(
        &self,
        host: &str,
        endpoint: Endpoint,
        addresses: &[SocketAddr],
        login: Login,
        given: session::Login,
    ) -> Result<Session, Error> {
        let mut last = None;
        for address in addresses {
            let address = SocketAddr::new(address.ip(), endpoint.port);
            let target = Target {
                address,
                transport: endpoint.transport,
                tcp: self.inner.options.tcp.clone(),
                quic: self.inner.options.quic.clone(),
                connect_timeout: self.inner.options.connect_timeout,
                config: Arc::clone(&login.config),
                credentials: Arc::clone(&login.credentials),
                dispatch: Dispatch::new(),
                tls: Arc::clone(&login.tls),
                rdma: Arc::clone(&self.inner.rdma),
            };
            match self.inner.open(target.clone(), Role::First).await {
                Ok(()) => return Session::start(self.clone(), host, given, target).await,
                Err(cause @ ConnectCause::Violation(_)) => return Err(cause.of(host, address)),
                Err(cause) => last = Some(cause.of(host, address)),
            }
        }
        Err(last.expect("a host has at least one address"))
    }
}

/// What a session's first channel brings.
struct Login {
    config: Arc<Config>,
    credentials: Arc<auth::Credentials>,
    tls: Arc<Tls>,
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
    pub(crate) fn remember(&self, session: &Arc<session::Inner>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    fn config(&self, host: &str, first: Transport, credentials: &Credentials) -> Config {
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

/// The same session, by another way.
pub(crate) fn with_way(target: &Target, (address, transport): Way) -> Target {
    Target {
        address,
        transport,
        ..target.clone()
    }
}
