//! What a running server says of itself: connections, sessions, open files.
//!
//! The shape of its JSON is a promise; docs/cli.md has it. Fields are added, and neither renamed
//! nor given another meaning.

use proto::id::ConnectionId;
use proto::login::AccountKind;
use proto::server::{OpenKind, OpenSnapshot, SessionSnapshot, Snapshot, Summary};
use serde::{Deserialize, Serialize};
use wire::access::{AccessMask, OplockLevel, ShareAccess};
use wire::dialect::Dialect;

use crate::connection_id;

/// The version of the shape.
pub const VERSION: u32 = 2;

/// What a running server says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// [`VERSION`].
    pub version: u32,
    /// The process.
    pub server: ServerStatus,
    /// Its connections.
    pub connections: Vec<ConnectionStatus>,
    /// The logins on them.
    pub sessions: Vec<SessionStatus>,
    /// What is open.
    pub files: Vec<FileStatus>,
    /// What is not listed.
    pub left_out: LeftOut,
}

/// The process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerStatus {
    /// The name that clients see.
    pub name: String,
    /// The release of smbeam.
    pub release: String,
    /// Its process.
    pub pid: u32,
    /// The file that it was started with.
    pub config: Option<std::path::PathBuf>,
    /// When it started, in seconds since 1970 UTC.
    pub since: u64,
    /// Where it listens.
    pub listening: Vec<ListeningStatus>,
    /// How many workers it has.
    pub workers: usize,
}

/// Where a server listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListeningStatus {
    /// `tcp`, `nbt`, `quic`, `smbdirect`.
    pub transport: String,
    /// Address and port.
    pub address: String,
}

/// A connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionStatus {
    /// Its number: that of the worker, a dot, and that among the connections of the worker.
    pub id: String,
    /// Address and port of the client.
    pub peer: String,
    /// Address and port of this side.
    pub local: Option<String>,
    /// `tcp`, `nbt`, `quic`, `smbdirect`.
    pub transport: String,
    /// When it was accepted, in seconds since 1970 UTC.
    pub since: u64,
    /// `3.1.1` and so on; none before it is agreed on.
    pub dialect: Option<String>,
    /// The cipher for what is sealed; none where nothing can be.
    pub cipher: Option<String>,
    /// The algorithm for what is signed; none before it is agreed on.
    pub signing: Option<String>,
    /// Bytes received, with the prefixes of frames.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Requests under way.
    pub requests: usize,
    /// The sessions that it carries.
    pub sessions: Vec<String>,
    /// What QUIC has found out about the path; none on other transports.
    pub path: Option<PathStatus>,
}

/// A path, as a connection of QUIC has found it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathStatus {
    /// `cubic`, `bbr`, `newreno`: who decides how much may be under way.
    pub congestion: String,
    /// Bytes that may be under way.
    pub window: u64,
    /// The round trip in microseconds.
    pub round_trip_us: u64,
    /// Bytes of the largest datagram that it takes.
    pub datagram: u16,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Those of them that were lost.
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

/// A login.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its number, 16 hexadecimal digits.
    pub id: String,
    /// The user; empty for nobody.
    pub user: String,
    /// `named`, `guest` or `anonymous`.
    pub kind: String,
    /// The dialect.
    pub dialect: String,
    /// Whether everything has to be signed.
    pub is_signed: bool,
    /// Whether all messages must be encrypted (Session.EncryptData). A share can require encryption
    /// on its own, and a client can encrypt although the server does not require it.
    pub is_encrypted: bool,
    /// The cipher for what is sealed.
    pub cipher: Option<String>,
    /// The algorithm for what is signed.
    pub signing: String,
    /// The connections that carry it.
    pub channels: Vec<String>,
    /// The shares that it has entered.
    pub trees: Vec<TreeStatus>,
    /// How many of the files are its.
    pub files: usize,
}

/// A share that a session has entered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TreeStatus {
    /// Its number within the session.
    pub id: u32,
    /// The share.
    pub share: String,
}

/// A file, a directory or a pipe that is open.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileStatus {
    /// The session.
    pub session: String,
    /// The user; empty for nobody.
    pub user: String,
    /// The share.
    pub share: String,
    /// Its name within the share; empty for the root.
    pub path: String,
    /// `file`, `directory` or `pipe`.
    pub kind: String,
    /// What it may do: `read`, `write`, `append`, `execute`, `delete`.
    pub access: Vec<String>,
    /// The same as the specification's number.
    pub access_mask: u32,
    /// What others may do beside it: `read`, `write`, `delete`.
    pub sharing: Vec<String>,
    /// What its client may cache: `none`, `level2`, `exclusive`, `batch`.
    pub oplock: String,
    /// Byte-range locks, the first of them where there are many.
    pub locks: Vec<LockStatus>,
    /// How many there are.
    pub lock_count: usize,
}

