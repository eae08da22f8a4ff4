//! CLOSE, and the other ends of an open. \[MS-SMB2\] 3.3.5.10, 3.3.4.17
//!
//! The last close of a delete-pending file removes its name. The name goes first and the opens
//! after it, so that no other file gets the inode number while the file is still in the table.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::access::CreateOptions;
use wire::close::{CloseFlags, Request, Response};
use wire::fscc::FileAction;
use wire::{Guid, Status};

use crate::audit::Event as AuditEvent;
use crate::effect::{Effect, Effects, Outcome};
use crate::file::{self, FileKey, FileOp, LocalOpen, Metadata, Operation};
use crate::id::OpId;
use crate::path::SharePath;
use crate::server::Server;
use crate::server::audit;
use crate::server::change_notify::of_name;
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::Close;
use crate::server::notices::Notices;
use crate::server::op_ids::OpIds;
use crate::server::open::{Open, malformed, wire_attributes};
use crate::server::operations::{Operations, Pending, Unlinked};
use crate::server::session::Session;
use crate::server::watch::Event;
use crate::time::Now;

/// The state of a request that waits for the file system.
pub(crate) enum Step {
    /// The request waits for the attributes for the response.
    Stat(Arc<Open>),
    /// The close marks the file for deletion, and waits until other clients have given up
    /// HANDLE_CACHING.
    Handles(Arc<Open>, Box<Response>),
    /// The name is being removed.
    Unlink(Box<Unlinking>),
}

/// A file with its last open being closed and its name being removed.
pub(crate) struct Unlinking {
    open: Arc<Open>,
    /// The open that asked for the deletion.
    file: LocalOpen,
    path: SharePath,
    close: Close,
    response: Response,
    /// The event for the audit log.
    event: Option<Box<AuditEvent>>,
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    let open = context.open(request.file_id)?;
    // Only the request that takes the open out of the table closes it.
    let taken = context.session.opens.lock().remove(&open.id.volatile);
    let open = taken.ok_or(Status::FILE_CLOSED)?;
    if request.flags.contains(CloseFlags::POSTQUERY_ATTRIB) {
        let operation = FileOp::OnOpen(open.file, Operation::Stat);
        return Ok(context.wait(operation, Step::Stat(open)));
    }
    Ok(close(context, open, Response::default()))
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        match self {
            Self::Stat(open) => {
                let response = match outcome.expect_file() {
                    Ok(outcome) => describe(&outcome.expect_metadata()),
                    // [MS-SMB2] 3.3.5.10: the close does not fail for want of attributes.
                    Err(_) => Response::default(),
                };
                Ok(close(context, open, response))
            }
            // Also where the client is lost: the open is out of its table.
            Self::Handles(open, response) => Ok(finish_request(context, open, *response)),
            Self::Unlink(unlinking) => {
                // Whether it went or not, such as a directory that is not empty: it is closed.
                let Unlinking {
                    open,
                    file,
                    path,
                    close,
                    response,
                    event,
                } = *unlinking;
                context.server.files.forget(open.key, file, &path);
                let removal = outcome.expect_file().map(file::Outcome::expect_done);
                audit::removed(event, &open.share, removal, context.effects);
                if removal.is_ok() {
                    let entry = (&path, close.own_parent_lease);
                    let notices = removal_notices(context.server, context.now, &open, entry);
                    context.post(notices);
                }
                for file in close.close {
                    context.run(FileOp::OnOpen(file, Operation::Close));
                }
                context.post(close.notices);
                Ok(done(&response))
            }
        }
    }
}

/// Closes an open. smbtorture smb2.lease.unlink
fn close(context: &mut Context<'_>, open: Arc<Open>, response: Response) -> Progress<Step> {
    if open.options.contains(CreateOptions::DELETE_ON_CLOSE)
        && let Some(parked) = context.wait_for_handle_leases(&open)
    {
        let step = Step::Handles(open, Box::new(response));
        return Progress::Park(parked, step);
    }
    finish_request(context, open, response)
}

