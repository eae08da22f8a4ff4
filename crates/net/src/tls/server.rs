//! The TLS configuration of a server: its certificate, and its policy for client certificates.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use tracing::{info, warn};

use super::self_signed;
use super::{
    ALPN, AccessLists, CertificateFiles, Error, Fingerprint, client_verification, provider,
};
use crate::Refusal;

/// Shortest time between two checks of the files: the checks cost nothing, and a renewed
/// certificate is in use soon.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// The purpose of [`Server::reset_key`], for its derivation.
const RESET_KEY: &[u8] = b"smbeam: stateless resets of QUIC";

/// TLS settings of a server: its certificate, and the policy for certificates of clients.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Source of the certificate of the server.
    pub certificate: CertificateSource,
    /// Policy for the certificates of clients.
    pub clients: ClientCertificates,
}

/// Source of the certificate of a server.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// PEM files that the administrator provides.
    Files(CertificateFiles),
    /// A self-signed certificate, which the server makes at its first start.
    SelfSigned {
        /// Directory in which the server stores the certificate and its key. The server creates a
        /// missing directory.
        directory: PathBuf,
        /// Host names and addresses in the certificate. The first one is its subject.
        names: Vec<String>,
    },
}

/// Policy of a server for the certificates of clients.
#[derive(Clone, Debug, Default)]
pub struct ClientCertificates {
    /// Whether clients must present a certificate.
    pub policy: ClientPolicy,
    /// PEM file with the certificate authorities that issue certificates of clients. May be `None`
    /// only if the server requests no certificates of clients ([`ClientPolicy::No`]).
    pub authorities: Option<PathBuf>,
    /// Rules that decide which clients with a valid certificate may connect.
    pub access: AccessLists,
}

/// Whether the clients of a server need a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientPolicy {
    /// The server requests no client certificates.
    #[default]
    No,
    /// The server requests a certificate and verifies it if the client sends one.
    Optional,
    /// Clients without a valid certificate cannot connect.
    Required,
}

impl ServerSettings {
    /// Checks the settings: reads all files of certificates and keys, and writes nothing.
    ///
    /// # Errors
    /// The reason why a server with these settings does not start.
    pub fn check(&self) -> Result<(), Error> {
        let files = match &self.certificate {
            CertificateSource::Files(files) => files.clone(),
            CertificateSource::SelfSigned { directory, .. } => {
                let path = self_signed::path(directory);
                if !path.exists() {
                    return client_verification::verifier(&self.clients).map(drop);
                }
                CertificateFiles {
                    certificate: path.clone(),
                    key: path,
                }
            }
        };
        config(&files, &self.clients).map(drop)
    }
}

/// The TLS configuration of a running server. When the files of certificates and keys change, later
/// handshakes use the new content.
///
/// The certificate verifier does not know the address of the client. Run handshakes inside a
/// [`tracing::Span`] with the peer, so that the log line about a refused client has its address.
pub struct Server {
    files: CertificateFiles,
    is_self_signed: bool,
    reset_key: [u8; 32],
    state: Mutex<State>,
    reader: mpsc::Sender<Reply>,
}

struct State {
    current: Current,
    checked: Instant,
}

#[derive(Clone)]
struct Current {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

/// Reads the files on a separate thread. Worker threads may have the credentials of users, which
/// cannot read the key.
struct Reader {
    files: CertificateFiles,
    clients: ClientCertificates,
    /// State of the files at the last read, successful or not.
    stamps: Vec<Option<Stamp>>,
}

/// Receives the new configuration; `None` if the files are unchanged.
type Reply = mpsc::Sender<Option<Result<Current, Error>>>;

/// State of a file. A replaced file has another inode number, a changed file another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    number: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            number: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Reads the files of certificates and keys that `settings` names, or makes a self-signed
    /// certificate. When the files change later, the server reads them with the Unix credentials
    /// that the calling thread has now.
    ///
    /// # Errors
    /// A file is missing or invalid, or cannot be written.
    pub fn new(settings: &ServerSettings) -> Result<Arc<Self>, Error> {
        let ServerSettings {
            certificate,
            clients,
        } = settings;
        let files = match certificate {
            CertificateSource::Files(files) => files.clone(),
            CertificateSource::SelfSigned { directory, names } => {
                self_signed::files(directory, names)?
            }
        };
        let reader = Reader {
            stamps: stamps(&files, clients),
            files: files.clone(),
            clients: clients.clone(),
        };
        let current = config(&files, clients)?;
        Ok(Arc::new(Self {
            reset_key: files.derive(RESET_KEY)?,
            files,
            is_self_signed: matches!(certificate, CertificateSource::SelfSigned { .. }),
            state: Mutex::new(State {
                current,
                checked: Instant::now(),
            }),
            reader: reader.start()?,
        }))
    }