/// A byte-range lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LockStatus {
    /// The first byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Whether others may not even read.
    pub is_exclusive: bool,
}

/// How much is not listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Connections beyond those that are listed.
    pub connections: usize,
    /// Sessions beyond those that are listed.
    pub sessions: usize,
    /// Files of listed sessions beyond those that are listed.
    pub files: usize,
    /// Workers that did not answer in time; their connections are missing.
    pub workers: usize,
}

/// The name of a connection.
pub(crate) fn connection_name(id: ConnectionId) -> String {
    let (worker, number) = (connection_id::worker_of(id), connection_id::number_of(id));
    format!("{worker}.{number}")
}

/// What the core knows of a connection, over what its driver knows.
pub(crate) fn complete(mut known: ConnectionStatus, summary: &Summary) -> ConnectionStatus {
    known.dialect = summary.dialect.map(dialect_name);
    known.cipher = summary.cipher.map(|cipher| cipher_name(cipher).to_owned());
    known.signing = summary
        .signing
        .map(|signing| signing_name(signing).to_owned());
    known.requests = summary.requests;
    let sessions = summary.sessions.iter();
    known.sessions = sessions.map(|(id, _)| session_name(*id)).collect();
    known
}

/// The sessions and the files of a snapshot.
pub(crate) fn of_snapshot(snapshot: &Snapshot) -> (Vec<SessionStatus>, Vec<FileStatus>) {
    let sessions = snapshot.sessions.iter().map(session).collect();
    let files = snapshot.sessions.iter().flat_map(|session| {
        let opens = session.opens.iter();
        opens.map(move |open| file(session, open))
    });
    (sessions, files.collect())
}

fn session(session: &SessionSnapshot) -> SessionStatus {
    let trees = session.trees.iter().map(|tree| TreeStatus {
        id: tree.id.0,
        share: tree.share.clone(),
    });
    SessionStatus {
        id: session_name(session.id),
        user: session.account.name.clone(),
        kind: match session.account.kind {
            AccountKind::Named => "named",
            AccountKind::Guest => "guest",
            AccountKind::Anonymous => "anonymous",
        }
        .to_owned(),
        dialect: dialect_name(session.dialect),
        is_signed: session.signing_required,
        is_encrypted: session.encrypt,
        cipher: session.cipher.map(|cipher| cipher_name(cipher).to_owned()),
        signing: signing_name(session.signing).to_owned(),
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
        locks: locks.collect(),
        lock_count: open.lock_count,
    }
}

fn session_name(id: wire::SessionId) -> String {
    format!("{:016x}", id.0)
}

fn dialect_name(dialect: Dialect) -> String {
    match dialect {
        Dialect::SMB_2_0_2 => "2.0.2".to_owned(),
        Dialect::SMB_2_1 => "2.1".to_owned(),
        Dialect::SMB_3_0 => "3.0".to_owned(),
        Dialect::SMB_3_0_2 => "3.0.2".to_owned(),
        Dialect::SMB_3_1_1 => "3.1.1".to_owned(),
        other => format!("{:#06x}", other.0),
    }
}

fn cipher_name(cipher: crypto::Cipher) -> &'static str {
    match cipher {
        crypto::Cipher::Aes128Ccm => "AES-128-CCM",
        crypto::Cipher::Aes128Gcm => "AES-128-GCM",
        crypto::Cipher::Aes256Ccm => "AES-256-CCM",
        crypto::Cipher::Aes256Gcm => "AES-256-GCM",
    }
}

fn signing_name(signing: crypto::SigningAlgorithm) -> &'static str {
    match signing {
        crypto::SigningAlgorithm::HmacSha256 => "HMAC-SHA256",
        crypto::SigningAlgorithm::AesCmac => "AES-CMAC",
        crypto::SigningAlgorithm::AesGmac => "AES-GMAC",
    }
}

fn access_names(access: AccessMask) -> Vec<String> {
    let names = [
        (AccessMask::FILE_READ_DATA, "read"),
        (AccessMask::FILE_WRITE_DATA, "write"),
        (AccessMask::FILE_APPEND_DATA, "append"),
        (AccessMask::FILE_EXECUTE, "execute"),
        (AccessMask::DELETE, "delete"),
    ];
    let held = names
        .into_iter()
        .filter(|(right, _)| access.contains(*right));
    held.map(|(_, name)| name.to_owned()).collect()
}

fn sharing_names(sharing: ShareAccess) -> Vec<String> {
    let names = [
        (ShareAccess::READ, "read"),
        (ShareAccess::WRITE, "write"),
        (ShareAccess::DELETE, "delete"),
    ];
    let held = names
        .into_iter()
        .filter(|(right, _)| sharing.contains(*right));
    held.map(|(_, name)| name.to_owned()).collect()
}
