//! The configuration of a server.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use wire::Guid;
use wire::dialect::Dialect;

use crate::file::ShareId;
use crate::token::Token;

/// Bytes of the largest READ, WRITE and transaction. \[MS-SMB2\] 3.3.5.4 asks for 65536 at least;
/// Windows offers 8 MiB.
pub const MAX_IO: u32 = 8 << 20;

/// The configuration of a server. It does not change while the server runs.
/// \[MS-SMB2\] 3.3.1.5
#[derive(Clone, Debug)]
pub struct Config {
    /// The NetBIOS name that clients see in replies about the server. At most 15 characters.
    pub name: String,
    /// The domain or workgroup; the name where there is none.
    pub domain: String,
    /// A description of the server.
    pub comment: String,
    /// ServerGuid.
    pub guid: Guid,
    /// Oldest dialect.
    pub min_dialect: Dialect,
    /// Newest dialect.
    pub max_dialect: Dialect,
    /// What the server says first in a login: the SPNEGO token of the NEGOTIATE response, which
    /// names the mechanisms. The driver makes it from its authenticator; empty leaves it to the
    /// client. \[MS-SMB2\] 2.2.4
    pub security_blob: Vec<u8>,
    /// RequireMessageSigning.
    pub signing_required: bool,
    /// RejectUnencryptedAccess: every session is encrypted.
    pub encryption_required: bool,
    /// Whether SMB encryption may be left to a transport that encrypts, if the client asks for it.
    /// Otherwise messages that must be encrypted are encrypted over QUIC once more. \[MS-SMB2\]
    /// 2.2.3.1.5
    pub transport_security: bool,
    /// Whether a session may be carried by several connections. \[MS-SMB2\] 3.3.1.5,
    /// IsMultiChannelCapable
    pub multichannel: bool,
    /// Ciphers, the best first.
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms, the best first.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Bytes of the largest READ.
    pub max_read: u32,
    /// Bytes of the largest WRITE.
    pub max_write: u32,
    /// Bytes of the largest transaction: QUERY_DIRECTORY, QUERY_INFO, SET_INFO, IOCTL.
    pub max_transact: u32,
    /// The limits.
    pub limits: Limits,
    /// The shares; `ShareId` is the place in this list.
    pub shares: Vec<Arc<Share>>,
}

/// Limits on the resources that one client uses.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Credits of one connection. Samba and Windows give 8192.
    pub credits: u16,
    /// Messages of one compound.
    pub compound_messages: usize,
    /// Sessions of one connection.
    pub sessions_per_connection: usize,
    /// Connections of one session. Windows allows 32.
    pub channels_per_session: usize,
    /// Logins in progress on one connection.
    pub logins_per_connection: usize,
    /// Requests of one connection that were answered with an interim response: each has given
    /// its credits back. Samba and Windows allow 512.
    pub async_requests: usize,
    /// Tree connects of one session.
    pub trees_per_session: usize,
    /// Opens of one session.
    pub opens_per_session: usize,
    /// Opens of all sessions that one connection made. Each costs a descriptor and more.
    pub opens_per_connection: usize,
    /// Pipes of all sessions that one connection made. Each may hold some 60 KiB.
    pub pipes_per_connection: usize,
    /// Watched directories of all sessions that one connection made: each may keep 64 KiB of
    /// changes, and each change in the share checks it.
    pub watches_per_connection: usize,
    /// Byte-range locks of one open.
    pub locks_per_open: usize,
    /// Byte-range locks of one file.
    pub locks_per_file: usize,
    /// Requests of one connection that wait for a byte-range lock. Each keeps its credit or is one
    /// of the asynchronous ones, and each unlock checks it.
    pub lock_waits: usize,
    /// Maximum length in bytes of a frame that a connection without an authenticated session
    /// sends.
    pub frame_before_login: usize,
    /// How long a connection may be without a session.
    pub login_timeout: Duration,
    /// How long a login waits for the session that it replaces to close its opens.
    pub replace_timeout: Duration,
    /// Maximum number of opens without a session, of the whole server. Each holds a descriptor of
    /// the file system.
    pub disconnected_opens: usize,
    /// How long an open outlives a session that lost its last connection. Zero closes it at once.
    /// \[MS-SMB2\] 3.3.7.1
    pub disconnected_open_timeout: Duration,
    /// After how long a request that waits is answered with an interim response.
    pub interim_after: Duration,
    /// How long the holder of an oplock may take to acknowledge its break. Windows and Samba give
    /// it 35 s. \[MS-SMB2\] 3.3.2.1
    pub oplock_break_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            credits: 8192,
            compound_messages: 256,
            sessions_per_connection: 1024,
            channels_per_session: 32,
            logins_per_connection: 64,
            async_requests: 512,
            trees_per_session: 4096,
            opens_per_session: 65_536,
            opens_per_connection: 131_072,
            pipes_per_connection: 256,
            watches_per_connection: 1024,
            locks_per_open: 16_384,
            locks_per_file: 65_536,
            lock_waits: 512,
            frame_before_login: 256 << 10,
            login_timeout: Duration::from_secs(30),
            replace_timeout: Duration::from_secs(5),
            disconnected_opens: 16_384,
            disconnected_open_timeout: Duration::ZERO,
            interim_after: Duration::from_millis(500),
            oplock_break_timeout: Duration::from_secs(35),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: String::new(),
            domain: String::new(),
            comment: String::new(),
            guid: Guid::default(),
            min_dialect: Dialect::SMB_2_0_2,
            max_dialect: Dialect::SMB_3_1_1,
            security_blob: Vec::new(),
            signing_required: false,
            encryption_required: false,
            transport_security: false,
            multichannel: true,
            ciphers: CIPHER_PREFERENCE.to_vec(),
            signing_algorithms: SIGNING_PREFERENCE.to_vec(),
            max_read: MAX_IO,
            max_write: MAX_IO,
            max_transact: MAX_IO,
            limits: Limits::default(),
            shares: Vec::new(),
        }
    }
}

impl Config {
    /// The share of a name, without regard to case.
    pub(crate) fn find_share(&self, name: &str) -> Option<&Arc<Share>> {
        let name = folded(name);
        (self.shares.iter()).find(|share| folded(&share.name) == name)
    }
}

/// A name as it is compared: without regard to case.
pub(crate) fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// The kind of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareKind {
    /// Files.
    Disk,
    /// IPC$.
    Pipe,
}

/// A share. \[MS-SMB2\] 3.3.1.6
#[derive(Clone, Debug)]
pub struct Share {
    /// Its place in the list.
    pub id: ShareId,
    /// Its name, compared without regard to case.
    pub name: String,
    /// Files or pipes.
    pub kind: ShareKind,
    /// The comment in lists of shares.
    pub comment: String,
    /// Whether the share is read-only.
    pub read_only: bool,
    /// Shown in a list of shares.
    pub listed: bool,
    /// EncryptData: its requests must be encrypted.
    pub encryption_required: bool,
    /// Whether clients may cache what they open: not where others than this server change files.
    /// \[MS-SMB2\] 3.3.5.9
    pub oplocks: bool,
    /// Whether clients may watch directories. \[MS-SMB2\] 3.3.5.19
    pub notify: bool,
    /// The accounts that may connect; `None` for every named account.
    pub users: Option<Vec<String>>,
    /// Whether guest and anonymous sessions may enter.
    pub guest: bool,
    /// The identity of file operations, in place of that of the session.
    pub force_token: Option<Arc<Token>>,
}
