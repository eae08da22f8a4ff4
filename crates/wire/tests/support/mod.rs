//! What the tests of the messages share.
// Each test file takes what it needs.
#![allow(dead_code, unreachable_pub)]

use smbeam_wire::DecodeError;
use smbeam_wire::header::HEADER_LEN;

/// The bytes of hexadecimal digits.
pub fn hex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "two digits make a byte");
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("digits are ASCII");
            u8::from_str_radix(pair, 16).expect("a hexadecimal digit")
        })
        .collect()
}

/// A message: the captured body after a header of zeros, which no body looks at.
pub fn message(body: &str) -> Vec<u8> {
    let mut message = vec![0; HEADER_LEN];
    message.extend(hex(body));
    message
}

/// What an encoder appends to the header of `message`.
pub fn encoded(message: &[u8], encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = message[..HEADER_LEN].to_vec();
    encode(&mut bytes);
    bytes
}

/// Something that reads a message, and tells only whether that went well.
pub type Decoder = fn(&[u8]) -> Result<(), DecodeError>;

/// Reads a captured message and checks that writing gives the same bytes again.
#[macro_export]
macro_rules! both_ways {
    ($decode:path, $message:expr) => {{
        let decoded = $decode(&$message).expect("a captured message can be read");
        let again = $crate::support::encoded(&$message, |bytes| decoded.encode(bytes));
        assert_eq!(again, $message);
        decoded
    }};
}
