//! Errors: the operation, its object, and the reason.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use net::Endpoint;
use net::tls;
use proto::client::{Failure, Violation};
use wire::{DecodeError, Status};

use crate::url::UrlError;

/// The error of a function of this crate. Its `Display` form is one line for users, with the
/// operation and the object.
///
/// [`Error::kind`] returns the class of the error, by which a program decides how to continue.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The path, share name or pattern is not valid: the name, and the reason.
    InvalidName(String, &'static str),
    /// The text is not a URL of an SMB server: no `smb` scheme and no UNC name, or not well formed.
    InvalidUrl {
        /// The text that the caller gave.
        url: String,
        /// The rule that the text violates.
        error: UrlError,
    },
    /// The resolver does not find the host: name of the host, and the error of the resolver.
    Resolve(String, Arc<io::Error>),
    /// A transport did not connect to this address and port of the server: the address, and the
    /// error of the system, such as "connection refused" or a time limit.
    Connect(SocketAddr, Arc<io::Error>),
    /// The peer at this address and port accepts connections, but it does not respond as an SMB 2
    /// server: the address, and the response as text for a user. An HTTP server is an example, or
    /// a server that closes the connection before its first response.
    NotSmb(SocketAddr, String),
    /// The client tried several transports to the server, and none of them connects.
    Unreachable {
        /// Name of the server as the caller gave it.
        host: String,
        /// The transports in the order of the attempts, each with its error.
        tried: Vec<(Endpoint, Error)>,
    },
    /// The server refuses the negotiation: no dialect, cipher or protection suits both ends.
    Refused {
        /// Name of the server as the caller gave it.
        host: String,
        /// Status of the NEGOTIATE response.
        status: Status,
    },
    /// The server refuses the login: wrong password, expired password, disabled account.
    Login {
        /// Name of the server as the caller gave it.
        host: String,
        /// Status of the SESSION_SETUP response.
        status: Status,
    },
    /// The server does not prove its identity, or it protects messages less than required.
    Untrusted {
        /// Name of the server as the caller gave it.
        host: String,
        /// The missing proof or protection, as text for a user.
        why: String,
    },
    /// The TLS handshake failed: one end rejects the certificate of the other one, or a certificate
    /// file is not usable.
    Certificate {
        /// Name of the server as the caller gave it.
        host: String,
        /// The error of the handshake, or of the certificate file.
        error: Box<tls::Error>,
    },
    /// The server refuses a request on a share, a file or a session with an error status.
    Status {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the file, or name of the share or server, that the operation is about.
        path: String,
        /// Error status (NTSTATUS) of the response.
        status: Status,
    },
    /// The response did not arrive within the time limit.
    TimedOut {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the file, or name of the share or server, that the operation is about.
        path: String,
    },
    /// The last connection of the session was lost. The server may have executed the operation.
    Lost {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the file, or name of the share or server, that the operation is about.
        path: String,
        /// Reason of the loss of the connection, as text for a user.
        reason: String,
    },
    /// The response of the server violates the protocol, so the client does not use it.
    Protocol {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the file, or name of the share or server, that the operation is about.
        path: String,
        /// Description of the violation, as text for a user.
        why: String,
    },
    /// The server or the connection does not support the request, for example a buffer that is too
    /// long or encryption that was not negotiated.
    Unsupported {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the file, or name of the share or server, that the operation is about.
        path: String,
        /// Description of the missing support, as text for a user.
        why: &'static str,
    },
    /// The caller canceled the operation before its response arrived.
    Canceled {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the file, or name of the share or server, that the operation is about.
        path: String,
    },
    /// The process forked after the object was opened. Only the parent can use it.
    Forked {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the file, or name of the share or server, that the operation is about.
        path: String,
    },
    /// This machine reports an error: for a thread, a socket, or a local file.
    Local {
        /// Name of the operation as a verb for messages: `open`, `read`, ...
        operation: &'static str,
        /// Path of the local file, or name of the object on this machine, that the operation is
        /// about.
        path: String,
        /// Error of the system call.
        error: Arc<io::Error>,
    },
}

