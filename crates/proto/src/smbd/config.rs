//! What a connection wants, and what it gets.

use core::time::Duration;

use wire::smbd::{MIN_FRAGMENTED_SIZE, MIN_RECEIVE_SIZE};

/// Who speaks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Who connected.
    Client,
    /// Who was connected to.
    Server,
}

/// How long a client waits for the answer to its first word. Linux takes as long.
const CLIENT_NEGOTIATE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a server waits for a client's first word. Linux takes as long.
const SERVER_NEGOTIATE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection is silent before the peer is asked whether it lives. \[MS-SMBD\] 7, note 1
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(120);
/// How long it has for an answer. Windows and Linux wait as long.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a message waits for a credit. The protocol leaves it open; a client of Windows waits
/// as long for the answer to a request. Linux waits as long as the peer answers keep-alives.
const CREDIT_TIMEOUT: Duration = Duration::from_secs(60);

/// What a connection wants. \[MS-SMBD\] 3.1.1.1
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Who speaks first.
    pub role: Role,
    /// SENDs that we would like to be allowed: Connection.SendCreditTarget. At least 1.
    pub send_credit_target: u16,
    /// SENDs that we allow at most: Connection.ReceiveCreditMax. At least 1.
    pub receive_credit_max: u16,
    /// Of these, those that a peer can have before it is [trusted](super::Connection::trust).
    pub receive_credits_at_first: u16,
    /// Bytes of our longest SEND, its header included. At least 128.
    pub max_send_size: u32,
    /// Bytes of a receive: of the peer's longest SEND. At least 128.
    pub max_receive_size: u32,
    /// Bytes of the peer's longest message: Connection.MaxFragmentedRecvSize. At least 131,072.
    pub max_fragmented_size: u32,
    /// Bytes of the longest RDMA READ or WRITE.
    pub max_read_write_size: u32,
    /// SENDs that are posted and not completed, at most. At least 1.
    pub send_depth: u16,
    /// Messages that wait or are being sent, at most. At least 1.
    pub queue_depth: usize,
    /// How long the negotiation may take.
    pub negotiate_timeout: Duration,
    /// How long the peer may be silent before it is asked whether it lives.
    pub keep_alive_interval: Duration,
    /// How long it has for an answer.
    pub keep_alive_timeout: Duration,
    /// How long a message may wait for a credit: the Send Credit Grant Timer.
    pub credit_timeout: Duration,
}

impl Config {
    /// What is right for most. Credits and sizes of received messages are those of Windows; one
    /// SEND takes as much as it receives there.
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

    /// Receives that are ever posted at once: one more than credits are granted, for the rule of
    /// the last credit.
    pub fn receives(&self) -> u32 {
        u32::from(self.receive_credit_max) + 1
    }

    /// Receives that are posted at once before the peer is trusted, at most.
    pub fn receives_at_first(&self) -> u32 {
        u32::from(self.credits_at_first()) + 1
    }

    pub(super) fn credits_at_first(&self) -> u16 {
        self.receive_credits_at_first.min(self.receive_credit_max)
    }

    /// # Panics
    /// When the protocol does not allow what is wanted.
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

/// What a connection got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Negotiated {
    /// Bytes of our longest SEND.
    pub max_send_size: u32,
    /// Bytes of the peer's longest SEND.
    pub max_receive_size: u32,
    /// Bytes of our longest message.
    pub max_fragmented_send_size: u32,
    /// Bytes of the peer's longest message.
    pub max_fragmented_receive_size: u32,
    /// Bytes of the longest RDMA READ or WRITE that the server does in one piece.
    pub max_read_write_size: u32,
}