/// The open leaves the table of open files.
fn finish_request(
    context: &mut Context<'_>,
    open: Arc<Open>,
    response: Response,
) -> Progress<Step> {
    let session = context.session.clone();
    let (mut close, notices) = leave(
        context.server,
        context.now,
        &open,
        Some(&session),
        context.effects,
    );
    context.post(notices);
    if let Some((file, path)) = close.unlink.take() {
        let step = Step::Unlink(Box::new(Unlinking {
            file,
            path: path.clone(),
            close,
            response,
            event: audit::deletion(&open, Some(&session), &path),
            open,
        }));
        let operation = FileOp::OnOpen(file, Operation::Unlink { path });
        return context.wait(operation, step);
    }
    context.finish_close(open.key, close);
    done(&response)
}

fn done(response: &Response) -> Progress<Step> {
    Progress::Done(Reply::message(|out| response.encode(out)))
}

fn describe(metadata: &Metadata) -> Response {
    Response {
        flags: CloseFlags::POSTQUERY_ATTRIB,
        creation_time: metadata.created,
        last_access_time: metadata.accessed,
        last_write_time: metadata.written,
        change_time: metadata.changed,
        allocation_size: metadata.allocation,
        end_of_file: metadata.size,
        file_attributes: wire_attributes(metadata),
    }
}

fn removed<'a>(open: &Open, path: &'a SharePath) -> Event<'a> {
    Event {
        action: FileAction::REMOVED,
        filter: of_name(open),
        path,
    }
    .of(open)
}

/// Ends the watches of a closed open, and wakes those of a directory that will be deleted.
fn end_watches(server: &Server, open: &Open) -> Notices {
    let mut notices = server.watches.end(open.file);
    if !server.watches.is_empty() && server.files.has_delete_pending(open.key) {
        notices.extend(server.watches.wake(open.key));
    }
    notices
}

/// Closes an open that is out of its session's table already: its tree, session or connection
/// ended, and no request waits for it. \[MS-SMB2\] 3.3.4.17
///
/// `session` has it closed. Returns the operations that close it.
pub(crate) fn abandon(
    server: &Server,
    now: Now,
    (open, session): (&Open, &Session),
    op_ids: &mut OpIds,
    effects: &mut Effects,
) -> Abandoned {
    let (mut close, notices) = leave(server, now, open, Some(session), effects);
    close.notices.extend(notices);
    let mut event = None;
    if let Some((_, path)) = &close.unlink {
        event = audit::deletion(open, Some(session), path);
        let notices = removal_notices(server, now, open, (path, close.own_parent_lease));
        close.notices.extend(notices);
    }
    let ops = finish(server, open.key, close, op_ids, effects);
    // The removal is the first operation.
    let deletion = event.and_then(|event| Some((*ops.first()?, event)));
    Abandoned { ops, deletion }
}

/// The operations that close an open.
pub(crate) struct Abandoned {
    pub(crate) ops: Vec<OpId>,
    /// The operation that removes the file, and the event of it for the audit log.
    pub(crate) deletion: Option<(OpId, Box<AuditEvent>)>,
}

impl Abandoned {
    /// Does not wait for the operations. The result of a removal is then not known.
    pub(crate) fn detach(self, open: &Open, effects: &mut Effects) {
        let event = self.deletion.map(|(_, event)| event);
        audit::removed(event, &open.share, Err(Status::PENDING), effects);
    }
}

