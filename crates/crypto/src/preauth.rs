//! The hash over the messages before the end of authentication.
#![forbid(unsafe_code)]

use aws_lc_rs::digest::{Context, SHA512};

/// The preauthentication integrity hash: a SHA-512 chain over the NEGOTIATE and SESSION_SETUP
/// messages. [MS-SMB2] 3.3.5.4, 3.3.5.5
///
/// A connection owns one for NEGOTIATE (Connection.PreauthIntegrityHashValue). Every session, and
/// every binding of a session to a further channel, starts from a copy of it. The value is not
/// secret: an observer of the connection can compute it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreauthHash([u8; 64]);

impl PreauthHash {
    /// The value before the first message: 64 zero bytes.
    pub const fn new() -> Self {
        Self([0; 64])
    }

    /// Extends the hash by one whole message, from its SMB2 header to its end, without transport
    /// framing.
    pub fn update(&mut self, message: &[u8]) {
        self.update_parts(&[message]);
    }

    /// Extends the hash by one whole message that consists of several buffers, in their order. The
    /// message reaches from its SMB2 header to its end, without transport framing.
    pub fn update_parts(&mut self, message_parts: &[&[u8]]) {
        let mut context = Context::new(&SHA512);
        context.update(&self.0);
        for part in message_parts {
            context.update(part);
        }
        self.0.copy_from_slice(context.finish().as_ref());
    }

    /// The hash of the messages so far, or 64 zero bytes before the first message.
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl Default for PreauthHash {
    fn default() -> Self {
        Self::new()
    }
}

impl From<[u8; 64]> for PreauthHash {
    fn from(value: [u8; 64]) -> Self {
        Self(value)
    }
}
