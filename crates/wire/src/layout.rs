//! Functions that the encoders and decoders of all messages share.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader, slice_at};
use crate::error::DecodeError;
use crate::header::HEADER_LEN;

/// Starts the body of a message. `message` already has its header, so all offsets include it.
pub(crate) fn begin(message: &mut Vec<u8>, structure_size: u16) {
    assert_eq!(message.len(), HEADER_LEN, "a body follows its header alone");
    message.put_u16(structure_size);
}

/// Converts a length or offset to 16 bits. The caller guarantees that the value fits.
pub(crate) fn u16_of(count: usize) -> u16 {
    u16::try_from(count).expect("the caller guarantees that the value fits")
}

/// Converts a length or offset to 32 bits. The caller guarantees that the value fits.
pub(crate) fn u32_of(count: usize) -> u32 {
    u32::try_from(count).expect("the caller guarantees that the value fits")
}

/// Appends the one byte of buffer that an odd StructureSize counts, when the buffer is empty and
/// nothing else follows the fixed part. \[MS-SMB2\] 2.2.3 to 2.2.40, "Buffer".
pub(crate) fn fill_empty(message: &mut Vec<u8>, fixed_len: usize) {
    if message.len() == HEADER_LEN + fixed_len {
        message.put_u8(0);
    }
}

/// Decodes a body of a StructureSize of 4 and two reserved bytes.
pub(crate) fn decode_empty(message: &[u8], structure: &'static str) -> Result<(), DecodeError> {
    let mut reader = Reader::body(message, structure)?;
    reader.structure_size(structure, 4)?;
    reader.skip("Reserved", 2)
}

/// Appends a body of a StructureSize of 4 and two reserved bytes.
pub(crate) fn encode_empty(message: &mut Vec<u8>) {
    begin(message, 4);
    message.put_u16(0);
}

/// Declares a request or response with an empty body.
macro_rules! empty_message {
    ($(#[$meta:meta])* $name:ident, $structure:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name;

        impl $name {
            /// Decodes the body of this request or response from `message`, which starts with its
            /// 64-byte SMB2 header. Fails when `message` is too short, or its StructureSize is
            /// wrong.
            pub fn decode(message: &[u8]) -> Result<Self, $crate::error::DecodeError> {
                $crate::layout::decode_empty(message, $structure).map(|()| Self)
            }

            /// Appends the encoded body of this request or response to `message`, which must hold
            /// exactly its 64-byte SMB2 header. Panics when `message` has another length.
            pub fn encode(&self, message: &mut alloc::vec::Vec<u8>) {
                $crate::layout::encode_empty(message);
            }
        }
    };
}

pub(crate) use empty_message;

/// Declares a response with a body of an offset, a length and a buffer.
macro_rules! buffer_response {
    ($(#[$meta:meta])* $name:ident, $structure:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a> {
            /// The output buffer of the response: the data that the client requested, in a format
            /// that the request selected.
            pub output: &'a [u8],
        }

        impl<'a> $name<'a> {
            /// Length in bytes of the SMB2 header and the fixed part of the response, which is also
            /// the offset of the output buffer.
            pub const HEAD_LEN: usize = $crate::layout::BUFFER_RESPONSE_OFFSET;

            /// Decodes the body of this response from `message`, which starts with its 64-byte SMB2
            /// header. Fails when `message` is too short, or its StructureSize or the extent of the
            /// output buffer is not valid.
            pub fn decode(message: &'a [u8]) -> Result<Self, $crate::error::DecodeError> {
                let output = $crate::layout::decode_buffer(message, $structure)?;
                Ok(Self { output })
            }

            /// Appends the encoded body of this response to `message`, which must hold exactly its
            /// 64-byte SMB2 header. Panics when `message` has another length.
            pub fn encode(&self, message: &mut alloc::vec::Vec<u8>) {
                $crate::layout::encode_buffer(self.output, message);
            }
        }
    };
}

pub(crate) use buffer_response;

/// Offset of the output of a [`buffer_response`] in bytes.
pub(crate) const BUFFER_RESPONSE_OFFSET: usize = HEADER_LEN + 8;

/// Decodes the body of a [`buffer_response`].
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

/// Appends the body of a [`buffer_response`]. Without output, the body is the fixed part alone as
/// in Samba, without the extra byte that StructureSize counts.
pub(crate) fn encode_buffer(output: &[u8], message: &mut Vec<u8>) {
    begin(message, 9);
    message.put_u16(u16_of(BUFFER_RESPONSE_OFFSET));
    message.put_u32(u32_of(output.len()));
    message.put(output);
}