/// The open leaves the table of open files: an event for the audit log. Returns also the notices of
/// its watches and of a change of its entry in the directory.
fn leave(
    server: &Server,
    now: Now,
    open: &Open,
    session: Option<&Session>,
    effects: &mut Effects,
) -> (Close, Notices) {
    if let Some(event) = audit::closing(server, open, session) {
        effects.push(Effect::Audit(Box::new(event)));
    }
    let time = server.change_time(now);
    let mut close = server.files.close(open.key, open.file, time.deadline);
    let mut notices = end_watches(server, open);
    if let Some((path, own)) = close.entry.take()
        && open.is_modified.load(Ordering::Relaxed)
    {
        let (files, share) = (&server.files, open.file.share);
        files.entry_changed(share, &path, own, time, &mut notices);
    }
    (close, notices)
}

/// Reports the removal of a file to the watches and to the leases of its directory, except the
/// lease `own`.
fn removal_notices(
    server: &Server,
    now: Now,
    open: &Open,
    (path, own): (&SharePath, Option<Guid>),
) -> Notices {
    let (files, share) = (&server.files, open.file.share);
    let event = removed(open, path);
    let mut notices = server.watches.report(files, open.file, &[event]);
    files.entry_changed(share, path, own, server.change_time(now), &mut notices);
    notices
}

impl Server {
    /// Closes an open that outlived its session. A request that waits for the end of the open
    /// continues after the name of a deleted file is removed: it would otherwise open the deleted
    /// file.
    pub(crate) fn close(&self, now: Now, open: &Arc<Open>, effects: &mut Effects) {
        let (mut close, notices) = leave(self, now, open, None, effects);
        close.notices.extend(notices);
        let mut operations = self.operations.lock();
        let Operations { op_ids, pending } = &mut *operations;
        if let Some((file, path)) = close.unlink.take() {
            let op = op_ids.allocate();
            let operation = Operation::Unlink { path: path.clone() };
            effects.push(Effect::File(op, FileOp::OnOpen(file, operation)));
            let unlinked = Unlinked {
                event: audit::deletion(open, None, &path),
                open: open.clone(),
                file,
                path,
                close,
            };
            pending.insert(op, Pending::Unlink(Box::new(unlinked)));
            return;
        }
        let ops = finish(self, open.key, close, op_ids, effects);
        pending.extend(ops.into_iter().map(|op| (op, Pending::Close)));
    }

    /// The name of a deleted file was removed, or could not be removed: closes the opens.
    pub(crate) fn unlinked(
        &self,
        now: Now,
        unlinked: Unlinked,
        removal: Result<(), Status>,
        effects: &mut Effects,
    ) {
        let Unlinked {
            open,
            file,
            path,
            close,
            event,
        } = unlinked;
        self.files.forget(open.key, file, &path);
        audit::removed(event, &open.share, removal, effects);
        if removal.is_ok() {
            let own = close.own_parent_lease;
            self.post(removal_notices(self, now, &open, (&path, own)), effects);
        }
        let mut operations = self.operations.lock();
        let Operations { op_ids, pending } = &mut *operations;
        let ops = finish(self, open.key, close, op_ids, effects);
        pending.extend(ops.into_iter().map(|op| (op, Pending::Close)));
    }
}

/// Starts the remaining operations of a close and does not wait for them. Returns the operations.
fn finish(
    server: &Server,
    key: FileKey,
    close: Close,
    op_ids: &mut OpIds,
    effects: &mut Effects,
) -> Vec<OpId> {
    let mut ops = Vec::new();
    let mut run = |operation| {
        let op = op_ids.allocate();
        ops.push(op);
        effects.push(Effect::File(op, operation));
    };
    if let Some((file, path)) = close.unlink {
        server.files.forget(key, file, &path);
        run(FileOp::OnOpen(file, Operation::Unlink { path }));
    }
    for file in close.close {
        run(FileOp::OnOpen(file, Operation::Close));
    }
    server.post(close.notices, effects);
    ops
}

impl Context<'_> {
    /// Starts the remaining operations of a close and does not wait for them.
    pub(crate) fn finish_close(&mut self, key: FileKey, close: Close) {
        finish(self.server, key, close, self.op_ids, self.effects);
    }
}

#[cfg(test)]
mod tests;
