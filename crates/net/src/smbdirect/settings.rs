//! What is asked for of a queue pair, and of SMB Direct on it.

use std::time::Duration;

use proto::smbd::{Config, Role};
use rdma::Attributes;

/// Bytes of the longest message of a peer. SMB Direct puts no limit on it; what a frame of direct
/// TCP can hold is what the loops over frames know.
const MAX_MESSAGE: u32 = (1 << 24) - 1;
/// Messages that may wait. What waits is bounded by its bytes before (`server::connection`).
const QUEUE_DEPTH: usize = 1 << 20;
/// Operations beside SENDs that may be under way before they wait in the provider.
const ONE_SIDED: u32 = 256;
/// SENDs that a client may do at once before it has logged in. A login is a question and an answer
/// at a time, and a long one goes on as credits come back. A receive for each is locked memory, for
/// whoever connects.
const CREDITS_BEFORE_LOGIN: u16 = 8;

/// How SMB Direct is spoken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// How long the queue pair is asked again and again, after it had something, before the
    /// processor waits to be told.
    pub busy_poll: Duration,
    /// Completions that may be gathered before the processor is told, and for how long.
    pub moderation: Option<(u16, Duration)>,
    /// How long the negotiation may take, where that is not for SMB Direct to say.
    pub negotiate_timeout: Option<Duration>,
    /// How long something may wait for the peer to grant a credit, where that is not for SMB
    /// Direct to say.
    pub credit_timeout: Option<Duration>,
    /// How long the peer may be silent before it is asked whether it lives, where that is not for
    /// SMB Direct to say. \[MS-SMBD\] 3.1.1.1, Connection.KeepaliveInterval
    pub keep_alive_interval: Option<Duration>,
    /// How long it then has for an answer.
    pub keep_alive_timeout: Option<Duration>,
}

impl Settings {
    pub(crate) fn core(&self, role: Role) -> Config {
        let config = Config::new(role);
        let or = Option::unwrap_or;
        Config {
            max_fragmented_size: MAX_MESSAGE,
            queue_depth: QUEUE_DEPTH,
            receive_credits_at_first: match role {
                Role::Server => CREDITS_BEFORE_LOGIN,
                Role::Client => config.receive_credits_at_first,
            },
            negotiate_timeout: or(self.negotiate_timeout, config.negotiate_timeout),
            credit_timeout: or(self.credit_timeout, config.credit_timeout),
            keep_alive_interval: or(self.keep_alive_interval, config.keep_alive_interval),
            keep_alive_timeout: or(self.keep_alive_timeout, config.keep_alive_timeout),
            ..config
        }
    }

    pub(crate) fn attributes(&self, core: &Config) -> Attributes {
        Attributes {
            receives: core.receives(),
            sends: u32::from(core.send_depth) + ONE_SIDED,
            moderation: self.moderation,
            ..Attributes::default()
        }
    }
}
