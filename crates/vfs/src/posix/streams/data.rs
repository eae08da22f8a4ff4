//! Data of named streams.

use std::ops::Range;

use proto::file::Outcome;
use rustix::fs::fsync;
use rustix::io::Errno;
use wire::Status;

use super::opens::OpenStream;
use super::xattr;
use crate::errno::{Context, status};
use crate::posix::file::OpenFile;
use crate::{Step, Stop};

/// Reads bytes at an offset. Returns the number of bytes.
pub(in crate::posix) fn read(
    file: &OpenFile,
    stream: &OpenStream,
    offset: u64,
    into: &mut [u8],
) -> Step<usize> {
    let data = stream.read(file.file_ref()).map_err(failed)?;
    let start = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(data.len());
    let count = into.len().min(data.len() - start);
    into[..count].copy_from_slice(&data[start..start + count]);
    Ok(count)
}

/// Writes bytes at an offset, or at the end. The data are on stable storage afterwards if `through`
/// is set.
pub(in crate::posix) fn write(
    file: &OpenFile,
    stream: &OpenStream,
    offset: Option<u64>,
    from: &[u8],
    through: bool,
) -> Step<usize> {
    let write = |data: &mut Vec<u8>| {
        let start = offset.unwrap_or(data.len() as u64);
        let end = end_of(start, from.len() as u64)?;
        if data.len() < end {
            data.resize(end, 0);
        }
        data[end - from.len()..end].copy_from_slice(from);
        Ok(((), true))
    };
    stream.change(file.file_ref(), write).map_err(failed)?;
    if through {
        flush(file)?;
    }
    Ok(from.len())
}

/// Sets the length of the data.
pub(in crate::posix) fn set_length(file: &OpenFile, stream: &OpenStream, length: u64) -> Step<()> {
    let set = |data: &mut Vec<u8>| {
        let end = end_of(0, length)?;
        let is_changed = data.len() != end;
        data.resize(end, 0);
        Ok(((), is_changed))
    };
    stream.change(file.file_ref(), set).map_err(failed)
}

/// Reserves space: no more than the check that a stream can have this length, and the truncation to
/// a smaller one.
pub(in crate::posix) fn set_allocation(
    file: &OpenFile,
    stream: &OpenStream,
    length: u64,
) -> Step<()> {
    let set = |data: &mut Vec<u8>| {
        let end = end_of(0, length)?;
        let is_shorter = end < data.len();
        data.truncate(end);
        Ok(((), is_shorter))
    };
    stream.change(file.file_ref(), set).map_err(failed)
}

/// Fills a range with zeros, up to the end of the data.
pub(in crate::posix) fn zero(
    file: &OpenFile,
    stream: &OpenStream,
    range: &Range<u64>,
) -> Step<Outcome> {
    let zero = |data: &mut Vec<u8>| {
        let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(data.len());
        let (start, end) = (within(range.start), within(range.end));
        if start >= end {
            return Ok(((), false));
        }
        data[start..end].fill(0);
        Ok(((), true))
    };
    stream.change(file.file_ref(), zero).map_err(failed)?;
    Ok(Outcome::Zeroed(range.end))
}

/// The allocated part of a range: all data.
pub(in crate::posix) fn allocated(
    file: &OpenFile,
    stream: &OpenStream,
    range: &Range<u64>,
) -> Step<Outcome> {
    let size = stream.size(file.file_ref()).map_err(failed)?;
    let within = range.start..range.end.min(size);
    let ranges = if within.is_empty() {
        vec![]
    } else {
        vec![within]
    };
    Ok(Outcome::Ranges(ranges))
}

/// Writes the attributes of the file to stable storage.
pub(in crate::posix) fn flush(file: &OpenFile) -> Step<()> {
    let flushed = match file.is_path {
        false => fsync(&*file.fd),
        // An O_PATH descriptor cannot be flushed; the file is opened again.
        true => file.reopen_to_flush().and_then(fsync),
    };
    Ok(flushed.map_err(|errno| status(errno, Context::Data))?)
}

/// The end of a range within the data of a stream. Windows has no such limit; Samba, too, fails
/// writes beyond it.
fn end_of(start: u64, length: u64) -> Result<usize, Errno> {
    let end = start.checked_add(length);
    let end = end.and_then(|end| usize::try_from(end).ok());
    end.filter(|end| *end <= xattr::DATA_MAX).ok_or(Errno::FBIG)
}

/// The status of a failed access to the data of a stream. A stream beyond the limit of attributes
/// has the status that Samba gives; a file system with less space for attributes is full.
fn failed(errno: Errno) -> Stop {
    let status = match errno {
        Errno::FBIG | Errno::TOOBIG => Status::ALLOTTED_SPACE_EXCEEDED,
        // Another process has removed the stream.
        Errno::NODATA => Status::FILE_DELETED,
        errno => status(errno, Context::Data),
    };
    Stop::Failed(status)
}
