//! Configuration of a client.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use wire::Guid;
use wire::dialect::Dialect;

/// Requirements of the client for signing and encryption of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// The client signs if the server requires it, and encrypts if the server or the share requires
    /// it. It always signs the messages that the protocol requires to be signed: binding, and
    /// TREE_CONNECT of 3.1.1.
    #[default]
    AsAsked,
    /// The client signs all messages; an unsigned response ends the connection.
    Sign,
    /// The client encrypts all messages; the login fails if the server does not support encryption.
    Encrypt,
}

/// Configuration of the client's core, the same for all channels of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// GUID by which the server recognizes the client: one for all connections of a process.
    /// \[MS-SMB2\] 3.2.1.1
    pub client_guid: Guid,
    /// Name of the server as the user gave it, for NETNAME_NEGOTIATE_CONTEXT_ID and TREE_CONNECT.
    pub server_name: String,
    /// Dialects that the client offers, in ascending order.
    pub dialects: Vec<Dialect>,
    /// Ciphers that the client offers, the preferred one first. \[MS-SMB2\] 2.2.3.1.2
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms that the client offers, the preferred one first. \[MS-SMB2\] 2.2.3.1.7
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether the client announces MULTI_CHANNEL, so that a session may use several connections.
    pub multichannel: bool,
    /// Requirements for signing and encryption of messages.
    pub protection: Protection,
    /// Whether a login that the server maps to its guest account succeeds. A guest has no keys.
    pub allow_guest: bool,
    /// Whether QUIC with a verified server certificate may replace SMB encryption, if the server
    /// agrees. With [`Protection::Encrypt`] messages are encrypted anyway. \[MS-SMB2\] 2.2.3.1.5
    pub transport_security: bool,
    /// Shortest READ or WRITE in bytes whose data move by RDMA; 0 for all. Shorter data are part of
    /// SMB Direct messages, which costs less. Default: 4096, as in cifs.ko. Other transports ignore
    /// this value.
    pub rdma_threshold: u32,
    /// Number of credits that the client aims for, by the requests for credits in its messages.
    pub credits: u16,
    /// Maximum length of a READ, WRITE or listing in bytes. A lower limit of the server applies
    /// instead.
    pub max_io: u32,
    /// Time limit of the final response to a request. Bytes in flight before and with the request
    /// extend it. `None` for no limit.
    pub request_timeout: Option<Duration>,
    /// Time limit of NEGOTIATE and SESSION_SETUP together. The connection ends after it.
    pub login_timeout: Duration,
    /// Idle time after which the client sends an ECHO. The connection ends after the same time
    /// without a response. \[MS-SMB2\] 3.2.6.1 leaves the value to the client.
    pub echo_interval: Duration,
}

impl Config {
    /// Makes a configuration with all dialects and algorithms, and with time limits for interactive
    /// use. `client_guid` and `server_name` become the fields of these names.
    pub fn new(client_guid: Guid, server_name: &str) -> Self {
        Self {
            client_guid,
            server_name: server_name.into(),
            dialects: Vec::from([
                Dialect::SMB_2_0_2,
                Dialect::SMB_2_1,
                Dialect::SMB_3_0,
                Dialect::SMB_3_0_2,
                Dialect::SMB_3_1_1,
            ]),
            ciphers: CIPHER_PREFERENCE.to_vec(),
            signing_algorithms: SIGNING_PREFERENCE.to_vec(),
            multichannel: true,
            protection: Protection::AsAsked,
            allow_guest: false,
            transport_security: false,
            rdma_threshold: 4096,
            // 32 MiB in flight: enough for 10 Gbit/s over 25 ms. Samba and Windows grant no more by
            // default.
            credits: 512,
            max_io: 1024 * 1024,
            request_timeout: Some(Duration::from_secs(60)),
            login_timeout: Duration::from_secs(30),
            echo_interval: Duration::from_secs(60),
        }
    }
}
