//! Settings of a queue pair, and of SMB Direct on it.

use std::time::Duration;

use proto::smbd::{Config, Role};
use rdma::Attributes;

/// Largest message of a peer in bytes. SMB Direct has no limit; this is the limit of a frame of
/// direct TCP, which the loops over frames support.
const MAX_MESSAGE: u32 = (1 << 24) - 1;
/// Limit of queued messages. Their bytes have a lower limit (`server::connection`).
const QUEUE_DEPTH: usize = 1 << 20;
/// Number of one-sided operations in flight. More operations wait in the provider.
const ONE_SIDED: u32 = 256;
/// Credits of a client before it has logged in. A login is one request and one response at a time,
/// and a long one continues as credits return. A receive for each credit is pinned memory, which
/// any client could occupy.
const CREDITS_BEFORE_LOGIN: u16 = 8;

/// Settings of an SMB Direct connection: polling, interrupts and time limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Time for which a task polls the queue pair after its last event, before it waits for an
    /// interrupt. Default: zero.
    pub busy_poll: Duration,
    /// Interrupt moderation: number of completions that the device may collect, and the longest
    /// delay before it raises an interrupt. `None` means an interrupt for each completion.
    pub moderation: Option<(u16, Duration)>,
    /// Time limit of the negotiation. `None` means the default of SMB Direct: 5 seconds for a
    /// server, 120 for a client.
    pub negotiate_timeout: Option<Duration>,
    /// Maximum time that a message waits until the peer grants a credit (a receive for it); then
    /// the connection ends. `None` means 60 seconds.
    pub credit_timeout: Option<Duration>,
    /// Time without a message from the peer after which this end sends a keep-alive message. `None`
    /// means 120 seconds. \[MS-SMBD\] 3.1.1.1, Connection.KeepaliveInterval
    pub keep_alive_interval: Option<Duration>,
    /// Time limit for the answer of the peer to a keep-alive message; then the connection ends.
    /// `None` means 5 seconds.
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
