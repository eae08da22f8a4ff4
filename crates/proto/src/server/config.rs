//! The configuration of a server.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use wire::Guid;
use wire::dialect::Dialect;
use wire::security::Sid;

use crate::audit::Rules;
use crate::file::ShareId;
use crate::server::GmacChannels;
use crate::server::hosts::HostRules;
use crate::server::share_users::ShareUsers;
use crate::token::Token;

/// Default maximum length of a READ, WRITE and transaction in bytes: 8 MiB, as in Windows.
/// \[MS-SMB2\] 3.3.5.4
pub const MAX_IO: u32 = 8 << 20;

/// The configuration of the server's protocol core. `Server::reconfigure` replaces it.
/// \[MS-SMB2\] 3.3.1.5
#[derive(Clone, Debug)]
pub struct Config {
    /// NetBIOS name of the server, at most 15 characters. Clients receive it in responses that
    /// describe the server.
    pub name: String,
    /// NetBIOS name of the domain or workgroup of the server; the name of the server if it has
    /// none. Clients receive it in responses about the server.
    pub domain: String,
    /// SID of the domain of the server's own accounts, which clients receive by RPC (lsarpc);
    /// `None` if the server has none.
    pub account_domain: Option<Sid>,
    /// Description of the server for display, which clients receive by RPC (srvsvc). May be empty.
    pub comment: String,
    /// ServerGuid, by which the server identifies itself in NEGOTIATE.
    pub guid: Guid,
    /// Oldest SMB dialect that the server accepts. Default: 2.0.2.
    pub min_dialect: Dialect,
    /// Newest SMB dialect that the server accepts. Default: 3.1.1.
    pub max_dialect: Dialect,
    /// The server's first security token of a login (SPNEGO), which lists its authentication
    /// mechanisms; part of the NEGOTIATE response. The I/O driver gets it from its authenticator.
    /// If it is empty, the client sends the first token. \[MS-SMB2\] 2.2.4
    pub security_blob: Vec<u8>,
    /// Whether all messages of every session must be signed (RequireMessageSigning). Default:
    /// false.
    pub signing_required: bool,
    /// Whether all messages of every session must be encrypted; unencrypted requests fail
    /// (RejectUnencryptedAccess). Default: false.
    pub encryption_required: bool,
    /// Whether the encryption of QUIC replaces SMB encryption, if the client requests that.
    /// Otherwise messages that must be encrypted are encrypted again within QUIC. Default: false.
    /// \[MS-SMB2\] 2.2.3.1.5
    pub transport_security: bool,
    /// Whether logins, log-offs and TREE_CONNECTs to unknown shares are events of the audit log.
    /// Default: false.
    pub audit: bool,
    /// Whether a session may use several connections. Default: true. \[MS-SMB2\] 3.3.1.5,
    /// IsMultiChannelCapable
    pub multichannel: bool,
    /// The protection of sessions with several connections if AES-GMAC is the best signing
    /// algorithm of both peers. AES-GMAC alone is not safe for them.
    pub gmac_channels: GmacChannels,
    /// Encryption algorithms that the server accepts, the preferred one first.
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms that the server accepts, the preferred one first.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Maximum length of a READ in bytes that the server announces and accepts. Default: 8 MiB.
    pub max_read: u32,
    /// Maximum length of a WRITE in bytes that the server announces and accepts. Default: 8 MiB.
    pub max_write: u32,
    /// Maximum length in bytes of the buffer of a QUERY_DIRECTORY, QUERY_INFO, SET_INFO or IOCTL.
    /// Default: 8 MiB.
    pub max_transact: u32,
    /// Limits on the memory, open files, sessions and time that clients use.
    pub limits: Limits,
    /// The shares of the server. Each has another [`ShareId`].
    pub shares: Vec<Arc<Share>>,
}

