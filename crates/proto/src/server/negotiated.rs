//! The result of NEGOTIATE, which every later request of the connection relies on.

use crypto::{Cipher, SigningAlgorithm};
use wire::Guid;
use wire::dialect::{Capabilities, Dialect, SecurityMode};

/// The properties of a connection that NEGOTIATE fixed. \[MS-SMB2\] 3.3.1.7
#[derive(Clone, Debug)]
pub(super) struct Negotiated {
    pub(super) dialect: Dialect,
    /// Connection.CipherId.
    pub(super) cipher: Option<Cipher>,
    /// Connection.SigningAlgorithmId.
    pub(super) signing: SigningAlgorithm,
    /// Connection.SupportsMultiCredit.
    pub(super) has_large_mtu: bool,
    /// Connection.ServerCapabilities.
    pub(super) capabilities: Capabilities,
    /// Connection.ServerSecurityMode.
    pub(super) security_mode: SecurityMode,
    pub(super) client_guid: Guid,
    pub(super) client_capabilities: Capabilities,
    pub(super) client_security_mode: SecurityMode,
    /// Whether sessions of named users are encrypted: see [`GmacChannels`](super::GmacChannels).
    pub(super) encrypts: bool,
    /// Connection.AcceptTransportSecurity: the transport replaces SMB encryption.
    pub(super) transport_security: bool,
    /// Whether the client may use the SMB3 POSIX extensions, in the shares that have them.
    pub(super) has_posix: bool,
}
