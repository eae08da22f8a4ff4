//! The sessions of a server with their tree connects and opens at one time.
//!
//! For status displays. The snapshot copies each table under a separate short lock and never holds
//! two, so that it delays no request. Its parts may be of slightly different times, and objects
//! that end meanwhile are left out.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crypto::{Cipher, SigningAlgorithm};
use wire::access::{AccessMask, OplockLevel, ShareAccess};
use wire::create_context::LeaseState;
use wire::dialect::Dialect;
use wire::{FileId, FileTime, SessionId, TreeId};

use crate::id::ConnectionId;
use crate::login::Account;
use crate::server::Server;
use crate::server::disconnected::DisconnectedTotals;
use crate::server::fsa::Description;
use crate::server::fsa::byte_range::LockKind;
use crate::server::open::Open;
use crate::server::pipe::Pipe;
use crate::server::session::Session;
use crate::time::Instant;

/// Limits on the number of objects in a [`Snapshot`] (a copy of the server's sessions and open
/// files), so that its size is bounded.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotLimits {
    /// Maximum number of sessions that the snapshot contains.
    pub sessions: usize,
    /// Maximum number of open files, directories and pipes of all sessions in the snapshot.
    pub opens: usize,
    /// Maximum number of byte-range locks in the snapshot of each open file.
    pub locks: usize,
}

/// A copy of the sessions of a server with their shares and open files, for status displays. The
/// parts are from nearly the same time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The sessions in ascending order of their ids, up to the limit.
    pub sessions: Vec<SessionSnapshot>,
    /// Number of sessions that the snapshot omits because of the limit.
    pub sessions_left_out: usize,
    /// Number of open files, directories and pipes of these sessions that the snapshot omits
    /// because of the limit.
    pub opens_left_out: usize,
    /// The open files without a session, which wait for their clients, in the order of their
    /// deadlines. The limit on open files applies separately.
    pub disconnected: Vec<DisconnectedSnapshot>,
    /// Number of open files without a session, including those beyond the limit.
    pub disconnected_count: usize,
    /// Numbers of open files that were without a session, since the start of the server.
    pub disconnected_totals: DisconnectedTotals,
}

/// An open file without a session in a [`Snapshot`] of the server: its client lost the connection
/// and can still reconnect to it (a durable open). \[MS-SMB2\] 3.3.7.1
#[derive(Clone, Debug)]
pub struct DisconnectedSnapshot {
    /// FileId, which identifies the open within the server.
    pub id: FileId,
    /// Name of the user that opened the file.
    pub user: String,
    /// Name of the share of the file.
    pub share: String,
    /// Path of the file from the root of the share, with `/` between the components.
    pub path: String,
    /// Monotonic time at which the server closes the file. Zero if the server closes it as soon as
    /// it can.
    pub deadline: Instant,
}

/// A copy of the state of one session, in a [`Snapshot`] of the server. \[MS-SMB2\] 3.3.1.8
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// SessionId, which identifies the session within the server.
    pub id: SessionId,
    /// Account of the user of the session.
    pub account: Account,
    /// Time of the first login of the session.
    pub created: FileTime,
    /// SMB dialect, the same on all connections of the session.
    pub dialect: Dialect,
    /// Encryption algorithm of the session; `None` if the session cannot encrypt.
    pub cipher: Option<Cipher>,
    /// Signing algorithm of the connection on which the user logged in.
    pub signing: SigningAlgorithm,
    /// Whether all messages of the session must be signed (Session.SigningRequired).
    pub signing_required: bool,
    /// Whether all messages of the session must be encrypted (Session.EncryptData).
    pub encrypt: bool,
    /// The transport connections (channels) that the session uses.
    pub channels: Vec<ConnectionId>,
    /// The uses of shares by the session (tree connects).
    pub trees: Vec<TreeSnapshot>,
    /// The open files, directories and pipes of the session, up to the limit.
    pub opens: Vec<OpenSnapshot>,
}

/// A use of a share by a session (tree connect), in a [`Snapshot`] of the server.
/// \[MS-SMB2\] 3.3.1.9
#[derive(Clone, Debug)]
pub struct TreeSnapshot {
    /// TreeId, unique within the session.
    pub id: TreeId,
    /// Name of the share that the tree connect uses.
    pub share: String,
}

/// An open file, directory or pipe of a session, in a [`Snapshot`] of the server.
/// \[MS-SMB2\] 3.3.1.10
#[derive(Clone, Debug)]
pub struct OpenSnapshot {
    /// FileId, which identifies the open within the server.
    pub id: FileId,
    /// TreeId of the tree connect (use of a share) through which the client opened it.
    pub tree: TreeId,
    /// Name of the share on which the file or pipe is.
    pub share: String,
    /// For a file, its path from the root of the share, with `/` between the components; empty for
    /// the root. For a pipe, its name.
    pub path: String,
    /// Kind of the open object: file, directory or pipe.
    pub kind: OpenKind,
    /// Access rights that the server granted to the open (Open.GrantedAccess).
    pub access: AccessMask,
    /// Access that other opens of the file may have (the share mode).
    pub sharing: ShareAccess,
    /// Oplock level that the open holds; during a break, the level before the break.
    pub oplock: OplockLevel,
    /// Caching rights of the oplock or lease of the open; during a break, the rights before the
    /// break.
    pub caching: LeaseState,
    /// Byte-range locks that the open holds, up to the limit of the snapshot.
    pub locks: Vec<LockSnapshot>,
    /// Number of byte-range locks that the open holds, including those that the snapshot omits.
    pub lock_count: usize,
}

/// The kind of an open object in a [`Snapshot`] of the server: file, directory or pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenKind {
    /// A file on a share of files.
    File,
    /// A directory on a share of files.
    Directory,
    /// A pipe of the share IPC$, for remote procedure calls.
    Pipe,
}