/// Limits on the resources of the server that clients use. A request beyond a limit fails, or its
/// connection ends.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of credits that the server grants to one connection. Default: 8192, as Samba
    /// and Windows.
    pub credits: u16,
    /// Maximum number of messages of one compound; a longer one ends the connection. Default: 256.
    pub compound_messages: usize,
    /// Maximum number of sessions of one connection. Default: 1024.
    pub sessions_per_connection: usize,
    /// Maximum number of connections (channels) of one session. Default: 32, as in Windows.
    pub channels_per_session: usize,
    /// Maximum number of logins in progress on one connection. Default: 64.
    pub logins_per_connection: usize,
    /// Maximum number of pending requests of one connection that have an interim response, which
    /// returns their credits. Default: 512, as in Samba and Windows.
    pub async_requests: usize,
    /// Maximum number of tree connects (uses of a share) of one session. Default: 4096.
    pub trees_per_session: usize,
    /// Maximum number of open files of one session. Default: 65,536.
    pub opens_per_session: usize,
    /// Maximum number of open files that one connection opened, of all its sessions. Each needs a
    /// file descriptor and memory. Default: 131,072.
    pub opens_per_connection: usize,
    /// Maximum number of open pipes that one connection opened, of all its sessions. Each may use
    /// about 60 KiB of memory. Default: 256.
    pub pipes_per_connection: usize,
    /// Maximum number of watched directories that one connection opened, of all its sessions. Each
    /// may store 64 KiB of changes and costs time at each change in its share. Default: 1024.
    pub watches_per_connection: usize,
    /// Maximum number of connections of one user. A connection counts once for each of its
    /// sessions. Default: 8192.
    pub connections_per_user: usize,
    /// Maximum number of open files of one user. Default: 262,144.
    pub opens_per_user: usize,
    /// Maximum number of open pipes of one user. Each may use about 60 KiB. Default: 4096.
    pub pipes_per_user: usize,
    /// Maximum number of watched directories of one user. Each may store 64 KiB of changes.
    /// Default: 8192.
    pub watches_per_user: usize,
    /// Maximum number of byte-range locks of one user. Each uses about 120 bytes. Default:
    /// 1,048,576.
    pub locks_per_user: usize,
    /// Maximum number of bytes of all responses outside of the driver's buffer pool. Further
    /// requests wait. Default: 256 MiB.
    pub response_bytes: usize,
    /// Maximum number of byte-range locks that one open holds. Default: 16,384.
    pub locks_per_open: usize,
    /// Maximum number of byte-range locks on one file by all its opens. Default: 65,536.
    pub locks_per_file: usize,
    /// Maximum number of requests of one connection that wait for a byte-range lock. Each unlock of
    /// the file checks them. Default: 512.
    pub lock_waits: usize,
    /// Maximum length in bytes of a frame from a client that has not logged in on the connection. A
    /// longer frame ends the connection. Default: 256 KiB.
    pub frame_before_login: usize,
    /// Time after which a connection without a session ends. Default: 30 s.
    pub login_timeout: Duration,
    /// Maximum time that a login waits until the server has closed the open files of the session
    /// that the login replaces. Default: 5 s.
    pub replace_timeout: Duration,
    /// Maximum number of leases of one client, which a ClientGuid identifies. A further open gets
    /// no lease. Default: 65,536.
    pub leases_per_client: usize,
    /// Maximum number of leases of the whole server. A lease uses about 300 bytes of memory beside
    /// its opens. Default: 524,288.
    pub leases: usize,
    /// Maximum number of durable open files of the whole server that outlive their lost session.
    /// Each needs a file descriptor and at most 2 KiB of memory. Default: 16,384.
    pub disconnected_opens: usize,
    /// Maximum number of durable open files of one user that outlive their lost session. Default:
    /// 4096.
    pub disconnected_opens_per_user: usize,
    /// Maximum time that a durable or resilient open file outlives a lost session. A client may
    /// request less. Zero grants no durable opens. Default: 300 s, as in Windows and Samba.
    /// \[MS-SMB2\] 3.3.5.9.10, 3.3.5.15.9
    pub durable_timeout_max: Duration,
    /// Time after which a waiting request gets an interim response (STATUS_PENDING). Default: 500
    /// ms.
    pub interim_after: Duration,
    /// Maximum time that a client may take to acknowledge the break of an oplock or lease. Default:
    /// 35 s, as in Windows and Samba. \[MS-SMB2\] 3.3.2.1
    pub oplock_break_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            credits: 8192,
            compound_messages: 256,
            sessions_per_connection: 1024,
            channels_per_session: 32,
            logins_per_connection: 16,
            async_requests: 512,
            trees_per_session: 4096,
            opens_per_session: 65_536,
            opens_per_connection: 131_072,
            pipes_per_connection: 256,
            watches_per_connection: 1024,
            connections_per_user: 8192,
            opens_per_user: 262_144,
            pipes_per_user: 4096,
            watches_per_user: 8192,
            locks_per_user: 1 << 20,
            response_bytes: 256 << 20,
            locks_per_open: 16_384,
            locks_per_file: 65_536,
            lock_waits: 512,
            frame_before_login: 256 << 10,
            login_timeout: Duration::from_secs(30),
            replace_timeout: Duration::from_secs(5),
            leases_per_client: 65_536,
            leases: 524_288,
            disconnected_opens: 16_384,
            disconnected_opens_per_user: 4096,
            durable_timeout_max: Duration::from_secs(300),
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
            account_domain: None,
            comment: String::new(),
            guid: Guid::default(),
            min_dialect: Dialect::SMB_2_0_2,
            max_dialect: Dialect::SMB_3_1_1,
            security_blob: Vec::new(),
            signing_required: false,
            encryption_required: false,
            transport_security: false,
            audit: false,
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

