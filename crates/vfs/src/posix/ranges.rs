//! Ranges of a file: zeros and allocated ranges.

use std::ops::Range;
use std::os::fd::OwnedFd;

use proto::file::{FileKind, Outcome};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, ReadWriteFlags};
use wire::Status;
use wire::access::FileAttributes;

use super::directory::Run;
use super::file::OpenFile;
use super::stat::stat;
use super::{Posix, streams};
use crate::dosattrib::DosInfo;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, attributes};

/// Length in bytes of one write of zeros, for a file system without a faster method.
const ZEROS: usize = 256 << 10;
/// Maximum number of zero bytes that one operation writes, so that the caller can stop in between.
const ZEROS_MAX: u64 = 16 << 20;

impl Posix {
    /// Fills a range with zeros: as a hole in a SPARSE file, as allocated zeros in another one. If
    /// the file system does not support the one, it uses the other, or writes zeros.
    pub(super) fn zero_range(
        &self,
        file: &OpenFile,
        range: &Range<u64>,
        run: Run<'_>,
    ) -> Step<Outcome> {
        file.check_writes()?;
        if run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        if let Some(stream) = &file.stream {
            return streams::zero(self.base(file, run.effort), stream, range);
        }
        let gate = file.write_gate.as_ref();
        let _guard = gate.map(|gate| gate.cached(run.effort)).transpose()?;
        let (is_sparse, size) = self.sparse_and_size(file)?;
        let within = range.start..range.end.min(size);
        if within.is_empty() {
            return Ok(Outcome::Zeroed(range.end));
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let zeros = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        let ways: &[_] = if is_sparse { &[hole] } else { &[zeros, hole] };
        for flags in ways {
            if allocate(&file.fd, *flags, &within)? {
                return Ok(Outcome::Zeroed(range.end));
            }
        }
        self.write_zeros(file, within, range.end)
    }

    /// Discards the data of a range: as a hole in a SPARSE file. Another file keeps its space, as
    /// on Windows, where a trim is for the storage below. Does nothing if the file system cannot.
    pub(super) fn trim(&self, file: &OpenFile, range: &Range<u64>, run: Run<'_>) -> Step<Outcome> {
        file.check_writes()?;
        if file.stream.is_some() {
            return Ok(Outcome::Done);
        }
        if run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        let gate = file.write_gate.as_ref();
        let _guard = gate.map(|gate| gate.cached(run.effort)).transpose()?;
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Data))?;
        let is = self.metadata(file.file_ref(), &stat, "");
        if is.attributes.contains(FileAttributes::COMPRESSED) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        let within = range.start..range.end.min(is.size);
        let flags = match is.attributes.contains(FileAttributes::SPARSE_FILE) {
            true => FallocateFlags::PUNCH_HOLE,
            false => FallocateFlags::ZERO_RANGE,
        };
        if !within.is_empty() {
            allocate(&file.fd, flags | FallocateFlags::KEEP_SIZE, &within)?;
        }
        Ok(Outcome::Done)
    }

    fn write_zeros(&self, file: &OpenFile, within: Range<u64>, all: u64) -> Step<Outcome> {
        let end = within.end.min(within.start.saturating_add(ZEROS_MAX));
        let zeros = vec![0; ZEROS.min((end - within.start) as usize)];
        let mut at = within.start;
        while at < end {
            let count = zeros.len().min((end - at) as usize);
            let (offset, flags) = (Some(at), ReadWriteFlags::empty());
            super::data::write_all(file, offset, &zeros[..count], flags, Effort::Blocking)?;
            at += count as u64;
        }
        let is_all = at == within.end;
        Ok(Outcome::Zeroed(if is_all { all } else { at }))
    }

    pub(super) fn set_sparse(
        &self,
        file: &OpenFile,
        is_sparse: bool,
        run: Run<'_>,
    ) -> Step<Outcome> {
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Attributes))?;
        if file.kind != FileKind::File {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if !file.volume.stores_attributes {
            return Err(Status::INVALID_DEVICE_REQUEST.into());
        }
        let is = self.metadata(file.file_ref(), &stat, "");
        let attributes = attributes::with_sparse(is.attributes, is_sparse);
        if attributes != attributes::replaced(is.attributes, is.attributes) {
            let info = DosInfo {
                attributes: Some(attributes),
                created: Some(is.created),
            };
            let stored = super::metadata::store(file.file_ref(), info);
            stored.map_err(|errno| status(errno, Context::Attributes))?;
        }
        self.stat(file, run)
    }

    pub(super) fn allocated_ranges(
        &self,
        file: &OpenFile,
        range: &Range<u64>,
        limit: usize,
        run: Run<'_>,
    ) -> Step<Outcome> {
        file.check_reads()?;
        if run.effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        if let Some(stream) = &file.stream {
            return streams::allocated(self.base(file, run.effort), stream, range);
        }
        let (may_have_holes, size) = self.holes_and_size(file)?;
        let within = range.start..range.end.min(size);
        if within.is_empty() {
            return Ok(Outcome::Ranges(Vec::new()));
        }
        if !may_have_holes {
            return Ok(Outcome::Ranges(vec![within]));
        }
        let ranges = data_ranges(&file.fd, within, limit);
        let ranges = ranges.map_err(|errno| status(errno, Context::Data))?;
        Ok(Outcome::Ranges(ranges))
    }

    fn sparse_and_size(&self, file: &OpenFile) -> Step<(bool, u64)> {
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Data))?;
        let is = self.metadata(file.file_ref(), &stat, "");
        Ok((is.attributes.contains(FileAttributes::SPARSE_FILE), is.size))
    }

    /// Whether a file may have holes, and its size. A file with stored attributes has holes if it
    /// is SPARSE, as on Windows. Other files come from local programs, which make holes without an
    /// attribute.
    fn holes_and_size(&self, file: &OpenFile) -> Step<(bool, u64)> {
        let stat = stat(&*file.fd).map_err(|errno| status(errno, Context::Data))?;
        let file_ref = file.file_ref();
        let stored = super::metadata::stored(file_ref, &stat);
        let may_have_holes = stored
            .and_then(|stored| stored.attributes)
            .is_none_or(|attributes| attributes.contains(FileAttributes::SPARSE_FILE));
        let metadata = self.metadata_with(file_ref.volume, &stat, stored, "");
        Ok((may_have_holes, metadata.size))
    }
}

