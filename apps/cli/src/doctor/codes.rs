//! The reason codes of `smbeam doctor` in addition to those of the server.

use smbeam_server::reasons;

reasons! {
    /// A fault between this machine and a file on a server.
    pub(super) enum Found {
        /// The name of the server has no address.
        NameUnknown = "name-unknown",
        /// No program listens on the port.
        PortClosed = "port-closed",
        /// The port does not answer.
        PortSilent = "port-silent",
        /// No route leads to the address.
        Unreachable = "host-unreachable",
        /// The program on the port does not speak SMB.
        NotSmb = "server-not-smb",
        /// The server speaks only SMB 1.
        OnlySmb1 = "server-smb1-only",
        /// The server and this client have no common dialect or protection.
        NegotiationRefused = "server-negotiation-refused",
        /// The newest dialect of the server is older than 3.0.
        OldDialect = "server-old-dialect",
        /// The clocks differ.
        ClockSkew = "clock-skew",
        /// This client does not trust the certificate of the server.
        CertificateUntrusted = "certificate-untrusted",
        /// The server does not prove its identity, or protects messages too little.
        ProtectionMissing = "server-untrusted",
        /// The server refuses the login, and does not say why.
        LoginRefused = "login-refused",
        /// The password must be changed.
        PasswordExpired = "login-password-expired",
        /// The login cannot be sent: no name or password is given.
        LoginIncomplete = "login-incomplete",
        /// The server made the user a guest.
        LoginGuest = "login-as-guest",
        /// The server refuses the share.
        ShareRefused = "share-refused",
        /// The server refuses the file.
        PathRefused = "path-refused",
        /// Another client has the file open.
        PathInUse = "path-in-use",
        /// The server reports another error.
        ServerError = "server-error",
        /// The connection was lost, or the server did not answer in time.
        ConnectionLost = "connection-lost",
    }
}

/// Returns all reason codes of the program.
#[cfg(test)]
pub(crate) fn codes() -> Vec<&'static str> {
    use smbeam_server::Reason as _;
    let mut codes = smbeam_server::codes();
    codes.extend(Found::CODES);
    codes
}
