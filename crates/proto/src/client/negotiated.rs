//! The result of NEGOTIATE.

use crypto::{Cipher, SigningAlgorithm};
use wire::Guid;
use wire::dialect::{Capabilities, Dialect};

use super::credits;

/// Parameters of a connection on which client and server agreed in NEGOTIATE. \[MS-SMB2\] 3.2.1.2
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// SMB dialect that the server chose.
    pub dialect: Dialect,
    /// Capabilities that the server announced, such as LEASING and MULTI_CHANNEL.
    pub capabilities: Capabilities,
    /// ServerGuid: the GUID by which the server identifies itself.
    pub server_guid: Guid,
    /// Cipher of encrypted messages; `None` if messages cannot be encrypted.
    pub cipher: Option<Cipher>,
    /// Algorithm with which client and server sign messages.
    pub signing_algorithm: SigningAlgorithm,
    /// Maximum length of a READ in bytes: the server's limit, but at most `max_io` of the client's
    /// configuration.
    pub max_read: u32,
    /// Maximum length of a WRITE in bytes: the server's limit, but at most `max_io` of the client's
    /// configuration.
    pub max_write: u32,
    /// Maximum length in bytes of the buffer of another request, such as QUERY_DIRECTORY or IOCTL
    /// (MaxTransactSize).
    pub max_transact: u32,
    /// Maximum length in bytes of a READ with a response that carries the data. A longer READ needs
    /// RDMA.
    pub max_inline_read: u32,
    /// Maximum length in bytes of a WRITE that carries the data in its frame. A longer WRITE needs
    /// RDMA.
    pub max_inline_write: u32,
    /// Whether client and server agreed that the encryption of the transport (QUIC) replaces SMB
    /// encryption.
    pub transport_security: bool,
    /// Whether client and server have the SMB3 POSIX extensions: a CREATE may have their context.
    pub posix: bool,
}

impl Negotiated {
    /// Whether a request may cost more than one credit.
    pub(super) fn has_large_mtu(&self) -> bool {
        credits::has_large_mtu(self.dialect, self.capabilities)
    }
}
