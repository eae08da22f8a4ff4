//! A session: a login on a server, over one or several channels.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use crypto::{Cipher, SigningAlgorithm};
use net::Transport;
use proto::client::request::Reply;
use proto::client::{Request, Step};
use wire::Guid;
use wire::dialect::{Capabilities, Dialect};

use crate::client::Client;
use crate::error::Error;
use crate::io::call::{Memory, Pending, Requester as _};
use crate::io::dispatch::Dispatch;
use crate::io::message::Target;
use crate::options::{Credentials, Options};

/// A login on a server, with one or several connections. A clone is cheap and refers to the same
/// login. Dropping the last clone and the last of its shares and files logs off.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) host: String,
    pub(crate) login: Login,
    pub(crate) target: Target,
    /// The session that replaced this one after it was lost.
    pub(crate) successor: OnceLock<Session>,
}

/// The arguments of [`Client::connect`].
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) port: Option<u16>,
    pub(crate) credentials: Credentials,
}

/// The negotiated parameters of a session, and its channels.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Dialect that client and server negotiated.
    pub dialect: Dialect,
    /// Cipher of encrypted messages; `None` if the session cannot encrypt.
    pub cipher: Option<Cipher>,
    /// Algorithm with which client and server sign messages, as NEGOTIATE selected it.
    pub signing_algorithm: SigningAlgorithm,
    /// Whether client and server sign all messages of the session.
    pub is_signed: bool,
    /// Whether client and server encrypt all messages of the session. A share can require
    /// encryption separately.
    pub is_encrypted: bool,
    /// Whether the server mapped the login to its guest account.
    pub is_guest: bool,
    /// GUID by which the server identifies itself in the NEGOTIATE response.
    pub server_guid: Guid,
    /// Capabilities that the server announced in the NEGOTIATE response. \[MS-SMB2\] 2.2.4
    pub capabilities: Capabilities,
    /// Whether client and server have the SMB3 POSIX extensions, so that an open can use them
    /// ([`OpenOptions::posix`](crate::OpenOptions::posix)).
    pub posix: bool,
    /// Whether the client requests leases for the files that it opens: the options want that, and
    /// the server supports it. The server decides for each open.
    pub leases: bool,
    /// Whether the client requests that its opens are durable. The server decides for each open.
    pub durable: bool,
    /// Count of losses of all connections after which the client connected again, and the session
    /// continued.
    pub resumptions: u64,
    /// Largest length of a READ in bytes that server and client accept.
    pub max_read: u32,
    /// Largest length of a WRITE in bytes that server and client accept.
    pub max_write: u32,
    /// The channels (connections) that are open now.
    pub channels: Vec<ChannelInfo>,
}

/// State of one channel of a session: a transport connection that the session uses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChannelInfo {
    /// Address and port of the server.
    pub peer: SocketAddr,
    /// Address and port of this machine.
    pub local: SocketAddr,
    /// Whether client and server are on this machine.
    pub is_local: bool,
    /// Transport of the channel: TCP, NetBIOS, QUIC or SMB Direct.
    pub transport: Transport,
    /// Count of bytes that the client sent on the channel.
    pub sent: u64,
    /// Count of bytes that the client received on the channel.
    pub received: u64,
    /// Count of credits that the server has granted on the channel: those that are free, and those
    /// that pending requests hold.
    pub credits: u32,
}

impl Session {
    /// The session of an open first channel.
    pub(crate) fn on(client: Client, host: &str, login: Login, target: Target) -> Self {
        let inner = Arc::new(Inner {
            client,
            host: host.to_owned(),
            login,
            target,
            successor: OnceLock::new(),
        });
        inner.client.inner.remember(&inner.target.dispatch);
        Self { inner }
    }

    /// Whether another channel may send a request again, so that the server must recognize it.
    pub(crate) fn may_replay(&self) -> bool {
        let negotiated = &self.negotiated().negotiated;
        let multichannel = Capabilities::MULTI_CHANNEL;
        negotiated.dialect >= Dialect::SMB_3_0 && negotiated.capabilities.contains(multichannel)
    }

    /// The CreateGuid by which the server recognizes a CREATE that is sent again, and a durable
    /// open; `None` if the session needs neither.
    pub(crate) fn fresh_guid(&self, is_durable: bool) -> Option<Guid> {
        let has_guids = self.negotiated().negotiated.dialect >= Dialect::SMB_3_0;
        let is_used = self.may_replay() || is_durable && has_guids;
        is_used.then(|| self.inner.client.fresh_guid())
    }

    /// Whether opens request leases: the options want that, and the server supports it.
    /// \[MS-SMB2\] 3.2.4.3.8
    pub(crate) fn has_leases(&self) -> bool {
        let negotiated = &self.negotiated().negotiated;
        let is_offered = negotiated.capabilities.contains(Capabilities::LEASING);
        self.options().leases && is_offered && negotiated.dialect >= Dialect::SMB_2_1
    }

    /// Whether opens request durable opens.
    pub(crate) fn has_durable_opens(&self) -> bool {
        self.has_leases() && self.options().durable
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.client.inner.options
    }

    /// Requests in flight for one operation.
    pub(crate) fn depth(&self) -> usize {
        match self.options().depth {
            0 => self.dispatch().depth(),
            depth => depth,
        }
    }

    pub(crate) fn dispatch(&self) -> &Arc<Dispatch> {
        &self.inner.target.dispatch
    }

    /// Whether no other value refers to the session: it logs off when this one is dropped.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }

    pub(crate) fn negotiated(&self) -> &Arc<proto::client::Session> {
        let session = self.dispatch().session();
        session.expect("the first channel has set it")
    }

    /// Returns the name of the server as the caller of [`Client::connect`] gave it.
    pub fn host(&self) -> &str {
        &self.inner.host
    }

    /// Returns whether the last connection of the session was lost, and the client does not try to
    /// connect again, or has given up. Every request of the session fails then.
    pub fn is_lost(&self) -> bool {
        self.dispatch().is_lost()
    }

    /// Returns the negotiated parameters, and the channels that are open now.
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
            credits: channel.credits.load(Ordering::Relaxed),
        };
        SessionInfo {
            dialect: negotiated.dialect,
            cipher: negotiated.cipher,
            signing_algorithm: negotiated.signing_algorithm,
            is_signed: session.signing_required,
            is_encrypted: session.encrypt,
            is_guest: session.is_guest,
            server_guid: negotiated.server_guid,
            capabilities: negotiated.capabilities,
            posix: negotiated.posix,
            leases: self.has_leases(),
            durable: self.has_durable_opens(),
            resumptions: self.dispatch().generation(),
            max_read: negotiated.max_read,
            max_write: negotiated.max_write,
            channels: channels.iter().map(info).collect(),
        }
    }

    /// Sends an ECHO, which tests the connection, and waits for the response.
    ///
    /// # Errors
    /// The connection is lost, or the server does not respond in time.
    pub async fn echo(&self) -> Result<(), Error> {
        self.ask("echo", vec![Step::Echo]).await.map(drop)
    }

    /// Logs off and closes all connections. Requests of the shares and files of the session fail
    /// from then on.
    ///
    /// # Errors
    /// The server refuses the logoff, or the connection is lost. The session is closed anyway.
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
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.target.dispatch.log_off();
        self.target.dispatch.close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.host())
    }
}