/// Whether the file system supports the operation. Without space for the zeros, a hole may still be
/// possible.
fn allocate(fd: &OwnedFd, flags: FallocateFlags, range: &Range<u64>) -> Step<bool> {
    loop {
        match fallocate(fd, flags, range.start, range.end - range.start) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(false),
            Err(Errno::NOSPC | Errno::DQUOT) => return Ok(false),
            Err(errno) => return Err(status(errno, Context::Data).into()),
        }
    }
}

/// The allocated ranges. A file system without holes reports the whole range. Changes the position
/// of the descriptor, which no other code uses.
fn data_ranges(fd: &OwnedFd, within: Range<u64>, limit: usize) -> Result<Vec<Range<u64>>, Errno> {
    let mut ranges = Vec::new();
    let mut at = within.start;
    while at < within.end && ranges.len() < limit {
        let start = match seek(fd, SeekFrom::Data(at)) {
            Ok(start) if start < within.end => start,
            // No further data up to the end of the file, which another process may have truncated.
            Ok(_) | Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno),
        };
        let end = match seek(fd, SeekFrom::Hole(start)) {
            Ok(end) if end > start => end.min(within.end),
            // Another process truncated the file or made a hole in the meantime.
            Ok(_) | Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno),
        };
        ranges.push(start..end);
        at = end;
    }
    Ok(ranges)
}
