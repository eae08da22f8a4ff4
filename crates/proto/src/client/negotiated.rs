//! The result of NEGOTIATE.

use crypto::{Cipher, SigningAlgorithm};
use wire::Guid;
use wire::dialect::{Capabilities, Dialect};

use super::credits;

/// What NEGOTIATE brought. \[MS-SMB2\] 3.2.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The dialect.
    pub dialect: Dialect,
    /// The server's.
    pub capabilities: Capabilities,
    /// Who the server is.
    pub server_guid: Guid,
    /// None where nothing can be sealed.
    pub cipher: Option<Cipher>,
    /// How messages are signed.
    pub signing_algorithm: SigningAlgorithm,
    /// Bytes of one READ at most, not above the configuration's max_io.
    pub max_read: u32,
    /// The same of a WRITE.
    pub max_write: u32,
    /// The same of everything else.
    pub max_transact: u32,
    /// Bytes of one READ whose data come in its answer, at most.
    pub max_inline_read: u32,
    /// The same of a WRITE whose data are in its request.
    pub max_inline_write: u32,
    /// Whether the transport does what a seal does, by what both sides said.
    pub transport_security: bool,
}

impl Negotiated {
    /// Whether requests may cost more than one credit.
    pub(super) fn has_large_mtu(&self) -> bool {
        credits::has_large_mtu(self.dialect, self.capabilities)
    }
}
