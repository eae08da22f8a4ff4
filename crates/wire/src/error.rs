//! The error of all decoders.

use core::fmt;

/// Why bytes cannot be decoded. Each variant names the structure or field and carries the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The input ends inside a field.
    Truncated {
        /// Name of the structure or field in the specification.
        field: &'static str,
        /// Length of the field in bytes.
        needed: usize,
        /// Number of bytes that the input still has.
        left: usize,
    },
    /// The StructureSize differs from the one in the specification.
    StructureSize {
        /// Name of the structure.
        structure: &'static str,
        /// The StructureSize in the message.
        found: u16,
    },
    /// An offset and length point outside the message.
    OutOfBounds {
        /// Name of the field that they describe.
        field: &'static str,
        /// Offset in bytes from the start of the message.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// The structure does not allow this value.
    Invalid {
        /// Name of the field in the specification.
        field: &'static str,
        /// The value in the message, widened to 64 bits.
        value: u64,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated {
                field,
                needed,
                left,
            } => {
                write!(f, "{field} needs {needed} bytes, the input has {left}")
            }
            Self::StructureSize { structure, found } => {
                write!(f, "{structure} has structure size {found}")
            }
            Self::OutOfBounds {
                field,
                offset,
                length,
            } => {
                write!(
                    f,
                    "{field} at offset {offset}, length {length}, is outside the message"
                )
            }
            Self::Invalid { field, value } => write!(f, "{field} has the value {value:#x}"),
        }
    }
}

impl core::error::Error for DecodeError {}
