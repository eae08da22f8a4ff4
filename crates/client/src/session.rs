//! A login on a server, over one or several channels.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use crypto::{Cipher, SigningAlgorithm};
use net::Transport;
use proto::client::request::Reply;
use proto::client::{Config, Request, Role, Step};
use wire::Guid;
use wire::dialect::{Capabilities, Dialect};
use wire::fsctl::{CtlCode, InterfaceCapability, NetworkInterface, SocketAddress};

use crate::client::{Client, with_way};
use crate::error::{ConnectCause, Error};
use crate::io::call::{Memory, Pending};
use crate::io::dispatch::Dispatch;
use crate::io::message::Target;
use crate::options::{Channels, Credentials, Options};
use crate::share::Share;
use crate::transports::{Way, rdma_addresses, suggest};

/// Bytes of the list of interfaces that are asked for.
const INTERFACES_LEN: u32 = 64 << 10;

/// A login on a server. Cheap to clone; the last clone to go (with those that its shares and
/// files keep) logs off.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) host: String,
    login: Login,
    target: Target,
    /// The session that came after this one, when this was lost.
    successor: OnceLock<Session>,
}

/// What was given to connect with.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) port: Option<u16>,
    pub(crate) credentials: Credentials,
}

/// What was agreed on with the server.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// The dialect.
    pub dialect: Dialect,
    /// How messages are sealed where they are.
    pub cipher: Option<Cipher>,
    /// How messages are signed where they are.
    pub signing_algorithm: SigningAlgorithm,
    /// Whether everything is signed.
    pub is_signed: bool,
    /// Whether everything is sealed. A share may ask for it besides.
    pub is_sealed: bool,
    /// Whether the server made a guest of us.
    pub is_guest: bool,
    /// Who the server is.
    pub server_guid: Guid,
    /// What the server can do.
    pub capabilities: Capabilities,
    /// Bytes of one READ at most.
    pub max_read: u32,
    /// Bytes of one WRITE at most.
    pub max_write: u32,
    /// The connections there are now.
    pub channels: Vec<ChannelInfo>,
}

/// One connection of a session.
#[derive(Clone, Debug)]
pub struct ChannelInfo {
    /// The server's end.
    pub peer: SocketAddr,
    /// Our end.
    pub local: SocketAddr,
    /// Whether both ends are on this machine.
    pub is_local: bool,
    /// How frames move.
    pub transport: Transport,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// A network interface of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its address; `None` where it is of a family that we do not know.
    pub address: Option<IpAddr>,
    /// Bits per second.
    pub speed: u64,
    /// Whether it spreads connections over processors.
    pub is_rss_capable: bool,
    /// Whether it does RDMA.
    pub is_rdma_capable: bool,
}

impl Session {
    /// The first channel is there: opens the others.
    pub(crate) async fn start(
        client: Client,
        host: &str,
        login: Login,
        target: Target,
    ) -> Result<Self, Error> {
        let session = Self::on(client, host, login, target);
        session.open_channels().await;
        Ok(session)
    }

    /// The session of a first channel that is there.
    fn on(client: Client, host: &str, login: Login, target: Target) -> Self {
        let inner = Arc::new(Inner {
            client,
            host: host.to_owned(),
            login,
            target,
            successor: OnceLock::new(),
        });
        inner.client.inner.remember(&inner);
        Self { inner }
    }

    /// Whether requests may be sent again on another channel, so that the server must know them
    /// again.
    pub(crate) fn may_replay(&self) -> bool {
        let negotiated = &self.negotiated().negotiated;
        let multichannel = Capabilities::MULTI_CHANNEL;
        negotiated.dialect >= Dialect::SMB_3_0 && negotiated.capabilities.contains(multichannel)
    }

    /// What a CREATE of this session is known by when it is sent again; none where it never is.
    pub(crate) fn fresh_guid(&self) -> Option<Guid> {
        self.may_replay().then(|| self.inner.client.fresh_guid())
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.client.inner.options
    }

