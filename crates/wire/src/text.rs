//! UTF-16LE text on the wire.

use alloc::string::String;
use alloc::vec::Vec;

/// A text of an SMB message: UTF-16LE bytes, which may not be valid UTF-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Utf16<'a>(pub &'a [u8]);

impl Utf16<'_> {
    /// Returns the length of the text in bytes, not characters.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns true if the text has no bytes.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Converts the text to a `String`; `None` for an odd number of bytes or an unpaired surrogate.
    pub fn decode(self) -> Option<String> {
        if !self.0.len().is_multiple_of(2) {
            return None;
        }
        let units = self
            .0
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .ok()
    }
}

/// Converts a text to UTF-16LE bytes, without a terminating zero.
pub fn utf16(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() * 2);
    put_utf16(&mut bytes, text);
    bytes
}

/// Appends a text to `bytes` as UTF-16LE, without a length and a terminating zero.
pub fn put_utf16(bytes: &mut Vec<u8>, text: &str) {
    for unit in text.encode_utf16() {
        bytes.extend_from_slice(&unit.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogate_pairs_survive() {
        let bytes = utf16("a\u{1F600}");
        assert_eq!(bytes, [0x61, 0, 0x3D, 0xD8, 0x00, 0xDE]);
        assert_eq!(Utf16(&bytes).decode().as_deref(), Some("a\u{1F600}"));
    }

    #[test]
    fn odd_lengths_and_lone_surrogates_are_no_text() {
        assert_eq!(Utf16(&[0x61]).decode(), None);
        assert_eq!(Utf16(&[0x3D, 0xD8]).decode(), None);
    }
}
