//! READ and WRITE past the page cache (O_DIRECT), between the disk and buffers of the pool.
//!
//! Direct I/O is for large transfers that begin on the alignment of the file system, in the file
//! and in memory. A READ may end anywhere: its length is rounded up, and the result is cut. A WRITE
//! that ends off the alignment, as at the end of most files, goes through the page cache as a
//! whole. So do all small transfers: a cached page is faster than the disk.
//!
//! # Direct and cached I/O at the same time
//!
//! The kernel keeps them coherent if they run one after the other. A direct transfer first writes
//! the dirty pages of its range to the disk. A direct write also drops these pages, so that the
//! next cached read fetches them again. A cached write to the same pages during a direct write is
//! not coherent, so the file system separates the writes of both kinds ([`Direct::guard`]). It
//! cannot do so for local processes that write at the same time, or that change a mapped page: as
//! with all direct I/O, they may read old bytes, and a flush may fail.
//!
//! Direct transfers wait for the disk, so they always run on the ring.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use ring::{Buffer, File};
use rustix::io::Errno;
use vfs::{Direct, IoDirection};
use wire::Status;
use wire::header::Command;
use wire::transform::TRANSFORM_LEN;

use super::context::Context;
use super::outcome;
use super::span::{Span, Target};

/// Shortest transfer, in bytes, for which direct I/O is faster than the page cache.
const DIRECT_MIN: usize = 64 << 10;

/// Alignment, in memory and in the file, of a direct write in bytes. Every buffer begins on a page.
const PAGE: usize = 4 << 10;

/// Offset of the data of a WRITE in its message, as all known clients send it: after the header and
/// the fixed part. \[MS-SMB2\] 2.2.21
const WRITE_DATA: usize = 64 + 48;

/// A READ past the page cache.
pub(super) struct DirectRead {
    direct: Direct,
    /// Length of the READ in bytes, rounded up to the alignment of the file.
    length: usize,
}

/// Length of the buffer for a READ in bytes.
pub(super) fn buffer_len(direct: Option<&DirectRead>, span: &Span) -> usize {
    direct.map_or(span.length, |direct| direct.length)
}

/// Where in its buffer a frame of `len` bytes begins, so that the data of a WRITE begin on a page.
/// `head` is the received start of the frame. `largest` is the length of the largest buffer.
///
/// The head is not verified yet: only the place of the frame in its buffer depends on it.
pub(crate) fn frame_start(head: &[u8], len: usize, largest: usize) -> usize {
    let u16_at = |at: usize| Some(u16::from_le_bytes([*head.get(at)?, *head.get(at + 1)?]));
    let data = match head.get(..4) {
        Some(b"\xfeSMB") if u16_at(12) == Some(Command::WRITE.0) => {
            u16_at(66).map_or(WRITE_DATA, usize::from)
        }
        // A large encrypted message is probably a WRITE.
        Some(b"\xfdSMB") => TRANSFORM_LEN + WRITE_DATA,
        _ => 0,
    };
    let start = data.next_multiple_of(PAGE) - data;
    if start + len <= largest { start } else { 0 }
}

/// Decides whether a READ goes past the page cache.
pub(super) fn read_past_cache(context: &Context, span: &Span) -> Option<DirectRead> {
    if span.length < DIRECT_MIN {
        return None;
    }
    let direct = span.file_system.direct(span.file, IoDirection::Read)?;
    let length = span.length.next_multiple_of(direct.offset_alignment);
    let is_countable = span.offset.checked_add(length as u64)? <= i64::MAX as u64;
    let is_aligned = span.offset.is_multiple_of(direct.offset_alignment as u64);
    let fits = length <= context.handle().pool().largest();
    (is_countable && is_aligned && fits).then_some(DirectRead { direct, length })
}

/// Decides whether a WRITE of bytes in a buffer goes past the page cache. It needs a ring that can
/// write with the credentials of the user.
pub(super) fn write_past_cache(context: &Context, target: &Target, bytes: &[u8]) -> Option<Direct> {
    if bytes.len() < DIRECT_MIN {
        return None;
    }
    let offset = target.offset?;
    let direct = target.file_system.direct(target.file, IoDirection::Write)?;
    // Whole pages: a later cached write into a part of a page would have to read the page first.
    let alignment = direct.offset_alignment.max(PAGE);
    let is_aligned = offset.is_multiple_of(alignment as u64)
        && bytes.len().is_multiple_of(alignment)
        && bytes
            .as_ptr()
            .addr()
            .is_multiple_of(direct.memory_alignment);
    let is_countable = offset.checked_add(bytes.len() as u64)? <= i64::MAX as u64;
    let personality = || context.worker.personality(&direct.token).ok().flatten();
    (is_aligned && is_countable && personality().is_some()).then_some(direct)
}

/// Reads into the start of a buffer. Returns the number of bytes of the span that it read. If these
/// are fewer than the span has, the rest must be read through the page cache: the file may end
/// there, or the kernel refused.
pub(super) async fn read(
    context: &Context,
    span: &Span,
    buffer: Buffer,
    read: DirectRead,
) -> (Result<usize, Status>, Buffer) {
    let DirectRead { direct, length } = read;
    let file = match reopen(&direct.fd) {
        Ok(file) => file,
        Err(error) => return (Err(outcome::status(&error)), buffer),
    };
    let handle = context.handle();
    let reading = handle.read_at(&file, buffer, 0..length, span.offset, None);
    let (result, buffer) = reading.await;
    let result = match result {
        Ok(count) => Ok(count.min(span.length)),
        Err(error) if is_refusal(&error) => {
            span.file_system.refuse_direct(span.file);
            Ok(0)
        }
        Err(error) => Err(outcome::status(&error)),
    };
    (result, buffer)
}

/// Writes a range of a buffer. Returns the number of written bytes, and the buffer. If these are
/// fewer than the range has, the rest must be written through the page cache.
pub(super) async fn write(
    context: &Context,
    target: &Target,
    buffer: Buffer,
    range: Range<usize>,
    direct: Direct,
) -> Result<(usize, Buffer), Status> {
    let (Some(offset), Some(personality)) =
        (target.offset, context.worker.personality(&direct.token)?)
    else {
        return Ok((0, buffer));
    };
    let file = reopen(&direct.fd).map_err(|error| outcome::status(&error))?;
    let handle = context.handle();
    let writing = handle.write_at(&file, buffer, range, offset, Some(personality));
    let (result, buffer) = writing.await;
    let written = match result {
        Ok(count) => count,
        Err(error) if is_refusal(&error) => {
            target.file_system.refuse_direct(target.file);
            0
        }
        Err(error) => return Err(outcome::status(&error)),
    };
    if target.through && written > 0 {
        // The data are on the disk, but its cache and the metadata of the file may not be.
        let synced = handle.fsync(&file, true).await;
        synced.map_err(|error| outcome::status(&error))?;
    }
    Ok((written, buffer))
}

/// A descriptor for the ring only: the open may be closed while the operation runs.
fn reopen(fd: &OwnedFd) -> io::Result<File> {
    fd.try_clone().map(File::direct)
}

/// Returns true if the kernel refuses direct I/O for the file, not if the operation failed.
fn is_refusal(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::INVAL | Errno::OPNOTSUPP))
}
