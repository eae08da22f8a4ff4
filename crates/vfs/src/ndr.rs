//! A reader of the NDR values that Samba stores in extended attributes: little-endian integers,
//! aligned from the start of the value. (C706, chapter 14)

/// A reader of an NDR value. Its functions return `None` at the end of the value.
pub(crate) struct Ndr<'a> {
    value: &'a [u8],
    at: usize,
}

impl<'a> Ndr<'a> {
    /// A reader that starts at an offset in bytes.
    pub(crate) fn at(value: &'a [u8], offset: usize) -> Self {
        Self { value, at: offset }
    }

    /// Reads bytes at the next multiple of `align` bytes.
    pub(crate) fn take<const N: usize>(&mut self, align: usize) -> Option<[u8; N]> {
        let start = self.at.checked_next_multiple_of(align)?;
        let bytes = self.value.get(start..start.checked_add(N)?)?;
        self.at = start + N;
        bytes.try_into().ok()
    }

    /// Reads a 16-bit integer.
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take(2).map(u16::from_le_bytes)
    }

    /// Reads a 32-bit integer.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take(4).map(u32::from_le_bytes)
    }

    /// Reads a 64-bit integer.
    pub(crate) fn hyper(&mut self) -> Option<u64> {
        self.take(8).map(u64::from_le_bytes)
    }

    /// Skips a pointer, which must not be NULL.
    pub(crate) fn pointer(&mut self) -> Option<()> {
        (self.u32()? != 0).then_some(())
    }

    /// Skips a string that ends with a zero byte.
    pub(crate) fn skip_string(&mut self) -> Option<()> {
        let mut rest = self.value.get(self.at..)?.iter();
        self.at += rest.position(|byte| *byte == 0)? + 1;
        Some(())
    }

    /// The offset of the next multiple of `align` bytes, and the value from there on.
    pub(crate) fn rest(&self, align: usize) -> Option<(usize, &'a [u8])> {
        let start = self.at.checked_next_multiple_of(align)?;
        Some((start, self.value.get(start..)?))
    }
}
