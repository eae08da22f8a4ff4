//! CHANGE_NOTIFY: wait until something happens in a directory. \[MS-SMB2\] 3.3.5.19
//!
//! `watch.rs` holds the watches. Handlers [report](Context::report) the changes of clients, and the
//! file system reports those of other processes.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use wire::Status;
use wire::access::AccessMask;
use wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request, Response};
use wire::fscc::FileAction;

use crate::effect::Outcome;
use crate::file::{FileOp, LocalOpen, Operation};
use crate::id::OpId;
use crate::path::SharePath;
use crate::server::context::{Context, Parked, Progress, Reply};
use crate::server::ledger::Resource;
use crate::server::notices::Notices;
use crate::server::open::{Need, Open, malformed};
use crate::server::watch::{Event, News, Scope};

/// Maximum bytes of changes that a watch keeps until the next request, even if the client's buffer
/// is larger: the largest buffer of a Windows client over a network. With more changes the client
/// has to list the directory.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The state of a request that waits for a change.
pub(crate) struct Step {
    open: Arc<Open>,
    /// Bytes of the answer at most.
    max_len: usize,
    /// Under which it waits.
    op: OpId,
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    context.check_charge(request.output_buffer_length)?;
    let open = context.open(request.file_id)?;
    if !open.is_directory || request.output_buffer_length > context.max_transact() {
        return Err(Status::INVALID_PARAMETER);
    }
    open.authorize(Need::Right(AccessMask::FILE_LIST_DIRECTORY))?;
    // Windows and Samba wait for nothing amid a compound: smbtorture smb2.compound.interim2.
    if !context.is_last {
        return Err(Status::INTERNAL_ERROR);
    }
    if !open.share.notify {
        return Err(Status::NOT_IMPLEMENTED);
    }
    let max_len = request.output_buffer_length as usize;
    let (file, scope) = (open.file, scope(&open, &request));
    let limit = context.config.limits.watches_per_connection;
    let (watches, user) = (
        &context.session.origin.quotas.watches,
        &context.session.user,
    );
    let place = || watches.add_for(limit, user, Resource::Watches);
    if context.server.watches.watch(file, scope, place)? {
        // Without waiting for the outcome: the request has to be in the table before the first
        // change, and for a CANCEL.
        let is_tree = scope.is_tree;
        context.run(FileOp::OnOpen(file, Operation::Watch { is_tree }));
    }
    let op = context.op();
    Step { open, max_len, op }.look(context)
}

fn scope(open: &Open, request: &Request) -> Scope {
    Scope {
        directory: open.key,
        filter: request.completion_filter,
        is_tree: request.flags.contains(ChangeNotifyFlags::WATCH_TREE),
        max_len: (request.output_buffer_length as usize).min(KEPT_BYTES_MAX),
    }
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        match outcome.expect_woken() {
            Ok(()) => self.look(context),
            Err(status) => {
                let waiter = (context.connection, self.op);
                context.server.watches.forget(self.open.file, waiter);
                // It was cancelled, or its tree or session ends.
                let goes_on = context.session.trees.lock().contains_key(&self.open.tree());
                Err(if goes_on {
                    status
                } else {
                    Status::NOTIFY_CLEANUP
                })
            }
        }
    }

    /// Answers with the changes, or waits for some.
    fn look(self, context: &mut Context<'_>) -> Result<Progress<Step>, Status> {
        let (key, op) = (self.open.key, self.op);
        // smbtorture smb2.notify.rmdir1
        if context.server.files.has_delete_pending(key) {
            return Err(Status::DELETE_PENDING);
        }
        let waiter = (context.connection, op);
        let watches = &context.server.watches;
        match watches.take(self.open.file, self.max_len, waiter) {
            News::Nothing => {
                let until = None;
                let parked = Parked {
                    op,
                    key,
                    until,
                    is_limited: false,
                };
                Ok(Progress::Park(parked, self))
            }
            News::Changes(output) => Ok(answer(Status::SUCCESS, &output)),
            News::TooMuch => Ok(answer(Status::NOTIFY_ENUM_DIR, &[])),
            News::Closed => Ok(answer(Status::NOTIFY_CLEANUP, &[])),
            News::Gone => Err(Status::DELETE_PENDING),
        }
    }
}

