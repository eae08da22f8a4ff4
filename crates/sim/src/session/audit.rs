//! The audit: reads the disk at the end of a run, without access checks.

use std::collections::BTreeSet;
use std::sync::Arc;

use proto::effect::Access;
use proto::effect::{Delivery, Outcome, ReadPlan};
use proto::file::{self, Existing, FileOp, KindWanted, LocalOpen, OpenPlan, Operation, ShareId};
use proto::id::OpId;
use proto::path::SharePath;
use proto::token::Token;
use vfs::Effort;
use wire::access::{AccessMask, FileAttributes};
use wire::text::utf16;
use wire::{FileTime, Status, Utf16};

use super::act::{CONTENTS, content_name, log_name};
use super::books::Books;
use crate::check::contents::{CELL, CELLS, Span, Stamp};
use crate::check::{Check, ensure};
use crate::disk::{Disk, Work};
use crate::scenario::Faults;

/// The results of an audit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Audit {
    pub(super) reads: usize,
    pub(super) appends: usize,
    pub(super) names: usize,
}

/// Reads all files and compares them with the responses that the sessions received.
pub(super) fn audit(disk: &mut Disk, books: &mut Books, sessions: usize) -> Check<Audit> {
    let mut audit = Audit::default();
    for key in 0..CONTENTS {
        let start = books.tick();
        let bytes = read(disk, &content_name(key))?.unwrap_or_default();
        let end = Some(books.tick());
        let mut pieces = bytes.chunks(CELL);
        for cell in 0..CELLS {
            let stamp = pieces.next().map_or(Some(Stamp::default()), Stamp::read);
            let stamp = stamp.ok_or_else(|| format!("cell {cell} of {key} is torn"))?;
            books.contents.read(key, cell, stamp, Span { start, end });
        }
    }
    audit.reads = books.contents.check()?;
    for session in 0..sessions as u64 {
        let bytes = read(disk, &log_name(session))?.unwrap_or_default();
        audit.appends += books.appends.check(session, &bytes)?;
    }
    let mut found = BTreeSet::new();
    for name in books.names.all() {
        if let Some(open) = open(disk, &name)? {
            close(disk, open)?;
            found.insert(name);
        }
    }
    audit.names = books.names.check(&found)?;
    disk.check_idle()?;
    Ok(audit)
}

/// Returns the bytes of a file, if it exists.
fn read(disk: &mut Disk, name: &str) -> Check<Option<Vec<u8>>> {
    let Some(open) = open(disk, name)? else {
        return Ok(None);
    };
    let plan = ReadPlan {
        op: OpId(0),
        file: open,
        offset: 0,
        length: CELLS * CELL as u32,
        access: Access::InMemory,
        delivery: Delivery::Inline,
    };
    let outcome = perform(disk, &Work::Read(plan));
    let Outcome::Read(payload) = outcome else {
        return Err(format!("{name} cannot be read: {outcome:?}"));
    };
    let bytes = disk.take(payload.token)?;
    close(disk, open)?;
    Ok(Some(bytes))
}

fn open(disk: &mut Disk, name: &str) -> Check<Option<LocalOpen>> {
    let root = Token::new(0, 0, Vec::new());
    let path = utf16(name);
    let path =
        SharePath::from_wire(Utf16(&path)).map_err(|status| format!("{name}: {status:?}"))?;
    let plan = OpenPlan {
        share: ShareId(0),
        token: Arc::new(root),
        path,
        access: AccessMask::FILE_READ_DATA,
        implied_access: AccessMask::NONE,
        existing: Existing::Open,
        kind: KindWanted::Any,
        attributes: FileAttributes::NONE,
        allocation: 0,
        security: None,
        open_link: false,
        posix: None,
    };
    match perform(disk, &Work::File(FileOp::Open(plan))) {
        Outcome::File(opened) => Ok(Some(opened.expect_opened().file)),
        Outcome::Failed(Status::OBJECT_NAME_NOT_FOUND) => Ok(None),
        outcome => Err(format!("{name} cannot be opened: {outcome:?}")),
    }
}

fn close(disk: &mut Disk, open: LocalOpen) -> Check {
    let outcome = perform(disk, &Work::File(FileOp::OnOpen(open, Operation::Close)));
    ensure(
        matches!(outcome, Outcome::File(file::Outcome::Done)),
        || format!("a close ended with {outcome:?}"),
    )
}

fn perform(disk: &mut Disk, work: &Work) -> Outcome {
    let outcome = disk.attempt(work, Effort::Blocking, &Faults::default(), FileTime(0));
    outcome.expect("a blocking operation blocks")
}