    /// Requests in flight of one operation.
    pub(crate) fn depth(&self) -> usize {
        match self.options().depth {
            0 => self.dispatch().depth(),
            depth => depth,
        }
    }

    pub(crate) fn dispatch(&self) -> &Arc<Dispatch> {
        &self.inner.target.dispatch
    }

    pub(crate) fn negotiated(&self) -> &Arc<proto::client::Session> {
        let session = self.dispatch().session();
        session.expect("there from the first channel on")
    }

    /// The server's name as it was given.
    pub fn host(&self) -> &str {
        &self.inner.host
    }

    /// Opens a share by its name: `data`, not `\\server\data`.
    pub async fn share(&self, name: &str) -> Result<Share, Error> {
        Share::connect(self, name).await
    }

    /// Whether all its connections are gone. Nothing can be done with it any more.
    pub fn is_lost(&self) -> bool {
        self.dispatch().is_lost()
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

    /// What was agreed on with the server, and the channels there are now.
    pub fn info(&self) -> SessionInfo {
        let session = self.negotiated();
        let negotiated = &session.negotiated;
        let channels = self.dispatch().channels();
        let info = |channel: &Arc<crate::io::dispatch::ChannelHandle>| ChannelInfo {
            peer: channel.peer,
            local: channel.local,
            is_local: channel.is_local(),
            transport: channel.transport,
            sent: channel.sent.load(Ordering::Relaxed),
            received: channel.received.load(Ordering::Relaxed),
        };
        SessionInfo {
            dialect: negotiated.dialect,
            cipher: negotiated.cipher,
            signing_algorithm: negotiated.signing_algorithm,
            is_signed: session.signing_required,
            is_sealed: session.encrypt,
            is_guest: session.is_guest,
            server_guid: negotiated.server_guid,
            capabilities: negotiated.capabilities,
            max_read: negotiated.max_read,
            max_write: negotiated.max_write,
            channels: channels.iter().map(info).collect(),
        }
    }

    /// Asks the server whether it is there.
    pub async fn echo(&self) -> Result<(), Error> {
        self.ask("echo", vec![Step::Echo]).await.map(drop)
    }

    /// The server's network interfaces.
    pub async fn interfaces(&self) -> Result<Vec<Interface>, Error> {
        let share = self.share("IPC$").await?;
        let step = Step::Ioctl {
            file: None,
            code: CtlCode::QUERY_NETWORK_INTERFACE_INFO,
            input: Vec::new(),
            max_output: INTERFACES_LEN.min(self.negotiated().negotiated.max_transact),
        };
        let (reply, _) = share.start(vec![step], Memory::None).await.only();
        let context = ("ask for the interfaces of", self.host());
        match reply.map_err(|cause| cause.of(context.0, context.1))? {
            Reply::Ioctl(output, _) => NetworkInterface::decode_list(&output)
                .map(|list| list.iter().map(interface).collect())
                .map_err(|error| crate::error::Cause::from(error).of(context.0, context.1)),
            _ => Err(unexpected().of(context.0, context.1)),
        }
    }

    /// Logs off and closes all connections. Files and shares that are open fail from now on.
    pub async fn close(&self) -> Result<(), Error> {
        let result = self.ask("log off from", vec![Step::Logoff]).await;
        self.dispatch().close();
        result.map(drop)
    }

    async fn ask(&self, operation: &'static str, steps: Vec<Step>) -> Result<Reply, Error> {
        let (reply, _) = self.start_steps(steps).await.only();
        reply.map_err(|cause| cause.of(operation, self.host()))
    }

    fn start_steps(&self, steps: Vec<Step>) -> Pending {
        self.dispatch()
            .start(Request::new(None, steps), Memory::None)
    }

    /// Opens further channels as the options say. That there are fewer is no failure.
    async fn open_channels(&self) {
        let options = self.options();
        let first = (self.inner.target.address, self.inner.target.transport);
        let named = options.further_channels(first);
        if named.is_empty() && !options.asks_for_interfaces() {
            return;
        }
        if !self.can_bind() {
            if !named.is_empty() {
                tracing::info!(host = self.host(), "the server has one channel a session");
            }
            return;
        }
        if options.asks_for_interfaces() && (options.moves() || !is_loopback(first.0)) {
            let interfaces = self.interfaces().await.unwrap_or_default();
            if options.moves() && self.move_to_rdma(&interfaces).await {
                return;
            }
            let suggested = match (&options.channels, first.1) {
                (Channels::Auto, transport) if !is_loopback(first.0) => {
                    let addresses = suggest(first.0, &interfaces).into_iter();
                    addresses.map(|address| (address, transport)).collect()
                }
                _ => Vec::new(),
            };
            self.bind_all(&suggested).await;
        }
        self.bind_all(&named).await;
    }

    /// Opens channels one after the other. A server that refuses one refuses all; a way that
    /// leads nowhere is not gone twice.
    async fn bind_all(&self, ways: &[Way]) {
        let mut closed = Vec::new();
        for way in ways {
            if closed.contains(way) {
                continue;
            }
            if let Err(cause) = self.bind(*way).await {
                let (address, transport) = way;
                tracing::warn!(host = self.host(), %address, %transport, error = %cause,
                    "no further channel");
                match cause {
                    ConnectCause::Io(_) => closed.push(*way),
                    ConnectCause::Violation(_) => return,
                }
            }
        }
    }

    async fn bind(&self, way: Way) -> Result<(), ConnectCause> {
        let target = with_way(&self.inner.target, way);
        let role = Role::Binding(Arc::clone(self.negotiated()));
        self.inner.client.inner.open(target, role).await
    }

    /// Opens channels by SMB Direct where both ends have it, and has them preferred: first one to
    /// each address that takes it on either port, then as many more as there should be.
    async fn move_to_rdma(&self, interfaces: &[Interface]) -> bool {
        let mut ways = Vec::new();
        for ports in rdma_addresses(interfaces) {
            for address in ports {
                let way = (address, Transport::SmbDirect);
                match self.bind(way).await {
                    Ok(()) => {
                        ways.push(way);
                        break;
                    }
                    Err(error) => {
                        tracing::debug!(host = self.host(), %address, %error, "no SMB Direct");
                    }
                }
            }
        }
        if ways.is_empty() {
            return false;
        }
        self.dispatch().prefer(Transport::SmbDirect);
        let options = &self.inner.client.inner.options;
        let count = options.rdma_channels(ways.len());
        let further = count.saturating_sub(ways.len());
        let more: Vec<Way> = ways.iter().copied().cycle().take(further).collect();
        self.bind_all(&more).await;
        true
    }

    fn can_bind(&self) -> bool {
        let negotiated = &self.negotiated().negotiated;
        negotiated.dialect.0 >= Dialect::SMB_3_0.0
            && negotiated
                .capabilities
                .contains(Capabilities::MULTI_CHANNEL)
            && !self.negotiated().is_guest
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

fn interface(interface: &NetworkInterface) -> Interface {
    let has = |capability| interface.capability.contains(capability);
    Interface {
        index: interface.if_index,
        address: match interface.address {
            SocketAddress::V4(bytes) => Some(IpAddr::from(bytes)),
            SocketAddress::V6(bytes) => Some(IpAddr::from(bytes)),
            SocketAddress::Other(_) => None,
        },
        speed: interface.link_speed,
        is_rss_capable: has(InterfaceCapability::RSS_CAPABLE),
        is_rdma_capable: has(InterfaceCapability::RDMA_CAPABLE),
    }
}

/// The core answered something else than it was asked.
pub(crate) fn unexpected() -> crate::error::Cause {
    crate::error::Cause::Malformed("an answer to something else".to_owned())
}

impl Inner {
    /// Logs off; nobody waits for the answer.
    pub(crate) fn log_off(&self) {
        self.target.dispatch.log_off();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.log_off();
        self.target.dispatch.close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.host())
    }
}
