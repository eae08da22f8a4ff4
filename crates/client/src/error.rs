//! What can go wrong, on what, and with which word of the server.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use net::Endpoint;
use net::tls;
use proto::client::{Failure, Violation};
use wire::Status;

/// Why something failed. Displayed it is a sentence for a user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A path that cannot be asked for: which, and what is wrong with it.
    InvalidName(String, &'static str),
    /// The host's name leads nowhere: the name, and what the resolver says.
    Resolve(String, Arc<io::Error>),
    /// Nobody answers there.
    Connect(SocketAddr, Arc<io::Error>),
    /// Nobody answers by any transport that was tried.
    Unreachable {
        /// The server.
        host: String,
        /// The transports in the order in which they were tried, and what became of each.
        tried: Vec<(Endpoint, Error)>,
    },
    /// The server refuses to speak to us: it wants another dialect, cipher or protection.
    Refused {
        /// The server.
        host: String,
        /// What it says.
        status: Status,
    },
    /// The server refuses the login: wrong password, expired password, disabled account.
    Login {
        /// The server.
        host: String,
        /// What it says.
        status: Status,
    },
    /// The server is not to be trusted: its proof is wrong, or it gives less than was asked for.
    Untrusted {
        /// The server.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// The certificate of the server is not believed, ours is not believed there, or one of the
    /// files for it is wrong.
    Certificate {
        /// The server.
        host: String,
        /// What is wrong.
        error: Box<tls::Error>,
    },
    /// The server says no.
    Status {
        /// What was tried: `open`, `read`, ...
        operation: &'static str,
        /// On what.
        path: String,
        /// What it says.
        status: Status,
    },
    /// No answer came in time.
    TimedOut {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: String,
    },
    /// The connection is gone, and all others of the session with it. Whether what was tried was
    /// done is not known.
    Lost {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: String,
        /// Why it is gone.
        reason: String,
    },
    /// The server's answer is not one.
    Protocol {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// It cannot be asked of this server: a buffer longer than it takes, a seal that it has not.
    Unsupported {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: String,
        /// What is in the way.
        why: &'static str,
    },
    /// The caller stopped it.
    Cancelled {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: String,
    },
    /// The process forked: what the parent opened is the parent's alone.
    Forked {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: String,
    },
    /// This machine says no: a thread, a socket, a file of the caller's.
    Local {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: String,
        /// What it says.
        error: Arc<io::Error>,
    },
}

impl Error {
    /// The server's word, where it had one.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Refused { status, .. }
            | Self::Login { status, .. }
            | Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether there is no such file, path or share.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.status(),
            Some(
                Status::OBJECT_NAME_NOT_FOUND
                    | Status::OBJECT_PATH_NOT_FOUND
                    | Status::NO_SUCH_FILE
                    | Status::BAD_NETWORK_NAME
            )
        )
    }

    /// Whether the connection is gone.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// None of these transports led to the host. Of one alone its own error says it all.
    pub(crate) fn of_transports(host: &str, mut tried: Vec<(Endpoint, Self)>) -> Self {
        match tried.len() {
            1 => tried.remove(0).1,
            _ => Self::Unreachable {
                host: host.to_owned(),
                tried,
            },
        }
    }

    /// An error of this machine.
    pub fn local(operation: &'static str, path: &str, error: io::Error) -> Self {
        Self::Local {
            operation,
            path: path.to_owned(),
            error: Arc::new(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName(path, why) => write!(f, "`{path}` is no name: {why}"),
            Self::Resolve(host, error) => write!(f, "cannot find the host `{host}`: {error}"),
            Self::Connect(address, error) => write!(f, "cannot connect to {address}: {error}"),
            Self::Unreachable { host, tried } => {
                write!(f, "cannot reach {host}")?;
                for (index, (endpoint, error)) in tried.iter().enumerate() {
                    let before = if index == 0 { ": " } else { "; " };
                    write!(f, "{before}{endpoint}: {}", WithoutAddress(error))?;
                }
                Ok(())
            }
            Self::Refused { host, status } => {
                write!(f, "{host} refuses the connection: {}", Named(*status))
            }
            Self::Login { host, status } => {
                write!(f, "{host} refuses the login: {}", Named(*status))
            }
            Self::Untrusted { host, why } => write!(f, "{host} is not to be trusted: {why}"),
            Self::Certificate { host, error } => write!(f, "no TLS with {host}: {error}"),
            Self::Status {
                operation,
                path,
                status,
            } => write!(f, "{operation} {path}: {}", Named(*status)),
            Self::TimedOut { operation, path } => {
                write!(f, "{operation} {path}: no answer in time")
            }
            Self::Lost {
                operation,
                path,
                reason,
            } => write!(f, "{operation} {path}: the connection is lost: {reason}"),
            Self::Protocol {
                operation,
                path,
                why,
            } => write!(f, "{operation} {path}: the server's answer is wrong: {why}"),
            Self::Unsupported {
                operation,
                path,
                why,
            } => write!(f, "{operation} {path}: not with this server: {why}"),
            Self::Cancelled { operation, path } => write!(f, "{operation} {path}: cancelled"),
            Self::Forked { operation, path } => write!(
                f,
                "{operation} {path}: the process forked; connect anew in the child"
            ),
            Self::Local {
                operation,
                path,
                error,
            } => write!(f, "{operation} {path}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match (&error, error.status()) {
            (Error::TimedOut { .. }, _) => io::ErrorKind::TimedOut,
            (Error::Lost { .. }, _) => io::ErrorKind::ConnectionAborted,
            (Error::Connect(..) | Error::Unreachable { .. }, _) => io::ErrorKind::ConnectionRefused,
            (Error::InvalidName(..), _) => io::ErrorKind::InvalidInput,
            (_, Some(Status::ACCESS_DENIED | Status::LOGON_FAILURE)) => {
                io::ErrorKind::PermissionDenied
            }
            (_, Some(Status::OBJECT_NAME_COLLISION)) => io::ErrorKind::AlreadyExists,
            (_, Some(Status::DISK_FULL)) => io::ErrorKind::StorageFull,
            _ if error.is_not_found() => io::ErrorKind::NotFound,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// An error behind the transport that it belongs to.
struct WithoutAddress<'a>(&'a Error);

impl fmt::Display for WithoutAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::Connect(_, error) => error.fmt(f),
            other => other.fmt(f),
        }
    }
}

/// A status by its name.
struct Named(Status);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.name() {
            Some(name) => write!(f, "NT_STATUS_{name}"),
            None => write!(f, "NT_STATUS {:#010x}", self.0.0),
        }
    }
}

