//! The status of a running server: connections, sessions, open files.
//!
//! Its JSON form is a stable interface, described in docs/cli.md. A new version may add fields. It
//! does not rename fields or change their meaning.

use std::collections::HashMap;

use proto::id::ConnectionId;
use proto::login::AccountKind;
use proto::server::{
    DisconnectedTotals, OpenKind, OpenSnapshot, SessionSnapshot, Snapshot, Summary,
};
use proto::time::Instant;
use serde::{Deserialize, Serialize};
use wire::FileTime;
use wire::access::{AccessMask, OplockLevel, ShareAccess};
use wire::create_context::LeaseState;

use crate::connection_id;

/// Version of the JSON form of the status. It rises when a field changes its meaning.
pub const VERSION: u32 = 2;

/// The status of a running server, which serializes to JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Version of the JSON form: [`VERSION`] of the server.
    pub version: u32,
    /// Name, version, process id and addresses of the server process.
    pub server: ServerStatus,
    /// Open connections of clients, at most 10,000.
    pub connections: Vec<ConnectionStatus>,
    /// Open sessions, at most 10,000.
    pub sessions: Vec<SessionStatus>,
    /// Open files, directories and pipes, at most 50,000.
    pub files: Vec<FileStatus>,
    /// Durable open files without a session, which wait for their clients, at most 50,000.
    #[serde(default)]
    pub disconnected: Vec<DisconnectedStatus>,
    /// Numbers of durable open files without a session: now, and since the start.
    #[serde(default)]
    pub disconnected_counts: DisconnectedCounts,
    /// Numbers of the connections, sessions and files that the lists omit because of their limits,
    /// and of the workers that did not answer.
    pub left_out: LeftOut,
}

/// Name, version, process id and addresses of the server process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// Name of the server that clients receive.
    pub name: String,
    /// Version of the smbeam program, for example `0.1.0`.
    pub release: String,
    /// Process id of the server.
    pub pid: u32,
    /// Configuration file of the server; `None` if it was started without one.
    pub config: Option<std::path::PathBuf>,
    /// Start time in seconds since 1970 (UTC).
    pub since: u64,
    /// Addresses that the server listens on.
    pub listening: Vec<ListeningStatus>,
    /// Time in seconds since 1970 (UTC) at which the configuration in effect was read.
    #[serde(default)]
    pub configured: u64,
    /// Number of worker threads, which serve the connections.
    pub workers: usize,
    /// Totals of all connections since the start, also of closed ones.
    #[serde(default)]
    pub totals: TotalsStatus,
    /// The shares of files, disabled ones included.
    #[serde(default)]
    pub shares: Vec<ShareStatus>,
    /// The audit log; `None` if the server has none.
    #[serde(default)]
    pub audit: Option<AuditStatus>,
}

/// A share of files, as the [`Status`] of a running server shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareStatus {
    /// Name of the share.
    pub name: String,
    /// Path of the shared directory on the machine of the server.
    pub path: std::path::PathBuf,
    /// Whether clients can use the share. An administrator disables a share by `smbeam share
    /// disable`.
    pub is_enabled: bool,
}

/// The audit log of a running server, as its [`Status`] shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditStatus {
    /// Path of the file, or `journald`.
    pub target: String,
    /// Number of records that were written since the start of the server.
    pub written: u64,
    /// Number of records that were lost since the start of the server: the queue was full, or a
    /// write failed.
    pub lost: u64,
}

/// Totals of all connections since the start of the server, as its [`Status`] shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalsStatus {
    /// Number of accepted connections.
    pub connections: u64,
    /// Number of successful logins, renewed logins and further connections of sessions included.
    pub logins: u64,
    /// Number of bytes received from clients, including the length prefixes of frames.
    pub received: u64,
    /// Number of bytes sent to clients, including the length prefixes of frames.
    pub sent: u64,
    /// Number of answered requests.
    pub answered: u64,
    /// Number of answered requests with an error status.
    pub errors: u64,
}

/// An address that a running server listens on, as its [`Status`] shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListeningStatus {
    /// Transport of the connections: `tcp`, `nbt`, `quic` or `smbdirect`.
    pub transport: String,
    /// Address and port, for example `192.0.2.1:445`.
    pub address: String,
}

