//! What the channels of one login share. \[MS-SMB2\] 3.2.1.3

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use crypto::{EncryptionKey, SigningKey};
use spin::Mutex;
use wire::SessionId;

use super::caching::CachingTable;
use super::encode;
use super::negotiated::Negotiated;
use super::request::Request;
use crate::carrier::Carrier;
use crate::seal::Seal;

/// A session that is logged in. Only its counter and its table of oplocks change. It is used by
/// channels on any thread.
pub struct Session {
    /// The server's name for it.
    pub id: SessionId,
    /// What was negotiated on the first connection; further channels must agree.
    pub negotiated: Negotiated,
    /// Whether the server made a guest of us, or we are nobody: no keys, nothing is signed.
    pub is_guest: bool,
    /// Whether everything is signed.
    pub signing_required: bool,
    /// Whether everything is sealed.
    pub encrypt: bool,
    /// Session.SigningKey, that of the first channel: further channels prove with it that they
    /// belong here. None for a guest.
    pub(super) signing: Option<Arc<SigningKey>>,
    /// Session.EncryptionKey and Session.DecryptionKey.
    pub(super) sealing: Option<SealingPair>,
    /// Counts the nonces of what we seal, over all channels: never one twice.
    pub(super) next_nonce: AtomicU64,
    /// Session.ChannelSequence: how many channels were lost. \[MS-SMB2\] 3.2.1.3
    pub(super) channel_sequence: AtomicU16,
    /// The opens that have an oplock or a lease: a break may come on any channel. Taken for the
    /// CREATE and CLOSE of such opens and for breaks, never across a call.
    pub(super) caching: Mutex<CachingTable>,
}

/// The keys of a session's seals.
pub(super) struct SealingPair {
    /// Opens what the server sealed.
    pub(super) inbound: Arc<EncryptionKey>,
    /// Seals what we send.
    pub(super) outbound: Arc<EncryptionKey>,
}

impl Session {
    /// How to seal the next frame: with a nonce of its own. None where there are no keys.
    /// \[MS-SMB2\] 3.1.4.3
    pub(super) fn seal(&self) -> Option<Seal> {
        let key = self.sealing.as_ref()?.outbound.clone();
        let count = self.next_nonce.fetch_add(1, Ordering::Relaxed);
        assert!(count != u64::MAX, "a session does not send 2^64 frames");
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&count.to_le_bytes());
        Some(Seal {
            key,
            nonce,
            session_id: self.id,
        })
    }

    /// Session.ChannelSequence, in every request that is sent now.
    pub fn channel_sequence(&self) -> u16 {
        self.channel_sequence.load(Ordering::Acquire)
    }

    /// Takes note that a channel is lost, before what was lost with it is given back: once anything
    /// carries the new sequence the server refuses what may still come from the old channel. A
    /// connection that ends does it. \[MS-SMB2\] 3.2.7.1
    pub fn channel_lost(&self) {
        self.channel_sequence.fetch_add(1, Ordering::AcqRel);
    }

    /// Bytes of one READ at most, in a share that asks for sealing or not: what is protected goes
    /// in messages, which may hold less than goes by RDMA.
    pub fn max_read(&self, seal: bool) -> u32 {
        match self.is_protected(seal) {
            true => self.negotiated.max_inline_read,
            false => self.negotiated.max_read,
        }
    }

    /// The same of a WRITE.
    pub fn max_write(&self, seal: bool) -> u32 {
        match self.is_protected(seal) {
            true => self.negotiated.max_inline_write,
            false => self.negotiated.max_write,
        }
    }

    /// Whether data are sealed or must be signed: then never by RDMA. \[MS-SMB2\] 3.2.4.6
    pub fn is_protected(&self, seal: bool) -> bool {
        self.encrypt || seal || self.signing_required
    }

    /// Whether messages of a transport have room for what a request sends and asks for.
    pub(super) fn fits_inline(&self, carrier: &Carrier, request: &Request) -> bool {
        request.steps.iter().all(|step| {
            encode::sent(step) <= carrier.max_payload_out()
                && (encode::may_be_shorter(step) || encode::asked(step) <= carrier.max_payload_in())
        })
    }

    /// Whether anything can be sealed.
    pub fn can_seal(&self) -> bool {
        self.sealing.is_some()
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
