//! The TLS configuration of a client: verification of the server, and the client's certificate.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tracing::warn;
use x509_parser::time::ASN1Time;

use super::certificate::{Holder, hosts, parsed};
use super::pem::certificates;
use super::{ALPN, CertificateFiles, Error, Fingerprint, client_verification, provider};

/// TLS settings of a client: verification of servers, and the certificate of the client.
#[derive(Clone, Debug, Default)]
pub struct ClientSettings {
    /// The server certificates that the client trusts. Default: those of the authorities of the
    /// system.
    pub trust: Trust,
    /// Whether a server that the user names by its IP address may have a certificate for that
    /// address. If false (the default), the client refuses to connect to a server by its address.
    pub allow_address: bool,
    /// Certificate and key of the client, for servers that request a certificate; `None` (the
    /// default) if the client has none.
    pub identity: Option<CertificateFiles>,
}

/// The server certificates that a client trusts.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Certificates that an authority of the system has issued.
    #[default]
    System,
    /// Certificates that an authority in this PEM file has issued, and the certificates in the file
    /// themselves.
    File(PathBuf),
    /// Certificates with one of these fingerprints. Their names and dates are not verified.
    Pinned(Vec<Fingerprint>),
    /// All certificates, without verification. Each use logs a warning.
    Anything,
}

/// The TLS configuration of a client for connections to one server. Each connection takes a
/// [`Handshake`] from it.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    server: Arc<str>,
    trusted: Arc<Trusted>,
}

/// The TLS configuration of one connection attempt of a client. It stores the reason for which the
/// client refuses the server's certificate: see [`refusal`](Self::refusal).
#[derive(Clone, Debug)]
pub struct Handshake {
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
}

impl Client {
    /// Reads the files of `settings` and makes the configuration for the server with this host name
    /// or IP address.
    ///
    /// # Errors
    /// The name is not a valid host name, an address is not allowed, or a file is missing or
    /// invalid.
    pub fn new(settings: &ClientSettings, server_name: &str) -> Result<Self, Error> {
        let server: Arc<str> = server_name.into();
        let trusted = Arc::new(Trusted::new(settings, server_name)?);
        let verifier = Arc::new(Verifier::new(&server, &trusted));
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| Error::Settings(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let key = SingleCertAndKey::from(files.load()?);
                builder.with_client_cert_resolver(Arc::new(key))
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Self {
            config: Arc::new(config),
            server,
            trusted,
        })
    }

    /// Makes the TLS configuration for a new connection to the server. A second connection needs
    /// another one.
    pub fn handshake(&self) -> Handshake {
        let verifier = Arc::new(Verifier::new(&self.server, &self.trusted));
        let shared: Arc<dyn ServerCertVerifier> = Arc::<Verifier>::clone(&verifier);
        let mut config = ClientConfig::clone(&self.config);
        config.dangerous().set_certificate_verifier(shared);
        Handshake {
            config: Arc::new(config),
            verifier,
        }
    }
}

impl Handshake {
    /// Returns the configuration in the type of rustls. The handshake must use the server name that
    /// the caller passed to [`Client::new`].
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Returns the reason why the client refused the certificate of the server, with more detail
    /// than a TLS alert. `None` if it was not refused.
    pub fn refusal(&self) -> Option<Error> {
        self.verifier.refusal().clone()
    }
}

/// The prepared form of [`Trust`].
#[derive(Debug)]
enum Trusted {
    Authorities {
        chains: Arc<WebPkiServerVerifier>,
        /// Certificates that are trusted without an issuer.
        exact: Vec<CertificateDer<'static>>,
    },
    Pinned(Vec<Fingerprint>),
    Anything,
}

impl Trusted {
    fn new(settings: &ClientSettings, server_name: &str) -> Result<Self, Error> {
        let (roots, exact) = match &settings.trust {
            Trust::System => (system_roots()?, Vec::new()),
            Trust::File(path) => {
                let authorities = certificates(path)?;
                let roots = client_verification::roots(path, &authorities)?;
                (Arc::new(roots), authorities)
            }
            Trust::Pinned(pins) => return Ok(Self::Pinned(pins.clone())),
            Trust::Anything => {
                warn!(
                    server = server_name,
                    "INSECURE: the certificate of the server is not verified"
                );
                return Ok(Self::Anything);
            }
        };
        let name = ServerName::try_from(server_name);
        let name = name.map_err(|_| Error::BadServerName(server_name.to_owned()))?;
        match name {
            ServerName::IpAddress(address) if !settings.allow_address => {
                return Err(Error::AddressAsName(IpAddr::from(address)));
            }
            _ => {}
        }
        let chains = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        Ok(Self::Authorities {
            chains: chains.map_err(|error| Error::Settings(error.to_string()))?,
            exact,
        })
    }
}

