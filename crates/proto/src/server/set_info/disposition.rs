//! Whether a file goes with its last open. \[MS-FSA\] 2.1.5.15.3

use alloc::sync::Arc;

use wire::Status;
use wire::access::AccessMask;
use wire::fscc::{DispositionFlags, FileDispositionInformation, FileDispositionInformationEx};

use super::{done, wait};
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::report::NeededAccess;
use crate::server::context::{Context, Progress};
use crate::server::open::{Need, Open, malformed};

/// The state of a request that waits for the check of a deletion.
pub(crate) struct Step {
    open: Arc<Open>,
    how: How,
    stage: Stage,
}

/// How a file is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct How {
    /// Whether the name goes with the requesting open, although others may stay.
    is_posix: bool,
    /// Whether the attribute READONLY does not matter.
    ignores_readonly: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The user may delete it: READONLY and the rights on the directory are checked.
    Allowed,
    /// It is a directory that holds nothing.
    Empty,
    /// Other clients give up HANDLE_CACHING.
    Handles,
}

pub(super) fn start(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileDispositionInformation::decode(buffer).map_err(malformed)?;
    match information.is_delete_pending {
        true => {
            let how = How {
                is_posix: false,
                // DOS attributes mean nothing to clients of the SMB3 POSIX extensions, as with
                // Samba.
                ignores_readonly: open.is_posix,
            };
            check(context, open, how)
        }
        false => Ok(clear(context, &open)),
    }
}

/// A deletion with flags. The image section check has no meaning here. \[MS-FSCC\] 2.4.12
pub(super) fn start_ex(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileDispositionInformationEx::decode(buffer).map_err(malformed)?;
    let has = |flag| information.flags.contains(flag);
    let known = DispositionFlags::DELETE
        | DispositionFlags::POSIX_SEMANTICS
        | DispositionFlags::FORCE_IMAGE_SECTION_CHECK
        | DispositionFlags::ON_CLOSE
        | DispositionFlags::IGNORE_READONLY_ATTRIBUTE;
    if !known.contains(information.flags) {
        return Err(Status::INVALID_PARAMETER);
    }
    // The option FILE_DELETE_ON_CLOSE of an open does not change.
    if has(DispositionFlags::ON_CLOSE) {
        return Err(Status::NOT_SUPPORTED);
    }
    if !has(DispositionFlags::DELETE) {
        return Ok(clear(context, &open));
    }
    let how = How {
        is_posix: has(DispositionFlags::POSIX_SEMANTICS),
        ignores_readonly: open.is_posix || has(DispositionFlags::IGNORE_READONLY_ATTRIBUTE),
    };
    if how.ignores_readonly && !open.is_posix {
        open.authorize(Need::Right(AccessMask::FILE_WRITE_ATTRIBUTES))?;
    }
    check(context, open, how)
}

/// Removes the mark for deletion.
fn clear(context: &mut Context<'_>, open: &Open) -> Progress<super::Step> {
    let parked = context
        .server
        .files
        .clear_delete_pending(open.key, open.file);
    if let Some(file) = parked {
        context.run(FileOp::OnOpen(file, Operation::Close));
    }
    done()
}

/// Starts the checks before a deletion.
fn check(
    context: &mut Context<'_>,
    open: Arc<Open>,
    how: How,
) -> Result<Progress<super::Step>, Status> {
    let path = context.server.files.path(open.key, open.file);
    if path.is_none_or(|path| path.is_root()) {
        return Err(Status::CANNOT_DELETE);
    }
    let step = Step {
        open,
        how,
        stage: Stage::Allowed,
    };
    Ok(step.ask(context, Operation::CheckDelete))
}

impl Step {
    fn ask(self, context: &mut Context<'_>, operation: Operation) -> Progress<super::Step> {
        let operation = FileOp::OnOpen(self.open.file, operation);
        wait(context, operation, super::Step::Disposition(self))
    }

    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        if self.stage == Stage::Handles {
            outcome.expect_woken()?;
            return Ok(self.delete(context));
        }
        match outcome.expect_file() {
            Ok(outcome) => outcome.expect_done(),
            // The open has DELETE; the root of the share does not come here.
            Err(Status::CANNOT_DELETE) if self.how.ignores_readonly => {}
            Err(status) => {
                let open = &self.open;
                let path = context.server.files.path(open.key, open.file);
                context.report_denied(status, || {
                    let remove = |path| (path, NeededAccess::Remove);
                    path.map(remove).into_iter().collect()
                });
                return Err(status);
            }
        }
        if self.stage == Stage::Allowed && self.open.is_directory {
            let step = Self {
                stage: Stage::Empty,
                ..self
            };
            return Ok(step.ask(context, Operation::CheckEmpty));
        }
        Ok(self.delete(context))
    }

    /// Marks the file for deletion, once no other client may reuse an open of it that its
    /// application has closed. smbtorture smb2.lease.unlink
    fn delete(self, context: &mut Context<'_>) -> Progress<super::Step> {
        if let Some(parked) = context.wait_for_handle_leases(&self.open) {
            let step = Self {
                stage: Stage::Handles,
                ..self
            };
            return Progress::Park(parked, super::Step::Disposition(step));
        }
        let Self { open, how, .. } = self;
        let files = &context.server.files;
        files.set_delete_pending(open.key, open.file, how.is_posix);
        let notices = context.server.watches.wake(open.key);
        context.post(notices);
        done()
    }
}
