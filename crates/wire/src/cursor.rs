//! Checked reads and writes of little-endian fields. All decoders and encoders use this module.

use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::ids::{FileId, Guid};

/// A reader of little-endian fields of a byte string, in order. A read fails when too few bytes are
/// left; no method panics, regardless of the bytes. The argument `field` of each method is the name
/// that the error reports.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Makes a reader that starts at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Makes a reader of the body of an SMB2 message: the bytes after its 64-byte header. Fails
    /// when the message is shorter than a header; the error contains `field`.
    pub fn body(message: &'a [u8], field: &'static str) -> Result<Self, DecodeError> {
        let mut reader = Self::new(message);
        reader.skip(field, crate::header::HEADER_LEN)?;
        Ok(reader)
    }

    /// Returns the number of bytes that the reader has consumed: the offset of the next field from
    /// the start of the input.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes that the reader has not consumed yet.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Returns all bytes that the reader has not consumed yet. The position does not change.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Reads `count` bytes. Fails, without a change of the position, when fewer are left; the error
    /// contains `field`.
    pub fn bytes(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.rest();
        let Some(taken) = rest.get(..count) else {
            return Err(DecodeError::Truncated {
                field,
                needed: count,
                left: rest.len(),
            });
        };
        self.position += count;
        Ok(taken)
    }

    /// Reads an array of `N` bytes. Fails when fewer are left; the error contains `field`.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(field, N)?);
        Ok(array)
    }

    /// Skips `count` bytes. Fails when fewer are left; the error contains `field`.
    pub fn skip(&mut self, field: &'static str, count: usize) -> Result<(), DecodeError> {
        self.bytes(field, count).map(|_| ())
    }

    /// Reads one byte. Fails when no byte is left; the error contains `field`.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Reads a little-endian 16-bit integer. Fails when fewer than 2 bytes are left; the error
    /// contains `field`.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Reads a little-endian 32-bit integer. Fails when fewer than 4 bytes are left; the error
    /// contains `field`.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Reads a little-endian 64-bit integer. Fails when fewer than 8 bytes are left; the error
    /// contains `field`.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Reads a 16-byte GUID. Fails when fewer bytes are left; the error contains `field`.
    pub fn guid(&mut self, field: &'static str) -> Result<Guid, DecodeError> {
        self.array(field).map(Guid)
    }

    /// Reads a 16-byte FileId: the persistent half, then the volatile half. Fails when fewer bytes
    /// are left; the error contains `field`.
    pub fn file_id(&mut self, field: &'static str) -> Result<FileId, DecodeError> {
        Ok(FileId {
            persistent: self.u64(field)?,
            volatile: self.u64(field)?,
        })
    }

    /// Reads the 16-bit StructureSize at the start of a message body. Fails when it differs from
    /// `size`, or no 2 bytes are left; the error contains `structure`.
    pub fn structure_size(
        &mut self,
        structure: &'static str,
        size: u16,
    ) -> Result<(), DecodeError> {
        let found = self.u16(structure)?;
        if found == size {
            Ok(())
        } else {
            Err(DecodeError::StructureSize { structure, found })
        }
    }
}

/// Returns the `length` bytes of `message` at `offset`, both of which the message itself states. An
/// empty range is valid at any offset, as in Windows.
///
/// # Errors
/// Fails when the range exceeds the message; the error contains `field`.
pub fn slice_at<'a>(
    message: &'a [u8],
    field: &'static str,
    offset: u64,
    length: u64,
) -> Result<&'a [u8], DecodeError> {
    if length == 0 {
        return Ok(&[]);
    }
    let out_of_bounds = DecodeError::OutOfBounds {
        field,
        offset,
        length,
    };
    let end = offset.checked_add(length).ok_or(out_of_bounds)?;
    let start = usize::try_from(offset).map_err(|_| out_of_bounds)?;
    let end = usize::try_from(end).map_err(|_| out_of_bounds)?;
    message.get(start..end).ok_or(out_of_bounds)
}

/// Methods of a byte vector that append little-endian fields to an encoded message.
pub trait Put {
    /// Appends the 8-bit integer `value` as one byte.
    fn put_u8(&mut self, value: u8);
    /// Appends a little-endian 16-bit integer.
    fn put_u16(&mut self, value: u16);
    /// Appends a little-endian 32-bit integer.
    fn put_u32(&mut self, value: u32);
    /// Appends a little-endian 64-bit integer.
    fn put_u64(&mut self, value: u64);
    /// Appends a 16-byte FileId: the persistent half, then the volatile half.
    fn put_file_id(&mut self, file_id: FileId);
    /// Appends all of `bytes` unchanged, without a length in front.
    fn put(&mut self, bytes: &[u8]);
    /// Appends zero bytes until the length of the vector is a multiple of `alignment`. Panics when
    /// `alignment` is 0.
    fn align(&mut self, alignment: usize);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_file_id(&mut self, file_id: FileId) {
        self.put_u64(file_id.persistent);
        self.put_u64(file_id.volatile);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn align(&mut self, alignment: usize) {
        self.resize(self.len().next_multiple_of(alignment), 0);
    }
}
