//! A message of the server.

use wire::Header;

/// A received message.
pub(super) struct Message<'a> {
    pub(super) header: Header,
    /// Bytes of the message, without data that were received separately.
    pub(super) bytes: &'a [u8],
    /// Data of a READ that were received into their destination.
    pub(super) placed: Option<&'a [u8]>,
    /// Offset of the message in the received frame.
    pub(super) start: usize,
    pub(super) is_encrypted: bool,
}
