//! Why bytes could not be read as what they should be.

use core::fmt;

/// Bytes that do not hold what they should. Names the field, carries the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Fewer bytes than the field needs.
    Truncated {
        /// The structure or field that was being read.
        field: &'static str,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that were left.
        left: usize,
    },
    /// A StructureSize that is not the one of the specification.
    StructureSize {
        /// The structure that was being read.
        structure: &'static str,
        /// The size found.
        found: u16,
    },
    /// An offset and length that do not lie within the message.
    OutOfBounds {
        /// The field that they describe.
        field: &'static str,
        /// Bytes from the start of the message.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A value that the structure does not allow.
    Invalid {
        /// The field.
        field: &'static str,
        /// The value found, widened.
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
                write!(f, "{field} needs {needed} bytes, {left} are left")
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
