//! A session: one login of one user, over one or more channels. \[MS-SMB2\] 3.3.1.8

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crypto::{Cipher, EncryptionKey, SigningAlgorithm, SigningKey};
use spin::Mutex;
use wire::dialect::Dialect;
use wire::{FileTime, Guid, SessionId, TreeId};

use crate::encryption::FrameEncryption;
use crate::id::ConnectionId;
use crate::login::{Account, AccountKind};
use crate::server::channel::ChannelList;
use crate::server::gmac::GmacChannels;
use crate::server::ledger::User;
use crate::server::open::Open;
use crate::server::pipe::Pipe;
use crate::server::quota::Quotas;
use crate::server::tree::TreeConnect;
use crate::time::Instant;

/// A session that a user has logged in to. It is in the table of the server only once it is
/// valid: a login in progress belongs to its connection.
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The values from the connection that made the session.
    pub(crate) origin: Origin,
    /// Session.CreationTime.
    pub(crate) created: FileTime,
    pub(crate) state: Mutex<SessionState>,
    /// The user that the resources of the session count for. It stays the same at a new login.
    pub(crate) user: Arc<User>,
    /// Session.ChannelList: the connections that carry it, with the signing key of each.
    pub(crate) channels: ChannelList,
    /// Session.TreeConnectTable.
    pub(crate) trees: Mutex<BTreeMap<TreeId, Arc<TreeConnect>>>,
    /// Session.OpenTable, by the volatile half of the FileId.
    pub(crate) opens: Mutex<BTreeMap<u64, Arc<Open>>>,
    /// Its pipes, by the volatile half of the FileId.
    pub(crate) pipes: Mutex<BTreeMap<u64, Arc<Pipe>>>,
    /// The next TreeId.
    pub(crate) next_tree: AtomicU32,
    /// Counts the nonces of encrypted frames over all channels: none is used twice.
    pub(crate) next_nonce: AtomicU64,
}

/// What of a session can change: a re-authentication replaces the account. \[MS-SMB2\] 3.3.5.5.2
pub(crate) struct SessionState {
    pub(crate) account: Account,
    /// Session.SigningRequired.
    pub(crate) signing_required: bool,
    /// Session.EncryptData.
    pub(crate) encrypt: bool,
    /// Session.DecryptionKey and Session.EncryptionKey.
    pub(crate) encryption_keys: Option<EncryptionKeys>,
    /// When the login runs out: then only SESSION_SETUP and what ends things goes on. `None` until
    /// a mechanism says so. \[MS-SMB2\] 3.3.5.2.9
    pub(crate) expires: Option<Instant>,
    /// Set once, when the session loses its last connection, logs off, or is replaced by another
    /// one of its client, before anything else ended it: then its durable opens outlive it.
    /// \[MS-SMB2\] 3.3.5.5.3, 3.3.5.6, 3.3.7.1; smbtorture smb2.durable-open.reopen1a, reopen4
    pub(crate) leaves_opens: bool,
    /// Set once, when the session ends: nothing starts any more.
    pub(crate) is_closed: bool,
}

/// The state of a session that every request needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) signing_required: bool,
    pub(crate) encrypt: bool,
    pub(crate) expires: Option<Instant>,
}

/// The encryption keys of a session.
#[derive(Clone)]
pub(crate) struct EncryptionKeys {
    /// Session.DecryptionKey: decrypts the client's frames.
    pub(crate) inbound: Arc<EncryptionKey>,
    /// Session.EncryptionKey: encrypts frames for the client.
    pub(crate) outbound: Arc<EncryptionKey>,
}

/// What a session took over from the connection that made it. A further one binds only if it has
/// agreed on the same. \[MS-SMB2\] 3.3.5.5.2
pub(crate) struct Origin {
    pub(crate) dialect: Dialect,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) signing: SigningAlgorithm,
    pub(crate) client_guid: Guid,
    /// Session.SigningKey: of the connection that made the session, also when that is gone. It
    /// signs the request that binds another. None for guest and anonymous.
    pub(crate) signing_key: Option<Arc<SigningKey>>,
    /// The quotas that all sessions of that connection share.
    pub(crate) quotas: Quotas,
}

impl Origin {
    /// Whether further connections may bind, and whether the key may sign the answers to them. A
    /// session that AES-GMAC signs has one channel, unless the policy permits that a key signs two
    /// messages with one nonce.
    pub(super) fn may_bind(&self, policy: GmacChannels) -> bool {
        self.signing != SigningAlgorithm::AesGmac || policy == GmacChannels::Allow
    }
}

impl Session {
    /// What holds for every request on it: one short lock for each. None once nothing starts on
    /// it any more.
    pub(crate) fn rules(&self) -> Option<Rules> {
        let state = self.state.lock();
        (!state.is_closed).then_some(Rules {
            signing_required: state.signing_required,
            encrypt: state.encrypt,
            expires: state.expires,
        })
    }

    /// The signing key of a connection; none for guest and anonymous.
    pub(crate) fn signing_key(&self, connection: ConnectionId) -> Option<Arc<SigningKey>> {
        self.channels.signing_key(connection)
    }

    /// How to encrypt the next frame: with an unused nonce. `None` for a session without keys.
    /// \[MS-SMB2\] 3.1.4.3
    pub(crate) fn encryption(&self) -> Option<FrameEncryption> {
        let key = self.state.lock().encryption_keys.as_ref()?.outbound.clone();
        let count = self.next_nonce.fetch_add(1, Ordering::Relaxed);
        assert!(count != u64::MAX, "a session does not send 2^64 frames");
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&count.to_le_bytes());
        Some(FrameEncryption {
            key,
            nonce,
            session_id: self.id,
        })
    }
}

impl SessionState {
    /// Notes that the session ends in a way that durable opens outlive.
    pub(crate) fn leave_opens(&mut self) {
        self.leaves_opens |= !self.is_closed;
    }

    /// Whether the user has proved an identity: neither guest nor anonymous.
    pub(crate) fn is_named(&self) -> bool {
        self.account.kind == AccountKind::Named
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.id)
    }
}
