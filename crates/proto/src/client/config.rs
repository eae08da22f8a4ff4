//! What a client offers and asks for.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use wire::Guid;
use wire::dialect::Dialect;

/// How far messages are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Sign where the server asks for it; seal where the server or the share asks for it. What
    /// must be signed by the protocol (binding, tree connects of 3.1.1) is signed.
    #[default]
    AsAsked,
    /// Sign everything; an unsigned answer ends the connection.
    Sign,
    /// Seal everything; a server that cannot ends the login.
    Seal,
}

/// What a client offers and asks for. The same for all channels of a session.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who we are: one for all connections of a process. \[MS-SMB2\] 3.2.1.1
    pub client_guid: Guid,
    /// The server's name as the user gave it, for NETNAME_NEGOTIATE_CONTEXT_ID and tree connects.
    pub server_name: String,
    /// What is offered, in ascending order.
    pub dialects: Vec<Dialect>,
    /// What is offered, the best first. \[MS-SMB2\] 2.2.3.1.2
    pub ciphers: Vec<Cipher>,
    /// What is offered, the best first. \[MS-SMB2\] 2.2.3.1.7
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// How far messages are protected.
    pub protection: Protection,
    /// Whether an account without a password, which never has keys, is good enough where the
    /// server makes a guest of us.
    pub allow_guest: bool,
    /// Whether the transport may do what a seal does, where it is as good: QUIC whose server has
    /// proven who it is. Everything is sealed all the same where the protection is
    /// [`Protection::Seal`]. \[MS-SMB2\] 2.2.3.1.5
    pub transport_security: bool,
    /// Bytes of a READ or WRITE from which on its data go by RDMA, where that can be. Below it is
    /// cheaper to put them into messages. cifs.ko has the same.
    pub rdma_threshold: u32,
    /// Credits that are asked for until so many are held.
    pub credits: u16,
    /// Bytes of one READ, WRITE or listing at most, whatever the server allows.
    pub max_io: u32,
    /// How long an answer may take, interim answers not counted, and not the time that the bytes
    /// take which are on their way before it and with it; `None` waits for ever.
    pub request_timeout: Option<Duration>,
    /// How long NEGOTIATE and SESSION_SETUP may take in all.
    pub login_timeout: Duration,
    /// An ECHO is sent where nothing came for so long; a second one without an answer ends the
    /// connection. \[MS-SMB2\] 3.2.6.1 leaves it to us.
    pub echo_interval: Duration,
}

impl Config {
    /// Everything that we can, with the time-outs of one who waits at a terminal.
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
            protection: Protection::AsAsked,
            allow_guest: false,
            transport_security: false,
            rdma_threshold: 4096,
            // 32 MiB on their way: enough for 10 Gbit/s over 25 ms. Samba and Windows grant no
            // more by default.
            credits: 512,
            max_io: 1024 * 1024,
            request_timeout: Some(Duration::from_secs(60)),
            login_timeout: Duration::from_secs(30),
            echo_interval: Duration::from_secs(60),
        }
    }
}
