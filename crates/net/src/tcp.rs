//! Direct TCP: a zero byte and a length of 24 bits, the high byte first. \[MS-SMB2\] 2.1

use crate::framing::{FrameError, Next, PREFIX_LEN, message};

/// Bytes of the longest message.
const MAX_LEN: usize = (1 << 24) - 1;

pub(crate) fn next(prefix: [u8; PREFIX_LEN], limit: usize) -> Result<Next, FrameError> {
    let [zero, high, middle, low] = prefix;
    if zero != 0 {
        return Err(FrameError::UnknownType(zero));
    }
    let len = u32::from_be_bytes([0, high, middle, low]) as usize;
    message(len, limit)
}

pub(crate) fn prefix(len: usize) -> Option<[u8; PREFIX_LEN]> {
    if len > MAX_LEN {
        return None;
    }
    Some((len as u32).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framing, Transport};

    #[test]
    fn a_length_has_24_bits() {
        let mut framing = Framing::new(Transport::Tcp);
        assert_eq!(framing.next(&[0, 1, 2], 1 << 20), Ok(Next::Needs(4)));
        assert_eq!(
            framing.next(&[0, 1, 2, 3], 1 << 20),
            Ok(Next::Message { len: 0x10203 })
        );
        assert_eq!(framing.prefix(0x10203), Some([0, 1, 2, 3]));
        assert_eq!(framing.prefix(1 << 24), None);
    }

    #[test]
    fn garbage_and_long_frames_are_refused() {
        let mut framing = Framing::new(Transport::Tcp);
        assert_eq!(
            framing.next(b"GET / HTTP", 1 << 20),
            Err(FrameError::UnknownType(b'G'))
        );
        let limit = 1000;
        assert_eq!(
            framing.next(&[0, 0xFF, 0xFF, 0xFF], limit),
            Err(FrameError::TooLong {
                len: 0xFF_FFFF,
                limit
            })
        );
    }
}