/// A byte-range lock that an open file holds, in a [`Snapshot`] of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSnapshot {
    /// Offset of the first locked byte from the start of the file, in bytes.
    pub offset: u64,
    /// Length of the locked range in bytes.
    pub length: u64,
    /// Whether the lock is exclusive: other opens may neither read nor write the range. Otherwise
    /// they may read it.
    pub is_exclusive: bool,
}

impl Server {
    /// Returns a copy of the current sessions and open files of the server, for status displays.
    /// `limits` bounds the number of objects in it.
    pub fn snapshot(&self, limits: SnapshotLimits) -> Snapshot {
        let (sessions, count) = {
            let sessions = self.sessions.lock();
            let first: Vec<_> = sessions.values().take(limits.sessions).cloned().collect();
            (first, sessions.len())
        };
        let mut snapshot = Snapshot {
            sessions_left_out: count - sessions.len(),
            ..Snapshot::default()
        };
        let mut room = limits.opens;
        let mut found = Vec::new();
        for session in sessions {
            let (opened, left_out) = Opened::of(&session, &mut room);
            snapshot.opens_left_out += left_out;
            found.push((seen(&session), opened));
        }
        let opens = found.iter().flat_map(|(_, opened)| &opened.opens);
        let described = self.files.describe(opens.map(|open| (open.key, open.file)));
        for (mut seen, opened) in found {
            seen.opens.extend(opened.opens.iter().filter_map(|open| {
                let description = described.get(&open.file)?;
                Some(seen_open(open, description, limits.locks))
            }));
            seen.opens
                .extend(opened.pipes.iter().map(|pipe| seen_pipe(pipe)));
            snapshot.sessions.push(seen);
        }
        self.see_disconnected(limits.opens, &mut snapshot);
        snapshot
    }

    fn see_disconnected(&self, limit: usize, snapshot: &mut Snapshot) {
        let opens: Vec<(Arc<Open>, Instant)> = {
            let disconnected = self.disconnected.lock();
            snapshot.disconnected_count = disconnected.len();
            snapshot.disconnected_totals = disconnected.totals();
            let first = disconnected.iter().take(limit);
            first.map(|it| (it.open.clone(), it.deadline)).collect()
        };
        let files = opens.iter().map(|(open, _)| (open.key, open.file));
        let described = self.files.describe(files);
        let seen = opens.iter().filter_map(|(open, deadline)| {
            Some(DisconnectedSnapshot {
                id: open.id,
                user: open.owner().name().to_string(),
                share: open.share.name.clone(),
                path: described.get(&open.file)?.path.as_str().to_string(),
                deadline: *deadline,
            })
        });
        snapshot.disconnected.extend(seen);
    }
}

/// The opens of a session.
struct Opened {
    opens: Vec<Arc<Open>>,
    pipes: Vec<Arc<Pipe>>,
}

impl Opened {
    /// Returns opens up to the remaining limit, and the number of further opens.
    fn of(session: &Session, room: &mut usize) -> (Self, usize) {
        let (opens, open_count) = {
            let opens = session.opens.lock();
            let first: Vec<_> = opens.values().take(*room).cloned().collect();
            (first, opens.len())
        };
        *room -= opens.len();
        let (pipes, pipe_count) = {
            let pipes = session.pipes.lock();
            let first: Vec<_> = pipes.values().take(*room).cloned().collect();
            (first, pipes.len())
        };
        *room -= pipes.len();
        let left_out = open_count - opens.len() + pipe_count - pipes.len();
        (Self { opens, pipes }, left_out)
    }
}

fn seen_pipe(pipe: &Pipe) -> OpenSnapshot {
    OpenSnapshot {
        id: pipe.id,
        tree: pipe.tree,
        share: "IPC$".to_string(),
        path: pipe.name().to_string(),
        kind: OpenKind::Pipe,
        access: AccessMask::FILE_READ_DATA | AccessMask::FILE_WRITE_DATA,
        sharing: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
        oplock: OplockLevel::NONE,
        caching: LeaseState::NONE,
        locks: Vec::new(),
        lock_count: 0,
    }
}

fn seen(session: &Session) -> SessionSnapshot {
    let (account, signing_required, encrypt) = {
        let state = session.state.lock();
        (state.account.clone(), state.signing_required, state.encrypt)
    };
    let trees: Vec<_> = session.trees.lock().values().cloned().collect();
    let trees = trees.iter().map(|tree| TreeSnapshot {
        id: tree.id,
        share: tree.share.name.clone(),
    });
    SessionSnapshot {
        id: session.id,
        account,
        created: session.created,
        dialect: session.origin.dialect,
        cipher: session.origin.cipher,
        signing: session.origin.signing,
        signing_required,
        encrypt,
        channels: session.channels.alive(),
        trees: trees.collect(),
        opens: Vec::new(),
    }
}

fn seen_open(open: &Open, description: &Description, locks: usize) -> OpenSnapshot {
    let (held, lock_count) = open.locks.held_by(open.file, locks);
    let locks = held.into_iter().map(|(range, kind)| LockSnapshot {
        offset: range.offset(),
        length: range.length(),
        is_exclusive: kind == LockKind::Exclusive,
    });
    OpenSnapshot {
        id: open.id,
        tree: open.tree(),
        share: open.share.name.clone(),
        path: description.path.as_str().to_string(),
        kind: match open.is_directory {
            true => OpenKind::Directory,
            false => OpenKind::File,
        },
        access: open.granted,
        sharing: description.sharing.share,
        oplock: description.oplock,
        caching: description.rights,
        locks: locks.collect(),
        lock_count,
    }
}
