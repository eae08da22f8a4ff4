//! Connecting: the first channel of a session, and a new session in place of a lost one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use net::Endpoint;
use proto::client::{Config, Role};

use crate::client::Client;
use crate::error::{ConnectCause, Error, ErrorKind};
use crate::io::connect;
use crate::io::dispatch::Dispatch;
use crate::io::message::Target;
use crate::io::pauses::Pauses;
use crate::io::quic::Tls;
use crate::options::Credentials;
use crate::session::{Inner, Login, Session};
use crate::share::Share;

impl Client {
    /// Connects to a server and logs in. `host` is a name or an IP address. `port` replaces the
    /// port of the first transport of [`Options::transports`](crate::Options::transports); `None`
    /// keeps that port. The client tries every transport in turn, at every address of the host,
    /// until one connects.
    ///
    /// # Errors
    /// The host is not found, no transport connects, or the server refuses the login.
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
        tracing::debug!(host, port, login = ?credentials, "connecting");
        let addresses = connect::resolve(host, endpoints[0].port).await?;
        tracing::debug!(host, ?addresses, "resolved");
        let tls = Tls::new(self.inner.options.tls.clone(), host);
        let mut tried = Vec::new();
        for endpoint in endpoints {
            let attempt = Attempt {
                config: Arc::new(self.inner.config(
                    host,
                    endpoint.transport,
                    &addresses,
                    credentials,
                )),
                credentials: credentials.for_login(),
                tls: Arc::clone(&tls),
            };
            let login = Login {
                port,
                credentials: credentials.clone(),
            };
            match self
                .connect_by(host, endpoint, &addresses, attempt, login)
                .await
            {
                Ok(session) => return Ok(session),
                Err(error @ (Error::Connect(..) | Error::NotSmb(..))) => {
                    tracing::debug!(host, %endpoint, %error, "the transport does not connect");
                    tried.push((endpoint, error));
                }
                Err(error) => {
                    tracing::debug!(host, %endpoint, %error, "no session");
                    return Err(error);
                }
            }
        }
        Err(Error::of_transports(host, tried))
    }

    /// Connects as [`connect`](Self::connect) does, and tries again for up to `limit` while the
    /// server is not reachable: it may be restarting.
    ///
    /// # Errors
    /// As those of [`connect`](Self::connect), of the last attempt.
    pub async fn connect_within(
        &self,
        limit: Duration,
        host: &str,
        port: Option<u16>,
        credentials: &Credentials,
    ) -> Result<Session, Error> {
        let mut pauses = Pauses::within(limit);
        loop {
            let error = match self.connect(host, port, credentials).await {
                Ok(session) => return Ok(session),
                Err(error) => error,
            };
            let can_pass = matches!(
                error.kind(),
                ErrorKind::Unreachable | ErrorKind::TimedOut | ErrorKind::ConnectionLost
            );
            let pause = match pauses.next() {
                Some(pause) if can_pass && self.inner.threads.is_here() => pause,
                _ => return Err(error),
            };
            tracing::debug!(host, %error, "no connection yet");
            self.inner.pause(pause).await;
        }
    }

    /// Tries one transport at every address.
    async fn connect_by(
        &self,
        host: &str,
        endpoint: Endpoint,
        addresses: &[SocketAddr],
        attempt: Attempt,
        login: Login,
    ) -> Result<Session, Error> {
        let mut last = None;
        for mut address in addresses.iter().copied() {
            address.set_port(endpoint.port);
            let target = Target {
                address,
                transport: endpoint.transport,
                tcp: self.inner.options.tcp.clone(),
                quic: self.inner.options.quic.clone(),
                connect_timeout: self.inner.options.connect_timeout,
                reconnect_timeout: self.inner.options.reconnect_timeout,
                config: Arc::clone(&attempt.config),
                credentials: Arc::clone(&attempt.credentials),
                dispatch: Dispatch::new(),
                tls: Arc::clone(&attempt.tls),
                rdma: Arc::clone(&self.inner.rdma),
            };
            match self.inner.open(target.clone(), Role::First).await {
                Ok(()) => return Session::start(self.clone(), host, login, target).await,
                Err(cause @ ConnectCause::Violation(_)) => return Err(cause.of(host, address)),
                Err(cause) => last = Some(cause.of(host, address)),
            }
        }
        Err(last.expect("a host has at least one address"))
    }
}

