//! READ and WRITE past the page cache, between the disk and buffers of the pool.
//!
//! What goes so is large, and begins in the file and in memory where the file system wants it. A
//! READ may end anywhere: it is rounded up within its buffer, and cut. A WRITE that ends elsewhere,
//! as at the end of most files, goes through the page cache as a whole, and so does everything
//! small: a page that is in memory is there sooner than the disk has turned to it.
//!
//! # Both ways at once
//!
//! The kernel keeps the two ways coherent, one transfer after the other: a direct one first has
//! what the page cache holds of its range written to the disk, and a direct write afterwards throws
//! these pages out, so that the next cached read fetches them anew. What it does not bear is a
//! cached write to the same pages while a direct write is under way; so the file system keeps
//! writes of the two kinds apart ([`Direct::guard`]). It cannot for a local process that writes at
//! the same time, or touches a page that it has mapped: as with whatever does direct I/O, that
//! one may see old bytes, and a flush may fail.
//!
//! All of this waits for the disk, so it is the ring's, also where the pages are in memory.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::file::LocalOpen;
use ring::{Buffer, File};
use rustix::io::Errno;
use vfs::{Direct, FileSystem, IoDirection};
use wire::Status;
use wire::header::Command;
use wire::transform::TRANSFORM_LEN;

use super::{Source, Span, Target, data_status};
use crate::connection::Connection;

/// Bytes of a transfer below which the page cache is the better way.
const DIRECT_MIN: usize = 64 << 10;

/// What a WRITE is aligned to in memory: the start of every buffer is.
const PAGE: usize = 4 << 10;

/// Where the data of a WRITE begin behind the start of its message, as all clients have it: behind
/// the header and the fixed part. \[MS-SMB2\] 2.2.21
const WRITE_DATA: usize = 64 + 48;

/// A read past the page cache.
pub(crate) struct DirectRead {
    direct: Direct,
    /// Bytes that are read: rounded up.
    room: usize,
}

/// Bytes of buffer that a READ takes.
pub(super) fn room(direct: Option<&DirectRead>, length: usize) -> usize {
    direct.map_or(length, |direct| direct.room)
}

/// Where in its buffer a frame of `len` bytes shall begin so that data of a WRITE lie on a page.
/// `head` are its first bytes, as many as there are; `largest` is what a buffer has at most. What
/// the frame says is only a guess at what it turns out to be: no more than the place depends on it.
pub(crate) fn frame_start(head: &[u8], len: usize, largest: usize) -> usize {
    let u16_at = |at: usize| Some(u16::from_le_bytes([*head.get(at)?, *head.get(at + 1)?]));
    let data = match head.get(..4) {
        Some(b"\xfeSMB") if u16_at(12) == Some(Command::WRITE.0) => {
            u16_at(66).map_or(WRITE_DATA, usize::from)
        }
        // Large and sealed: most likely a WRITE.
        Some(b"\xfdSMB") => TRANSFORM_LEN + WRITE_DATA,
        _ => 0,
    };
    let start = data.next_multiple_of(PAGE) - data;
    if start + len <= largest { start } else { 0 }
}

impl Connection {
    /// Whether a READ goes past the page cache, and how.
    pub(super) fn direct_read(
        &self,
        file_system: &Arc<dyn FileSystem>,
        file: LocalOpen,
        offset: u64,
        length: usize,
    ) -> Option<DirectRead> {
        if length < DIRECT_MIN {
            return None;
        }
        let direct = file_system.direct(file, IoDirection::Read)?;
        let room = length.next_multiple_of(direct.offset_alignment);
        let is_countable = offset.checked_add(room as u64)? <= i64::MAX as u64;
        let is_aligned = offset.is_multiple_of(direct.offset_alignment as u64);
        let fits = room <= self.handle().pool().largest();
        (is_countable && is_aligned && fits).then_some(DirectRead { direct, room })
    }

