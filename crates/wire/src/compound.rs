//! Compounds: several messages in one transport frame. \[MS-SMB2\] 3.2.4.1.4, 3.3.5.2.7

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;

/// Position of NextCommand in the header.
const NEXT_COMMAND: core::ops::Range<usize> = 20..24;

/// Iterates over the SMB2 messages of one transport frame: a single message, or a compound of
/// several.
///
/// Each message starts at a multiple of 8 bytes, has at least a header, and ends where the next one
/// starts, because its signature covers the padding. A wrong NextCommand gives an error, which ends
/// the iteration. A frame of N bytes has at most N / 64 messages; the caller may set a lower limit.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    left: &'a [u8],
}

impl<'a> Members<'a> {
    /// Makes the iterator over the messages of `frame`, which has no transport header. An empty
    /// frame has no messages.
    pub fn new(frame: &'a [u8]) -> Self {
        Self { left: frame }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<&'a [u8], DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let left = core::mem::take(&mut self.left);
        let split = split_first(left).map(|(member, rest)| {
            self.left = rest;
            member
        });
        Some(split)
    }
}

/// Splits the first message from the rest of the frame.
fn split_first(frame: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let header = Reader::new(frame).bytes("SMB2 header", HEADER_LEN)?;
    let next = Reader::new(&header[NEXT_COMMAND]).u32("NextCommand")?;
    if next == 0 {
        return Ok((frame, &[]));
    }
    let start = next as usize;
    let is_aligned = start.is_multiple_of(8);
    let leaves_headers = start >= HEADER_LEN && start <= frame.len() - HEADER_LEN;
    if is_aligned && leaves_headers {
        Ok(frame.split_at(start))
    } else {
        let (field, value) = ("NextCommand", next.into());
        Err(DecodeError::Invalid { field, value })
    }
}

/// Prepares `message`, an encoded SMB2 message, for another message after it in a compound: pads it
/// to a multiple of 8 bytes and sets its NextCommand. The caller signs it afterwards, and then
/// appends the next message.
///
/// # Panics
/// Panics when `message` is shorter than an SMB2 header.
pub fn link(message: &mut Vec<u8>) {
    assert!(message.len() >= HEADER_LEN, "a message has a header");
    message.align(8);
    let next = u32::try_from(message.len()).expect("a message is shorter than 4 GiB");
    message[NEXT_COMMAND].copy_from_slice(&next.to_le_bytes());
}
