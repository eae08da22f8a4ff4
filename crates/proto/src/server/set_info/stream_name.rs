//! Another name of a named stream. \[MS-FSA\] 2.1.5.15.12

use alloc::boxed::Box;
use alloc::sync::Arc;

use wire::Status;
use wire::fscc::{FileAction, FileRenameInformation};
use wire::upcase::is_same_name;

use super::{done, wait};
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::path::{SharePath, StreamName};
use crate::server::change_notify::of_name;
use crate::server::context::{Context, Progress};
use crate::server::open::Open;

/// The state of a request that waits for the file system.
pub(crate) struct Step {
    open: Arc<Open>,
    /// The file and the name that the stream had.
    from: SharePath,
    to: StreamName,
}

/// Starts on a request. The statuses are those of Samba and of smbtorture smb2.streams.rename.
pub(super) fn start(
    context: &mut Context<'_>,
    open: Arc<Open>,
    information: &FileRenameInformation<'_>,
) -> Result<Progress<super::Step>, Status> {
    if information.root_directory != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    let is_stream = information.name.0.starts_with(&[b':', 0]);
    if !is_stream {
        return Err(Status::INVALID_PARAMETER);
    }
    let Some(to) = StreamName::from_wire_target(information.name)? else {
        return Err(match information.is_replacing {
            true => Status::NOT_SUPPORTED,
            false => Status::OBJECT_NAME_COLLISION,
        });
    };
    let from = context.server.files.path(open.key, open.file);
    let from = from.ok_or(Status::FILE_CLOSED)?;
    let has_other_name = |name: &StreamName| !is_same_name(name.as_str(), to.as_str());
    let replaces = information.is_replacing && from.stream().is_some_and(has_other_name);
    if replaces
        && context
            .server
            .files
            .is_stream_open(open.key, open.file.share, &from, &to)
    {
        return Err(Status::ACCESS_DENIED);
    }
    let operation = FileOp::OnOpen(
        open.file,
        Operation::RenameStream {
            to: to.clone(),
            replace: information.is_replacing,
        },
    );
    let step = super::Step::StreamName(Box::new(Step { open, from, to }));
    Ok(wait(context, operation, step))
}

impl Step {
    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        outcome.expect_file()?.expect_done();
        let Self { open, from, to } = self;
        context.server.files.rename_stream(open.key, &to);
        let filter = of_name(&open);
        context.report_at(&open, FileAction::REMOVED, filter, &from);
        let path = from.with_stream(Some(to));
        context.report_at(&open, FileAction::ADDED, filter, &path);
        context.audit_renamed(&path);
        Ok(done())
    }
}
