//! The state that the channels of one login share. \[MS-SMB2\] 3.2.1.3

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use crypto::{EncryptionKey, SigningAlgorithm, SigningKey};
use spin::Mutex;
use wire::SessionId;

use super::caching::CachingTable;
use super::encode;
use super::negotiated::Negotiated;
use super::request::Request;
use crate::carrier::Carrier;
use crate::encryption::FrameEncryption;

/// The client's session after the login. All its connections (channels) share it, on any threads.
/// Only its counters and its table of oplocks change.
pub struct Session {
    /// SessionId, which identifies the session in all messages.
    pub id: SessionId,
    /// Parameters on which the first connection of the session agreed in NEGOTIATE. A further
    /// connection must have the same ones, and lengths at least as large.
    pub negotiated: Negotiated,
    /// Whether the server accepted the user as a guest or as anonymous. Such a session has no keys,
    /// so it neither signs nor encrypts.
    pub is_guest: bool,
    /// Whether all messages of the session must be signed.
    pub signing_required: bool,
    /// Whether all messages of the session must be encrypted, on every share.
    pub encrypt: bool,
    /// Session.SigningKey, the key of the first channel, with which further channels prove that
    /// they belong to the session. `None` for a guest.
    pub(super) signing: Option<Arc<SigningKey>>,
    /// Session.EncryptionKey and Session.DecryptionKey.
    pub(super) encryption: Option<EncryptionKeys>,
    /// Counter of the nonces of encrypted messages on all channels: no nonce occurs twice.
    pub(super) next_nonce: AtomicU64,
    /// Session.ChannelSequence: count of lost channels. \[MS-SMB2\] 3.2.1.3
    pub(super) channel_sequence: AtomicU16,
    /// The opens with an oplock or a lease: a break may arrive on any channel. The lock is taken
    /// for the CREATE and CLOSE of such opens and for breaks, never across a call.
    pub(super) caching: Mutex<CachingTable>,
}

/// The encryption keys of a session.
pub(super) struct EncryptionKeys {
    /// Key that decrypts messages of the server.
    pub(super) inbound: Arc<EncryptionKey>,
    /// Key that encrypts messages to the server.
    pub(super) outbound: Arc<EncryptionKey>,
}

impl Session {
    /// Returns whether further connections may join the session as channels. A guest has no keys
    /// for that. A session that signs with AES-GMAC has one channel: all binding requests share a
    /// key, and each connection counts its nonces separately, so a nonce could occur twice.
    pub fn may_bind(&self) -> bool {
        !self.is_guest && self.negotiated.signing_algorithm != SigningAlgorithm::AesGmac
    }

    /// Key and nonce for the encryption of the next frame; `None` if the session has no keys.
    /// \[MS-SMB2\] 3.1.4.3
    pub(super) fn next_encryption(&self) -> Option<FrameEncryption> {
        let key = self.encryption.as_ref()?.outbound.clone();
        let count = self.next_nonce.fetch_add(1, Ordering::Relaxed);
        assert!(count != u64::MAX, "a session sends fewer than 2^64 frames");
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&count.to_le_bytes());
        Some(FrameEncryption {
            key,
            nonce,
            session_id: self.id,
        })
    }

    /// Returns Session.ChannelSequence: the number of connections that the session has lost, which
    /// every new request carries. \[MS-SMB2\] 3.2.1.3
    pub fn channel_sequence(&self) -> u16 {
        self.channel_sequence.load(Ordering::Acquire)
    }

    /// Raises [`channel_sequence`](Self::channel_sequence) because the session lost a connection.
    /// Once a request carries the new value, the server refuses late requests of the lost
    /// connection, which calls this at its end, before it returns its pending requests.
    /// \[MS-SMB2\] 3.2.7.1
    pub fn channel_lost(&self) {
        self.channel_sequence.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the maximum length of a READ in bytes. `encrypt` says whether the share requires
    /// encryption. Data that are encrypted or signed move in messages; their limit may be lower
    /// than that of RDMA transfers.
    pub fn max_read(&self, encrypt: bool) -> u32 {
        match self.is_protected(encrypt) {
            true => self.negotiated.max_inline_read,
            false => self.negotiated.max_read,
        }
    }

    /// Returns the maximum length of a WRITE in bytes. `encrypt` says whether the share requires
    /// encryption. Data that are encrypted or signed move in messages; their limit may be lower
    /// than that of RDMA transfers.
    pub fn max_write(&self, encrypt: bool) -> u32 {
        match self.is_protected(encrypt) {
            true => self.negotiated.max_inline_write,
            false => self.negotiated.max_write,
        }
    }

    /// Returns whether the data of a READ or WRITE are encrypted or signed; such data do not move
    /// by RDMA. `encrypt` says whether the share or the request demands encryption. \[MS-SMB2\]
    /// 3.2.4.6
    pub fn is_protected(&self, encrypt: bool) -> bool {
        self.encrypt || encrypt || self.signing_required
    }

    /// Whether the data of a request fit into the messages of a transport.
    pub(super) fn fits_inline(&self, carrier: &Carrier, request: &Request) -> bool {
        request.steps.iter().all(|step| {
            encode::sent(step) <= carrier.max_payload_out()
                && (encode::may_be_shorter(step) || encode::asked(step) <= carrier.max_payload_in())
        })
    }

    /// Returns whether the session has keys and a cipher to encrypt messages.
    pub fn can_encrypt(&self) -> bool {
        self.encryption.is_some()
    }
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("negotiated", &self.negotiated)
            .finish_non_exhaustive()
    }
}