/// Neither of the other statuses is an error: they have a body too. \[MS-SMB2\] 3.3.4.4
fn answer(status: Status, output: &[u8]) -> Progress<Step> {
    let response = Response { output };
    Progress::Done(Reply::with_status(status, |out| response.encode(out)))
}

/// The filter that sees the name of a file or stream come and go.
pub(crate) fn of_name(open: &Open) -> CompletionFilter {
    match open.is_directory {
        _ if open.is_named_stream() => CompletionFilter::STREAM_NAME,
        true => CompletionFilter::DIR_NAME,
        false => CompletionFilter::FILE_NAME,
    }
}

/// The action and the filters of a change of a file, for a change of one of its named streams.
/// \[MS-FSCC\] 2.7.1, \[MS-SMB2\] 2.2.35
fn of_stream(action: FileAction, filter: CompletionFilter) -> (FileAction, CompletionFilter) {
    match action {
        FileAction::ADDED => (FileAction::ADDED_STREAM, CompletionFilter::STREAM_NAME),
        FileAction::REMOVED => (FileAction::REMOVED_STREAM, CompletionFilter::STREAM_NAME),
        FileAction::MODIFIED if filter.intersects(OF_DATA) => {
            let filter = CompletionFilter::STREAM_SIZE | CompletionFilter::STREAM_WRITE;
            (FileAction::MODIFIED_STREAM, filter)
        }
        _ => (action, filter),
    }
}

/// The filters that see a change of data.
const OF_DATA: CompletionFilter =
    CompletionFilter(CompletionFilter::SIZE.0 | CompletionFilter::LAST_WRITE.0);

impl<'a> Event<'a> {
    /// The event as the open sees it: a change of a named stream has other actions and filters
    /// than a change of a file.
    pub(crate) fn of(self, open: &Open) -> Self {
        if !open.is_named_stream() {
            return self;
        }
        let (action, filter) = of_stream(self.action, self.filter);
        Event {
            action,
            filter,
            ..self
        }
    }
}

impl Context<'_> {
    /// Reports changes through this open to the watches and to clients with leases on directories.
    pub(crate) fn report(&mut self, open: &Open, events: &[Event<'_>]) {
        let files = &self.server.files;
        if files.has_directory_leases() {
            let own = files.parent_lease(open.key, open.file);
            let time = self.server.change_time(self.now);
            let mut notices = Notices::new();
            for event in events {
                files.entry_changed(open.file.share, event.path, own, time, &mut notices);
            }
            self.post(notices);
        }
        self.report_to_watches(open.file, events);
    }

    /// Reports changes through this open to the watches.
    pub(crate) fn report_to_watches(&mut self, open: LocalOpen, events: &[Event<'_>]) {
        let server = self.server;
        if !server.watches.is_empty() {
            let notices = server.watches.report(&server.files, open, events);
            self.post(notices);
        }
    }

    /// Reports a change of an open file to the watches and to clients with leases on directories.
    pub(crate) fn report_change(&mut self, open: &Open, filter: CompletionFilter) {
        let has_leases = self.server.files.has_directory_leases();
        if self.server.watches.is_empty() && !has_leases {
            return;
        }
        let Some(path) = self.server.files.path(open.key, open.file) else {
            return;
        };
        self.report_at(open, FileAction::MODIFIED, filter, &path);
    }

    /// Reports that data were written. A lease on the directory breaks only at the close of the
    /// open, as with Windows and Samba: smbtorture smb2.dirlease.v2_request.
    pub(crate) fn report_write(&mut self, open: &Open) {
        open.is_modified.store(true, Ordering::Relaxed);
        if self.server.watches.is_empty() {
            return;
        }
        let Some(path) = self.server.files.path(open.key, open.file) else {
            return;
        };
        let event = Event {
            action: FileAction::MODIFIED,
            filter: OF_DATA,
            path: &path,
        };
        let event = event.of(open);
        self.report_to_watches(open.file, &[event]);
    }

    /// Reports a change of one name to the watches and to clients with leases on directories.
    pub(crate) fn report_at(
        &mut self,
        open: &Open,
        action: FileAction,
        filter: CompletionFilter,
        path: &SharePath,
    ) {
        let event = Event {
            action,
            filter,
            path,
        };
        self.report(open, &[event.of(open)]);
    }
}
