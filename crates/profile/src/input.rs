//! Unbuffered standard input. After a line is read, the next reader gets the data that follow it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;

/// Opens standard input without a buffer.
pub fn open() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Reads the next line without its line end. `most` is its maximum length in bytes. At the end of
/// the input, the line is empty.
#[expect(
    clippy::unbuffered_bytes,
    reason = "a buffer would take the data after the line"
)]
pub fn line(input: impl Read, most: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    for byte in input.bytes() {
        match byte? {
            b'\n' => break,
            _ if bytes.len() == most => return Err(invalid("the line is too long")),
            byte => bytes.push(byte),
        }
    }
    if bytes.ends_with(b"\r") {
        bytes.pop();
    }
    String::from_utf8(bytes).map_err(|_| invalid("the line is not valid UTF-8"))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_after_a_line_stay() {
        let mut input = &b"first\r\n\nlast"[..];
        assert_eq!(line(&mut input, 6).expect("a line"), "first");
        assert_eq!(line(&mut input, 6).expect("a line"), "");
        assert_eq!(input, b"last");
        assert_eq!(line(&mut input, 4).expect("a line"), "last");
        assert_eq!(line(&mut input, 4).expect("nothing"), "");
    }

    #[test]
    fn invalid_lines_are_refused() {
        assert!(line(&b"12345\n"[..], 4).is_err());
        assert!(line(&b"\xff\n"[..], 4).is_err());
    }
}
