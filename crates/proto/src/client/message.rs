//! A message of the server.

use wire::Header;

/// A message as it came.
pub(super) struct Message<'a> {
    pub(super) header: Header,
    /// The message; where the data of a READ were placed, all before them.
    pub(super) bytes: &'a [u8],
    /// The data of a READ that lie in their destination.
    pub(super) placed: Option<&'a [u8]>,
    /// Where the message starts in the inbound frame.
    pub(super) start: usize,
    pub(super) is_sealed: bool,
}