    /// Whether a WRITE of bytes in a buffer goes past the page cache, and how. Only a ring writes
    /// under somebody's credentials by itself.
    pub(super) fn direct_write(
        &self,
        file_system: &Arc<dyn FileSystem>,
        file: LocalOpen,
        offset: Option<u64>,
        bytes: &[u8],
    ) -> Option<Direct> {
        if bytes.len() < DIRECT_MIN {
            return None;
        }
        let offset = offset?;
        let direct = file_system.direct(file, IoDirection::Write)?;
        // Whole pages: who writes into the rest of one through the page cache has it read before.
        let alignment = direct.offset_alignment.max(PAGE);
        let is_aligned = offset.is_multiple_of(alignment as u64)
            && bytes.len().is_multiple_of(alignment)
            && bytes
                .as_ptr()
                .addr()
                .is_multiple_of(direct.memory_alignment);
        let is_countable = offset.checked_add(bytes.len() as u64)? <= i64::MAX as u64;
        let personality = || self.worker.personality(&direct.token).ok().flatten();
        (is_aligned && is_countable && personality().is_some()).then_some(direct)
    }

    /// Reads into the start of a buffer; how many bytes of the span that were. Fewer than it has:
    /// the file ends there, or the rest is to be read through the page cache.
    pub(super) async fn read_direct(
        &self,
        file_system: &Arc<dyn FileSystem>,
        span: Span,
        buffer: Buffer,
        read: DirectRead,
    ) -> (Result<usize, Status>, Buffer) {
        let DirectRead { direct, room } = read;
        let file = match own(&direct.fd) {
            Ok(file) => file,
            Err(error) => return (Err(data_status(&error)), buffer),
        };
        let reading = (self.handle()).read_at(&file, buffer, 0..room, span.offset, None);
        let (result, buffer) = reading.await;
        let result = match result {
            Ok(count) => Ok(count.min(span.length)),
            Err(error) if is_refusal(&error) => {
                file_system.refuse_direct(span.file);
                Ok(0)
            }
            Err(error) => Err(data_status(&error)),
        };
        (result, buffer)
    }

    /// Writes a range of a buffer, the rest of what the kernel did not take through the page cache.
    pub(super) async fn write_direct(
        &self,
        target: Target,
        buffer: Buffer,
        range: Range<usize>,
        direct: Direct,
    ) -> Result<usize, Status> {
        let (Some(offset), Some(personality)) =
            (target.offset, self.worker.personality(&direct.token)?)
        else {
            drop(direct);
            return self
                .write_later(target, Source::Buffer(buffer, range))
                .await;
        };
        let file = own(&direct.fd).map_err(|error| data_status(&error))?;
        let (handle, who) = (self.handle(), Some(personality));
        let writing = handle.write_at(&file, buffer, range.clone(), offset, who);
        let (result, buffer) = writing.await;
        let written = match result {
            Ok(count) => count,
            Err(error) if is_refusal(&error) => {
                target.file_system.refuse_direct(target.file);
                0
            }
            Err(error) => return Err(data_status(&error)),
        };
        if target.through && written > 0 {
            // On the disk does not mean that it finds it again, nor that its own cache is empty.
            let synced = handle.fsync(&file, true).await;
            synced.map_err(|error| data_status(&error))?;
        }
        if written == range.len() {
            return Ok(written);
        }
        // The guard ends here: the rest of the write would wait for it.
        drop(direct);
        let rest = Target {
            offset: Some(offset + written as u64),
            ..target
        };
        let source = Source::Buffer(buffer, range.start + written..range.end);
        Ok(written + self.write_later(rest, source).await?)
    }
}

/// The ring's own reference: the open may be closed meanwhile.
fn own(fd: &OwnedFd) -> io::Result<File> {
    fd.try_clone().map(File::direct)
}

/// Whether the kernel says that it does not do it so, not that it failed.
fn is_refusal(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::INVAL | Errno::OPNOTSUPP))
}