/// A class of errors that a program handles in the same way. [`Error::kind`] returns the class of
/// an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A share name, path, pattern or URL is not valid.
    InvalidInput,
    /// The file, directory or share does not exist.
    NotFound,
    /// A file or directory of this name exists.
    AlreadyExists,
    /// The user lacks the permission, or the share is read-only.
    PermissionDenied,
    /// Another open or byte-range lock of the file is in conflict. A later attempt may succeed.
    Busy,
    /// The server does not remove a directory that still has entries.
    DirectoryNotEmpty,
    /// The path is a directory where a file is required, or a file where a directory is required.
    WrongFileType,
    /// The volume or the user's quota is full.
    StorageFull,
    /// No connection to the server: it is not found, not reachable, or refuses the negotiation.
    Unreachable,
    /// The server refuses the login: wrong password, expired password, disabled account.
    LoginFailed,
    /// The identity of the server is not proven, or it protects messages less than required.
    Untrusted,
    /// The response of the server did not arrive within the time limit.
    TimedOut,
    /// The last connection of the session was lost, or the process forked.
    /// [`Share::reconnected`](crate::Share::reconnected) replaces it.
    ConnectionLost,
    /// The caller canceled the operation.
    Canceled,
    /// The server or the connection does not support the request.
    Unsupported,
    /// A response of the server violates the protocol.
    Protocol,
    /// This machine reports an error for a thread, a socket or a local file.
    Local,
    /// The server refuses the request with another status: see [`Error::status`].
    Other,
}

impl Error {
    /// Returns the status of the server's response if the server refused the negotiation, the login
    /// or a request; `None` for every other error.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Refused { status, .. }
            | Self::Login { status, .. }
            | Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the class of the error, from which a program decides how to continue.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InvalidName(..) | Self::InvalidUrl { .. } => ErrorKind::InvalidInput,
            Self::Resolve(..)
            | Self::Connect(..)
            | Self::NotSmb(..)
            | Self::Unreachable { .. }
            | Self::Refused { .. } => ErrorKind::Unreachable,
            Self::Login { .. } => ErrorKind::LoginFailed,
            Self::Untrusted { .. } | Self::Certificate { .. } => ErrorKind::Untrusted,
            Self::Status { status, .. } => kind_of(*status),
            Self::TimedOut { .. } => ErrorKind::TimedOut,
            Self::Lost { .. } | Self::Forked { .. } => ErrorKind::ConnectionLost,
            Self::Protocol { .. } => ErrorKind::Protocol,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::Canceled { .. } => ErrorKind::Canceled,
            Self::Local { .. } => ErrorKind::Local,
        }
    }

    /// Returns whether the server reports that the file, path or share does not exist.
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

    /// Returns true if the operation failed because its session lost the last connection to the
    /// server ([`Error::Lost`]).
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// The error of a host that no transport connects to. With one transport its own error is
    /// enough.
    pub(crate) fn of_transports(host: &str, mut tried: Vec<(Endpoint, Self)>) -> Self {
        match tried.len() {
            1 => tried.remove(0).1,
            _ => Self::Unreachable {
                host: host.to_owned(),
                tried,
            },
        }
    }

    /// Makes an [`Error::Local`], the error of a system call on this machine: `operation` (a verb
    /// such as `open`) on the local object `path` failed with `error`.
    pub fn local(operation: &'static str, path: &str, error: io::Error) -> Self {
        Self::Local {
            operation,
            path: path.to_owned(),
            error: Arc::new(error),
        }
    }
}