/// A connection of a client, as the [`Status`] of a running server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionStatus {
    /// Identifier of the connection in the status: index of its worker, a dot, and its number on
    /// the worker.
    pub id: String,
    /// Address and port of the client.
    pub peer: String,
    /// Address and port of the server; `None` if they are not known.
    pub local: Option<String>,
    /// Transport of the connection: `tcp`, `nbt`, `quic` or `smbdirect`.
    pub transport: String,
    /// Kind of the RDMA network: `iWARP`, `RoCE`, `InfiniBand` or `emulated`. `None` for other
    /// transports than SMB Direct, and if the device is not known.
    #[serde(default)]
    pub rdma: Option<String>,
    /// Time at which the server accepted the connection, in seconds since 1970 (UTC).
    pub since: u64,
    /// Negotiated dialect, for example `3.1.1`; `None` before the negotiation.
    pub dialect: Option<String>,
    /// Negotiated cipher; `None` if the connection cannot encrypt.
    pub cipher: Option<String>,
    /// Negotiated signing algorithm; `None` before the negotiation.
    pub signing: Option<String>,
    /// Number of bytes received from the client, including the length prefixes of frames.
    pub received: u64,
    /// Number of bytes sent to the client, including the length prefixes of frames.
    pub sent: u64,
    /// Number of requests that the server has not answered yet.
    pub requests: usize,
    /// Number of requests that the server has answered.
    #[serde(default)]
    pub answered: u64,
    /// Number of answered requests with an error status. Many are no faults: a client that looks
    /// for a file receives an error if it does not exist.
    #[serde(default)]
    pub errors: u64,
    /// Protection that the server requires of the messages of the sessions on the connection; of
    /// the weakest of them: `encrypted` (by SMB), `tls` (by QUIC), `signed` or `none`. The cipher
    /// and the signing algorithm are only those that both ends negotiated. `None` without a
    /// session.
    #[serde(default)]
    pub protection: Option<Protection>,
    /// Identifiers ([`SessionStatus::id`]) of the sessions on the connection.
    pub sessions: Vec<String>,
    /// Measurements of the network path; `None` unless the transport is QUIC.
    pub path: Option<PathStatus>,
}

/// The protection of messages, in the status; the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protection {
    /// The server accepts messages without any protection.
    None,
    /// Messages are signed.
    Signed,
    /// The transport encrypts all messages: TLS in QUIC.
    Tls,
    /// All messages are encrypted by SMB.
    Encrypted,
}

impl Protection {
    /// The protection that the server requires on a session, without that of the transport.
    pub fn of(session: &SessionStatus) -> Self {
        match (session.is_encrypted, session.is_signed) {
            (true, _) => Self::Encrypted,
            (false, true) => Self::Signed,
            (false, false) => Self::None,
        }
    }
}

/// Measurements of the network path of a QUIC connection, as the [`Status`] of a server shows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathStatus {
    /// Congestion controller of the server: `cubic`, `bbr` or `newreno`.
    pub congestion: String,
    /// Congestion window of the server in bytes: maximum of sent bytes in flight.
    pub window: u64,
    /// Smoothed round-trip time of the path in microseconds.
    pub round_trip_us: u64,
    /// Largest datagram in bytes, without the headers of UDP and IP, that the network path
    /// transports.
    pub datagram: u16,
    /// Number of datagrams that the server sent on the connection.
    pub datagrams_sent: u64,
    /// Number of sent datagrams that were lost.
    pub datagrams_lost: u64,
}

impl From<net::quic::Path> for PathStatus {
    fn from(path: net::quic::Path) -> Self {
        Self {
            congestion: path.congestion.name().to_owned(),
            window: path.window,
            round_trip_us: u64::try_from(path.round_trip.as_micros()).unwrap_or(u64::MAX),
            datagram: path.datagram,
            datagrams_sent: path.sent,
            datagrams_lost: path.lost,
        }
    }
}

