//! Data of named streams.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::OwnedFd;

use proto::file::Outcome;
use rustix::fs::{FallocateFlags, fallocate, fsync, ftruncate};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use wire::Status;

use super::base::Base;
use super::large::blob::Blob;
use super::opens::{Changed, Data, OpenStream};
use super::xattr;
use crate::errno::{Context, status};
use crate::posix::CUT_MAX;
use crate::posix::file::OpenFile;
use crate::{Effort, Step, Stop};

/// Length in bytes of one write of zeros, for a file system without a faster method.
const ZEROS: usize = 256 << 10;
/// Maximum number of zero bytes that one operation writes, so that the caller can stop in between.
const ZEROS_MAX: u64 = 16 << 20;

/// Reads bytes at an offset. Returns the number of bytes.
pub(in crate::posix) fn read(
    base: Base<'_>,
    stream: &OpenStream,
    offset: u64,
    into: &mut [u8],
) -> Step<usize> {
    let data = match stream.data(base).map_err(failed)? {
        Data::Inline(data) => data,
        Data::Large(blob) => return read_blob(&blob.fd, offset, into, base.effort).map_err(failed),
    };
    let start = usize::try_from(offset)
        .unwrap_or(usize::MAX)
        .min(data.len());
    let count = into.len().min(data.len() - start);
    into[..count].copy_from_slice(&data[start..start + count]);
    Ok(count)
}

fn read_blob(fd: &OwnedFd, offset: u64, into: &mut [u8], effort: Effort) -> Result<usize, Errno> {
    let flags = match effort {
        Effort::Cached => ReadWriteFlags::NOWAIT,
        Effort::Blocking => ReadWriteFlags::empty(),
    };
    let mut done = 0;
    while done < into.len() {
        let slices = &mut [IoSliceMut::new(&mut into[done..])];
        match preadv2(fd, slices, offset.saturating_add(done as u64), flags) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP) if effort == Effort::Cached => return Err(Errno::AGAIN),
            // The kernel refuses an offset above i64::MAX, which is past the end of every file.
            Err(Errno::INVAL | Errno::OVERFLOW) if offset > i64::MAX as u64 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(done)
}

