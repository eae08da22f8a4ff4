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
use wire::dialect::Dialect;
use wire::{FileId, SessionId, TreeId};

use crate::id::ConnectionId;
use crate::login::Account;
use crate::server::Server;
use crate::server::fsa::Description;
use crate::server::fsa::byte_range::LockKind;
use crate::server::open::Open;
use crate::server::pipe::Pipe;
use crate::server::session::Session;

/// The limits of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotLimits {
    /// Maximum number of sessions.
    pub sessions: usize,
    /// Maximum number of opens of all sessions, including pipes.
    pub opens: usize,
    /// Maximum number of byte-range locks per open.
    pub locks: usize,
}

/// The sessions of a server at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The sessions, by their number.
    pub sessions: Vec<SessionSnapshot>,
    /// Number of sessions beyond the limit.
    pub sessions_left_out: usize,
    /// Number of opens beyond the limit.
    pub opens_left_out: usize,
}

/// A session. \[MS-SMB2\] 3.3.1.8
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// SessionId.
    pub id: SessionId,
    /// The account.
    pub account: Account,
    /// The dialect of all of its channels.
    pub dialect: Dialect,
    /// The cipher; `None` if none was negotiated.
    pub cipher: Option<Cipher>,
    /// How the connection that made it is signed.
    pub signing: SigningAlgorithm,
    /// Session.SigningRequired.
    pub signing_required: bool,
    /// Session.EncryptData.
    pub encrypt: bool,
    /// The connections of the channels of the session.
    pub channels: Vec<ConnectionId>,
    /// The tree connects of the session.
    pub trees: Vec<TreeSnapshot>,
    /// The opens of the session.
    pub opens: Vec<OpenSnapshot>,
}

/// A tree connect. \[MS-SMB2\] 3.3.1.9
#[derive(Clone, Debug)]
pub struct TreeSnapshot {
    /// Its number within the session.
    pub id: TreeId,
    /// The share.
    pub share: String,
}

/// A file, a directory or a pipe that is open. \[MS-SMB2\] 3.3.1.10
#[derive(Clone, Debug)]
pub struct OpenSnapshot {
    /// FileId of the open.
    pub id: FileId,
    /// The tree connect that it was made by.
    pub tree: TreeId,
    /// The share.
    pub share: String,
    /// Its name, `/` between the components: empty for the root.
    pub path: String,
    /// Kind of the object.
    pub kind: OpenKind,
    /// Open.GrantedAccess.
    pub access: AccessMask,
    /// The share mode.
    pub sharing: ShareAccess,
    /// The oplock level; during a break, the level before the break.
    pub oplock: OplockLevel,
    /// Its byte-range locks: some of them, where there are many.
    pub locks: Vec<LockSnapshot>,
    /// How many it has.
    pub lock_count: usize,
}

/// The kind of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A pipe of IPC$.
    Pipe,
}

/// A byte-range lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockSnapshot {
    /// The first byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Whether others may not even read.
    pub is_exclusive: bool,
}

impl Server {
    /// Returns the current state, within the limits.
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
        snapshot
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
        tree: open.tree,
        share: open.share.name.clone(),
        path: description.path.as_str().to_string(),
        kind: match open.is_directory {
            true => OpenKind::Directory,
            false => OpenKind::File,
        },
        access: open.granted,
        sharing: description.sharing.share,
        oplock: description.oplock,
        locks: locks.collect(),
        lock_count,
    }
}