/// A session (login) of a user, as the [`Status`] of a running server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// SessionId of the session, 16 hexadecimal digits.
    pub id: String,
    /// Name of the user; empty for anonymous sessions.
    pub user: String,
    /// Kind of the login: `named`, `guest` or `anonymous`.
    pub kind: String,
    /// Negotiated dialect of the connections of the session, for example `3.1.1`.
    pub dialect: String,
    /// Time of the first login in seconds since 1970 (UTC).
    #[serde(default)]
    pub since: u64,
    /// Whether the server requires signed requests on the session.
    pub is_signed: bool,
    /// Whether all messages must be encrypted (Session.EncryptData). A share can require encryption
    /// separately, and a client can encrypt although the server does not require it.
    pub is_encrypted: bool,
    /// Cipher of the session; `None` if it cannot encrypt.
    pub cipher: Option<String>,
    /// Signing algorithm of the session.
    pub signing: String,
    /// Identifiers ([`ConnectionStatus::id`]) of the connections of the session.
    pub channels: Vec<String>,
    /// Connections of the session to shares (tree connects).
    pub trees: Vec<TreeStatus>,
    /// Number of files, directories and pipes that the session has open.
    pub files: usize,
}

/// A connection of a session to a share (a tree connect), as the [`Status`] of a server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeStatus {
    /// TreeId of the connection to the share.
    pub id: u32,
    /// Name of the share that the session is connected to.
    pub share: String,
}

/// An open file, directory or pipe, as the [`Status`] of a running server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileStatus {
    /// Identifier of the open on the server, 1 to 16 hexadecimal digits: the persistent part of its
    /// FileId. Empty from a server of an older version.
    #[serde(default)]
    pub id: String,
    /// SessionId of the session that opened the file, 16 hexadecimal digits.
    pub session: String,
    /// Name of the user of the session; empty for anonymous sessions.
    pub user: String,
    /// Name of the share with the file.
    pub share: String,
    /// Path of the file in the share; empty for its root.
    pub path: String,
    /// Kind of the open: `file`, `directory` or `pipe`.
    pub kind: String,
    /// Access that the open has, in words: `read`, `write`, `append`, `execute`, `delete`.
    pub access: Vec<String>,
    /// Access that the open has, as the bits of an ACCESS_MASK. \[MS-SMB2\] 2.2.13.1
    pub access_mask: u32,
    /// Share mode of the open, the access that other opens of the file may have: `read`, `write`,
    /// `delete`.
    pub sharing: Vec<String>,
    /// Oplock that the open holds: `none`, `level2`, `exclusive`, `batch`; `lease` for an open with
    /// a lease.
    pub oplock: String,
    /// Caching rights that the open has by its oplock or lease: `read`, `write`, `handle`. During a
    /// break, the rights before it.
    pub caching: Vec<String>,
    /// Byte-range locks that the open holds, at most 64 of them.
    pub locks: Vec<LockStatus>,
    /// Number of byte-range locks that the open holds, including those beyond the listed 64.
    pub lock_count: usize,
}

/// A durable open file without a session, as the [`Status`] of a running server shows it. Its
/// client lost the connection and can still reconnect to the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DisconnectedStatus {
    /// Identifier of the open on the server, as [`FileStatus::id`].
    #[serde(default)]
    pub id: String,
    /// Name of the user that opened the file.
    pub user: String,
    /// Name of the share with the file.
    pub share: String,
    /// Path of the file in the share.
    pub path: String,
    /// Time until the server closes the file, in milliseconds.
    pub remaining_ms: u64,
}

/// Numbers of durable open files without a session, as the [`Status`] of a running server shows
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisconnectedCounts {
    /// Number of files that wait for their clients now.
    pub now: usize,
    /// Number of files to which a client reconnected, since the start of the server.
    pub reclaimed: u64,
    /// Number of files that the server closed at their time limit, since its start.
    pub expired: u64,
    /// Number of files that the server closed before, because another client needed the file or the
    /// account of the user ended, since its start.
    pub given_up: u64,
}

/// A byte-range lock on an open file, as the [`Status`] of a running server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockStatus {
    /// Offset of the first locked byte in the file.
    pub offset: u64,
    /// Length of the locked range in bytes.
    pub length: u64,
    /// Whether the lock is exclusive; otherwise it is shared.
    pub is_exclusive: bool,
}

