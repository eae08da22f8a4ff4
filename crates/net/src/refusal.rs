//! Reasons of refusals that the transports log, with their codes.

/// A refusal that a transport logs. The log has its code as the field `code`, and
/// docs/troubleshooting.md explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No authority of `quic.client_ca` has issued the certificate of a client, or the certificate
    /// is not valid now.
    ClientCertificateUntrusted,
    /// The lists `quic.allow` and `quic.deny` refuse the certificate of a client.
    ClientCertificateDenied,
    /// A certificate or key of the server is not usable.
    Certificate,
    /// A peer violates QUIC.
    QuicProtocol,
    /// A peer violates SMB Direct.
    RdmaProtocol,
    /// A queue pair failed.
    RdmaFailure,
}

impl Refusal {
    /// All refusals.
    pub const ALL: [Self; 6] = [
        Self::ClientCertificateUntrusted,
        Self::ClientCertificateDenied,
        Self::Certificate,
        Self::QuicProtocol,
        Self::RdmaProtocol,
        Self::RdmaFailure,
    ];

    /// Returns the code of the refusal.
    pub const fn code(self) -> &'static str {
        match self {
            Self::ClientCertificateUntrusted => "quic-client-certificate-untrusted",
            Self::ClientCertificateDenied => "quic-client-certificate-denied",
            Self::Certificate => "config-certificate",
            Self::QuicProtocol => "connection-quic-protocol",
            Self::RdmaProtocol => "connection-rdma-protocol",
            Self::RdmaFailure => "connection-rdma-failure",
        }
    }
}
