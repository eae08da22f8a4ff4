//! The parts that all calls for names and SIDs have in common: numbers and pointers of lists, and
//! the end of a request. \[MS-LSAT\] 3.1.4.5 to 3.1.4.11

use super::domains::invalid;
use crate::error::DecodeError;
use crate::layout::u32_of;
use crate::rpc::ndr::{Reader, Writer};

/// The index of an account without a domain: -1.
pub(super) const NO_DOMAIN: u32 = u32::MAX;

/// The revision of a client that knows of several forests. \[MS-LSAT\] 3.1.4.11
const CLIENT_REVISION: u32 = 2;

/// Reads the start of a structure with a number of entries and a pointer to an array of them.
/// Returns the number, 0 for a null pointer. The entries, of at least `entry_len` bytes each, come
/// next.
pub(super) fn read_list_len(
    reader: &mut Reader<'_>,
    field: &'static str,
    entry_len: usize,
) -> Result<usize, DecodeError> {
    let entries = reader.u32(field)?;
    let count = match reader.pointer(field)? {
        true => reader.count(field, entry_len)?,
        false => 0,
    };
    match u32_of(count) == entries {
        true => Ok(count),
        false => Err(invalid(field, entries)),
    }
}

/// Appends the start of a structure with a number of entries and a pointer to an array of them.
pub(super) fn put_list_len(out: &mut Writer, count: usize) {
    let count = u32_of(count);
    out.put_u32(count);
    out.put_pointer(count > 0);
    if count > 0 {
        out.put_u32(count);
    }
}

/// Reads the end of a request: the list that the server fills, which must be empty, the lookup
/// level, and the number of translated entries. Later versions of a call add options. Returns the
/// lookup level.
pub(super) fn read_end(
    reader: &mut Reader<'_>,
    list: &'static str,
    has_options: bool,
) -> Result<u16, DecodeError> {
    let entries = reader.u32(list)?;
    if reader.pointer(list)? {
        return Err(invalid(list, entries));
    }
    let level = reader.u16("LookupLevel")?;
    reader.u32("MappedCount")?;
    if has_options {
        reader.u32("LookupOptions")?;
        reader.u32("ClientRevision")?;
    }
    Ok(level)
}

/// Appends the end of a request.
pub(super) fn put_end(out: &mut Writer, level: u16, has_options: bool) {
    out.put_u32(0);
    out.put_pointer(false);
    out.put_u16(level);
    out.put_u32(0);
    if has_options {
        out.put_u32(0);
        out.put_u32(CLIENT_REVISION);
    }
}
