//! Configuration of a client.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use wire::Guid;
use wire::dialect::Dialect;

/// The messages that the client signs or encrypts: only those for which the server or the protocol
/// requires it (the default), all signed, or all encrypted.
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

/// Configuration of the client's protocol core, the same for all connections (channels) of a
/// session.
#[derive(Clone, Debug)]
pub struct Config {
    /// GUID by which the server recognizes the client: one for all connections of a process.
    /// \[MS-SMB2\] 3.2.1.1
    pub client_guid: Guid,
    /// Name of the server as the user gave it, for NETNAME_NEGOTIATE_CONTEXT_ID and TREE_CONNECT.
    pub server_name: String,
    /// SMB dialects that the client offers, in ascending order. Default: 2.0.2 to 3.1.1.
    pub dialects: Vec<Dialect>,
    /// Encryption algorithms that the client offers, the preferred one first. \[MS-SMB2\] 2.2.3.1.2
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms that the client offers, the preferred one first. \[MS-SMB2\] 2.2.3.1.7
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether the client announces MULTI_CHANNEL, so that a session may use several connections.
    /// Default: true.
    pub multichannel: bool,
    /// The messages that the client signs or encrypts. Default: those for which the server or the
    /// protocol requires it.
    pub protection: Protection,
    /// Whether a login that the server maps to its guest account succeeds; otherwise it fails. A
    /// guest session has no keys, so it neither signs nor encrypts. Default: false.
    pub allow_guest: bool,
    /// Whether QUIC with a verified server certificate may replace SMB encryption, if the server
    /// agrees. With [`Protection::Encrypt`] messages are encrypted anyway. Default: false.
    /// \[MS-SMB2\] 2.2.3.1.5
    pub transport_security: bool,
    /// Whether the client offers the SMB3 POSIX extensions, in dialect 3.1.1. Default: false.
    pub posix: bool,
    /// Length in bytes from which the data of a READ or WRITE move by RDMA; 0 for all. Shorter data
    /// are part of SMB Direct messages, which cost less for few bytes. Default: 4096, as in
    /// cifs.ko. Only SMB Direct connections use it.
    pub rdma_threshold: u32,
    /// Number of credits that the client wants to hold on a connection. It requests them in its
    /// messages; the server decides how many it grants. Default: 512.
    pub credits: u16,
    /// Maximum length of a READ, WRITE or directory listing in bytes. A lower limit of the server
    /// applies instead. Default: 1 MiB.
    pub max_io: u32,
    /// Time limit of the final response to a request. Each 128 KiB of data that are in transit
    /// before and with the request add a second. `None` sets no limit. Default: 60 s.
    pub request_timeout: Option<Duration>,
    /// Time limit of NEGOTIATE and SESSION_SETUP together; the connection ends when it passes.
    /// Default: 30 s.
    pub login_timeout: Duration,
    /// Time without a received byte after which the client sends an ECHO. The connection ends after
    /// the same time without a response. Default: 60 s. \[MS-SMB2\] 3.2.6.1 leaves the value to the
    /// client.
    pub echo_interval: Duration,
}

impl Config {
    /// Makes a configuration with the default of each field: all dialects and algorithms, time
    /// limits for interactive use. `client_guid` and `server_name` become the fields of these
    /// names.
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
            posix: false,
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
