//! The SMB1 message that can lead to SMB2: NEGOTIATE with its dialect strings. \[MS-SMB2\] 3.3.5.3,
//! \[MS-CIFS\] 2.2.4.52

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::layout::u16_of;

/// The first four bytes of an SMB1 message (the older protocol).
pub const PROTOCOL_ID: [u8; 4] = *b"\xFFSMB";
/// Length of the SMB1 header in bytes.
pub const HEADER_LEN: usize = 32;
/// Dialect string in an SMB1 NEGOTIATE request by which a client offers SMB 2.0.2.
pub const DIALECT_SMB_2_002: &[u8] = b"SMB 2.002";
/// Dialect string in an SMB1 NEGOTIATE request by which a client offers SMB 2.1 and later.
pub const DIALECT_SMB_2_WILDCARD: &[u8] = b"SMB 2.???";

/// SMB_COM_NEGOTIATE.
const COMMAND_NEGOTIATE: u8 = 0x72;
/// The byte before each dialect string.
const BUFFER_FORMAT_DIALECT: u8 = 0x02;

/// An SMB1 NEGOTIATE request, in which a client of both protocols can offer SMB2.
/// \[MS-CIFS\] 2.2.4.52.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiate<'a> {
    /// TID, PIDLow, UID and MID, which the response repeats.
    ids: [u8; 8],
    /// The encoded dialect strings.
    dialects: &'a [u8],
}

impl<'a> Negotiate<'a> {
    /// Decodes a whole SMB1 NEGOTIATE request, from the first byte of its header. Fails when the
    /// message is truncated, is another command, or has a malformed dialect string.
    pub fn decode(message: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(message);
        let protocol: [u8; 4] = reader.array("SMB1 Protocol")?;
        expect(
            "SMB1 Protocol",
            protocol == PROTOCOL_ID,
            u32::from_le_bytes(protocol),
        )?;
        let command = reader.u8("SMB1 Command")?;
        expect("SMB1 Command", command == COMMAND_NEGOTIATE, command)?;
        reader.skip("SMB1 header", HEADER_LEN - 8 - reader.position())?;
        let ids = reader.array("SMB1 ids")?;
        let word_count = reader.u8("WordCount")?;
        expect("WordCount", word_count == 0, word_count)?;
        let byte_count = reader.u16("ByteCount")?;
        let dialects = reader.bytes("Dialects", byte_count.into())?;
        for dialect in Dialects(dialects) {
            dialect?;
        }
        Ok(Self { ids, dialects })
    }

    /// Iterates over the dialect strings that the client offers, without their terminating NUL.
    pub fn dialects(&self) -> impl Iterator<Item = &'a [u8]> {
        Dialects(self.dialects).map_while(Result::ok)
    }

    /// Returns true if the client offers this dialect string, given without its terminating NUL.
    pub fn offers(&self, dialect: &[u8]) -> bool {
        self.dialects().any(|offered| offered == dialect)
    }

    /// Encodes a whole SMB1 NEGOTIATE response, with its header, that selects none of the dialects.
    /// \[MS-CIFS\] 2.2.4.52.2
    pub fn encode_refusal(&self) -> Vec<u8> {
        let mut message = Vec::new();
        message.put(&PROTOCOL_ID);
        message.put_u8(COMMAND_NEGOTIATE);
        message.put_u32(0);
        // Flags: response, case-insensitive names. Flags2: NTSTATUS, extended attributes, long
        // names.
        message.put_u8(0x88);
        message.put_u16(0x4003);
        message.put(&[0; 12]);
        message.put(&self.ids);
        // WordCount, DialectIndex, ByteCount.
        message.put_u8(1);
        message.put_u16(0xFFFF);
        message.put_u16(0);
        message
    }
}

fn expect(field: &'static str, is_met: bool, found: impl Into<u64>) -> Result<(), DecodeError> {
    if is_met {
        return Ok(());
    }
    let value = found.into();
    Err(DecodeError::Invalid { field, value })
}

/// Iterates over the dialect strings. Each step consumes at least two bytes, or ends the iteration.
struct Dialects<'a>(&'a [u8]);

impl<'a> Iterator for Dialects<'a> {
    type Item = Result<&'a [u8], DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&format, rest) = core::mem::take(&mut self.0).split_first()?;
        if format != BUFFER_FORMAT_DIALECT {
            return Some(Err(DecodeError::Invalid {
                field: "BufferFormat",
                value: format.into(),
            }));
        }
        let Some(end) = rest.iter().position(|&byte| byte == 0) else {
            return Some(Err(DecodeError::Truncated {
                field: "DialectString",
                needed: rest.len() + 1,
                left: rest.len(),
            }));
        };
        self.0 = &rest[end + 1..];
        Some(Ok(&rest[..end]))
    }
}

/// Encodes a whole SMB1 NEGOTIATE request, with its header, that offers these dialect strings. The
/// strings have no terminating NUL. Panics when they exceed 65,535 bytes in all.
pub fn encode_negotiate(dialects: &[&[u8]]) -> Vec<u8> {
    let mut strings = Vec::new();
    for dialect in dialects {
        strings.put_u8(BUFFER_FORMAT_DIALECT);
        strings.put(dialect);
        strings.put_u8(0);
    }
    let mut message = Vec::new();
    message.put(&PROTOCOL_ID);
    message.put_u8(COMMAND_NEGOTIATE);
    message.put_u32(0);
    // Flags: canonical, case-insensitive paths. Flags2: Unicode, NTSTATUS, extended security, long
    // names.
    message.put_u8(0x18);
    message.put_u16(0xC853);
    message.put(&[0; 12]);
    // TID, PID, UID, MID.
    message.put_u16(0xFFFF);
    message.put_u16(0xFEFF);
    message.put_u32(0);
    message.put_u8(0);
    message.put_u16(u16_of(strings.len()));
    message.put(&strings);
    message
}