/// Writes bytes at an offset, or at the end. The data are on stable storage afterwards if `through`
/// is set.
pub(in crate::posix) fn write(
    (file, base): (&OpenFile, Base<'_>),
    stream: &OpenStream,
    offset: Option<u64>,
    from: &[u8],
    through: bool,
) -> Step<usize> {
    check_end(base, offset.unwrap_or(0), from.len() as u64)?;
    let write = |data: &mut Vec<u8>| {
        let start = offset.unwrap_or(data.len() as u64);
        let end = end_of(start, from.len() as u64)?;
        if data.len() < end {
            data.resize(end, 0);
        }
        data[end - from.len()..end].copy_from_slice(from);
        Ok(((), true))
    };
    if let Changed::Large(blob) = stream.change(base, write).map_err(failed)? {
        write_blob(&blob.fd, offset, from).map_err(failed)?;
    }
    if through {
        flush(file, base, stream)?;
    }
    Ok(from.len())
}

/// Writes all bytes at an offset, or at the end.
fn write_blob(fd: &OwnedFd, offset: Option<u64>, from: &[u8]) -> Result<(), Errno> {
    let flags = match offset {
        Some(_) => ReadWriteFlags::empty(),
        None => ReadWriteFlags::APPEND,
    };
    let mut done = 0;
    while done < from.len() {
        let at = offset.map_or(0, |offset| offset + done as u64);
        match pwritev2(fd, &[IoSlice::new(&from[done..])], at, flags) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Sets the length of the data.
pub(in crate::posix) fn set_length(base: Base<'_>, stream: &OpenStream, length: u64) -> Step<()> {
    check_end(base, 0, length)?;
    let set = |data: &mut Vec<u8>| {
        let end = end_of(0, length)?;
        let is_changed = data.len() != end;
        data.resize(end, 0);
        Ok(((), is_changed))
    };
    match stream.change(base, set).map_err(failed)? {
        Changed::Inline(()) => Ok(()),
        Changed::Large(blob) => cut_blob(&blob, length, base.effort).map_err(failed),
    }
}

/// Sets the length of a blob, without blocking unless it frees much space.
fn cut_blob(blob: &Blob, length: u64, effort: Effort) -> Result<(), Errno> {
    if effort == Effort::Cached && blob.size()?.saturating_sub(length) > CUT_MAX {
        return Err(Errno::AGAIN);
    }
    ftruncate(&*blob.fd, length)
}

/// Reserves space: no more than the check that a stream can have this length, and the truncation to
/// a smaller one.
pub(in crate::posix) fn set_allocation(
    base: Base<'_>,
    stream: &OpenStream,
    length: u64,
) -> Step<()> {
    check_end(base, 0, length)?;
    let set = |data: &mut Vec<u8>| {
        let end = match base.root {
            Some(_) => usize::try_from(length).unwrap_or(usize::MAX),
            None => end_of(0, length)?,
        };
        let is_shorter = end < data.len();
        data.truncate(end);
        Ok(((), is_shorter))
    };
    match stream.change(base, set).map_err(failed)? {
        Changed::Large(blob) if length < blob.size().map_err(failed)? => {
            cut_blob(&blob, length, base.effort).map_err(failed)
        }
        Changed::Inline(()) | Changed::Large(_) => Ok(()),
    }
}

/// Fills a range with zeros, up to the end of the data.
pub(in crate::posix) fn zero(
    base: Base<'_>,
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
    match stream.change(base, zero).map_err(failed)? {
        Changed::Inline(()) => Ok(Outcome::Zeroed(range.end)),
        Changed::Large(blob) => {
            let end = zero_blob(&blob, range).map_err(failed)?;
            Ok(Outcome::Zeroed(end))
        }
    }
}

/// Fills a range of a blob with zeros. Returns the end of the part that is done.
fn zero_blob(blob: &Blob, range: &Range<u64>) -> Result<u64, Errno> {
    let end = range.end.min(blob.size()?);
    if range.start >= end {
        return Ok(range.end);
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match fallocate(&*blob.fd, hole, range.start, end - range.start) {
        Ok(()) => return Ok(range.end),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NOSPC | Errno::INTR) => {}
        Err(errno) => return Err(errno),
    }
    let stop = end.min(range.start.saturating_add(ZEROS_MAX));
    let zeros = vec![0; ZEROS];
    let mut at = range.start;
    while at < stop {
        let count = zeros.len().min((stop - at) as usize);
        write_blob(&blob.fd, Some(at), &zeros[..count])?;
        at += count as u64;
    }
    Ok(if at == end { range.end } else { at })
}

/// The allocated part of a range: all data.
pub(in crate::posix) fn allocated(
    base: Base<'_>,
    stream: &OpenStream,
    range: &Range<u64>,
) -> Step<Outcome> {
    let size = stream.size(base).map_err(failed)?;
    let within = range.start..range.end.min(size);
    let ranges = if within.is_empty() {
        vec![]
    } else {
        vec![within]
    };
    Ok(Outcome::Ranges(ranges))
}

/// Writes the data of a stream to stable storage: those of a blob, and the attributes of the file.
pub(in crate::posix) fn flush(file: &OpenFile, base: Base<'_>, stream: &OpenStream) -> Step<()> {
    if let Some(blob) = stream.blob(base).map_err(failed)? {
        fsync(&*blob.fd).map_err(failed)?;
    }
    let flushed = match file.is_path {
        false => fsync(&*file.fd),
        // An O_PATH descriptor cannot be flushed; the file is opened again.
        true => file.reopen_to_flush().and_then(fsync),
    };
    Ok(flushed.map_err(|errno| status(errno, Context::Data))?)
}

/// Checks that a large stream can have a range, before the stream moves into a blob for it.
fn check_end(base: Base<'_>, start: u64, length: u64) -> Step<()> {
    let end = start.checked_add(length);
    let is_possible = end.is_some_and(|end| i64::try_from(end).is_ok());
    match base.root.is_none() || is_possible {
        true => Ok(()),
        false => Err(Status::INVALID_PARAMETER.into()),
    }
}

/// The end of a range within the data of a stream in an attribute. Windows has no such limit;
/// Samba, too, fails writes beyond it.
fn end_of(start: u64, length: u64) -> Result<usize, Errno> {
    let end = start.checked_add(length);
    let end = end.and_then(|end| usize::try_from(end).ok());
    end.filter(|end| *end <= xattr::DATA_MAX).ok_or(Errno::FBIG)
}

/// The status of a failed access to the data of a stream. A stream beyond the limit of attributes
/// has the status that Samba gives; a file system with less space for attributes is full.
fn failed(errno: Errno) -> Stop {
    let status = match errno {
        Errno::AGAIN => return Stop::WouldBlock,
        Errno::FBIG | Errno::TOOBIG => Status::ALLOTTED_SPACE_EXCEEDED,
        // Another process has removed the stream.
        Errno::NODATA => Status::FILE_DELETED,
        errno => status(errno, Context::Data),
    };
    Stop::Failed(status)
}
