//! The one way in which bytes are read and written: checked, little-endian.

use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::ids::{FileId, Guid};

/// Reads fields one after the other. Nothing here panics, whatever the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Reads the body of an SMB2 message: what follows the 64 bytes of the header.
    pub fn body(message: &'a [u8], field: &'static str) -> Result<Self, DecodeError> {
        let mut reader = Self::new(message);
        reader.skip(field, crate::header::HEADER_LEN)?;
        Ok(reader)
    }

    /// Bytes read so far, counted from the start.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes not read yet.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Everything not read yet.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// The next `count` bytes.
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

    /// The next `N` bytes, by value.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(field, N)?);
        Ok(array)
    }

    /// Passes over `count` bytes.
    pub fn skip(&mut self, field: &'static str, count: usize) -> Result<(), DecodeError> {
        self.bytes(field, count).map(|_| ())
    }

    /// The next byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// The next two bytes.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// The next four bytes.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// The next eight bytes.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// The next sixteen bytes.
    pub fn guid(&mut self, field: &'static str) -> Result<Guid, DecodeError> {
        self.array(field).map(Guid)
    }

    /// The next sixteen bytes, which name an open.
    pub fn file_id(&mut self, field: &'static str) -> Result<FileId, DecodeError> {
        Ok(FileId {
            persistent: self.u64(field)?,
            volatile: self.u64(field)?,
        })
    }

    /// Reads a StructureSize and checks it.
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

/// The bytes that an offset and a length from the wire describe. The only way in which such a
/// pair is used. An empty range is good at any offset, as Windows takes it.
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

/// Appends little-endian fields to a vector.
pub trait Put {
    /// One byte.
    fn put_u8(&mut self, value: u8);
    /// Two bytes.
    fn put_u16(&mut self, value: u16);
    /// Four bytes.
    fn put_u32(&mut self, value: u32);
    /// Eight bytes.
    fn put_u64(&mut self, value: u64);
    /// The sixteen bytes that name an open.
    fn put_file_id(&mut self, file_id: FileId);
    /// The bytes as they are.
    fn put(&mut self, bytes: &[u8]);
    /// Zero bytes up to a length that is a multiple of `alignment`.
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
