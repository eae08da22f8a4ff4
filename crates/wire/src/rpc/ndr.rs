//! NDR, the encoding of the arguments and results of RPC calls. \[C706\] 14
//!
//! This module implements 32-bit pointers and little-endian integers. The referents of the pointers
//! follow the outermost structure, in the order of the pointers.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cursor::{self, Put};
use crate::error::DecodeError;
use crate::ids::Guid;
use crate::layout::u32_of;
use crate::security::Sid;
use crate::text::Utf16;

/// A decoder of the arguments or results of an RPC call (the stub) in NDR encoding. \[C706\] 14
///
/// Each method takes the name of the field for its error, and fails when the stub is too short.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    inner: cursor::Reader<'a>,
}

impl<'a> Reader<'a> {
    /// Makes a reader at the start of `stub`, the encoded arguments or results of an RPC call.
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

    /// Reads an unsigned short (16 bits), after padding to a multiple of 2 bytes. Fails when the
    /// stub is too short; `field` is the name in the error.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.align(field, 2)?;
        self.inner.u16(field)
    }

    /// Reads a GUID, after padding to a multiple of 4 bytes. Fails when the stub is too short;
    /// `field` is the name in the error.
    pub fn guid(&mut self, field: &'static str) -> Result<Guid, DecodeError> {
        self.align(field, 4)?;
        self.inner.guid(field)
    }

    /// Reads an unsigned long (32 bits), after padding to a multiple of 4 bytes. Fails when the
    /// stub is too short; `field` is the name in the error.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.align(field, 4)?;
        self.inner.u32(field)
    }

    /// Reads the referent ID of an NDR pointer. Returns true if the pointer has a referent, false
    /// for a null pointer. Fails when the stub is too short; `field` is the name in the error.
    pub fn pointer(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        self.u32(field).map(|referent| referent != 0)
    }

    /// Reads the element count of an array with elements of at least `size` bytes. Fails when the
    /// rest of the stub is too short for that count; `field` is the name in the error.
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

    /// Reads a conformant array of bytes: its 32-bit count, then the bytes. Fails when the stub is
    /// too short; `field` is the name in the error.
    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let count = self.count(field, 1)?;
        self.inner.bytes(field, count)
    }

    /// Reads a string, `[string] wchar_t*`: a conformant varying array with a terminating zero,
    /// which the result omits. Fails when the stub is too short, the counts do not match, or the
    /// text is not valid UTF-16; `field` is the name in the error.
    pub fn string(&mut self, field: &'static str) -> Result<String, DecodeError> {
        let bytes = self.varying(field)?;
        let bytes = bytes.strip_suffix(&[0, 0]).unwrap_or(bytes);
        Utf16(bytes).decode().ok_or(invalid(field, 0))
    }

    /// Reads a conformant varying array of 16-bit units. Fails when the stub is too short or the
    /// counts do not match.
    fn varying(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let max_count = self.u32(field)?;
        let offset = self.u32(field)?;
        let units = self.count(field, 2)?;
        if offset != 0 || units > max_count as usize {
            return Err(invalid(field, max_count));
        }
        self.inner.bytes(field, units * 2)
    }

    /// Reads the fixed part of a counted string (RPC_UNICODE_STRING): its lengths and a pointer.
    /// Returns the length of the text in bytes; `None` for a null pointer. The caller reads the
    /// text with [`counted_text`](Self::counted_text), where the referents of the structure are.
    /// Fails when the stub is too short or the lengths do not match. \[MS-DTYP\] 2.3.10
    pub fn counted(&mut self, field: &'static str) -> Result<Option<u16>, DecodeError> {
        self.align(field, 4)?;
        let length = self.u16(field)?;
        let maximum = self.u16(field)?;
        let is_present = self.pointer(field)?;
        let is_valid = length <= maximum && length.is_multiple_of(2);
        match (is_valid, is_present) {
            (true, true) => Ok(Some(length)),
            (true, false) if length == 0 => Ok(None),
            _ => Err(invalid(field, length.into())),
        }
    }

    /// Reads the text of a counted string of `length` bytes. Fails when the stub is too short, the
    /// array has another length, or the text is not valid UTF-16; `field` is the name in the error.
    pub fn counted_text(
        &mut self,
        field: &'static str,
        length: u16,
    ) -> Result<String, DecodeError> {
        let bytes = self.varying(field)?;
        if bytes.len() != usize::from(length) {
            return Err(invalid(field, length.into()));
        }
        Utf16(bytes).decode().ok_or(invalid(field, 0))
    }

    /// Reads a SID (RPC_SID), after the number of its sub-authorities. Fails when the stub is too
    /// short, the numbers do not match, or the SID is not valid; `field` is the name in the error.
    /// \[MS-DTYP\] 2.4.2.3
    pub fn sid(&mut self, field: &'static str) -> Result<Sid, DecodeError> {
        let count = self.u32(field)?;
        let sid = Sid::read(&mut self.inner)?;
        match sid.sub_authorities().len() == count as usize {
            true => Ok(sid),
            false => Err(invalid(field, count)),
        }
    }

    /// Reads an optional string, `[string, unique] wchar_t*`: a pointer, then the string. `None`
    /// for a null pointer. Fails as [`string`](Self::string) does; `field` is the name in the
    /// error.
    pub fn unique_string(&mut self, field: &'static str) -> Result<Option<String>, DecodeError> {
        let is_present = self.pointer(field)?;
        is_present.then(|| self.string(field)).transpose()
    }
}