/// The certificate authorities of the system. They are read once: there are hundreds, and they
/// change with the system's packages only.
fn system_roots() -> Result<Arc<RootCertStore>, Error> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    if let Some(roots) = ROOTS.get() {
        return Ok(Arc::clone(roots));
    }
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(": {error}"));
        return Err(Error::NoSystemRoots(why.unwrap_or_default()));
    }
    Ok(Arc::clone(ROOTS.get_or_init(|| Arc::new(roots))))
}

/// Verifies the server, and keeps the reason of a refusal: a TLS alert has a number only.
#[derive(Debug)]
struct Verifier {
    server: Arc<str>,
    trusted: Arc<Trusted>,
    refusal: Mutex<Option<Error>>,
}

/// The reason of a refusal.
struct Refusal {
    /// The reason for rustls.
    kind: CertificateError,
    /// The reason for users.
    error: Error,
}

impl Verifier {
    fn new(server: &Arc<str>, trusted: &Arc<Trusted>) -> Self {
        Self {
            server: Arc::clone(server),
            trusted: Arc::clone(trusted),
            refusal: Mutex::default(),
        }
    }

    fn refusal(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn verify(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Box<Refusal>> {
        match &*self.trusted {
            Trusted::Authorities { chains, exact } => {
                let verified = chains.verify_server_cert(own, intermediates, name, &[], now);
                match verified {
                    Ok(_) => Ok(()),
                    Err(_) if exact.contains(own) => self.verify_exact(own, name, now),
                    Err(error) => Err(self.refuse(own, error)),
                }
            }
            Trusted::Pinned(pins) => {
                let found = Fingerprint::of(own);
                if pins.contains(&found) {
                    return Ok(());
                }
                let server = self.server.to_string();
                Err(Box::new(Refusal {
                    kind: CertificateError::ApplicationVerificationFailure,
                    error: Error::WrongFingerprint { server, found },
                }))
            }
            Trusted::Anything => Ok(()),
        }
    }

    /// Verifies name and dates of a certificate that is trusted without its issuer: some tools mark
    /// every certificate as an authority, and the issuer may be unknown.
    fn verify_exact(
        &self,
        own: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Box<Refusal>> {
        let refuse = |error| self.refuse(own, error);
        let encoding = |_| refuse(CertificateError::BadEncoding.into());
        let validity = parsed(own).map_err(encoding)?.validity().clone();
        let seconds = now.as_secs().cast_signed();
        if seconds > validity.not_after.timestamp() {
            return Err(refuse(CertificateError::Expired.into()));
        }
        if seconds < validity.not_before.timestamp() {
            return Err(refuse(CertificateError::NotValidYet.into()));
        }
        let certificate = ParsedCertificate::try_from(own).map_err(refuse)?;
        verify_server_name(&certificate, name).map_err(refuse)
    }

    fn refuse(&self, own: &CertificateDer<'_>, error: rustls::Error) -> Box<Refusal> {
        Box::new(match error {
            rustls::Error::InvalidCertificate(kind) => Refusal {
                error: self.describe(own, &kind),
                kind,
            },
            error => Refusal {
                error: Error::Untrusted {
                    server: self.server.to_string(),
                    why: error.to_string(),
                },
                kind: CertificateError::BadEncoding,
            },
        })
    }

    fn describe(&self, own: &CertificateDer<'_>, kind: &CertificateError) -> Error {
        let server = self.server.to_string();
        let dates = |which: fn(&x509_parser::certificate::Validity) -> ASN1Time| {
            let own = parsed(own).map(|own| which(own.validity()).to_string());
            own.unwrap_or_default()
        };
        let date = |time: &UnixTime| {
            let time = ASN1Time::from_timestamp(time.as_secs().cast_signed());
            time.map(|time| time.to_string()).unwrap_or_default()
        };
        match kind {
            CertificateError::UnknownIssuer => Error::UnknownAuthority {
                server,
                issuer: Holder::of(own).map_or_else(String::new, |own| own.issuer.to_string()),
                fingerprint: Fingerprint::of(own),
            },
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let found = hosts(own);
                Error::WrongName { server, found }
            }
            CertificateError::ExpiredContext { not_after, .. } => Error::Expired {
                server,
                not_after: date(not_after),
            },
            CertificateError::Expired => Error::Expired {
                server,
                not_after: dates(|validity| validity.not_after),
            },
            CertificateError::NotValidYetContext { not_before, .. } => Error::NotYetValid {
                server,
                not_before: date(not_before),
            },
            CertificateError::NotValidYet => Error::NotYetValid {
                server,
                not_before: dates(|validity| validity.not_before),
            },
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                let why = "it is not for servers".to_owned();
                Error::Untrusted { server, why }
            }
            _ if parsed(own).is_ok_and(|own| own.is_ca()) => {
                let why = "it is a certificate of an authority: pin it, or trust its file";
                let why = why.to_owned();
                Error::Untrusted { server, why }
            }
            other => Error::Untrusted {
                server,
                why: other.to_string(),
            },
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.verify(end_entity, intermediates, server_name, now) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(refusal) => {
                let Refusal { kind, error } = *refusal;
                *self.refusal() = Some(error);
                Err(kind.into())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
