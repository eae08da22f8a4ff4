//! The protection of the messages of a frame.

/// Bytes of the header of a message.
const HEADER_BYTES: usize = 64;
const SIGNED_FLAG: u8 = 0x08;
const STATUS_PENDING: u32 = 0x0000_0103;

/// The protection of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// None; its command.
    Plain(u16),
    /// A signature; its command.
    Signed(u16),
    /// Encryption. The number of the messages is unknown.
    Encrypted,
    /// Neither: of the NetBIOS session service, or of the server before it answers for good.
    Other,
}

/// The messages of a frame.
pub(super) fn kinds(mut frame: &[u8]) -> Vec<Kind> {
    let mut found = Vec::new();
    loop {
        found.push(kind(frame));
        let next = match found.last() {
            Some(Kind::Plain(_) | Kind::Signed(_)) => frame.get(20..24),
            _ => None,
        };
        let next = next.map_or(0, |bytes| {
            bytes.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
        });
        match frame.get(next..) {
            Some(rest) if next > 0 => frame = rest,
            _ => return found,
        }
    }
}

fn kind(message: &[u8]) -> Kind {
    match message {
        [0xfd, b'S', b'M', b'B', ..] => Kind::Encrypted,
        [0xfe, b'S', b'M', b'B', ..] if message.len() >= HEADER_BYTES => {
            let command = u16::from_le_bytes([message[12], message[13]]);
            let status = &message[8..12];
            match message[16] & SIGNED_FLAG != 0 {
                true => Kind::Signed(command),
                // That an answer will be long in coming needs no signature. [MS-SMB2] 3.2.5.1.3
                false if status == STATUS_PENDING.to_le_bytes() => Kind::Other,
                false => Kind::Plain(command),
            }
        }
        _ => Kind::Other,
    }
}
