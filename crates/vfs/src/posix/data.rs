//! Reads and writes of data by system calls, for drivers that do not use a ring for them.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use proto::file::LocalOpen;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use wire::Status;

use super::file::OpenFile;
use super::{Posix, WRITE_MAX, streams};
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop, identity};

impl Posix {
    pub(super) fn read_bytes(
        &self,
        file: LocalOpen,
        offset: u64,
        into: &mut [u8],
        effort: Effort,
    ) -> Step<usize> {
        let file = self.file(file)?;
        file.check_reads()?;
        if let Some(stream) = &file.stream {
            identity::assume(&file.token)?;
            return streams::read(self.base(&file, effort), stream, offset, into);
        }
        let effort = file.volume.effort(effort);
        let flags = match effort {
            Effort::Cached => ReadWriteFlags::NOWAIT,
            Effort::Blocking => ReadWriteFlags::empty(),
        };
        let mut done = 0;
        while done < into.len() {
            let slices = &mut [IoSliceMut::new(&mut into[done..])];
            match preadv2(&*file.fd, slices, offset.saturating_add(done as u64), flags) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::OPNOTSUPP) if effort == Effort::Cached => {
                    return Err(Stop::WouldBlock);
                }
                // The kernel refuses an offset above i64::MAX, which is past the end of every file.
                Err(Errno::INVAL | Errno::OVERFLOW) if offset > i64::MAX as u64 => break,
                Err(errno) => return Err(status(errno, Context::Data).into()),
            }
        }
        Ok(done)
    }

    pub(super) fn write_bytes(
        &self,
        file: LocalOpen,
        offset: Option<u64>,
        from: &[u8],
        through: bool,
        effort: Effort,
    ) -> Step<usize> {
        let file = self.file(file)?;
        file.check_writes()?;
        let effort = file.volume.effort(effort);
        if effort == Effort::Cached && (through || from.len() > WRITE_MAX) {
            return Err(Stop::WouldBlock);
        }
        if let Some(stream) = &file.stream {
            identity::assume(&file.token)?;
            let of = (&*file, self.base(&file, effort));
            return streams::write(of, stream, offset, from, through);
        }
        let gate = file.write_gate.as_ref();
        let _guard = gate.map(|gate| gate.cached(effort)).transpose()?;
        identity::assume(&file.token)?;
        let mut flags = ReadWriteFlags::empty();
        if through {
            flags |= ReadWriteFlags::DSYNC;
        }
        if offset.is_none() {
            flags |= ReadWriteFlags::APPEND;
        }
        write_all(&file, offset, from, flags, effort)
    }
}

/// Writes all of `from`. The first attempt is non-blocking if the file system supports that. If
/// it does not, as ext4, the write runs anyway: the data fit into the page cache, and such a
/// write rarely waits.
pub(super) fn write_all(
    file: &OpenFile,
    offset: Option<u64>,
    from: &[u8],
    flags: ReadWriteFlags,
    effort: Effort,
) -> Step<usize> {
    let writes_wait = &file.volume.writes_wait;
    let mut done = 0;
    while done < from.len() {
        let is_first = done == 0;
        let asks = is_first && effort == Effort::Cached && !writes_wait.load(Ordering::Relaxed);
        let nowait = if asks {
            ReadWriteFlags::NOWAIT
        } else {
            ReadWriteFlags::empty()
        };
        let at = offset.map_or(Ok(0), |offset| {
            offset
                .checked_add(done as u64)
                .ok_or(Status::INVALID_PARAMETER)
        })?;
        match pwritev2(
            &*file.fd,
            &[IoSlice::new(&from[done..])],
            at,
            flags | nowait,
        ) {
            Ok(0) => return Err(Status::DISK_FULL.into()),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP) if asks => writes_wait.store(true, Ordering::Relaxed),
            Err(Errno::AGAIN) if asks => return Err(Stop::WouldBlock),
            Err(errno) => return Err(status(errno, Context::Data).into()),
        }
    }
    Ok(done)
}

/// Reserves space without a change of the file's length. On a file system without support it does
/// nothing; a later write then may fail with DISK_FULL.
pub(super) fn reserve(fd: &OwnedFd, length: u64) -> Step<()> {
    match fallocate(fd, FallocateFlags::KEEP_SIZE, 0, length) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(errno) => Err(status(errno, Context::Data).into()),
    }
}
