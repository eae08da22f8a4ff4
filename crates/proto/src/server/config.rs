//! The configuration of a server.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use wire::Guid;
use wire::dialect::Dialect;
use wire::upcase::is_same_name;

use crate::file::ShareId;
use crate::server::GmacChannels;
use crate::token::Token;

/// Default maximum length of a READ, WRITE and transaction in bytes: 8 MiB, as in Windows.
/// \[MS-SMB2\] 3.3.5.4
pub const MAX_IO: u32 = 8 << 20;

/// The configuration of the server's core. It does not change while the server runs. \[MS-SMB2\]
/// 3.3.1.5
#[derive(Clone, Debug)]
pub struct Config {
    /// NetBIOS name of the server, at most 15 characters. Clients receive it in responses about the
    /// server.
    pub name: String,
    /// Name of the domain or workgroup of the server; the name of the server if it has none.
    pub domain: String,
    /// Description of the server for users, in the list of servers.
    pub comment: String,
    /// ServerGuid, by which the server identifies itself in NEGOTIATE.
    pub guid: Guid,
    /// Oldest dialect that the server accepts.
    pub min_dialect: Dialect,
    /// Newest dialect that the server accepts.
    pub max_dialect: Dialect,
    /// The first security token of a login, in the NEGOTIATE response: it names the mechanisms of
    /// the server (SPNEGO). The driver takes it from its authenticator. If it is empty, the client
    /// sends the first token. \[MS-SMB2\] 2.2.4
    pub security_blob: Vec<u8>,
    /// Whether every session must sign its messages (RequireMessageSigning).
    pub signing_required: bool,
    /// Whether every session must encrypt its messages (RejectUnencryptedAccess).
    pub encryption_required: bool,
    /// Whether the encryption of QUIC replaces SMB encryption, if the client requests that.
    /// Otherwise messages that must be encrypted are encrypted again within QUIC. \[MS-SMB2\]
    /// 2.2.3.1.5
    pub transport_security: bool,
    /// Whether a session may use several connections. \[MS-SMB2\] 3.3.1.5, IsMultiChannelCapable
    pub multichannel: bool,
    /// How the server protects sessions of several connections if AES-GMAC is the best signing
    /// algorithm of both peers.
    pub gmac_channels: GmacChannels,
    /// Ciphers that the server accepts, the preferred one first.
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms that the server accepts, the preferred one first.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Maximum length of a READ in bytes.
    pub max_read: u32,
    /// Maximum length of a WRITE in bytes.
    pub max_write: u32,
    /// Maximum length in bytes of the buffer of a QUERY_DIRECTORY, QUERY_INFO, SET_INFO or IOCTL.
    pub max_transact: u32,
    /// Limits on the resources that clients use.
    pub limits: Limits,
    /// The shares of the server; a `ShareId` is the index in this list.
    pub shares: Vec<Arc<Share>>,
}

/// Limits on the resources of the server that clients use. A request beyond a limit fails, or its
/// connection ends.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of credits of one connection. Samba and Windows grant 8192.
    pub credits: u16,
    /// Maximum number of messages of one compound.
    pub compound_messages: usize,
    /// Maximum number of sessions of one connection.
    pub sessions_per_connection: usize,
    /// Maximum number of connections of one session. Windows allows 32.
    pub channels_per_session: usize,
    /// Maximum number of logins in progress on one connection.
    pub logins_per_connection: usize,
    /// Maximum number of pending requests of one connection that have an interim response, which
    /// returned their credits. Samba and Windows allow 512.
    pub async_requests: usize,
    /// Maximum number of tree connects of one session.
    pub trees_per_session: usize,
    /// Maximum number of open files of one session.
    pub opens_per_session: usize,
    /// Maximum number of open files that one connection opened, of all its sessions. Each costs a
    /// file descriptor and memory.
    pub opens_per_connection: usize,
    /// Maximum number of open pipes that one connection opened, of all its sessions. Each may use
    /// about 60 KiB.
    pub pipes_per_connection: usize,
    /// Maximum number of watched directories that one connection opened, of all its sessions. Each
    /// may store 64 KiB of changes, and each change in the share costs time for each of them.
    pub watches_per_connection: usize,
    /// Maximum number of byte-range locks of one open.
    pub locks_per_open: usize,
    /// Maximum number of byte-range locks of one file.
    pub locks_per_file: usize,
    /// Maximum number of requests of one connection that wait for a byte-range lock. Each unlock of
    /// the file checks them.
    pub lock_waits: usize,
    /// Maximum length in bytes of a frame from a client that has not logged in on the connection.
    pub frame_before_login: usize,
    /// Maximum time that a connection may exist without a session.
    pub login_timeout: Duration,
    /// Maximum time that a login waits until the opens of the session that it replaces are closed.
    pub replace_timeout: Duration,
    /// Maximum number of open files of the whole server that outlive their lost session. Each holds
    /// a file descriptor.
    pub disconnected_opens: usize,
    /// Time that an open file outlives a session that lost its last connection. Zero closes the
    /// file at once. \[MS-SMB2\] 3.3.7.1
    pub disconnected_open_timeout: Duration,
    /// Time after which a waiting request gets an interim response.
    pub interim_after: Duration,
    /// Maximum time that a client may take to acknowledge the break of an oplock or lease. Windows
    /// and Samba use 35 s. \[MS-SMB2\] 3.3.2.1
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
            gmac_channels: GmacChannels::default(),
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
        (self.shares.iter()).find(|share| is_same_name(&share.name, name))
    }
}

/// The kind of a share of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareKind {
    /// A share of files and directories.
    Disk,
    /// The share IPC$ of pipes, for remote procedure calls.
    Pipe,
}

/// A share of the server. \[MS-SMB2\] 3.3.1.6
#[derive(Clone, Debug)]
pub struct Share {
    /// Index of the share in [`Config::shares`].
    pub id: ShareId,
    /// Name of the share, compared without regard to case.
    pub name: String,
    /// Kind of the share: files or pipes.
    pub kind: ShareKind,
    /// Comment of the share in lists of shares.
    pub comment: String,
    /// Whether the share is read-only: clients cannot change files.
    pub read_only: bool,
    /// Whether lists of shares have the share. Clients can connect to it in any case.
    pub listed: bool,
    /// Whether requests to the share must be encrypted (Share.EncryptData).
    pub encryption_required: bool,
    /// Whether clients may cache files by oplocks and leases. Not suitable where other programs
    /// than this server change files. \[MS-SMB2\] 3.3.5.9
    pub oplocks: bool,
    /// Whether clients may watch directories for changes. \[MS-SMB2\] 3.3.5.19
    pub notify: bool,
    /// Names of the accounts that may connect to the share; `None` for every named account.
    pub users: Option<Vec<String>>,
    /// Whether guests and anonymous users may connect to the share.
    pub guest: bool,
    /// Identity of all file operations on the share; `None` uses the identity of the session.
    pub force_token: Option<Arc<Token>>,
}