/// The kind of a share of the server: files and directories, or the pipes of IPC$.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareKind {
    /// A share of files and directories.
    Disk,
    /// The share IPC$ of pipes, for remote procedure calls.
    Pipe,
}

/// When the written data of a share reach stable storage, so that they survive a power failure.
///
/// The values are those that Samba's `strict sync` and `sync always` allow together. Samba's
/// defaults are `strict sync = yes` and `sync always = no`; without `strict sync`, it ignores
/// FLUSH, write-through and `sync always` (smb.conf(5); source3/smbd/smb2_flush.c and fileio.c of
/// Samba 4.25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// When the kernel writes its cache. FLUSH succeeds at once, and write-through has no effect.
    Client,
    /// When a client asks for it, by FLUSH or by write-through.
    #[default]
    Flush,
    /// Before the response to each request that writes data.
    Always,
}

/// The configuration of a share of the server. \[MS-SMB2\] 3.3.1.6
#[derive(Clone, Debug)]
pub struct Share {
    /// Identifies the file system of the share for the driver.
    pub id: ShareId,
    /// Name of the share, by which clients connect to it; compared without regard to case.
    pub name: String,
    /// Kind of the share: files and directories, or the pipes of IPC$.
    pub kind: ShareKind,
    /// Description of the share for display in lists of shares.
    pub comment: String,
    /// Whether the share is read-only: requests that would change a file or directory fail. The
    /// list `users.write` has exceptions.
    pub read_only: bool,
    /// Whether the server includes the share in lists of shares. Clients can connect to it in any
    /// case.
    pub listed: bool,
    /// Whether requests to the share must be encrypted (Share.EncryptData).
    pub encryption_required: bool,
    /// Whether clients may cache files of the share by oplocks and leases. Set this to false if
    /// other programs than this server change the files. \[MS-SMB2\] 3.3.5.9
    pub oplocks: bool,
    /// Whether clients may cache the entries of directories of the share by leases. Set this to
    /// false if another share has the same directories: its changes break no lease of this one.
    pub directory_leases: bool,
    /// Whether clients may open files of the share so that the opens survive a lost connection
    /// (durable and resilient opens). \[MS-SMB2\] 3.3.5.9.6, 3.3.5.9.10
    pub durable_handles: bool,
    /// Whether clients may watch directories of the share for changes (CHANGE_NOTIFY).
    /// \[MS-SMB2\] 3.3.5.19
    pub notify: bool,
    /// When written data reach stable storage: the effect of FLUSH and of write-through.
    pub sync: SyncPolicy,
    /// The named accounts that may connect to the share, and those that may write. TREE_CONNECT
    /// evaluates them: a tree connect keeps its rights.
    pub users: ShareUsers,
    /// The addresses from which clients may connect to the share. The address of the connection
    /// with the TREE_CONNECT decides; other channels of the session may use the tree connect.
    pub hosts: HostRules,
    /// Whether guests and anonymous users may connect to the share.
    pub guest: bool,
    /// User identity (Unix credentials) for all file operations on the share; `None` uses the
    /// identity of the user of the session.
    pub force_token: Option<Arc<Token>>,
    /// Whether listings leave out files that the user may not read. The file system does it; the
    /// server reports it to clients. \[MS-SMB2\] 2.2.10, ACCESS_BASED_DIRECTORY_ENUM
    pub access_based_enumeration: bool,
    /// The operations that are events of the audit log. The driver may change them at any time:
    /// they apply to later requests, also of present tree connects.
    pub audit: Arc<Rules>,
    /// Whether clients may use the SMB3 POSIX extensions in the share: exact names, Unix modes and
    /// owners, POSIX deletion and rename. The server offers them if any share has them.
    pub posix: bool,
}
