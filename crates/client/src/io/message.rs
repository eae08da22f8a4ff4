//! The messages that other threads send to an I/O thread.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::quic::Settings as QuicSettings;
use net::{TcpOptions, Transport};
use proto::client::{Config, Role};
use ring::{SendError, Sender};

use crate::error::ConnectCause;
use crate::io::dispatch::{ChannelKey, ChannelMailbox, ChannelMessage, Dispatch};
use crate::io::quic::Tls;
use crate::io::slot::Filler;
use crate::io::smbdirect::Rdma;

/// A message to an I/O thread.
pub(crate) enum Message {
    /// Open a channel.
    Open(Box<Open>),
    /// For a channel of the thread.
    Channel(ChannelKey, ChannelMessage),
    /// The process is about to end: report when no request is pending, and end the channels that
    /// the kernel would not end.
    Settle(Filler<()>),
    /// Report after this time.
    Pause(Duration, Filler<()>),
    /// End all channels, and the thread.
    Stop,
}

/// The parameters of a new channel.
pub(crate) struct Open {
    pub(crate) target: Target,
    pub(crate) role: Role,
    /// Time to wait before. Not zero for a channel in place of a lost one, which is tried until it
    /// carries the session or the session has no use for it any more.
    pub(crate) after: Duration,
    /// Filled when the channel carries the session, or with the reason of the failure.
    pub(crate) ready: Filler<Result<(), ConnectCause>>,
}

/// The server, the login and the options of a channel.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) tcp: TcpOptions,
    pub(crate) quic: QuicSettings,
    pub(crate) connect_timeout: Duration,
    /// Time for which the client tries to log in again after the loss of all channels. Zero: it
    /// does not.
    pub(crate) reconnect_timeout: Duration,
    pub(crate) config: Arc<Config>,
    pub(crate) credentials: Arc<dyn auth::InitiatorProvider>,
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) tls: Arc<Tls>,
    pub(crate) rdma: Arc<Rdma>,
}

/// The mailbox of a channel: that of its thread, with the number of the channel.
pub(crate) struct ThreadMailbox {
    pub(crate) key: ChannelKey,
    pub(crate) sender: Sender<Message>,
}

impl ChannelMailbox for ThreadMailbox {
    fn send(&self, message: ChannelMessage) -> Result<(), ChannelMessage> {
        match self.sender.send(Message::Channel(self.key, message)) {
            Ok(()) => Ok(()),
            Err(SendError::Closed(message) | SendError::Full(message)) => match message {
                Message::Channel(_, message) => Err(message),
                _ => unreachable!("a mailbox gives back the message that it refuses"),
            },
        }
    }
}