/// Why a request failed, before it is said which.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Status(Status),
    /// The server gave more than a status.
    StatusWith(Status, Vec<u8>),
    Malformed(String),
    Unsendable(&'static str),
    TimedOut,
    Cancelled,
    Lost(Arc<str>),
    Forked,
}

impl Cause {
    /// The same, for whoever asked.
    pub(crate) fn of(self, operation: &'static str, path: &str) -> Error {
        let path = path.to_owned();
        match self {
            Self::Status(status) | Self::StatusWith(status, _) => Error::Status {
                operation,
                path,
                status,
            },
            Self::Malformed(why) => Error::Protocol {
                operation,
                path,
                why,
            },
            Self::Unsendable(why) => Error::Unsupported {
                operation,
                path,
                why,
            },
            Self::TimedOut => Error::TimedOut { operation, path },
            Self::Cancelled => Error::Cancelled { operation, path },
            Self::Lost(reason) => Error::Lost {
                operation,
                path,
                reason: reason.to_string(),
            },
            Self::Forked => Error::Forked { operation, path },
        }
    }

    /// Whether it would be the same for whatever else is asked.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self, Self::Cancelled | Self::Lost(_) | Self::Forked)
    }

    /// The server's word.
    pub(crate) fn status(&self) -> Option<Status> {
        match self {
            Self::Status(status) | Self::StatusWith(status, _) => Some(*status),
            _ => None,
        }
    }
}

/// The core answered something else than it was asked.
pub(crate) fn unexpected() -> Cause {
    Cause::Malformed("an answer to something else".to_owned())
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Status(status) => Self::Status(status),
            Failure::StatusWith(status, more) => Self::StatusWith(status, more),
            Failure::Malformed(error) => Self::Malformed(error.to_string()),
            Failure::Excess(what) => Self::Malformed(what.to_owned()),
            Failure::Unsendable(why) => Self::Unsendable(why),
            Failure::TimedOut => Self::TimedOut,
            Failure::Cancelled => Self::Cancelled,
        }
    }
}

impl From<wire::DecodeError> for Cause {
    fn from(error: wire::DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Why no session came about.
#[derive(Clone, Debug)]
pub(crate) enum ConnectCause {
    Io(Arc<io::Error>),
    Violation(Violation),
}

impl ConnectCause {
    pub(crate) fn of(self, host: &str, address: SocketAddr) -> Error {
        let host = host.to_owned();
        match self {
            Self::Io(error) => match tls::Error::within(&error) {
                Some(within) => Error::Certificate {
                    host,
                    error: Box::new(within.clone()),
                },
                None => Error::Connect(address, error),
            },
            Self::Violation(Violation::Refused(status)) => Error::Refused { host, status },
            Self::Violation(Violation::LoginRefused(status)) => Error::Login { host, status },
            Self::Violation(Violation::TimedOut) => Error::TimedOut {
                operation: "log in to",
                path: host,
            },
            Self::Violation(violation @ (Violation::Closed | Violation::Asked)) => Error::Lost {
                operation: "log in to",
                path: host,
                reason: violation.to_string(),
            },
            Self::Violation(violation) => Error::Untrusted {
                host,
                why: violation.to_string(),
            },
        }
    }
}

impl fmt::Display for ConnectCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Violation(violation) => violation.fmt(f),
        }
    }
}
