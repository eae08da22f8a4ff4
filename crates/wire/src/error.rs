//! The error of all decoders.

use core::fmt;

/// The reason why bytes cannot be decoded as an SMB message or structure. Each variant names the
/// structure or field and carries the offending values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The input ends inside a field.
    Truncated {
        /// Name of the structure or field in the specification.
        field: &'static str,
        /// Length in bytes that the field needs.
        needed: usize,
        /// Number of bytes that the input still has.
        left: usize,
    },
    /// The StructureSize field differs from the value that the specification requires.
    StructureSize {
        /// Name of the decoded structure, for example `LOCK request`.
        structure: &'static str,
        /// The StructureSize that the message contains.
        found: u16,
    },
    /// A field of variable length is outside the message.
    OutOfBounds {
        /// Name of the field in the specification.
        field: &'static str,
        /// Offset of the field in bytes from the start of the message, as the message states it.
        offset: u64,
        /// Length of the field in bytes, as the message states it.
        length: u64,
    },
    /// A field has a value that its structure does not allow.
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