/// Class of a status that refuses a request.
fn kind_of(status: Status) -> ErrorKind {
    match status {
        Status::OBJECT_NAME_NOT_FOUND
        | Status::OBJECT_PATH_NOT_FOUND
        | Status::NO_SUCH_FILE
        | Status::BAD_NETWORK_NAME => ErrorKind::NotFound,
        Status::OBJECT_NAME_COLLISION => ErrorKind::AlreadyExists,
        Status::ACCESS_DENIED | Status::MEDIA_WRITE_PROTECTED | Status::CANNOT_DELETE => {
            ErrorKind::PermissionDenied
        }
        Status::LOGON_FAILURE => ErrorKind::LoginFailed,
        Status::SHARING_VIOLATION
        | Status::FILE_LOCK_CONFLICT
        | Status::LOCK_NOT_GRANTED
        | Status::DELETE_PENDING => ErrorKind::Busy,
        Status::DIRECTORY_NOT_EMPTY => ErrorKind::DirectoryNotEmpty,
        Status::FILE_IS_A_DIRECTORY | Status::NOT_A_DIRECTORY => ErrorKind::WrongFileType,
        Status::DISK_FULL => ErrorKind::StorageFull,
        Status::NOT_SUPPORTED | Status::INVALID_DEVICE_REQUEST => ErrorKind::Unsupported,
        Status::OBJECT_NAME_INVALID => ErrorKind::InvalidInput,
        _ => ErrorKind::Other,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName(path, why) => write!(f, "`{path}` is not a valid name: {why}"),
            Self::InvalidUrl { url, error } => write!(f, "`{url}` is not a valid URL: {error}"),
            Self::Resolve(host, error) => write!(f, "cannot find the host `{host}`: {error}"),
            Self::Connect(address, error) => write!(f, "cannot connect to {address}: {error}"),
            Self::NotSmb(address, why) => write!(f, "{address} does not speak SMB: {why}"),
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
            Self::Untrusted { host, why } => write!(f, "{host} cannot be trusted: {why}"),
            Self::Certificate { host, error } => {
                write!(f, "the TLS handshake with {host} failed: {error}")
            }
            Self::Status {
                operation,
                path,
                status,
            } => write!(f, "{operation} {path}: {}", Named(*status)),
            Self::TimedOut { operation, path } => {
                write!(f, "{operation} {path}: the server did not respond in time")
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
            } => write!(f, "{operation} {path}: the response is not valid: {why}"),
            Self::Unsupported {
                operation,
                path,
                why,
            } => write!(
                f,
                "{operation} {path}: the server does not support this: {why}"
            ),
            Self::Canceled { operation, path } => write!(f, "{operation} {path}: canceled"),
            Self::Forked { operation, path } => write!(
                f,
                "{operation} {path}: the process forked after this was opened; \
                 connect again in the child"
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
        let kind = match error.kind() {
            ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
            ErrorKind::PermissionDenied | ErrorKind::LoginFailed => io::ErrorKind::PermissionDenied,
            ErrorKind::Busy => io::ErrorKind::ResourceBusy,
            ErrorKind::DirectoryNotEmpty => io::ErrorKind::DirectoryNotEmpty,
            ErrorKind::StorageFull => io::ErrorKind::StorageFull,
            ErrorKind::Unreachable => io::ErrorKind::ConnectionRefused,
            ErrorKind::TimedOut => io::ErrorKind::TimedOut,
            ErrorKind::ConnectionLost => io::ErrorKind::ConnectionAborted,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::Protocol => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// An error without the address, for a list that names the transport.
struct WithoutAddress<'a>(&'a Error);

impl fmt::Display for WithoutAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::Connect(_, error) => error.fmt(f),
            Error::NotSmb(_, why) => write!(f, "it does not speak SMB: {why}"),
            other => other.fmt(f),
        }
    }
}

/// A status, displayed by its name.
struct Named(Status);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.name() {
            Some(name) => write!(f, "NT_STATUS_{name}"),
            None => write!(f, "NT_STATUS {:#010x}", self.0.0),
        }
    }
}

/// The reason why a request failed, without its operation and path.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Status(Status),
    /// The response has data besides the status.
    StatusWith(Status, Vec<u8>),
    Malformed(String),
    Unsendable(&'static str),
    TimedOut,
    Canceled,
    Lost(Arc<str>),
    Forked,
}

impl Cause {
    /// Adds the operation and the path.
    pub(crate) fn of(self, operation: &'static str, path: &str) -> Error {
        tracing::debug!(operation, ?path, reason = %self, "request failed");
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
            Self::Canceled => Error::Canceled { operation, path },
            Self::Lost(reason) => Error::Lost {
                operation,
                path,
                reason: reason.to_string(),
            },
            Self::Forked => Error::Forked { operation, path },
        }
    }

    /// Whether every other request fails for the same reason.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self, Self::Canceled | Self::Lost(_) | Self::Forked)
    }

    /// Status of the response.
    pub(crate) fn status(&self) -> Option<Status> {
        match self {
            Self::Status(status) | Self::StatusWith(status, _) => Some(*status),
            _ => None,
        }
    }
}

