//! The client's side: whether the server is who it says, and the certificate that it may want.

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

/// What a client believes, and who it says that it is.
#[derive(Clone, Debug, Default)]
pub struct ClientSettings {
    /// Which servers it believes.
    pub trust: Trust,
    /// Whether a certificate for the server's IP address is as good as one for its name.
    pub allow_address: bool,
    /// Its own certificate, for servers that want one.
    pub identity: Option<CertificateFiles>,
}

/// Which servers a client believes.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Those that the system's authorities vouch for.
    #[default]
    System,
    /// Those that the authorities of a file vouch for, and those whose own certificate is in it.
    File(PathBuf),
    /// Those with one of these certificates, whatever name and dates it has.
    Pinned(Vec<Fingerprint>),
    /// All. It is told in the log, each time.
    Anything,
}

/// TLS with one server.
#[derive(Clone, Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    server: Arc<str>,
    belief: Arc<Belief>,
}

/// What one handshake is to use. Each has its own: so why a certificate was refused is never told
/// of another connection.
#[derive(Clone, Debug)]
pub struct Handshake {
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
}

impl Client {
    /// For a server by its name or address.
    ///
    /// # Errors
    /// The name cannot be verified as it is asked for, or a file is missing or wrong.
    pub fn new(settings: &ClientSettings, server_name: &str) -> Result<Self, Error> {
        let server: Arc<str> = server_name.into();
        let belief = Arc::new(Belief::new(settings, server_name)?);
        let verifier = Arc::new(Verifier::new(&server, &belief));
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
            belief,
        })
    }

    /// For a new connection to the server.
    pub fn handshake(&self) -> Handshake {
        let verifier = Arc::new(Verifier::new(&self.server, &self.belief));
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
    /// For TLS. Verification takes the name that was given to [`Client::new`]; the handshake is to
    /// be told the same.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Why the server's certificate was refused, if it was: more than an alert says.
    pub fn refusal(&self) -> Option<Error> {
        self.verifier.refusal().clone()
    }
}

/// What verifies, with all that it needs.
#[derive(Debug)]
enum Belief {
    Authorities {
        chains: Arc<WebPkiServerVerifier>,
        /// Certificates that are believed as they are.
        exact: Vec<CertificateDer<'static>>,
    },
    Pinned(Vec<Fingerprint>),
    Anything,
}

impl Belief {
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
                    "INSECURE: whoever answers is taken for the server"
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

/// The authorities that the system trusts. Read once: there are hundreds, and they change with
/// the system's packages.
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

/// Verifies the server, and keeps why it did not: TLS has a number for it at best.
#[derive(Debug)]
struct Verifier {
    server: Arc<str>,
    belief: Arc<Belief>,
    refusal: Mutex<Option<Error>>,
}

/// Why a server is refused.
struct Refusal {
    /// For TLS.
    kind: CertificateError,
    /// For people.
    told: Error,
}

impl Verifier {
    fn new(server: &Arc<str>, belief: &Arc<Belief>) -> Self {
        Self {
            server: Arc::clone(server),
            belief: Arc::clone(belief),
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
        match &*self.belief {
            Belief::Authorities { chains, exact } => {
                let verified = chains.verify_server_cert(own, intermediates, name, &[], now);
                match verified {
                    Ok(_) => Ok(()),
                    Err(_) if exact.contains(own) => self.verify_exact(own, name, now),
                    Err(error) => Err(self.told(own, error)),
                }
            }
            Belief::Pinned(pins) => {
                let found = Fingerprint::of(own);
                if pins.contains(&found) {
                    return Ok(());
                }
                let server = self.server.to_string();
                Err(Box::new(Refusal {
                    kind: CertificateError::ApplicationVerificationFailure,
                    told: Error::WrongFingerprint { server, found },
                }))
            }
            Belief::Anything => Ok(()),
        }
    }

    /// A certificate that is believed by itself: one that tools made whose certificates are all
    /// authorities, or whose issuer is unknown. Its name and dates count as ever.
    fn verify_exact(
        &self,
        own: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Box<Refusal>> {
        let told = |error| self.told(own, error);
        let encoding = |_| told(CertificateError::BadEncoding.into());
        let validity = parsed(own).map_err(encoding)?.validity().clone();
        let seconds = now.as_secs().cast_signed();
        if seconds > validity.not_after.timestamp() {
            return Err(told(CertificateError::Expired.into()));
        }
        if seconds < validity.not_before.timestamp() {
            return Err(told(CertificateError::NotValidYet.into()));
        }
        let certificate = ParsedCertificate::try_from(own).map_err(told)?;
        verify_server_name(&certificate, name).map_err(told)
    }

    fn told(&self, own: &CertificateDer<'_>, error: rustls::Error) -> Box<Refusal> {
        Box::new(match error {
            rustls::Error::InvalidCertificate(kind) => Refusal {
                told: self.words(own, &kind),
                kind,
            },
            error => Refusal {
                told: Error::Untrusted {
                    server: self.server.to_string(),
                    why: error.to_string(),
                },
                kind: CertificateError::BadEncoding,
            },
        })
    }

    fn words(&self, own: &CertificateDer<'_>, kind: &CertificateError) -> Error {
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
                let why = "it is that of an authority; pin it, or give the file that it is in";
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
                let Refusal { kind, told } = *refusal;
                *self.refusal() = Some(told);
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
