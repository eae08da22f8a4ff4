//! Times and attributes. \[MS-FSA\] 2.1.5.15.2, \[MS-FSCC\] 2.4.7

use alloc::sync::Arc;

use wire::access::FileAttributes;
use wire::change_notify::CompletionFilter;
use wire::fscc::FileBasicInformation;
use wire::{FileTime, Status};

use super::{done, wait};
use crate::file::{BasicChanges, FileOp, Metadata, Operation};
use crate::server::context::{Context, Progress};
use crate::server::open::{Open, malformed};

/// The state of a request that waits for the change of times and attributes.
pub(crate) struct Step {
    open: Arc<Open>,
    write_time: WriteTime,
    /// The filters that match the change.
    seen: CompletionFilter,
}

/// The effect of later writes on this open on the write time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteTime {
    /// As before.
    Unchanged,
    /// It stays as it is now.
    Kept,
    /// Writes set it again.
    Free,
}

/// A time of the request. \[MS-FSCC\] 2.4.7
#[derive(Clone, Copy)]
enum Wish {
    Leave,
    Freeze,
    Thaw,
    Set(FileTime),
}

/// The largest time: a signed number on the wire.
const MAX_TIME: u64 = i64::MAX as u64;
/// Attributes that can be set. \[MS-FSA\] 2.1.5.15.2
const SETTABLE: FileAttributes = FileAttributes(0x0000_3127);
/// Attributes that a request may name. \[MS-FSCC\] 2.6
const VALID: FileAttributes = FileAttributes(0x005F_FFB7);

pub(super) fn start(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileBasicInformation::decode(buffer).map_err(malformed)?;
    let written = wish(information.written)?;
    let write_time = match written {
        Wish::Leave => WriteTime::Unchanged,
        Wish::Freeze | Wish::Set(_) => WriteTime::Kept,
        Wish::Thaw => WriteTime::Free,
    };
    let changes = BasicChanges {
        created: time(wish(information.created)?),
        accessed: time(wish(information.accessed)?),
        written: time(written),
        changed: time(wish(information.changed)?),
        attributes: attributes(&open, information.attributes)?,
    };
    let seen = seen(&changes);
    let file = open.file;
    let operation = if changes != BasicChanges::default() {
        FileOp::OnOpen(file, Operation::SetBasic(changes))
    } else if write_time == WriteTime::Kept {
        FileOp::OnOpen(file, Operation::Stat)
    } else {
        Step {
            open,
            write_time,
            seen,
        }
        .keep(None);
        return Ok(done());
    };
    let step = super::Step::Basic(Step {
        open,
        write_time,
        seen,
    });
    Ok(wait(context, operation, step))
}

/// By which filters a change is seen.
fn seen(changes: &BasicChanges) -> CompletionFilter {
    let mut seen = CompletionFilter::NONE;
    for (is_set, filter) in [
        (changes.created.is_some(), CompletionFilter::CREATION),
        (changes.accessed.is_some(), CompletionFilter::LAST_ACCESS),
        (changes.written.is_some(), CompletionFilter::LAST_WRITE),
        (changes.attributes.is_some(), CompletionFilter::ATTRIBUTES),
    ] {
        if is_set {
            seen |= filter;
        }
    }
    seen
}

/// 0 leaves a time, -1 freezes it, -2 lets it go; other negative numbers are no times.
fn wish(time: FileTime) -> Result<Wish, Status> {
    match time {
        FileTime::OMIT => Ok(Wish::Leave),
        FileTime::FREEZE => Ok(Wish::Freeze),
        FileTime::THAW => Ok(Wish::Thaw),
        FileTime(steps) if steps > MAX_TIME => Err(Status::INVALID_PARAMETER),
        time => Ok(Wish::Set(time)),
    }
}

fn time(wish: Wish) -> Option<FileTime> {
    match wish {
        Wish::Set(time) => Some(time),
        Wish::Leave | Wish::Freeze | Wish::Thaw => None,
    }
}

/// 0 leaves the attributes; NORMAL is for having none. \[MS-FSA\] 2.1.5.15.2
fn attributes(open: &Open, asked: FileAttributes) -> Result<Option<FileAttributes>, Status> {
    let of_other_kind = if open.is_directory {
        FileAttributes::TEMPORARY
    } else {
        FileAttributes::DIRECTORY
    };
    if asked.intersects(of_other_kind) || !VALID.contains(asked) {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok((!asked.is_empty()).then_some(asked & SETTABLE))
}

impl Step {
    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        metadata: &Metadata,
    ) -> Result<Progress<super::Step>, Status> {
        self.keep(Some(metadata));
        let seen = self.seen;
        context.report_change(&self.open, seen);
        Ok(done())
    }

    /// Remembers what becomes of the time of the last write. The other times need no care: births
    /// do not change, and reads and changes of metadata are the file system's to note.
    fn keep(&self, metadata: Option<&Metadata>) {
        match self.write_time {
            WriteTime::Unchanged => {}
            WriteTime::Kept => self.open.keep_write_time(metadata.map(|it| it.written)),
            WriteTime::Free => self.open.keep_write_time(None),
        }
    }
}
