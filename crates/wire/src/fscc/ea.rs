//! Extended attributes, and lists of their names. \[MS-FSCC\] 2.4.16

use alloc::vec::Vec;

use super::chain::{Chain, ChainWriter};
use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::open_enum::open_flags;

/// Alignment of the entries in bytes.
const ALIGNMENT: usize = 4;

open_flags! {
    /// Flags of an extended attribute. \[MS-FSCC\] 2.4.16
    EaFlags(u8) {
        /// An application that does not understand the attribute must not use the file.
        NEED_EA = 0x80,
    }
}

/// An extended attribute of a file: a name and a value (FILE_FULL_EA_INFORMATION).
/// \[MS-FSCC\] 2.4.16
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FullEa<'a> {
    /// Flags of the attribute: whether a program that uses the file must understand it (NEED_EA).
    pub flags: EaFlags,
    /// Name of the attribute: at most 255 8-bit characters, without the terminating NUL.
    pub name: &'a [u8],
    /// Value of the attribute: at most 65,535 bytes. In SET_INFO, an empty value deletes the
    /// attribute.
    pub value: &'a [u8],
}

/// Characters that the name of an extended attribute must not contain, beside control characters.
/// \[MS-FSCC\] 2.4.16
const INVALID_CHARS: &[u8] = b"\"*+,/:;<=>?[\\]|";

/// Returns whether an extended attribute can have this name: 1 to 255 bytes without control
/// characters and without the characters `"*+,/:;<=>?[\]|`. \[MS-FSCC\] 2.4.16
pub fn is_valid_ea_name(name: &[u8]) -> bool {
    let is_valid = |byte: &u8| *byte >= b' ' && !INVALID_CHARS.contains(byte);
    (1..=255).contains(&name.len()) && name.iter().all(is_valid)
}

impl<'a> FullEa<'a> {
    /// Decodes an entry without its NextEntryOffset.
    fn decode(entry: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(entry);
        let flags = EaFlags(reader.u8("Flags")?);
        let name_len = reader.u8("EaNameLength")?;
        let value_len = reader.u16("EaValueLength")?;
        let name = read_name(&mut reader, name_len)?;
        let value = reader.bytes("EaValue", usize::from(value_len))?;
        Ok(Self { flags, name, value })
    }
}

/// Reads a name and its terminating NUL.
fn read_name<'a>(reader: &mut Reader<'a>, name_len: u8) -> Result<&'a [u8], DecodeError> {
    let name = reader.bytes("EaName", usize::from(name_len))?;
    match reader.u8("EaName")? {
        0 => Ok(name),
        byte => Err(DecodeError::Invalid {
            field: "EaName",
            value: u64::from(byte),
        }),
    }
}

/// An encoder of a list of extended attributes (FILE_FULL_EA_INFORMATION). \[MS-FSCC\] 2.4.16
#[derive(Clone, Debug)]
pub struct EaWriter(ChainWriter);

impl EaWriter {
    /// Makes a writer of a list of extended attributes with at most `max_len` bytes.
    pub fn new(max_len: usize) -> Self {
        Self(ChainWriter::new(Vec::new(), ALIGNMENT, max_len))
    }

    /// Appends an extended attribute to the list and returns true. Returns false, without a change,
    /// if the list would exceed its maximum length, the name exceeds 255 bytes, or the value
    /// exceeds 65,535 bytes.
    pub fn push(&mut self, ea: &FullEa<'_>) -> bool {
        let Ok(name_len) = u8::try_from(ea.name.len()) else {
            return false;
        };
        let Ok(value_len) = u16::try_from(ea.value.len()) else {
            return false;
        };
        self.0.push(|out| {
            out.put_u8(ea.flags.0);
            out.put_u8(name_len);
            out.put_u16(value_len);
            out.put(ea.name);
            out.put_u8(0);
            out.put(ea.value);
        })
    }

    /// Returns the encoded list of all appended attributes; no bytes if it has none.
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// Iterates over an encoded list of extended attributes (FILE_FULL_EA_INFORMATION). A malformed
/// entry gives an error. \[MS-FSCC\] 2.4.16
#[derive(Clone, Debug)]
pub struct Eas<'a>(Chain<'a>);

impl<'a> Eas<'a> {
    /// Makes the iterator over the encoded attributes in `bytes`. A server answers an error of the
    /// iteration with STATUS_EA_LIST_INCONSISTENT.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Chain::new(bytes, "FILE_FULL_EA_INFORMATION", ALIGNMENT))
    }
}

impl<'a> Iterator for Eas<'a> {
    type Item = Result<FullEa<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.and_then(FullEa::decode))
    }
}

/// Iterates over the names of the extended attributes that a client queries
/// (FILE_GET_EA_INFORMATION). A malformed entry gives an error. \[MS-FSCC\] 2.4.16.1
#[derive(Clone, Debug)]
pub struct EaNames<'a>(Chain<'a>);

impl<'a> EaNames<'a> {
    /// Makes the iterator over the encoded list of names in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Chain::new(bytes, "FILE_GET_EA_INFORMATION", ALIGNMENT))
    }
}

impl<'a> Iterator for EaNames<'a> {
    type Item = Result<&'a [u8], DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.and_then(|entry| {
            let mut reader = Reader::new(entry);
            let name_len = reader.u8("EaNameLength")?;
            read_name(&mut reader, name_len)
        }))
    }
}

/// Appends `names`, the names of extended attributes that a client queries
/// (FILE_GET_EA_INFORMATION), in encoded form to `out`, and returns it. `None` if a name is longer
/// than 255 bytes. \[MS-FSCC\] 2.4.16.1
pub fn put_ea_names(out: Vec<u8>, names: &[&[u8]]) -> Option<Vec<u8>> {
    let mut chain = ChainWriter::new(out, ALIGNMENT, usize::MAX);
    for name in names {
        let name_len = u8::try_from(name.len()).ok()?;
        chain.push(|out| {
            out.put_u8(name_len);
            out.put(name);
            out.put_u8(0);
        });
    }
    Some(chain.finish())
}
