//! Copies between two opens, of one share or of two shares.
//!
//! Between two files of the local system the kernel copies (copy_file_range), and the bytes never
//! enter this process. File systems with shared extents and file servers with a server-side copy do
//! not even move them. For the other cases the bytes go through a buffer: overlapping ranges of one
//! file, and file systems without support.

use proto::file::{CopyPlan, FileKind, FileOp, LocalOpen, Metadata, Operation, Outcome};
use rustix::fs::copy_file_range;
use rustix::io::Errno;
use wire::Status;

use crate::errno::{Context, status};
use crate::{Effort, FileSystem, identity};

/// Length of the buffer in bytes.
const BUFFER: u32 = 256 << 10;

/// Copies a range of bytes between two open files, as `plan` describes it: from an open of the file
/// system `source` to the open `into` of the file system `target`, which may be the same one.
/// Blocks the thread. Returns [`Outcome::Copied`] with the count of copied bytes, and with the
/// status of the failure if the copy fails after some bytes.
///
/// # Errors
/// INVALID_DEVICE_REQUEST if an open is not a regular file; INVALID_VIEW_SIZE if the range is not
/// inside the source; another status if an open cannot be used or nothing was copied.
pub fn between(
    source: &dyn FileSystem,
    target: &dyn FileSystem,
    into: LocalOpen,
    plan: &CopyPlan,
) -> Result<Outcome, Status> {
    let copy = Copy {
        source,
        target,
        into,
        plan,
    };
    let is_overlapping = copy.check()?;
    copy.run(is_overlapping)
}

/// A copy in progress.
struct Copy<'a> {
    source: &'a dyn FileSystem,
    target: &'a dyn FileSystem,
    /// The target of the copy.
    into: LocalOpen,
    plan: &'a CopyPlan,
}

impl Copy<'_> {
    /// Checks both opens and the limits of the source. Returns whether the ranges are in one file
    /// and overlap; fails when the copy is not possible.
    fn check(&self) -> Result<bool, Status> {
        let from = metadata(self.source, self.plan.source)?;
        let to = metadata(self.target, self.into)?;
        if from.kind != FileKind::File || to.kind != FileKind::File {
            return Err(Status::INVALID_DEVICE_REQUEST);
        }
        ends_within(self.plan, from.size)?;
        let distance = self.plan.source_offset.abs_diff(self.plan.target_offset);
        Ok(from.key == to.key && distance < u64::from(self.plan.length))
    }

    fn run(&self, is_overlapping: bool) -> Result<Outcome, Status> {
        let (count, stopped) = if is_overlapping {
            (0, None)
        } else {
            self.by_kernel()
        };
        if let Some(status) = stopped {
            return copied(count, status);
        }
        if is_overlapping && self.plan.source_offset < self.plan.target_offset {
            return self.by_buffer_from_the_end();
        }
        self.by_buffer(count)
    }

    /// Copies by copy_file_range. Returns the number of copied bytes, and the error if there is
    /// one. Without an error, the caller copies the rest through a buffer.
    fn by_kernel(&self) -> (u32, Option<Status>) {
        let CopyPlan {
            source,
            mut source_offset,
            mut target_offset,
            length,
        } = *self.plan;
        // copy_file_range would write into the page cache, without the write gate.
        if self.target.gates_writes() {
            return (0, None);
        }
        let from = self.source.descriptor(source);
        let (Some(from), Some(to)) = (from, self.target.descriptor(self.into)) else {
            return (0, None);
        };
        if let Err(status) = identity::assume(&to.token) {
            return (0, Some(status));
        }
        let mut count = 0;
        while count < length {
            let (at, into) = (&mut source_offset, &mut target_offset);
            let left = (length - count) as usize;
            match copy_file_range(&*from.fd, Some(at), &*to.fd, Some(into), left) {
                // The source ends here, or its file system always returns 0.
                Ok(0) => break,
                Ok(copied) => count += u32::try_from(copied).expect("no more than asked for"),
                Err(Errno::INTR) => {}
                Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => break,
                Err(errno) => return (count, Some(status(errno, Context::Data))),
            }
        }
        (count, None)
    }

    /// Copies the bytes after the first `count` through a buffer, from start to end.
    fn by_buffer(&self, mut count: u32) -> Result<Outcome, Status> {
        let length = self.plan.length;
        let mut buffer = vec![0; BUFFER.min(length - count) as usize];
        while count < length {
            let piece = BUFFER.min(length - count);
            match self.piece(count, &mut buffer[..piece as usize]) {
                // Another process has truncated the source in the meantime.
                Ok(0) => return copied(count, Status::INVALID_VIEW_SIZE),
                Ok(moved) => count += moved,
                Err(status) => return copied(count, status),
            }
        }
        copied(count, Status::SUCCESS)
    }

    /// Copies through a buffer from end to start, for an overlapping target further back in the
    /// file: each byte is read before it is overwritten. If the copy fails, the start is missing.
    fn by_buffer_from_the_end(&self) -> Result<Outcome, Status> {
        let mut left = self.plan.length;
        let mut buffer = vec![0; BUFFER.min(left) as usize];
        while left > 0 {
            let piece = BUFFER.min(left);
            match self.piece(left - piece, &mut buffer[..piece as usize]) {
                Ok(moved) if moved == piece => left -= piece,
                Ok(_) => return copied(0, Status::INVALID_VIEW_SIZE),
                Err(status) => return copied(0, status),
            }
        }
        copied(self.plan.length, Status::SUCCESS)
    }

    /// Copies at most one buffer, from `skip` bytes after the start of the range.
    fn piece(&self, skip: u32, buffer: &mut [u8]) -> Result<u32, Status> {
        let CopyPlan {
            source,
            source_offset,
            target_offset,
            length: _,
        } = *self.plan;
        let from = (self.source).read(
            source,
            source_offset + u64::from(skip),
            buffer,
            Effort::Blocking,
        );
        let read = from.done().expect("a blocking read blocks")?;
        if read == 0 {
            return Ok(0);
        }
        let at = Some(target_offset + u64::from(skip));
        let to = (self.target).write(self.into, at, &buffer[..read], false, Effort::Blocking);
        let written = to.done().expect("a blocking write blocks")?;
        Ok(u32::try_from(written).expect("no more than the buffer holds"))
    }
}

/// Checks that the source contains the whole range, and that the end of the target range is a valid
/// offset.
pub(crate) fn ends_within(plan: &CopyPlan, size: u64) -> Result<(), Status> {
    let length = u64::from(plan.length);
    let end = plan.source_offset.checked_add(length);
    if end.is_none_or(|end| end > size) {
        return Err(Status::INVALID_VIEW_SIZE);
    }
    match plan.target_offset.checked_add(length) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(Status::INVALID_PARAMETER),
    }
}

fn metadata(of: &dyn FileSystem, file: LocalOpen) -> Result<Metadata, Status> {
    let asked = of.execute(&FileOp::OnOpen(file, Operation::Stat), Effort::Blocking);
    let outcome = asked.done().expect("a blocking operation blocks")?;
    Ok(outcome.expect_metadata())
}

/// The result of a copy that stopped with an error after `count` bytes.
fn copied(count: u32, status: Status) -> Result<Outcome, Status> {
    match status {
        Status::SUCCESS => Ok(Outcome::Copied { count, status }),
        _ if count == 0 => Err(status),
        _ => Ok(Outcome::Copied { count, status }),
    }
}
