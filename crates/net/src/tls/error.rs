//! Errors of certificates, keys and peers.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::AlertDescription;

use super::Fingerprint;

/// Reason why TLS cannot be set up, or why a handshake fails. Its `Display` form is a message for
/// users.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A certificate or key file cannot be read: path and error.
    Read(PathBuf, Arc<io::Error>),
    /// A certificate or key file cannot be written: path and error.
    Write(PathBuf, Arc<io::Error>),
    /// A file is larger than any file of certificates and keys.
    TooLarge(PathBuf),
    /// A file is not valid PEM: path and reason.
    NotPem(PathBuf, String),
    /// A file has no certificate.
    NoCertificate(PathBuf),
    /// A file has no unencrypted private key.
    NoKey(PathBuf),
    /// A certificate in a file is invalid: path, number of the certificate in the file from 1, and
    /// reason.
    BadCertificate(PathBuf, usize, String),
    /// The key in a file cannot be used: path and reason.
    BadKey(PathBuf, String),
    /// The private key does not belong to the certificate.
    KeyMismatch {
        /// Path of the file with the certificate.
        certificate: PathBuf,
        /// Path of the file with the key.
        key: PathBuf,
    },
    /// The server requests client certificates, and has no certificate authorities for them.
    NoClientAuthority,
    /// A self-signed certificate cannot be made: the reason.
    NotMade(String),
    /// The system has no certificate authorities: the reason.
    NoSystemRoots(String),
    /// The text is not a valid host name.
    BadServerName(String),
    /// The server is given by its address, and certificates for addresses are not allowed.
    AddressAsName(IpAddr),
    /// The certificate of the server is not issued by a trusted authority.
    UnknownAuthority {
        /// Name or address of the server as the client gave it.
        server: String,
        /// Issuer in the certificate of the server, as a distinguished name.
        issuer: String,
        /// SHA-256 of the certificate of the server.
        fingerprint: Fingerprint,
    },
    /// The certificate of the server is for other names than the one that the client gave.
    WrongName {
        /// Name or address of the server as the client gave it.
        server: String,
        /// The names that the certificate has.
        found: Vec<String>,
    },
    /// The certificate of the server, or one of its chain, has expired.
    Expired {
        /// Name or address of the server as the client gave it.
        server: String,
        /// End of the validity of the certificate, as a date.
        not_after: String,
    },
    /// The certificate of the server, or one of its chain, is not valid yet.
    NotYetValid {
        /// Name or address of the server as the client gave it.
        server: String,
        /// Start of the validity of the certificate, as a date.
        not_before: String,
    },
    /// The certificate of the server does not match a pinned fingerprint.
    WrongFingerprint {
        /// Name or address of the server as the client gave it.
        server: String,
        /// SHA-256 of the certificate of the server.
        found: Fingerprint,
    },
    /// The certificate of the server is not trusted for another reason.
    Untrusted {
        /// Name or address of the server as the client gave it.
        server: String,
        /// The reason, as text for a user.
        why: String,
    },
    /// The peer ended the handshake with this TLS alert, for example because it refuses the
    /// certificate.
    RefusedByPeer(AlertDescription),
    /// The TLS library does not accept a setting: the reason.
    Settings(String),
}

impl Error {
    /// Makes the error for a TLS alert with which the peer ended the handshake. The alert code is
    /// the lowest byte of a CRYPTO_ERROR of QUIC. RFC 9001 4.8
    pub fn from_alert(alert: u8) -> Self {
        Self::RefusedByPeer(alert.into())
    }

