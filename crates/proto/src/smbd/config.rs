//! Configuration of a connection, and the negotiated sizes.

use core::time::Duration;

use wire::smbd::{MIN_FRAGMENTED_SIZE, MIN_RECEIVE_SIZE};

/// Role of this end in an SMB Direct connection: the client connects and sends the first message,
/// the server accepts the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The end that connects. It sends the first message.
    Client,
    /// The end that accepts the connection.
    Server,
}

/// Time limit of a client for the response to its request. The same as in Linux.
const CLIENT_NEGOTIATE_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit of a server for the client's request. The same as in Linux.
const SERVER_NEGOTIATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Silence after which this side sends a keep-alive. \[MS-SMBD\] 7, note 1
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(120);
/// Time limit for the answer to a keep-alive. The same as in Windows and Linux.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a message that waits for a credit. The protocol does not define it. A Windows
/// client waits as long for the answer to a request. Linux waits while the peer answers
/// keep-alives.
const CREDIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Configuration of one end of an SMB Direct connection (SMB over RDMA). \[MS-SMBD\] 3.1.1.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Role of this end: client or server.
    pub role: Role,
    /// Number of credits that this end requests from the peer; each allows one SEND
    /// (Connection.SendCreditTarget). At least 1. Default: 255.
    pub send_credit_target: u16,
    /// Maximum number of credits that the peer may hold; each allows one SEND of the peer
    /// (Connection.ReceiveCreditMax). At least 1. Default: 255.
    pub receive_credit_max: u16,
    /// Maximum number of credits that the peer may hold before the I/O driver calls
    /// [`trust`](super::Connection::trust), usually after a login. At least 1. Default: 255.
    pub receive_credits_at_first: u16,
    /// Maximum length in bytes of an RDMA SEND of this end, including its header. At least 128.
    /// Default: 8192.
    pub max_send_size: u32,
    /// Length in bytes of each receive buffer, which limits the SENDs of the peer. At least 128.
    /// Default: 8192.
    pub max_receive_size: u32,
    /// Maximum length in bytes of an SMB2 message of the peer, which may have several SENDs
    /// (Connection.MaxFragmentedRecvSize). At least 131,072. Default: 1 MiB.
    pub max_fragmented_size: u32,
    /// Maximum length of an RDMA READ or WRITE in bytes that this end announces. Default: 8 MiB.
    pub max_read_write_size: u32,
    /// Maximum number of SENDs that are posted and not completed. At least 1. Default: 255.
    pub send_depth: u16,
    /// Maximum number of SMB2 messages that are queued or partly sent. At least 1. Default: 8192.
    pub queue_depth: usize,
    /// Time limit of the negotiation; the connection ends when it passes. Default: 120 s for a
    /// client, 5 s for a server.
    pub negotiate_timeout: Duration,
    /// Time without a message of the peer after which this end sends a keep-alive message. Default:
    /// 120 s.
    pub keep_alive_interval: Duration,
    /// Time limit for the answer to a keep-alive message; the connection ends when it passes.
    /// Default: 5 s.
    pub keep_alive_timeout: Duration,
    /// Maximum time that a message may wait until the peer grants a credit (Send Credit Grant
    /// Timer); the connection ends when it passes. Default: 60 s.
    pub credit_timeout: Duration,
}

impl Config {
    /// Makes the default configuration of an end with this role. Credits and sizes of received
    /// messages are those of Windows.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            send_credit_target: 255,
            receive_credit_max: 255,
            receive_credits_at_first: 255,
            max_send_size: 8192,
            max_receive_size: 8192,
            max_fragmented_size: 1 << 20,
            max_read_write_size: 8 << 20,
            send_depth: 255,
            queue_depth: 8192,
            negotiate_timeout: match role {
                Role::Client => CLIENT_NEGOTIATE_TIMEOUT,
                Role::Server => SERVER_NEGOTIATE_TIMEOUT,
            },
            keep_alive_interval: KEEP_ALIVE_INTERVAL,
            keep_alive_timeout: KEEP_ALIVE_TIMEOUT,
            credit_timeout: CREDIT_TIMEOUT,
        }
    }

    /// Returns the maximum number of posted receive buffers: one more than the maximum number of
    /// the peer's credits, because the peer needs one for the message that returns the last credit.
    pub fn receives(&self) -> u32 {
        u32::from(self.receive_credit_max) + 1
    }

    /// Returns the maximum number of posted receive buffers before the I/O driver calls
    /// [`trust`](super::Connection::trust), usually after a login.
    pub fn receives_at_first(&self) -> u32 {
        u32::from(self.credits_at_first()) + 1
    }

    pub(super) fn credits_at_first(&self) -> u16 {
        self.receive_credits_at_first.min(self.receive_credit_max)
    }

    /// Checks the values.
    ///
    /// # Panics
    /// When the protocol does not allow a value.
    pub(super) fn check(&self) {
        assert!(self.send_credit_target > 0, "a credit is asked for");
        assert!(self.receive_credit_max > 0, "a credit can be granted");
        assert!(
            self.receive_credits_at_first > 0,
            "a credit can be granted before a login"
        );
        assert!(
            self.max_send_size >= MIN_RECEIVE_SIZE,
            "sends are too short"
        );
        assert!(
            self.max_receive_size >= MIN_RECEIVE_SIZE,
            "receives are too short"
        );
        assert!(
            self.max_fragmented_size >= MIN_FRAGMENTED_SIZE,
            "messages are too short"
        );
        assert!(self.send_depth > 0, "a send can be posted");
        assert!(self.queue_depth > 0, "a message can be queued");
    }
}

/// The maximum lengths on which both ends of an SMB Direct connection agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Negotiated {
    /// Maximum length in bytes of an RDMA SEND of this end, including its header.
    pub max_send_size: u32,
    /// Maximum length in bytes of an RDMA SEND of the peer, including its header.
    pub max_receive_size: u32,
    /// Maximum length in bytes of an SMB2 message of this end, which may have several SENDs.
    pub max_fragmented_send_size: u32,
    /// Maximum length in bytes of an SMB2 message of the peer, which may have several SENDs.
    pub max_fragmented_receive_size: u32,
    /// Maximum length in bytes of one RDMA READ or WRITE that the server performs.
    pub max_read_write_size: u32,
}