/// One transport that is tried: the parts of its target that all addresses share.
struct Attempt {
    config: Arc<Config>,
    credentials: Arc<dyn auth::InitiatorProvider>,
    tls: Arc<Tls>,
}

impl Session {
    /// Makes the session of an open first channel, and opens the other channels.
    async fn start(
        client: Client,
        host: &str,
        login: Login,
        target: Target,
    ) -> Result<Self, Error> {
        let session = Self::on(client, host, login, target);
        session.open_channels().await;
        Ok(session)
    }

    /// Returns this session if it still has a connection; otherwise logs in again in the same way
    /// and returns the new session. All callers get the same new session. Files of the lost session
    /// stay closed: the server dropped their locks and share modes with that session.
    ///
    /// While the client tries to connect again by itself (see
    /// [`Options::reconnect_timeout`](crate::Options::reconnect_timeout)), this function waits for
    /// the end of that.
    ///
    /// # Errors
    /// The server is not reachable, or it refuses the login. A later call of this function tries
    /// again.
    pub async fn reconnected(&self) -> Result<Session, Error> {
        let mut last = self.clone();
        while let Some(next) = last.inner.successor.get() {
            last = next.clone();
        }
        last.settled().await;
        if !last.is_lost() {
            return Ok(last);
        }
        let Login { port, credentials } = &self.inner.login;
        let client = &self.inner.client;
        tracing::info!(host = self.host(), "the session is lost, connecting again");
        let fresh = client.connect(self.host(), *port, credentials).await?;
        // Another caller may have been faster.
        Ok(last.inner.successor.get_or_init(|| fresh).clone())
    }

    /// Waits while the client resumes the session.
    async fn settled(&self) {
        if self.dispatch().is_resuming() {
            // The request waits for the resumption. Its result does not matter.
            let _ = self.echo().await;
        }
    }

    /// A second session with the same login, on one separate connection and as another client.
    pub(crate) async fn of_another_client(&self) -> Result<Session, Error> {
        let Inner {
            client,
            host,
            login,
            target,
            successor: _,
        } = &*self.inner;
        let config = Config {
            client_guid: client.fresh_guid(),
            ..(*target.config).clone()
        };
        let target = Target {
            config: Arc::new(config),
            // The first session does the work when this one is lost.
            reconnect_timeout: Duration::ZERO,
            dispatch: Dispatch::new(),
            ..target.clone()
        };
        let opened = client.inner.open(target.clone(), Role::First).await;
        opened.map_err(|cause| cause.of(host, target.address))?;
        Ok(Self::on(client.clone(), host, login.clone(), target))
    }
}

impl Share {
    /// Returns this share if its session still has a connection; otherwise the share of the same
    /// name on a [new session](Session::reconnected). All callers get the same share.
    ///
    /// # Errors
    /// The server is not reachable, or it refuses the login or the share. A later call tries again.
    pub async fn reconnected(&self) -> Result<Share, Error> {
        let mut last = self.clone();
        while let Some(next) = last.inner.successor.get() {
            last = next.clone();
        }
        last.session().settled().await;
        if !last.session().is_lost() && last.inner.tree.id().is_ok() {
            return Ok(last);
        }
        let session = last.session().reconnected().await?;
        let fresh = session.share(self.name()).await?;
        let opens_one = last.inner.opens_one.load(Ordering::Relaxed);
        fresh.inner.opens_one.store(opens_one, Ordering::Relaxed);
        // Another caller may have been faster.
        Ok(last.inner.successor.get_or_init(|| fresh).clone())
    }
}
