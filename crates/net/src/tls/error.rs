//! What is wrong with a certificate, a key or a peer, and where.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::AlertDescription;

use super::Fingerprint;

/// Why there is no TLS. Displayed it is a sentence for a user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    Read(PathBuf, Arc<io::Error>),
    /// A file cannot be written.
    Write(PathBuf, Arc<io::Error>),
    /// A file is larger than certificates and keys are.
    TooLarge(PathBuf),
    /// A file is not PEM, and what is wrong with it.
    NotPem(PathBuf, String),
    /// A file has no certificate.
    NoCertificate(PathBuf),
    /// A file has no private key that is not encrypted.
    NoKey(PathBuf),
    /// A certificate of a file makes no sense: its number from 1, and why.
    BadCertificate(PathBuf, usize, String),
    /// A key cannot be used, and why.
    BadKey(PathBuf, String),
    /// The key is another certificate's.
    KeyMismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// Clients shall show certificates, and no authority is known that may issue them.
    NoClientAuthority,
    /// A certificate cannot be made, and why.
    NotMade(String),
    /// The system has no authorities that it trusts, and why.
    NoSystemRoots(String),
    /// A text that no certificate can name.
    BadServerName(String),
    /// A server is named by its address, and nobody said that this is good enough.
    AddressAsName(IpAddr),
    /// Nobody trusted vouches for the server.
    UnknownAuthority {
        /// The server.
        server: String,
        /// Who issued its certificate.
        issuer: String,
        /// Its certificate.
        fingerprint: Fingerprint,
    },
    /// The certificate is of somebody else.
    WrongName {
        /// The server.
        server: String,
        /// The names that the certificate has.
        found: Vec<String>,
    },
    /// The certificate, or one that vouches for it, is not valid any more.
    Expired {
        /// The server.
        server: String,
        /// Until when it was.
        not_after: String,
    },
    /// The certificate, or one that vouches for it, is not valid yet.
    NotYetValid {
        /// The server.
        server: String,
        /// From when on it is.
        not_before: String,
    },
    /// The certificate is not the one that was pinned.
    WrongFingerprint {
        /// The server.
        server: String,
        /// What it has.
        found: Fingerprint,
    },
    /// The certificate is no good for another reason.
    Untrusted {
        /// The server.
        server: String,
        /// Why.
        why: String,
    },
    /// The peer ended the handshake with this alert.
    RefusedByPeer(AlertDescription),
    /// What is asked of TLS cannot be, and why.
    Settings(String),
}

impl Error {
    /// What a peer says by the alert with which it ended a handshake. The code of an alert is the
    /// lowest byte of a CRYPTO_ERROR of QUIC. RFC 9001 4.8
    pub fn from_alert(alert: u8) -> Self {
        Self::RefusedByPeer(alert.into())
    }

    /// What is wrong with certificates, where that is what ended a connection.
    pub fn within(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    pub(super) fn read(path: &std::path::Path, error: io::Error) -> Self {
        Self::Read(path.to_owned(), Arc::new(error))
    }

    pub(super) fn write(path: &std::path::Path, error: io::Error) -> Self {
        Self::Write(path.to_owned(), Arc::new(error))
    }

    /// Whether the peer's identity is what is wrong, and not something of this side.
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
            Self::NoClientAuthority => {
                f.write_str("certificates of clients are asked for, and no authority is given")
            }
            Self::NotMade(why) => write!(f, "cannot make a certificate: {why}"),
            Self::NoSystemRoots(why) => {
                write!(f, "this system knows no certificate authorities{why}")
            }
            Self::Settings(why) => f.write_str(why),
            _ => self.fmt_peer(f),
        }
    }
}

impl Error {
    /// What is wrong with the peer.
    fn fmt_peer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadServerName(name) => write!(f, "`{name}` is no name of a host"),
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
                "nobody trusted vouches for the certificate of {server}, issued by {issuer}, \
                 SHA-256 {fingerprint}"
            ),
            Self::WrongName { server, found } if found.is_empty() => {
                write!(f, "the certificate of {server} names no host")
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
                write!(f, "the certificate of {server} is no good: {why}")
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

/// For drivers, whose connections end with an [`io::Error`]. [`Error::within`] finds it again.
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

/// What a peer means by an alert, by word and name. RFC 8446 6.2
fn alert_text(alert: AlertDescription) -> String {
    let (words, name) = match alert {
        AlertDescription::CertificateRequired => (
            "it wants a certificate of this client",
            "certificate_required",
        ),
        AlertDescription::AccessDenied => (
            "it does not let the holder of this certificate in",
            "access_denied",
        ),
        AlertDescription::UnknownCA => (
            "it does not know who vouches for this certificate",
            "unknown_ca",
        ),
        AlertDescription::BadCertificate => ("it finds this certificate wrong", "bad_certificate"),
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
        AlertDescription::NoApplicationProtocol => {
            ("it does not speak SMB there", "no_application_protocol")
        }
        AlertDescription::UnrecognisedName => ("it does not go by that name", "unrecognized_name"),
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            ("it finds no cryptography in common", "handshake_failure")
        }
        AlertDescription::ProtocolVersion => ("it does not speak TLS 1.3", "protocol_version"),
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
    fn it_survives_the_way_through_a_driver() {
        let error = Error::from_alert(116);
        let told = error.to_string();
        assert!(told.ends_with("(TLS alert certificate_required)"), "{told}");
        let error = io::Error::from(error);
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let found = Error::within(&error).expect("it is within");
        assert_eq!(found.to_string(), told);
        assert!(Error::within(&io::ErrorKind::TimedOut.into()).is_none());
    }

    #[test]
    fn alerts_without_a_name_have_a_number() {
        let told = Error::from_alert(200).to_string();
        assert!(told.ends_with("(TLS alert 200)"), "{told}");
    }
}
