//! The section `[limits]`: limits for connections and clients.

use std::time::Duration;

use proto::server::config::MAX_IO;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The section `[limits]` of the configuration: limits for connections and clients.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Maximum number of connections of the server. Default: 16,384.
    pub connections: usize,
    /// Maximum number of connections on which no client has logged in yet. Default: 4096.
    pub half_open: usize,
    /// Maximum number of connections from one IPv4 address, or from one /64 network of IPv6, on
    /// which no client has logged in yet. Default: 256.
    pub half_open_per_address: usize,
    /// Maximum memory in MiB of all connections on which no client has logged in yet. Default: 128.
    pub half_open_memory_mb: usize,
    /// Maximum time from the start of a connection to its first login, in milliseconds. Default: 30
    /// seconds.
    pub login_timeout_ms: u64,
    /// Maximum time from the first to the last byte of a received frame, in milliseconds. The
    /// server then closes the connection. Default: 60 seconds.
    pub frame_timeout_ms: u64,
    /// Maximum time that a response waits for an SMB Direct client to grant a credit, in
    /// milliseconds. The server then closes the connection. Default: 60 seconds.
    pub credit_timeout_ms: u64,
    /// Maximum length of a frame before the first login of a connection, in bytes. Default: 256
    /// KiB.
    pub frame_before_login: usize,
    /// Maximum length of a READ in bytes, from 64 KiB to 8 MiB. Default: 8 MiB.
    pub max_read: u32,
    /// Maximum length of a WRITE in bytes, from 64 KiB to 8 MiB. Default: 8 MiB.
    pub max_write: u32,
    /// Maximum length of the data of other requests and responses, such as a part of a listing, in
    /// bytes, from 64 KiB to 8 MiB. Default: 8 MiB.
    pub max_transact: u32,
    /// Maximum number of credits that the server grants to one connection. Default: 8192.
    pub credits: u16,
    /// Maximum number of sessions of one connection. Default: 1024.
    pub sessions_per_connection: usize,
    /// Maximum number of logins of one connection that are in progress at a time. Default: 16.
    pub logins_per_connection: usize,
    /// Maximum number of connections of one session. Default: 32.
    pub channels_per_session: usize,
    /// Maximum number of open files, directories and pipes of one session. Default: 65,536.
    pub opens_per_session: usize,
    /// Maximum number of connections from one IPv4 address, or from one /64 network of IPv6.
    /// Default: 4096.
    pub connections_per_address: usize,
    /// Maximum number of connections of one user; a connection counts once for each session.
    /// Default: 8192.
    pub connections_per_user: usize,
    /// Maximum number of open files of one user. Default: 262,144.
    pub opens_per_user: usize,
    /// Maximum number of open pipes of one user. Default: 4096.
    pub pipes_per_user: usize,
    /// Maximum number of watched directories of one user. Default: 8192.
    pub watches_per_user: usize,
    /// Maximum number of byte-range locks of one user. Default: 1,048,576.
    pub locks_per_user: usize,
    /// Maximum number of leases of one client, which a ClientGuid identifies. Default: 65,536.
    pub leases_per_client: usize,
    /// Maximum number of leases of the server. Default: 524,288.
    pub leases: usize,
    /// Maximum time that a client may take to acknowledge the break of an oplock or lease, in
    /// milliseconds. Default: 35 seconds.
    pub break_timeout_ms: u64,
    /// Maximum number of durable open files of the whole server that outlive a lost connection.
    /// Default: 16,384.
    pub disconnected_opens: usize,
    /// Maximum number of durable open files of one user that outlive a lost connection. Default:
    /// 4096.
    pub disconnected_opens_per_user: usize,
    /// Maximum time that a durable open file outlives a lost connection, in seconds. 0 grants no
    /// durable opens. Default: 300.
    pub durable_timeout_max: u64,
    /// Maximum memory of all responses outside of the buffer pool, in MiB. Default: 256.
    pub response_memory_mb: usize,
    /// Maximum memory of the process, in MiB. 0 stands for three quarters of the memory of the
    /// machine or of the control group. Default: 0.
    pub memory_max_mb: usize,
    /// Maximum time that running requests may take when the server stops, in milliseconds. Default:
    /// 10 seconds.
    pub shutdown_ms: u64,
}

impl Default for LimitsSection {
    fn default() -> Self {
        let proto = proto::server::config::Limits::default();
        Self {
            connections: 16_384,
            half_open: 4096,
            half_open_per_address: 256,
            half_open_memory_mb: 128,
            login_timeout_ms: millis(proto.login_timeout),
            frame_timeout_ms: 60_000,
            credit_timeout_ms: 60_000,
            frame_before_login: proto.frame_before_login,
            max_read: MAX_IO,
            max_write: MAX_IO,
            max_transact: MAX_IO,
            credits: proto.credits,
            sessions_per_connection: proto.sessions_per_connection,
            logins_per_connection: proto.logins_per_connection,
            channels_per_session: proto.channels_per_session,
            opens_per_session: proto.opens_per_session,
            connections_per_address: 4096,
            connections_per_user: proto.connections_per_user,
            opens_per_user: proto.opens_per_user,
            pipes_per_user: proto.pipes_per_user,
            watches_per_user: proto.watches_per_user,
            locks_per_user: proto.locks_per_user,
            leases_per_client: proto.leases_per_client,
            leases: proto.leases,
            break_timeout_ms: millis(proto.oplock_break_timeout),
            disconnected_opens: proto.disconnected_opens,
            disconnected_opens_per_user: proto.disconnected_opens_per_user,
            durable_timeout_max: proto.durable_timeout_max.as_secs(),
            response_memory_mb: proto.response_bytes >> 20,
            memory_max_mb: 0,
            shutdown_ms: 10_000,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