    /// Returns the TLS configuration for the next handshake. The caller calls this for each
    /// handshake: it checks the files of certificates and keys for changes, at most every few
    /// seconds. Unchanged files result in the same [`Arc`]. Errors are logged, and the old
    /// configuration stays in use.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.lock();
        if state.checked.elapsed() >= CHECK_INTERVAL {
            state.checked = Instant::now();
            self.check(&mut state);
        }
        Arc::clone(&state.current.config)
    }

    /// Reads the files of certificates and keys again if they have changed since the last read.
    /// Errors are logged, and the old configuration stays in use.
    pub fn reload(&self) {
        self.check(&mut self.lock());
    }

    /// Returns a secret for the stateless resets of QUIC (RFC 9000 10.3). The secret depends only
    /// on the private key: a restarted server with the same key can reset connections from before
    /// the restart.
    pub fn reset_key(&self) -> [u8; 32] {
        self.reset_key
    }

    /// Returns the SHA-256 fingerprint of the certificate that the server uses now.
    pub fn fingerprint(&self) -> Fingerprint {
        self.lock().current.fingerprint
    }

    /// Returns whether the certificate is self-signed. Clients can then verify the server only by
    /// its fingerprint.
    pub fn is_self_signed(&self) -> bool {
        self.is_self_signed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // After a panic the state is still consistent: it is replaced as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, state: &mut State) {
        let (reply, answer) = mpsc::channel();
        // Without the reader, the current configuration stays in use.
        let _ = self.reader.send(reply);
        let file = self.files.certificate.display();
        match answer.recv() {
            Ok(Some(Ok(current))) => {
                info!(%file, sha256 = %current.fingerprint, "certificate reloaded");
                state.current = current;
            }
            Ok(Some(Err(error))) => {
                let code = Refusal::Certificate.code();
                warn!(%error, code, "cannot reload the certificate: using the old one");
            }
            Ok(None) => {}
            Err(_) => warn!(%file, "cannot reload the certificate: its thread has ended"),
        }
    }
}

impl Reader {
    /// Starts the thread. It ends when the server is dropped.
    fn start(mut self) -> Result<mpsc::Sender<Reply>, Error> {
        let (sender, requests) = mpsc::channel::<Reply>();
        let run = move || {
            for reply in requests {
                // It fails if the server has been dropped.
                let _ = reply.send(self.check());
            }
        };
        let thread = std::thread::Builder::new().name("certificates".to_owned());
        let started = thread.spawn(run);
        started.map_err(|error| Error::Settings(format!("cannot start a thread: {error}")))?;
        Ok(sender)
    }

    fn check(&mut self) -> Option<Result<Current, Error>> {
        // Taken before the files are read: the next check sees changes in between.
        let stamps = stamps(&self.files, &self.clients);
        if stamps == self.stamps {
            return None;
        }
        self.stamps = stamps;
        Some(config(&self.files, &self.clients))
    }
}

fn stamps(files: &CertificateFiles, clients: &ClientCertificates) -> Vec<Option<Stamp>> {
    [&files.certificate, &files.key]
        .into_iter()
        .chain(&clients.authorities)
        .map(|path| Stamp::of(path))
        .collect()
}

fn config(files: &CertificateFiles, clients: &ClientCertificates) -> Result<Current, Error> {
    let key: Arc<CertifiedKey> = files.load()?;
    let fingerprint = Fingerprint::of(&key.cert[0]);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Error::Settings(error.to_string()))?
        .with_client_cert_verifier(client_verification::verifier(clients)?)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(key)));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Current {
        config: Arc::new(config),
        fingerprint,
    })
}
