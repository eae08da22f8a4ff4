//! NDR: how arguments are written. \[C706\] 14
//!
//! With pointers of 32 bits and little-endian integers.
//!
//! A structure stands where it is; what its pointers point to follows behind the outermost
//! structure, in the order of the pointers.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cursor::{self, Put};
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::text::Utf16;

/// Reads a stub. Whatever a count says, no more is taken than there is.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    inner: cursor::Reader<'a>,
}

impl<'a> Reader<'a> {
    /// Reads from the start of a stub.
    pub fn new(stub: &'a [u8]) -> Self {
        Self {
            inner: cursor::Reader::new(stub),
        }
    }

    fn align(&mut self, field: &'static str, alignment: usize) -> Result<(), DecodeError> {
        let position = self.inner.position();
        let padding = position.next_multiple_of(alignment) - position;
        self.inner.skip(field, padding)
    }

    /// An unsigned long.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.align(field, 4)?;
        self.inner.u32(field)
    }

    /// Whether a pointer points to something.
    pub fn pointer(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.u32(field).map(|referent| referent != 0)
    }

    /// The count of an array that follows, of elements of `size` bytes at least.
    pub fn count(&mut self, field: &'static str, size: usize) -> Result<usize, DecodeError> {
        let count = self.u32(field)? as usize;
        let left = self.inner.left();
        match count.checked_mul(size) {
            Some(needed) if needed <= left => Ok(count),
            needed => Err(DecodeError::Truncated {
                field,
                needed: needed.unwrap_or(usize::MAX),
                left,
            }),
        }
    }

    /// An array of bytes behind its count.
    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let count = self.count(field, 1)?;
        self.inner.bytes(field, count)
    }

    /// A text: `[string] wchar_t*`, a conformant varying array that ends in a zero.
    pub fn string(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let max_count = self.u32(field)?;
        let offset = self.u32(field)?;
        let units = self.count(field, 2)?;
        if offset != 0 || units > max_count as usize {
            return Err(invalid(field, max_count));
        }
        let bytes = self.inner.bytes(field, units * 2)?;
        let bytes = bytes.strip_suffix(&[0, 0]).unwrap_or(bytes);
        Utf16(bytes).decode().ok_or(invalid(field, 0))
    }

    /// A text behind a pointer: `[string, unique] wchar_t*` as an argument.
    pub fn unique_string(&mut self, field: &'static str) -> Result<Option<String>, DecodeError> {
        let is_there = self.pointer(field)?;
        is_there.then(|| self.string(field)).transpose()
    }
}

fn invalid(field: &'static str, value: u32) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}

/// Writes a stub.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    stub: Vec<u8>,
    referents: u32,
}

/// What the first pointer is called: anything but zero would do; Windows begins here.
const FIRST_REFERENT: u32 = 0x0002_0000;

impl Writer {
    /// An empty stub.
    pub fn new() -> Self {
        Self::default()
    }

    /// The stub.
    pub fn into_stub(self) -> Vec<u8> {
        self.stub
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.stub.len()
    }

    /// Whether nothing is written yet.
    pub fn is_empty(&self) -> bool {
        self.stub.is_empty()
    }

    /// An unsigned long.
    pub fn put_u32(&mut self, value: u32) {
        self.stub.align(4);
        self.stub.put_u32(value);
    }

    /// A pointer that points to something, or not.
    pub fn put_pointer(&mut self, is_there: bool) {
        if !is_there {
            return self.put_u32(0);
        }
        let referent = FIRST_REFERENT.wrapping_add(self.referents.wrapping_mul(4));
        self.referents += 1;
        self.put_u32(referent);
    }

    /// An array of bytes behind its count.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_u32(u32_of(bytes.len()));
        self.stub.put(bytes);
    }

    /// A text: `[string] wchar_t*`.
    pub fn put_string(&mut self, text: &str) {
        let units = u32_of(text.encode_utf16().count() + 1);
        self.put_u32(units);
        self.put_u32(0);
        self.put_u32(units);
        crate::text::put_utf16(&mut self.stub, text);
        self.stub.put_u16(0);
    }

    /// A text behind a pointer, as an argument.
    pub fn put_unique_string(&mut self, text: Option<&str>) {
        self.put_pointer(text.is_some());
        if let Some(text) = text {
            self.put_string(text);
        }
    }
}