    /// Returns the TLS error that an I/O error of this crate contains; `None` if the I/O error has
    /// another cause.
    pub fn within(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    pub(super) fn read(path: &std::path::Path, error: io::Error) -> Self {
        Self::Read(path.to_owned(), Arc::new(error))
    }

    pub(super) fn write(path: &std::path::Path, error: io::Error) -> Self {
        Self::Write(path.to_owned(), Arc::new(error))
    }

    /// Returns true if this end does not trust the certificate of the peer: for example a wrong
    /// name, an unknown authority or an expired certificate. False for all other errors.
    pub fn is_distrust(&self) -> bool {
        matches!(
            self,
            Self::UnknownAuthority { .. }
                | Self::WrongName { .. }
                | Self::Expired { .. }
                | Self::NotYetValid { .. }
                | Self::WrongFingerprint { .. }
                | Self::Untrusted { .. }
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Write(path, error) => write!(f, "{}: cannot write: {error}", path.display()),
            Self::TooLarge(path) => write!(f, "{}: too large for PEM", path.display()),
            Self::NotPem(path, why) => write!(f, "{}: not PEM: {why}", path.display()),
            Self::NoCertificate(path) => write!(f, "{}: no certificate in it", path.display()),
            Self::NoKey(path) => write!(
                f,
                "{}: no private key in it (PKCS#8, SEC1 or PKCS#1, not encrypted)",
                path.display()
            ),
            Self::BadCertificate(path, number, why) => {
                write!(f, "{}: certificate {number}: {why}", path.display())
            }
            Self::BadKey(path, why) => write!(f, "{}: private key: {why}", path.display()),
            Self::KeyMismatch { certificate, key } => write!(
                f,
                "{}: the key is not that of the certificate in {}",
                key.display(),
                certificate.display()
            ),
            Self::NoClientAuthority => f.write_str(
                "client certificates are requested, but no certificate authority is configured",
            ),
            Self::NotMade(why) => write!(f, "cannot make a certificate: {why}"),
            Self::NoSystemRoots(why) => {
                write!(f, "this system has no certificate authorities{why}")
            }
            Self::Settings(why) => f.write_str(why),
            _ => self.fmt_peer(f),
        }
    }
}

impl Error {
    /// The message of an error about the peer.
    fn fmt_peer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadServerName(name) => write!(f, "`{name}` is not a host name"),
            Self::AddressAsName(address) => write!(
                f,
                "{address} is an address, and certificates are for names: use the server's name, \
                 or allow addresses, or pin its certificate"
            ),
            Self::UnknownAuthority {
                server,
                issuer,
                fingerprint,
            } => write!(
                f,
                "no trusted authority has issued the certificate of {server}, issued by {issuer}, \
                 SHA-256 {fingerprint}"
            ),
            Self::WrongName { server, found } if found.is_empty() => {
                write!(f, "the certificate of {server} has no host name")
            }
            Self::WrongName { server, found } => write!(
                f,
                "the certificate is not that of {server}, but of {}",
                found.join(", ")
            ),
            Self::Expired { server, not_after } => {
                write!(f, "the certificate of {server} expired on {not_after}")
            }
            Self::NotYetValid { server, not_before } => write!(
                f,
                "the certificate of {server} is not valid before {not_before}"
            ),
            Self::WrongFingerprint { server, found } => write!(
                f,
                "the certificate of {server} is not the one that is pinned: its SHA-256 is {found}"
            ),
            Self::Untrusted { server, why } => {
                write!(f, "the certificate of {server} is not trusted: {why}")
            }
            Self::RefusedByPeer(alert) => f.write_str(&alert_text(*alert)),
            _ => f.write_str("TLS failed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(_, error) | Self::Write(_, error) => Some(error.as_ref()),
            _ => None,
        }
    }
}

/// For drivers: their connections end with an [`io::Error`]. [`Error::within`] returns the TLS
/// error.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Read(_, inner) | Error::Write(_, inner) => inner.kind(),
            Error::RefusedByPeer(_) => io::ErrorKind::ConnectionRefused,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The meaning of an alert from a peer. RFC 8446 6.2
fn alert_text(alert: AlertDescription) -> String {
    let (words, name) = match alert {
        AlertDescription::CertificateRequired => {
            ("it requires a client certificate", "certificate_required")
        }
        AlertDescription::AccessDenied => ("it denies access to this certificate", "access_denied"),
        AlertDescription::UnknownCA => (
            "it does not know the issuer of this certificate",
            "unknown_ca",
        ),
        AlertDescription::BadCertificate => {
            ("it considers this certificate invalid", "bad_certificate")
        }
        AlertDescription::UnsupportedCertificate => (
            "it says that this certificate is not for this purpose",
            "unsupported_certificate",
        ),
        AlertDescription::CertificateRevoked => (
            "it says that this certificate is revoked",
            "certificate_revoked",
        ),
        AlertDescription::CertificateExpired => (
            "it says that this certificate is expired or not valid yet",
            "certificate_expired",
        ),
        AlertDescription::CertificateUnknown => {
            ("it does not accept this certificate", "certificate_unknown")
        }
        AlertDescription::NoApplicationProtocol => (
            "it does not offer SMB on this port",
            "no_application_protocol",
        ),
        AlertDescription::UnrecognisedName => ("it does not have this name", "unrecognized_name"),
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            ("it supports no common cryptography", "handshake_failure")
        }
        AlertDescription::ProtocolVersion => ("it does not support TLS 1.3", "protocol_version"),
        other => {
            return format!(
                "the peer refuses the connection (TLS alert {})",
                u8::from(other)
            );
        }
    };
    format!("the peer refuses the connection: {words} (TLS alert {name})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tls_error_survives_inside_an_io_error() {
        let error = Error::from_alert(116);
        let text = error.to_string();
        assert!(text.ends_with("(TLS alert certificate_required)"), "{text}");
        let error = io::Error::from(error);
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let found = Error::within(&error).expect("it is within");
        assert_eq!(found.to_string(), text);
        assert!(Error::within(&io::ErrorKind::TimedOut.into()).is_none());
    }

    #[test]
    fn alerts_without_a_name_have_a_number() {
        let text = Error::from_alert(200).to_string();
        assert!(text.ends_with("(TLS alert 200)"), "{text}");
    }
}
