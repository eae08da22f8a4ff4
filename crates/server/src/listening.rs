//! Addresses that a running server listens on.

use std::net::SocketAddr;

use net::Transport;

/// An address that a running server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The bound address. Port 0 of the configuration is replaced by the port that the kernel
    /// chose.
    pub address: SocketAddr,
    /// Transport of the connections to this address.
    pub transport: Transport,
}
