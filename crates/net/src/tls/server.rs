//! The server's side: its certificate, and what it wants of clients.

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
use super::{ALPN, AccessLists, CertificateFiles, Error, Fingerprint, client_verification, provider};

/// How often it is looked whether files changed: seldom enough to cost nothing, and soon enough
/// for whoever renewed a certificate and wants to see it.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// What [`Server::reset_key`] is derived for.
const RESET_KEY: &[u8] = b"smbeam: stateless resets of QUIC";

/// What a server shows and wants.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Its own certificate.
    pub certificate: CertificateSource,
    /// Those of its clients.
    pub clients: ClientCertificates,
}

/// Where the certificate is from.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// Somebody made it.
    Files(CertificateFiles),
    /// The server makes it at the first start, and keeps it.
    SelfSigned {
        /// The folder for what the server keeps; made where there is none.
        folder: PathBuf,
        /// The names and addresses that it is for; the first is its subject.
        names: Vec<String>,
    },
}

/// What is wanted of clients.
#[derive(Clone, Debug, Default)]
pub struct ClientCertificates {
    /// Whether they need a certificate.
    pub policy: ClientPolicy,
    /// A file of the authorities that vouch for them.
    pub authorities: Option<PathBuf>,
    /// Which of those that are vouched for come in.
    pub access: AccessLists,
}

/// Whether clients need a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientPolicy {
    /// They are not asked.
    #[default]
    No,
    /// They are asked, and one that they show must be good.
    Optional,
    /// Without one nobody comes in.
    Required,
}

impl ServerSettings {
    /// Reads what a server would read, and makes nothing.
    ///
    /// # Errors
    /// What would keep a server from starting.
    pub fn check(&self) -> Result<(), Error> {
        let files = match &self.certificate {
            CertificateSource::Files(files) => files.clone(),
            CertificateSource::SelfSigned { folder, .. } => {
                let path = self_signed::path(folder);
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

/// What a server shows its clients, always as its files are.
///
/// Whoever refuses a client's certificate has never seen its address: let handshakes run within a
/// [`tracing::Span`] that names the peer, and the log's line about the refusal names it too.
pub struct Server {
    files: CertificateFiles,
    is_self_signed: bool,
    reset_key: [u8; 32],
    state: Mutex<State>,
    reader: mpsc::Sender<Reply>,
}

struct State {
    current: Current,
    looked: Instant,
}

#[derive(Clone)]
struct Current {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

/// Reads the files, on a thread of its own: threads that serve sessions have the rights of those
/// sessions' users, who must not read the key.
struct Reader {
    files: CertificateFiles,
    clients: ClientCertificates,
    /// How the files were when they were read last, with or without success.
    stamps: Vec<Option<Stamp>>,
}

/// For what the files hold, unless they are as they were.
type Reply = mpsc::Sender<Option<Result<Current, Error>>>;

/// What changes with a file. A file that was replaced has another number, one that was written
/// another time.
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
    /// Reads the files, or makes the certificate. Whenever they are read again it is with the
    /// rights that the calling thread has now.
    ///
    /// # Errors
    /// A file is missing or wrong.
    pub fn new(settings: &ServerSettings) -> Result<Arc<Self>, Error> {
        let ServerSettings {
            certificate,
            clients,
        } = settings;
        let files = match certificate {
            CertificateSource::Files(files) => files.clone(),
            CertificateSource::SelfSigned { folder, names } => self_signed::files(folder, names)?,
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
                looked: Instant::now(),
            }),
            reader: reader.start()?,
        }))
    }

    /// What the next handshake is to use. Ask for each: files that changed are read here, at most
    /// every few seconds; what was read stays the same [`Arc`]. Files that are wrong are told in
    /// the log, and change nothing.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.lock();
        if state.looked.elapsed() >= LOOK_INTERVAL {
            state.looked = Instant::now();
            self.look(&mut state);
        }
        Arc::clone(&state.current.config)
    }

    /// Looks now whether the files have changed, whoever asks for a configuration or not.
    pub fn reload(&self) {
        self.look(&mut self.lock());
    }

    /// A secret that is the same for every server that is started with this private key: by it, the
    /// clients of one that ended believe the next that it is gone.
    pub fn reset_key(&self) -> [u8; 32] {
        self.reset_key
    }

    /// SHA-256 of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        self.lock().current.fingerprint
    }

    /// Whether it vouches for itself, so that clients have to pin it.
    pub fn is_self_signed(&self) -> bool {
        self.is_self_signed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Whoever panicked left the state as it was: it changes as a whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, state: &mut State) {
        let (reply, answer) = mpsc::channel();
        // Where the reader is gone, what is known stays.
        let _ = self.reader.send(reply);
        let file = self.files.certificate.display();
        match answer.recv() {
            Ok(Some(Ok(current))) => {
                info!(%file, sha256 = %current.fingerprint, "read the certificate again");
                state.current = current;
            }
            Ok(Some(Err(error))) => warn!(%error, "the certificate in use stays"),
            Ok(None) => {}
            Err(_) => warn!(%file, "the certificate is not looked at any more"),
        }
    }
}

impl Reader {
    /// It ends with the server that asks it.
    fn start(mut self) -> Result<mpsc::Sender<Reply>, Error> {
        let (sender, requests) = mpsc::channel::<Reply>();
        let run = move || {
            for reply in requests {
                // Whoever asked waits, unless it is gone.
                let _ = reply.send(self.look());
            }
        };
        let thread = std::thread::Builder::new().name("certificates".to_owned());
        let started = thread.spawn(run);
        started.map_err(|error| Error::Settings(format!("cannot start a thread: {error}")))?;
        Ok(sender)
    }

    fn look(&mut self) -> Option<Result<Current, Error>> {
        // Before the files are read: what changes in between is seen the next time.
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