/// Counts of entries that the status omits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Number of open connections beyond the limit of the list.
    pub connections: usize,
    /// Number of open sessions beyond the limit of the list.
    pub sessions: usize,
    /// Number of open files that the list omits. Files of omitted sessions do not count.
    pub files: usize,
    /// Number of workers that did not answer in time. Their connections are missing.
    pub workers: usize,
}

/// The id of a connection in a status.
pub(crate) fn connection_name(id: ConnectionId) -> String {
    let (worker, number) = (connection_id::worker_of(id), connection_id::number_of(id));
    format!("{worker}.{number}")
}

/// Adds the state that the core has of a connection.
pub(crate) fn complete(mut known: ConnectionStatus, summary: &Summary) -> ConnectionStatus {
    known.dialect = summary.dialect.map(|dialect| dialect.to_string());
    known.cipher = summary.cipher.map(|cipher| cipher.name().to_owned());
    known.signing = summary.signing.map(|signing| signing.name().to_owned());
    known.requests = summary.requests;
    known.answered = summary.responses.all;
    known.errors = summary.responses.errors;
    let sessions = summary.sessions.iter();
    known.sessions = sessions.map(|(id, _)| session_name(*id)).collect();
    known
}

/// The sessions and the files of a snapshot of the core.
pub(crate) fn of_snapshot(snapshot: &Snapshot) -> (Vec<SessionStatus>, Vec<FileStatus>) {
    let sessions = snapshot.sessions.iter().map(session).collect();
    let files = snapshot.sessions.iter().flat_map(|session| {
        let opens = session.opens.iter();
        opens.map(move |open| file(session, open))
    });
    (sessions, files.collect())
}

/// The durable open files without a session of a snapshot, at the time `now` of the core's clock.
pub(crate) fn disconnected(
    snapshot: &Snapshot,
    now: Instant,
) -> (Vec<DisconnectedStatus>, DisconnectedCounts) {
    let DisconnectedTotals {
        reclaimed,
        expired,
        given_up,
    } = snapshot.disconnected_totals;
    let counts = DisconnectedCounts {
        now: snapshot.disconnected_count,
        reclaimed,
        expired,
        given_up,
    };
    let files = snapshot.disconnected.iter().map(|open| {
        let remaining = open.deadline.0.saturating_sub(now.0);
        DisconnectedStatus {
            id: open_name(open.id),
            user: open.user.clone(),
            share: open.share.clone(),
            path: open.path.clone(),
            remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
        }
    });
    (files.collect(), counts)
}

/// Sets the protection of connections, by their sessions and their transports.
pub(crate) fn set_protection(connections: &mut [ConnectionStatus], sessions: &[SessionStatus]) {
    let of_session: HashMap<&str, Protection> = sessions
        .iter()
        .map(|session| (session.id.as_str(), Protection::of(session)))
        .collect();
    for connection in connections {
        let of_transport = match connection.transport.as_str() {
            "quic" => Protection::Tls,
            _ => Protection::None,
        };
        let known = connection.sessions.iter();
        let known = known.filter_map(|id| of_session.get(id.as_str()));
        connection.protection = known.map(|of| (*of).max(of_transport)).min();
    }
}

fn session(session: &SessionSnapshot) -> SessionStatus {
    let trees = session.trees.iter().map(|tree| TreeStatus {
        id: tree.id.0,
        share: tree.share.clone(),
    });
    SessionStatus {
        id: session_name(session.id),
        user: session.account.name.clone(),
        kind: kind_name(session.account.kind).to_owned(),
        dialect: session.dialect.to_string(),
        since: unix_seconds(session.created),
        is_signed: session.signing_required,
        is_encrypted: session.encrypt,
        cipher: session.cipher.map(|cipher| cipher.name().to_owned()),
        signing: session.signing.name().to_owned(),
        channels: session
            .channels
            .iter()
            .copied()
            .map(connection_name)
            .collect(),
        trees: trees.collect(),
        files: session.opens.len(),
    }
}

