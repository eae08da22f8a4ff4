//! The codes of reasons: stable words for each refusal that the server logs.
//!
//! A code begins with its area: `login-wrong-password`. The log has it as the field `code`, a
//! metric as a label, and `smbeam explain` prints the section of docs/troubleshooting.md that the
//! code names. Each set of reasons is one enum, and [`codes`] lists the codes of all.

use net::FrameError;
use proto::server::ledger::Resource;
use proto::violation::Violation;

use crate::counters::{RefusedConnection, RefusedLogin, RefusedShare};
use crate::doctor::Diagnosis;
use crate::error::StartError;

/// A closed set of reasons.
pub trait Reason: Copy + 'static {
    /// The codes of all reasons, in the order of [`index`](Self::index).
    const CODES: &'static [&'static str];

    /// Returns the number of the reason, from 0.
    fn index(self) -> usize;

    /// Returns the code of the reason, such as `login-wrong-password`.
    fn code(self) -> &'static str {
        Self::CODES[self.index()]
    }
}

/// Declares a set of reasons: an enum that implements [`Reason`].
#[macro_export]
macro_rules! reasons {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident {
        $($(#[$item:meta])* $reason:ident = $code:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$item])* $reason,)*
        }

        impl $crate::Reason for $name {
            const CODES: &'static [&'static str] = &[$($code),*];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

reasons! {
    /// The reason why the server ends a connection.
    pub(crate) enum EndedConnection {
        /// A message is malformed.
        Malformed = "connection-malformed-message",
        /// The prefix of a frame, or a NetBIOS session request, is wrong.
        BadFrame = "connection-bad-frame",
        /// A frame is longer than the limit.
        FrameTooLong = "connection-frame-too-long",
        /// A message is not valid in the state of the connection.
        UnexpectedMessage = "connection-unexpected-message",
        /// A MessageId is outside of the sequence window.
        MessageId = "connection-message-id",
        /// A frame cannot be decrypted.
        CannotDecrypt = "connection-cannot-decrypt",
        /// A request is not encrypted although it must be.
        NotEncrypted = "connection-not-encrypted",
        /// A TREE_CONNECT is not signed.
        NotSigned = "connection-not-signed",
        /// The negotiation changed in transit.
        NegotiateTampered = "connection-negotiation-changed",
        /// Memory of the client cannot be used over RDMA.
        RemoteMemory = "connection-rdma-memory",
        /// The login took too long.
        LoginTimeout = "connection-login-timeout",
        /// The connection reached a limit.
        Limit = "connection-limit",
        /// A frame arrives too slowly.
        SlowFrame = "connection-slow-frame",
        /// The client receives too slowly.
        SlowReceiver = "connection-slow-receiver",
        /// The client makes no progress while others need its memory.
        NoProgress = "connection-no-progress",
        /// Another connection needs the place of one without a login.
        Replaced = "connection-replaced",
        /// A response is too long for the transport.
        ResponseTooLong = "connection-response-too-long",
        /// I/O on the connection cannot start.
        NoIo = "connection-no-io",
        /// A bug in the server.
        ServerBug = "connection-server-bug",
        /// The QUIC handshake failed.
        QuicHandshake = "connection-quic-handshake",
        /// The negotiation of SMB Direct failed.
        RdmaNegotiation = "connection-rdma-negotiation",
    }
}

reasons! {
    /// The reason why the file system refuses an operation.
    pub(crate) enum RefusedAccess {
        /// The permissions of Unix.
        Unix = "access-unix-permissions",
        /// The security descriptor of the file.
        Descriptor = "access-descriptor",
        /// No permission that the server sees: another program decides, or they changed meanwhile.
        Other = "access-other",
    }
}

reasons! {
    /// The limit of a user that refuses requests.
    pub(crate) enum RefusedRequest {
        /// The number of connections.
        Connections = "limit-connections-per-user",
        /// The number of open files.
        Opens = "limit-opens-per-user",
        /// The number of open pipes.
        Pipes = "limit-pipes-per-user",
        /// The number of watched directories.
        Watches = "limit-watches-per-user",
        /// The number of byte-range locks.
        Locks = "limit-locks-per-user",
        /// The number of durable opens without a connection.
        DisconnectedOpens = "limit-disconnected-opens-per-user",
        /// The memory of responses.
        ResponseMemory = "limit-response-memory",
    }
}

reasons! {
    /// The reason why a configuration is refused, or a file that it names. The code of a wrong
    /// certificate is [`net::Refusal::Certificate`].
    pub enum RefusedConfig {
        /// The configuration cannot be read, or is not valid.
        Invalid = "config-invalid",
        /// The configuration is valid, and does not do what its author expects.
        Doubtful = "config-doubtful",
        /// The directory of a share is not usable.
        ShareDirectory = "config-share-directory",
        /// The Unix account of a share is not usable.
        ShareAccount = "config-share-account",
        /// An address is not usable.
        Listen = "config-listen",
        /// The RDMA provider is not usable.
        Rdma = "config-rdma",
        /// The user file is not usable.
        Users = "config-users",
        /// The mapping of SIDs is not usable.
        SidMap = "config-sid-map",
        /// The HTTP server for metrics cannot be set up.
        Metrics = "config-metrics",
        /// The audit log cannot be opened.
        Audit = "config-audit",
        /// QUIC cannot be set up.
        Quic = "config-quic",
        /// I/O cannot be set up.
        Io = "config-io",
        /// A thread cannot be started.
        Thread = "config-thread",
    }
}

reasons! {
    /// The reason why a request to the server is refused that is not of SMB.
    pub(crate) enum RefusedControl {
        /// The user may not change the server over the control socket.
        Denied = "control-denied",
        /// A request for metrics has no token, or a wrong one.
        MetricsToken = "metrics-token",
        /// A request for metrics names another machine as its host.
        MetricsHost = "metrics-host",
    }
}

/// Returns the codes of all reasons that the server logs or the doctor finds on its machine.
pub fn codes() -> Vec<&'static str> {
    let mut codes = vec![vfs::identity::REFUSED_CODE];
    codes.extend(net::Refusal::ALL.map(net::Refusal::code));
    for set in [
        RefusedLogin::CODES,
        RefusedShare::CODES,
        RefusedAccess::CODES,
        RefusedConnection::CODES,
        EndedConnection::CODES,
        RefusedRequest::CODES,
        RefusedConfig::CODES,
        RefusedControl::CODES,
        Diagnosis::CODES,
    ] {
        codes.extend(set);
    }
    codes
}

impl From<&Violation> for EndedConnection {
    fn from(violation: &Violation) -> Self {
        match violation {
            Violation::Malformed(_) => Self::Malformed,
            Violation::UnexpectedNegotiate
            | Violation::NotNegotiated(_)
            | Violation::UnexpectedMessage(_) => Self::UnexpectedMessage,
            Violation::MessageIdOutOfWindow(_) => Self::MessageId,
            Violation::CannotDecrypt(_) => Self::CannotDecrypt,
            Violation::NotEncrypted(_) => Self::NotEncrypted,
            Violation::NotSigned(_) => Self::NotSigned,
            Violation::NegotiateTampered => Self::NegotiateTampered,
            Violation::FrameTooLong(_) => Self::FrameTooLong,
            Violation::RemoteMemory => Self::RemoteMemory,
            Violation::LoginTimeout => Self::LoginTimeout,
            Violation::LimitReached(_) => Self::Limit,
        }
    }
}

impl From<&FrameError> for EndedConnection {
    fn from(error: &FrameError) -> Self {
        match error {
            FrameError::TooLong { .. } => Self::FrameTooLong,
            FrameError::UnknownType(_)
            | FrameError::NoSession
            | FrameError::BadSessionRequest(_)
            | FrameError::NotListening(_) => Self::BadFrame,
        }
    }
}

impl From<Resource> for RefusedRequest {
    fn from(resource: Resource) -> Self {
        match resource {
            Resource::Connections => Self::Connections,
            Resource::Opens => Self::Opens,
            Resource::Pipes => Self::Pipes,
            Resource::Watches => Self::Watches,
            Resource::Locks => Self::Locks,
            Resource::DisconnectedOpens => Self::DisconnectedOpens,
            Resource::ResponseBytes => Self::ResponseMemory,
        }
    }
}

impl StartError {
    /// Returns the code of the reason, such as `config-listen`.
    pub fn code(&self) -> &'static str {
        let reason = match self {
            Self::Certificate(_) => return net::Refusal::Certificate.code(),
            Self::Share { .. } => RefusedConfig::ShareDirectory,
            Self::Account { .. } => RefusedConfig::ShareAccount,
            Self::Listen { .. } => RefusedConfig::Listen,
            Self::Rdma(_) => RefusedConfig::Rdma,
            Self::Users(_) => RefusedConfig::Users,
            Self::SidMap(_) => RefusedConfig::SidMap,
            Self::Metrics { .. } => RefusedConfig::Metrics,
            Self::Audit { .. } => RefusedConfig::Audit,
            Self::Quic(_) => RefusedConfig::Quic,
            Self::Ring(_) => RefusedConfig::Io,
            Self::Thread(_) => RefusedConfig::Thread,
        };
        reason.code()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::codes;

    #[test]
    fn each_code_is_unique_and_has_an_area() {
        let codes = codes();
        for code in &codes {
            let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(code.chars().all(is_plain), "{code}");
            assert!(code.contains('-'), "{code}");
        }
        let unique: BTreeSet<_> = codes.iter().collect();
        assert_eq!(unique.len(), codes.len());
    }
}