fn invalid(field: &'static str, value: u32) -> DecodeError {
    DecodeError::Invalid {
        field,
        value: value.into(),
    }
}

/// An encoder of the arguments or results of an RPC call (the stub) in NDR encoding. \[C706\] 14
#[derive(Clone, Debug, Default)]
pub struct Writer {
    stub: Vec<u8>,
    referents: u32,
}

/// Referent identifier of the first pointer. Any value except zero is valid; Windows uses this one.
const FIRST_REFERENT: u32 = 0x0002_0000;

impl Writer {
    /// Makes a writer without encoded values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the stub: the encoded arguments or results of an RPC call, without the header of the
    /// fragment.
    pub fn into_stub(self) -> Vec<u8> {
        self.stub
    }

    /// Returns the length of the encoded values so far, in bytes.
    pub fn len(&self) -> usize {
        self.stub.len()
    }

    /// Returns true if the writer has encoded no values so far.
    pub fn is_empty(&self) -> bool {
        self.stub.is_empty()
    }

    /// Appends an unsigned long (32 bits), after padding to a multiple of 4 bytes.
    pub fn put_u32(&mut self, value: u32) {
        self.stub.align(4);
        self.stub.put_u32(value);
    }

    /// Appends an unsigned short (16 bits), after padding to a multiple of 2 bytes.
    pub fn put_u16(&mut self, value: u16) {
        self.stub.align(2);
        self.stub.put_u16(value);
    }

    /// Appends a GUID, after padding to a multiple of 4 bytes.
    pub fn put_guid(&mut self, guid: &Guid) {
        self.stub.align(4);
        self.stub.put(&guid.0);
    }

    /// Appends the fixed part of a counted string (RPC_UNICODE_STRING): its lengths and a pointer;
    /// a null pointer for `None`. The caller appends the text with
    /// [`put_counted_text`](Self::put_counted_text), where the referents of the structure are.
    /// Panics when the text has 32,768 or more UTF-16 code units.
    pub fn put_counted(&mut self, text: Option<&str>) {
        let bytes = text.map_or(0, |text| 2 * text.encode_utf16().count());
        let length = u16::try_from(bytes).expect("the text is short");
        self.stub.align(4);
        self.put_u16(length);
        self.put_u16(length);
        self.put_pointer(text.is_some());
    }

    /// Appends the text of a counted string, without a terminating zero.
    pub fn put_counted_text(&mut self, text: &str) {
        let units = u32_of(text.encode_utf16().count());
        self.put_u32(units);
        self.put_u32(0);
        self.put_u32(units);
        crate::text::put_utf16(&mut self.stub, text);
    }

    /// Appends a SID (RPC_SID), after the number of its sub-authorities.
    pub fn put_sid(&mut self, sid: &Sid) {
        self.put_u32(u32_of(sid.sub_authorities().len()));
        sid.encode(&mut self.stub);
    }

    /// Appends an NDR pointer: a null pointer, or a new referent ID if `is_present`. The caller
    /// appends the referent afterwards.
    pub fn put_pointer(&mut self, is_present: bool) {
        if !is_present {
            return self.put_u32(0);
        }
        let referent = FIRST_REFERENT.wrapping_add(self.referents.wrapping_mul(4));
        self.referents += 1;
        self.put_u32(referent);
    }

    /// Appends a conformant array of bytes: its 32-bit count, then the bytes. Panics when it has 4
    /// GiB or more.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_u32(u32_of(bytes.len()));
        self.stub.put(bytes);
    }

    /// Appends a string, `[string] wchar_t*`: a conformant varying array with a terminating zero.
    pub fn put_string(&mut self, text: &str) {
        let units = u32_of(text.encode_utf16().count() + 1);
        self.put_u32(units);
        self.put_u32(0);
        self.put_u32(units);
        crate::text::put_utf16(&mut self.stub, text);
        self.stub.put_u16(0);
    }

    /// Appends an optional string, `[string, unique] wchar_t*`: a pointer, then the string. `None`
    /// becomes a null pointer.
    pub fn put_unique_string(&mut self, text: Option<&str>) {
        self.put_pointer(text.is_some());
        if let Some(text) = text {
            self.put_string(text);
        }
    }
}
