//! Measures the time that a worker spends on signing and encryption.
//!
//! The core decrypts and verifies a frame before it handles it, so the time of a received frame has
//! the handling as well, a few microseconds. Short messages are not measured: their handling takes
//! longer than their cryptography.

use std::time::Instant;

use proto::effect::{OutMessage, Outbound};
use wire::header::{Flags, HEADER_LEN};
use wire::transform;

use crate::counters::{Direction, WorkerCounters};

/// Shortest measured message in bytes.
const MEASURED_BYTES_MIN: usize = 4096;
/// Offset of the low byte of the flags in a message header. \[MS-SMB2\] 2.2.1.2
const FLAGS: usize = 16;

/// The start of a measurement; nothing for a message without protection.
pub(super) struct CryptoTimer {
    direction: Direction,
    bytes: usize,
    start: Option<Instant>,
}

impl CryptoTimer {
    /// Starts before the core receives a frame.
    pub(super) fn of_frame(frame: &[u8]) -> Self {
        let is_encrypted = frame.first() == transform::PROTOCOL_ID.first();
        let flags = || Flags(u32::from(frame[FLAGS]));
        let is_signed = || frame.len() >= HEADER_LEN && flags().contains(Flags::SIGNED);
        Self::new(Direction::Received, frame.len(), || {
            is_encrypted || is_signed()
        })
    }

    /// Starts before the outbox makes a frame.
    pub(super) fn of_outbound(outbound: &Outbound) -> Self {
        let messages = &outbound.messages;
        let payload = |message: &OutMessage| message.payload.map_or(0, |it| it.len as usize);
        let bytes = messages.iter().map(|it| it.head.len() + payload(it)).sum();
        let is_signed = || messages.iter().any(|message| message.sign.is_some());
        Self::new(Direction::Sent, bytes, || {
            outbound.encryption.is_some() || is_signed()
        })
    }

    fn new(direction: Direction, bytes: usize, is_protected: impl FnOnce() -> bool) -> Self {
        let is_measured = bytes >= MEASURED_BYTES_MIN && is_protected();
        Self {
            direction,
            bytes,
            start: is_measured.then(Instant::now),
        }
    }

    /// Counts the time since the start.
    pub(super) fn count(self, counters: &WorkerCounters) {
        if let Some(start) = self.start {
            counters.count_crypto(self.direction, self.bytes, start.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_protected_frames_are_measured() {
        let mut frame = vec![0; MEASURED_BYTES_MIN];
        let is_measured = |frame: &[u8]| CryptoTimer::of_frame(frame).start.is_some();
        assert!(!is_measured(&frame));
        frame[FLAGS] = Flags::SIGNED.0.to_le_bytes()[0];
        assert!(is_measured(&frame));
        assert!(!is_measured(&frame[..MEASURED_BYTES_MIN - 1]));
        frame[FLAGS] = 0;
        frame[0] = transform::PROTOCOL_ID[0];
        assert!(is_measured(&frame));
        assert!(!is_measured(&[]));
    }
}