fn file(session: &SessionSnapshot, open: &OpenSnapshot) -> FileStatus {
    let locks = open.locks.iter().map(|lock| LockStatus {
        offset: lock.offset,
        length: lock.length,
        is_exclusive: lock.is_exclusive,
    });
    FileStatus {
        id: open_name(open.id),
        session: session_name(session.id),
        user: session.account.name.clone(),
        share: open.share.clone(),
        path: open.path.clone(),
        kind: match open.kind {
            OpenKind::File => "file",
            OpenKind::Directory => "directory",
            OpenKind::Pipe => "pipe",
        }
        .to_owned(),
        access: access_names(open.access),
        access_mask: open.access.0,
        sharing: sharing_names(open.sharing),
        oplock: match open.oplock {
            OplockLevel::NONE => "none",
            OplockLevel::II => "level2",
            OplockLevel::EXCLUSIVE => "exclusive",
            OplockLevel::BATCH => "batch",
            _ => "lease",
        }
        .to_owned(),
        caching: caching_names(open.caching),
        locks: locks.collect(),
        lock_count: open.lock_count,
    }
}

/// The name of a kind of login.
pub(crate) fn kind_name(kind: AccountKind) -> &'static str {
    match kind {
        AccountKind::Named => "named",
        AccountKind::Guest => "guest",
        AccountKind::Anonymous => "anonymous",
    }
}

fn unix_seconds(time: FileTime) -> u64 {
    let (seconds, _) = time.to_unix();
    u64::try_from(seconds).unwrap_or(0)
}

fn open_name(id: wire::FileId) -> String {
    format!("{:x}", id.persistent)
}

fn session_name(id: wire::SessionId) -> String {
    format!("{:016x}", id.0)
}

/// The names of the main rights of an access mask.
pub(crate) fn access_names(access: AccessMask) -> Vec<String> {
    let names = [
        (AccessMask::FILE_READ_DATA, "read"),
        (AccessMask::FILE_WRITE_DATA, "write"),
        (AccessMask::FILE_APPEND_DATA, "append"),
        (AccessMask::FILE_EXECUTE, "execute"),
        (AccessMask::DELETE, "delete"),
    ];
    held(names, |right| access.contains(right))
}

/// The names of the rights that the predicate selects.
fn held<T: Copy, const N: usize>(
    names: [(T, &str); N],
    is_held: impl Fn(T) -> bool,
) -> Vec<String> {
    let held = names.into_iter().filter(|(right, _)| is_held(*right));
    held.map(|(_, name)| name.to_owned()).collect()
}

fn caching_names(rights: LeaseState) -> Vec<String> {
    let names = [
        (LeaseState::READ_CACHING, "read"),
        (LeaseState::WRITE_CACHING, "write"),
        (LeaseState::HANDLE_CACHING, "handle"),
    ];
    held(names, |right| rights.contains(right))
}

fn sharing_names(sharing: ShareAccess) -> Vec<String> {
    let names = [
        (ShareAccess::READ, "read"),
        (ShareAccess::WRITE, "write"),
        (ShareAccess::DELETE, "delete"),
    ];
    held(names, |right| sharing.contains(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, is_encrypted: bool, is_signed: bool) -> SessionStatus {
        SessionStatus {
            id: id.to_owned(),
            user: String::new(),
            kind: "named".to_owned(),
            dialect: "3.1.1".to_owned(),
            since: 0,
            is_signed,
            is_encrypted,
            cipher: None,
            signing: "AES-CMAC".to_owned(),
            channels: Vec::new(),
            trees: Vec::new(),
            files: 0,
        }
    }

    #[test]
    fn a_connection_has_the_protection_of_its_weakest_session() {
        let sessions = [
            session("open", false, false),
            session("signed", false, true),
            session("encrypted", true, true),
        ];
        let of = |transport: &str, ids: &[&str]| {
            let mut connections = [ConnectionStatus {
                transport: transport.to_owned(),
                sessions: ids.iter().map(ToString::to_string).collect(),
                ..ConnectionStatus::default()
            }];
            set_protection(&mut connections, &sessions);
            connections[0].protection
        };
        assert_eq!(of("tcp", &[]), None);
        assert_eq!(of("tcp", &["open"]), Some(Protection::None));
        assert_eq!(
            of("tcp", &["signed", "encrypted"]),
            Some(Protection::Signed)
        );
        assert_eq!(of("tcp", &["encrypted"]), Some(Protection::Encrypted));
        assert_eq!(of("quic", &["open", "encrypted"]), Some(Protection::Tls));
        assert_eq!(of("quic", &["encrypted"]), Some(Protection::Encrypted));
    }
}
