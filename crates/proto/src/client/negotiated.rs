//! The result of NEGOTIATE.

use crypto::{Cipher, SigningAlgorithm};
use wire::Guid;
use wire::dialect::{Capabilities, Dialect};

use super::credits;

/// Result of NEGOTIATE. \[MS-SMB2\] 3.2.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Dialect.
    pub dialect: Dialect,
    /// Capabilities of the server.
    pub capabilities: Capabilities,
    /// GUID of the server.
    pub server_guid: Guid,
    /// Cipher; `None` if messages cannot be encrypted.
    pub cipher: Option<Cipher>,
    /// Signing algorithm.
    pub signing_algorithm: SigningAlgorithm,
    /// Largest READ in bytes; at most the max_io of the configuration.
    pub max_read: u32,
    /// Largest WRITE in bytes; at most the max_io of the configuration.
    pub max_write: u32,
    /// Largest buffer of another request in bytes.
    pub max_transact: u32,
    /// Largest READ in bytes whose data are in its response.
    pub max_inline_read: u32,
    /// Largest WRITE in bytes whose data are in its request.
    pub max_inline_write: u32,
    /// Whether both ends agreed that the transport replaces encryption.
    pub transport_security: bool,
}

impl Negotiated {
    /// Whether a request may cost more than one credit.
    pub(super) fn has_large_mtu(&self) -> bool {
        credits::has_large_mtu(self.dialect, self.capabilities)
    }
}