/// The reason for the log.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) | Self::StatusWith(status, _) => Named(*status).fmt(f),
            Self::Malformed(why) => write!(f, "the response is not valid: {why}"),
            Self::Unsendable(why) => f.write_str(why),
            Self::TimedOut => f.write_str("timed out"),
            Self::Canceled => f.write_str("canceled"),
            Self::Lost(reason) => write!(f, "the connection is lost: {reason}"),
            Self::Forked => f.write_str("the process forked"),
        }
    }
}

/// The core returned the reply of another kind of request.
pub(crate) fn unexpected() -> Cause {
    Cause::Malformed("the response belongs to another kind of request".to_owned())
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
            Failure::Cancelled => Self::Canceled,
        }
    }
}

impl From<DecodeError> for Cause {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// The reason why no channel was opened.
#[derive(Clone, Debug)]
pub(crate) enum ConnectCause {
    Io(Arc<io::Error>),
    Violation(Violation),
}

impl ConnectCause {
    pub(crate) fn of(self, host: &str, address: SocketAddr) -> Error {
        if let Some(why) = self.not_smb() {
            return Error::NotSmb(address, why);
        }
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

impl ConnectCause {
    /// The description of a peer that is no SMB server; `None` if the peer may be one.
    fn not_smb(&self) -> Option<String> {
        let Self::Io(error) = self else {
            return None;
        };
        match tls::Error::within(error) {
            Some(tls::Error::RefusedByPeer(alert)) if u8::from(*alert) == NO_APPLICATION => {
                Some("it speaks another protocol over QUIC".to_owned())
            }
            Some(_) => None,
            None => {
                let NotSmb(why) = error.get_ref()?.downcast_ref()?;
                Some(why.clone())
            }
        }
    }

    /// The cause for a channel that ends before the response to NEGOTIATE.
    pub(crate) fn before_negotiation(self) -> Self {
        match &self {
            Self::Violation(Violation::Closed) => {
                not_smb("it closed the connection before its first response")
            }
            Self::Violation(Violation::TimedOut) => not_smb("no response to NEGOTIATE (timed out)"),
            Self::Violation(Violation::Malformed(DecodeError::Invalid {
                field: "ProtocolId",
                value,
            })) if *value == SMB1_PROTOCOL_ID => not_smb("it answers in SMB 1, which is too old"),
            Self::Violation(Violation::Malformed(
                error @ (DecodeError::Invalid {
                    field: "ProtocolId",
                    ..
                }
                | DecodeError::Truncated {
                    field: "ProtocolId",
                    ..
                }),
            )) => not_smb(&error.to_string()),
            Self::Io(error) if tls::Error::within(error).is_none() && is_end(error.kind()) => {
                not_smb(&error.to_string())
            }
            _ => self,
        }
    }
}

/// The TLS alert no_application_protocol. RFC 7301 3.2
const NO_APPLICATION: u8 = 120;
/// The ProtocolId of SMB 1 as a little-endian number: 0xFF, "SMB". \[MS-CIFS\] 2.2.3.1
const SMB1_PROTOCOL_ID: u64 = 0x424D_53FF;

/// Whether an error ends an open connection.
fn is_end(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidData
    )
}

/// The peer is no SMB server, inside an I/O error: a description of its response.
#[derive(Debug)]
pub(crate) struct NotSmb(pub(crate) String);

impl fmt::Display for NotSmb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(why) = self;
        write!(f, "the peer does not speak SMB: {why}")
    }
}

impl std::error::Error for NotSmb {}

fn not_smb(why: &str) -> ConnectCause {
    ConnectCause::Io(Arc::new(io::Error::other(NotSmb(why.to_owned()))))
}

impl fmt::Display for ConnectCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Violation(violation) => violation.fmt(f),
        }
    }
}
