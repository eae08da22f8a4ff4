//! Information classes that contain a name: its length in bytes, then its characters.

use alloc::vec::Vec;

use crate::cursor::{Put, Reader};
use crate::error::DecodeError;
use crate::text::Utf16;

/// Appends the length of a name in bytes. Every name is shorter than 4 GiB.
pub(super) fn put_name_len(out: &mut Vec<u8>, name: Utf16<'_>) {
    out.put_u32(u32::try_from(name.len()).expect("a name is shorter than 4 GiB"));
}

/// Reads the length of a name in bytes, then the name.
pub(super) fn read_name<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
) -> Result<Utf16<'a>, DecodeError> {
    let length = reader.u32(field)?;
    name_of(reader, field, length)
}

/// Reads the `length` bytes of a name.
pub(super) fn name_of<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
    length: u32,
) -> Result<Utf16<'a>, DecodeError> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    reader.bytes(field, length).map(Utf16)
}

/// The name or path of a file, in the structure that the information classes NAME, ALTERNATE_NAME
/// and NORMALIZED_NAME share. \[MS-FSCC\] 2.1.7
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FileNameInformation<'a> {
    /// The name, in a form that depends on the information class. ALTERNATE_NAME: the 8.3 name
    /// alone. NAME: the path from the root of the share, with a leading backslash. NORMALIZED_NAME:
    /// the path without that backslash.
    pub name: Utf16<'a>,
}

/// The 8.3 name that a client assigns to a file by SET_INFO: the information class SHORT_NAME.
/// \[MS-FSCC\] 2.4.46
pub type FileShortNameInformation<'a> = FileNameInformation<'a>;

impl<'a> FileNameInformation<'a> {
    /// Length in bytes of the encoded structure before the characters of the name.
    pub const FIXED_LEN: usize = 4;

    /// Decodes the structure at the start of `bytes` and ignores later bytes. Fails when `bytes` is
    /// too short.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(bytes))
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let name = read_name(reader, "FileName")?;
        Ok(Self { name })
    }

    /// Appends the encoded structure to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_name_len(out, self.name);
        out.put(self.name.0);
    }
}
