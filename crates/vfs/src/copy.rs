//! Copies between two opens, of one share or of two.
//!
//! Where both are files of the kernel it copies by itself, without the bytes ever coming here:
//! file systems that can share blocks do, and file servers that can copy do. What it refuses goes
//! through a buffer: ranges of one file that overlap, and file systems that cannot.

use proto::file::{CopyPlan, FileKind, FileOp, LocalOpen, Metadata, Operation, Outcome};
use rustix::fs::copy_file_range;
use rustix::io::Errno;
use wire::Status;

use crate::errno::{Context, status};
use crate::{Effort, FileSystem, identity};

/// Bytes that go through memory at once.
const BUFFER: u32 = 256 << 10;

/// Copies until it is done, on a thread that may wait. The opens are of these two file systems,
/// which may be the same.
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

/// A copy under way.
struct Copy<'a> {
    source: &'a dyn FileSystem,
    target: &'a dyn FileSystem,
    /// The open to copy into.
    into: LocalOpen,
    plan: &'a CopyPlan,
}

impl Copy<'_> {
    /// Whether the ranges lie in one file and overlap; or why nothing can be copied.
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

    /// How much the kernel copied, and why it failed; where it did not, the rest is to be copied
    /// in another way.
    fn by_kernel(&self) -> (u32, Option<Status>) {
        let CopyPlan {
            source,
            mut source_offset,
            mut target_offset,
            length,
        } = *self.plan;
        // There it would write into the page cache unasked.
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
                // The source ends here, or its file system is of a kind that never says more.
                Ok(0) => break,
                Ok(copied) => count += u32::try_from(copied).expect("no more than asked for"),
                Err(Errno::INTR) => {}
                Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => break,
                Err(errno) => return (count, Some(status(errno, Context::Data))),
            }
        }
        (count, None)
    }

    /// Copies what lies behind the first `count` bytes.
    fn by_buffer(&self, mut count: u32) -> Result<Outcome, Status> {
        let length = self.plan.length;
        let mut buffer = vec![0; BUFFER.min(length - count) as usize];
        while count < length {
            let piece = BUFFER.min(length - count);
            match self.piece(count, &mut buffer[..piece as usize]) {
                // Somebody cut the source meanwhile.
                Ok(0) => return copied(count, Status::INVALID_VIEW_SIZE),
                Ok(moved) => count += moved,
                Err(status) => return copied(count, status),
            }
        }
        copied(count, Status::SUCCESS)
    }

    /// Copies to a place further back in the same file, so that nothing is overwritten before it
    /// was read. What is not done when it fails is the start.
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

    /// Copies as much as fits into the buffer, from `skip` bytes behind the start on.
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

/// Whether the source holds all that is to be copied, and the target has a place for it.
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

/// What a copy came to that stopped here.
fn copied(count: u32, status: Status) -> Result<Outcome, Status> {
    match status {
        Status::SUCCESS => Ok(Outcome::Copied { count, status }),
        _ if count == 0 => Err(status),
        _ => Ok(Outcome::Copied { count, status }),
    }
}
