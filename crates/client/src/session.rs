//! A login on a server, over one or several channels.

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
use crate::io::call::{Memory, Pending};
use crate::io::dispatch::Dispatch;
use crate::io::message::Target;
use crate::options::{Credentials, Options};

/// A login on a server. Cheap to clone; the last clone to go (with those that its shares and
/// files keep) logs off.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) host: String,
    pub(crate) login: Login,
    pub(crate) target: Target,
    /// The session that came after this one, when this was lost.
    pub(crate) successor: OnceLock<Session>,
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

impl Session {
    /// The session of a first channel that is there.
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

    /// Whether all its connections are gone. Nothing can be done with it any more.
    pub fn is_lost(&self) -> bool {
        self.dispatch().is_lost()
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
