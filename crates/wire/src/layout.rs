//! Small steps that every encoder and decoder of a message shares.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;

/// Starts the body of a message: all offsets count from a header that is already there.
pub(crate) fn begin(message: &mut Vec<u8>, structure_size: u16) {
    assert_eq!(message.len(), HEADER_LEN, "a body follows its header alone");
    message.put_u16(structure_size);
}

/// A length or offset for a field of 16 bits. Who encodes has made sure that it fits.
pub(crate) fn u16_of(count: usize) -> u16 {
    u16::try_from(count).expect("an encoder is given no more than its field can tell")
}

/// A length or offset for a field of 32 bits. Who encodes has made sure that it fits.
pub(crate) fn u32_of(count: usize) -> u32 {
    u32::try_from(count).expect("an encoder is given no more than its field can tell")
}

/// The one byte of buffer that an odd StructureSize counts, where the buffer is empty and
/// nothing else follows the fixed part. \[MS-SMB2\] 2.2.3 to 2.2.40, "Buffer".
pub(crate) fn fill_empty(message: &mut Vec<u8>, fixed_len: usize) {
    if message.len() == HEADER_LEN + fixed_len {
        message.put_u8(0);
    }
}

/// Reads a body that is a StructureSize of 4 and two reserved bytes.
pub(crate) fn decode_empty(message: &[u8], structure: &'static str) -> Result<(), DecodeError> {
    let mut reader = Reader::body(message, structure)?;
    reader.structure_size(structure, 4)?;
    reader.skip("Reserved", 2)
}

/// Appends a body that is a StructureSize of 4 and two reserved bytes.
pub(crate) fn encode_empty(message: &mut Vec<u8>) {
    begin(message, 4);
    message.put_u16(0);
}

/// Declares a request or response whose body holds nothing.
macro_rules! empty_message {
    ($(#[$meta:meta])* $name:ident, $structure:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name;

        impl $name {
            /// Reads the body of a message.
            pub fn decode(message: &[u8]) -> Result<Self, $crate::error::DecodeError> {
                $crate::layout::decode_empty(message, $structure).map(|()| Self)
            }

            /// Appends the body to a message that holds its header.
            pub fn encode(&self, message: &mut alloc::vec::Vec<u8>) {
                $crate::layout::encode_empty(message);
            }
        }
    };
}

pub(crate) use empty_message;

/// Declares a response whose body is an offset, a length and a buffer.
macro_rules! buffer_response {
    ($(#[$meta:meta])* $name:ident, $structure:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a> {
            /// What is answered.
            pub output: &'a [u8],
        }

        impl<'a> $name<'a> {
            /// Bytes of header and fixed part: where the output stands.
            pub const HEAD_LEN: usize = $crate::layout::BUFFER_RESPONSE_OFFSET;

            /// Reads the body of a message.
            pub fn decode(message: &'a [u8]) -> Result<Self, $crate::error::DecodeError> {
                let output = $crate::layout::decode_buffer(message, $structure)?;
                Ok(Self { output })
            }

            /// Appends the body to a message that holds its header.
            pub fn encode(&self, message: &mut alloc::vec::Vec<u8>) {
                $crate::layout::encode_buffer(self.output, message);
            }
        }
    };
}

pub(crate) use buffer_response;

/// Where the output of a [`buffer_response`] stands.
pub(crate) const BUFFER_RESPONSE_OFFSET: usize = HEADER_LEN + 8;

/// Reads the body of a [`buffer_response`].
pub(crate) fn decode_buffer<'a>(
    message: &'a [u8],
    structure: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let mut reader = Reader::body(message, structure)?;
    reader.structure_size(structure, 9)?;
    let offset = reader.u16("OutputBufferOffset")?;
    let length = reader.u32("OutputBufferLength")?;
    slice_at(message, "OutputBuffer", offset.into(), length.into())
}

/// Appends the body of a [`buffer_response`]. Without output it is the fixed part alone, as Samba
/// sends it, not the one byte more that StructureSize counts.
pub(crate) fn encode_buffer(output: &[u8], message: &mut Vec<u8>) {
    begin(message, 9);
    message.put_u16(u16_of(BUFFER_RESPONSE_OFFSET));
    message.put_u32(u32_of(output.len()));
    message.put(output);
}
