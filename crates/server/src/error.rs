//! Reasons why a server does not start.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use auth::UserFileError;
use net::{Transport, tls};

use crate::config::AuditSection;
use crate::sids::MappingError;
use crate::unix_account::AccountError;

/// Reason why a server does not start. Its `Display` form is a message for users.
#[derive(Debug)]
pub enum StartError {
    /// The path of a share is not a directory. A missing directory is no error: the server starts
    /// and refuses clients until it exists.
    Share {
        /// Name of the share in the configuration.
        name: String,
        /// Directory of the share in the configuration.
        path: PathBuf,
        /// Error of the system from opening the directory.
        error: io::Error,
    },
    /// The `force_user` or `service_account` of a share does not name a Unix account that the
    /// server can use.
    Account {
        /// Name of the share in the configuration.
        share: String,
        /// The key of the configuration.
        key: &'static str,
        /// Reason why the account is not usable, as a text with the name.
        error: AccountError,
    },
    /// The server cannot listen on an address and port.
    Listen {
        /// The address and port of the configuration.
        address: SocketAddr,
        /// Transport of the connections to this address.
        transport: Transport,
        /// Error of the system from binding or listening.
        error: io::Error,
    },
    /// The RDMA provider of the configuration cannot be opened.
    Rdma(io::Error),
    /// The user file of the configuration cannot be read, or it is malformed.
    Users(UserFileError),
    /// The mapping file of SIDs cannot be read, or a line of it is not valid.
    SidMap(MappingError),
    /// A certificate or key for QUIC cannot be read, or it is not valid.
    Certificate(tls::Error),
    /// The HTTP server for metrics cannot be set up.
    Metrics {
        /// The key of the configuration with its value, such as `metrics.listen: 127.0.0.1:9445`.
        setting: String,
        /// Error of the system, or the reason why a token is not valid.
        error: io::Error,
    },
    /// The audit log cannot be opened.
    Audit {
        /// The value of `audit.target`.
        target: String,
        /// Error of the system.
        error: io::Error,
    },
    /// The QUIC server cannot be set up: the TLS library or a socket reports an error.
    Quic(io::Error),
    /// The I/O driver of a worker (io_uring or epoll) cannot be set up.
    Ring(io::Error),
    /// A thread cannot be started.
    Thread(io::Error),
}

impl StartError {
    pub(crate) fn share(name: &str, path: &Path, error: io::Error) -> Self {
        Self::Share {
            name: name.to_owned(),
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn audit(section: &AuditSection, error: io::Error) -> Self {
        let target = section
            .target
            .as_ref()
            .map(|target| target.get_ref().to_string());
        Self::Audit {
            target: target.unwrap_or_default(),
            error,
        }
    }

    pub(crate) fn account(share: &str, key: &'static str, error: AccountError) -> Self {
        Self::Account {
            share: share.to_owned(),
            key,
            error,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share { name, path, error } => {
                write!(
                    f,
                    "cannot open share \"{name}\": {}: {error}",
                    path.display()
                )
            }
            Self::Account { share, key, error } => {
                write!(f, "cannot open share \"{share}\": {key}: {error}")
            }
            Self::Listen {
                address,
                transport,
                error,
            } => {
                write!(f, "cannot listen on {address} ({transport}): {error}")?;
                if error.kind() == io::ErrorKind::PermissionDenied && address.port() < 1024 {
                    f.write_str("; ports below 1024 need root: use another port, or run as root")?;
                }
                Ok(())
            }
            Self::Rdma(error) => {
                write!(f, "cannot open the RDMA provider (rdma.provider): {error}")
            }
            Self::Users(error) => write!(f, "cannot use the user file (server.users): {error}"),
            Self::SidMap(error) => write!(f, "cannot map SIDs (server.sid_map): {error}"),
            Self::Certificate(error) => write!(f, "cannot use the certificates of QUIC: {error}"),
            Self::Metrics { setting, error } => {
                write!(f, "cannot serve metrics: {setting}: {error}")
            }
            Self::Audit { target, error } => {
                write!(
                    f,
                    "cannot open the audit log (audit.target): {target}: {error}"
                )
            }
            Self::Quic(error) => write!(f, "cannot set up QUIC: {error}"),
            Self::Ring(error) => write!(f, "cannot set up I/O (server.io): {error}"),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
