//! How a session begins, and begins anew where it is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use net::Endpoint;
use proto::client::{Config, Role};

use crate::client::Client;
use crate::error::{ConnectCause, Error};
use crate::io::connect;
use crate::io::dispatch::Dispatch;
use crate::io::message::Target;
use crate::io::quic::Tls;
use crate::options::Credentials;
use crate::session::{Inner, Login, Session};
use crate::share::Share;

impl Client {
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
            let attempt = Attempt {
                config: Arc::new(self.inner.config(host, endpoint.transport, credentials)),
                credentials: Arc::new(credentials.for_login()),
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
        attempt: Attempt,
        login: Login,
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
    credentials: Arc<auth::Credentials>,
    tls: Arc<Tls>,
}

impl Session {
    /// The first channel is there: opens the others.
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

    /// A session in the place of this one where it is lost: the same login, by the transports that
    /// the client's options name, on connections of its own. All who ask get the same one. Files
    /// that were open are not: what they held on the server (locks, share modes) went with the
    /// session that was lost.
    ///
    /// # Errors
    /// As of [`Client::connect`]; it may be asked for again.
    pub async fn reconnected(&self) -> Result<Session, Error> {
        let mut last = self.clone();
        while let Some(next) = last.inner.successor.get() {
            last = next.clone();
        }
        if !last.is_lost() {
            return Ok(last);
        }
        let Login { port, credentials } = &self.inner.login;
        let client = &self.inner.client;
        let fresh = client.connect(self.host(), *port, credentials).await?;
        // Whoever else asks meanwhile may have been faster.
        Ok(last.inner.successor.get_or_init(|| fresh).clone())
    }

    /// The same login once more, on one connection of its own and as another client.
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
            dispatch: Dispatch::new(),
            ..target.clone()
        };
        let opened = client.inner.open(target.clone(), Role::First).await;
        opened.map_err(|cause| cause.of(host, target.address))?;
        Ok(Self::on(client.clone(), host, login.clone(), target))
    }
}

impl Share {
    /// The same share where its session is lost, on the session [in its
    /// place](Session::reconnected). All who ask get the same one.
    ///
    /// # Errors
    /// The server is not reached, or refuses; it may be asked for again.
    pub async fn reconnected(&self) -> Result<Share, Error> {
        let mut last = self.clone();
        while let Some(next) = last.inner.successor.get() {
            last = next.clone();
        }
        if !last.session().is_lost() {
            return Ok(last);
        }
        let session = last.session().reconnected().await?;
        let fresh = session.share(self.name()).await?;
        let opens_one = last.inner.opens_one.load(Ordering::Relaxed);
        fresh.inner.opens_one.store(opens_one, Ordering::Relaxed);
        // Whoever else asks meanwhile may have been faster.
        Ok(last.inner.successor.get_or_init(|| fresh).clone())
    }
}
