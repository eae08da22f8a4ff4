//! The bytes of samples.

use crate::bench::pattern::Pattern;

/// Appends `len` bytes of the content of the file with this number, from `offset` on.
pub(super) fn append_content(number: u64, offset: u64, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + len, 0);
    // The pattern starts at multiples of 8 bytes.
    Pattern::of(number).fill(offset.next_multiple_of(8), &mut out[start..]);
}
