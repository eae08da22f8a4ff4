//! Functions that the tests of the messages share.
// Each test program uses a part of them.
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

/// A message: a header of zeros, which decoders of bodies ignore, and the captured body.
pub fn message(body: &str) -> Vec<u8> {
    let mut message = vec![0; HEADER_LEN];
    message.extend(hex(body));
    message
}

/// The header of `message`, with the body that the encoder appends.
pub fn encoded(message: &[u8], encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = message[..HEADER_LEN].to_vec();
    encode(&mut bytes);
    bytes
}

/// A decoder without its result, which returns only success or failure.
pub type Decoder = fn(&[u8]) -> Result<(), DecodeError>;

/// Decodes a captured message and checks that it encodes to the same bytes.
#[macro_export]
macro_rules! both_ways {
    ($decode:path, $message:expr) => {{
        let decoded = $decode(&$message).expect("a captured message can be read");
        let again = $crate::support::encoded(&$message, |bytes| decoded.encode(bytes));
        assert_eq!(again, $message);
        decoded
    }};
}
