//! CREATE: open or create a file or a directory. \[MS-SMB2\] 3.3.5.9
//!
//! The file system opens or creates, but never truncates: the share modes of other opens can be
//! checked only once the file is known. The order is: open, check, enter the table of open files,
//! overwrite. A failure at any step closes the file.

mod admit;
mod app_instance;
mod contexts;
mod durable;
mod ea;
mod oplock;
mod reconnect;
mod reparse;
mod replayed;
mod wanted;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64};

use spin::Mutex;
use wire::access::{AccessMask, CreateDisposition, CreateOptions, OplockLevel};
use wire::change_notify::CompletionFilter;
use wire::create::{CreateAction, Request, Response, ResponseFlags};
use wire::create_context::{Lease, LeaseState, RawContext};
use wire::fscc::FileAction;
use wire::{FileId, Status};

use crate::effect::Outcome;
use crate::file::{self, FileOp, Metadata, OpenPlan, Opened, Operation};
use crate::report::NeededAccess;
use crate::server::app_instances::{AppInstance, InstanceOpen};
use crate::server::change_notify::of_name;
use crate::server::context::{Context, Progress, RelatedOpen, Reply};
use crate::server::durability::Durability;
use crate::server::fsa::caching::{Granted, oplock_level};
use crate::server::ledger::Resource;
use crate::server::open::{Attachment, Open, OpenState, initial_mode, malformed, wire_attributes};
use crate::server::quota::QuotaGuard;
use crate::server::replay::CompletedCreate;
use contexts::Asked;
use durable::Reconnect;
use oplock::Entry;
use replayed::Replayed;
use wanted::Wanted;

/// The state of a request that waits.
pub(crate) enum Step {
    /// The file system opens or creates.
    Opening(Box<Wanted>),
    /// The request waits for an oplock break. Then it starts again, because the name may stand for
    /// another file by then.
    Parked(Box<Wanted>),
    /// The file system sets the extended attributes of a new file.
    SettingEas(Box<(Wanted, Opened)>),
    /// The file system truncates a file that is in the table of open files, or sets its extended
    /// attributes after that.
    Overwriting(Box<Entered>),
    /// The file system starts to report changes by other processes in a directory, before its
    /// client gets a lease.
    Watching(Box<Entered>),
    /// The request reconnects to an open of a session that has not ended completely.
    Reconnecting(Box<reconnect::Attempt>),
    /// The file system reads the metadata again, for the response to a replay or a reconnect.
    Replaying(Box<Replayed>),
    /// The path leads through a reparse point or to one, which the file system reads for the
    /// response.
    Stopped(Box<reparse::Stop>),
}

/// An open that is in the table of open files, but not yet in that of its session.
pub(crate) struct Entered {
    wanted: Wanted,
    opened: Opened,
    /// Open.GrantedAccess.
    granted: AccessMask,
}

/// The oplock or lease of an open, as the response reports it.
struct Caching {
    level: OplockLevel,
    lease: Option<Lease>,
}

impl Caching {
    /// The caching of an open with the rights of an oplock, or with a lease.
    fn new(rights: LeaseState, lease: Option<Lease>) -> Self {
        let level = match lease {
            Some(_) => OplockLevel::LEASE,
            None => oplock_level(rights),
        };
        Self { level, lease }
    }
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    if let Some(reconnect) = Reconnect::find(&request.contexts, context.dialect)? {
        return reconnect::begin(context, &request, reconnect);
    }
    context.audit_create(&request);
    let mut wanted = Wanted::new(&request, &context.tree, &context.token(), context.has_posix)?;
    if let Some(progress) = replayed::begin(context, &mut wanted)? {
        return Ok(progress);
    }
    wanted.place = Some(Arc::new(place(context)?));
    if let Some(instance) = wanted.asked.app_instance {
        app_instance::end_older(context, instance)?;
    }
    Ok(open(context, wanted))
}

/// Asks the file system to open or create.
fn open(context: &mut Context<'_>, mut wanted: Wanted) -> Progress<Step> {
    wanted.removals = context.server.files.removals();
    let plan = OpenPlan {
        share: context.tree.share.id,
        token: context.token(),
        path: wanted.path.clone(),
        access: wanted.access,
        implied_access: wanted.implied_access(),
        existing: wanted.existing(&context.tree),
        kind: wanted.kind(),
        attributes: wanted.attributes,
        allocation: wanted.asked.allocation,
        security: wanted.asked.security.clone(),
        open_link: wanted.options.contains(CreateOptions::OPEN_REPARSE_POINT),
        posix: wanted.asked.posix,
    };
    let step = Step::Opening(Box::new(wanted));
    context.wait(FileOp::Open(plan), step)
}

/// \[MS-SMB2\] 3.3.5.9 leaves the limits to the server.
fn place(context: &Context<'_>) -> Result<QuotaGuard, Status> {
    let limits = &context.config.limits;
    if context.session.opens.lock().len() >= limits.opens_per_session {
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    let opens = &context.session.origin.quotas.opens;
    let user = &context.session.user;
    opens.add_for(limits.opens_per_connection, user, Resource::Opens)
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        match self {
            Self::Opening(wanted) => match outcome.expect_file() {
                Ok(outcome) => ea::of_new(context, *wanted, outcome.expect_opened()),
                Err(Status::STOPPED_ON_SYMLINK) => Ok(reparse::find(context, *wanted)),
                Err(status) => {
                    context.report_denied(status, || {
                        let access = wanted.access | wanted.implied_access();
                        Vec::from([(wanted.path.clone(), NeededAccess::Open(access))])
                    });
                    Err(wanted.explain(status, &context.tree))
                }
            },
            Self::SettingEas(new) => ea::resume_new(context, *new, outcome),
            Self::Overwriting(mut entered) => match outcome.expect_file() {
                Ok(outcome) => {
                    entered.opened.metadata = outcome.expect_metadata();
                    entered.emptied(context);
                    ea::of_overwritten(context, *entered)
                }
                Err(status) => {
                    entered.withdraw(context);
                    Err(status)
                }
            },
            // Also where the file system cannot report changes.
            Self::Watching(entered) => {
                drop(outcome.expect_file());
                finish(context, &entered)
            }
            Self::Parked(wanted) => {
                outcome.expect_woken()?;
                Ok(open(context, *wanted))
            }
            Self::Reconnecting(attempt) => {
                outcome.expect_woken()?;
                attempt.run(context)
            }
            Self::Stopped(stop) => stop.answer(context, outcome).map(Progress::Done),
            Self::Replaying(replayed) => {
                let metadata = outcome.expect_file().map(file::Outcome::expect_metadata);
                replayed.answer(context, metadata)
            }
        }
    }
}

/// The file is open: may it stay so?
fn enter(
    context: &mut Context<'_>,
    mut wanted: Wanted,
    mut opened: Opened,
) -> Result<Progress<Step>, Status> {
    // Made on an earlier try.
    opened.created |= wanted.is_made;
    let granted = match admit::admit(&wanted, &opened, &context.tree) {
        Ok(granted) => granted | wanted.system_access,
        Err(status) => {
            admit::discard(context, &wanted, &opened);
            return Err(status);
        }
    };
    match oplock::enter(context, &wanted, &opened, granted) {
        Ok(Entry::Entered) => {}
        // The file may have no name any more: its data would be lost.
        Ok(Entry::Removed) => {
            context.run(FileOp::OnOpen(opened.file, Operation::Close));
            wanted.is_made = opened.created;
            return Ok(open(context, wanted));
        }
        Ok(Entry::Wait(parked)) => {
            context.run(FileOp::OnOpen(opened.file, Operation::Close));
            if wanted.must_not_wait(&context.header) {
                context.stop_waiting(&parked);
                return Err(Status::FILE_NOT_AVAILABLE);
            }
            wanted.is_made = opened.created;
            wanted.is_retry = true;
            let step = Step::Parked(Box::new(wanted));
            return Ok(Progress::Park(parked, step));
        }
        // The lease key belongs to another file.
        Err(Status::INVALID_PARAMETER) => {
            admit::discard(context, &wanted, &opened);
            return Err(Status::INVALID_PARAMETER);
        }
        Err(status) => {
            // Also where the file is new: another client opened it before we could say how it is
            // shared. It is that client's file now.
            context.run(FileOp::OnOpen(opened.file, Operation::Close));
            return Err(status);
        }
    }
    let must_overwrite = wanted.overwrites() && !opened.created;
    let entered = Entered {
        wanted,
        opened,
        granted,
    };
    if must_overwrite {
        return Ok(overwrite(context, entered));
    }
    if entered.wants_directory_lease(context) {
        let watch = Operation::Watch { is_tree: false };
        let operation = FileOp::OnOpen(entered.opened.file, watch);
        let step = Step::Watching(Box::new(entered));
        return Ok(context.wait(operation, step));
    }
    finish(context, &entered)
}

fn overwrite(context: &mut Context<'_>, entered: Entered) -> Progress<Step> {
    let operation = FileOp::OnOpen(
        entered.opened.file,
        Operation::Overwrite {
            attributes: entered.wanted.attributes,
            allocation: entered.wanted.asked.allocation,
        },
    );
    let step = Step::Overwriting(Box::new(entered));
    context.wait(operation, step)
}

impl Entered {
    /// Takes the open back: the request failed after all.
    fn withdraw(&self, context: &mut Context<'_>) {
        let key = self.opened.metadata.key;
        let close = context
            .server
            .files
            .withdraw(key, self.opened.file, context.break_deadline());
        context.finish_close(key, close);
    }

    /// The open, and its oplock or lease for the response.
    fn to_open(&self, context: &Context<'_>) -> (Open, Caching) {
        let id = context.server.new_file_id();
        let Granted {
            rights,
            lease,
            has_readers,
            locks,
        } = self.grant(context, id);
        let is_directory = self.opened.metadata.is_directory();
        let durable = self.wanted.asked.durable;
        let held = lease.map_or(rights, |lease| lease.lease_state);
        let state = OpenState {
            durability: durable.grant(context, held, is_directory),
            ..OpenState::default()
        };
        let quota = self.wanted.place.clone();
        let open = Open {
            id,
            attachment: Attachment::new(context.tree.id, context.is_encrypted, quota),
            share: context.tree.share.clone(),
            file: self.opened.file,
            key: self.opened.metadata.key,
            is_directory,
            is_posix: self.wanted.is_posix(),
            granted: self.granted,
            is_read_only: context.tree.is_read_only,
            options: self.wanted.options,
            has_readers,
            locks,
            position: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            is_modified: AtomicBool::new(false),
            kept_write_time: AtomicU64::new(0),
            mode: initial_mode(self.wanted.options),
            replay_entry: self.wanted.replay_entry.clone(),
            create_guid: durable.create_guid(),
            lock_charge: Mutex::new(context.session.user.none_of(Resource::Locks)),
            sequence: Mutex::default(),
            state: Mutex::new(state),
        };
        (open, Caching::new(rights, lease))
    }

    fn action(&self) -> CreateAction {
        match self.wanted.disposition {
            _ if self.opened.created => CreateAction::CREATED,
            CreateDisposition::SUPERSEDE => CreateAction::SUPERSEDED,
            _ if self.wanted.overwrites() => CreateAction::OVERWRITTEN,
            _ => CreateAction::OPENED,
        }
    }
}

/// The open is complete: into the session's table, and to the client.
fn finish(context: &mut Context<'_>, entered: &Entered) -> Result<Progress<Step>, Status> {
    // The client does not know the open and cannot replay the CREATE: the open would only keep
    // other channels of the session from the file.
    if context.is_lost && entered.wanted.replay_entry.is_none() {
        entered.withdraw(context);
        return Err(Status::CANCELLED);
    }
    let (open, caching) = entered.to_open(context);
    let open = Arc::new(open);
    if let Some(instance) = entered.wanted.asked.app_instance {
        enter_instance(context, instance, &open);
    }
    if let Err(status) = register(context, &open) {
        entered.withdraw(context);
        return Err(status);
    }
    *context.related_open = RelatedOpen::Open(open.id);
    report(context, entered, &open);
    context.audit_opened(&open, &entered.opened.path, entered.action());
    let known = CompletedCreate {
        session: context.session.id,
        file_id: open.id,
        action: entered.action(),
        maximal: entered.opened.maximal & context.tree.maximal_access,
    };
    open.replay_entry
        .iter()
        .for_each(|replay_entry| replay_entry.complete(known));
    let durability = open.state.lock().durability;
    let asked = &entered.wanted.asked;
    let metadata = &entered.opened.metadata;
    Ok(answer(asked, metadata, &known, (&caching, durability)))
}

/// Enters an open in the table of application instances.
fn enter_instance(context: &Context<'_>, instance: AppInstance, open: &Open) {
    let entry = context.server.app_instances.enter(
        instance.id,
        InstanceOpen {
            id: open.id,
            key: open.key,
            file: open.file,
            owner: open.owner(),
            client: context.session.origin.client_guid,
            version: instance.version,
        },
    );
    open.state.lock().app_instance = Some(entry);
}

/// The response: with the granted oplock level and durability.
fn answer(
    asked: &Asked,
    metadata: &Metadata,
    known: &CompletedCreate,
    (caching, durability): (&Caching, Durability),
) -> Progress<Step> {
    let mut answers = asked.answers(metadata, known.maximal, caching.lease.as_ref());
    answers.extend(asked.durable.answer(durability));
    let contexts: Vec<RawContext<'_>> = answers
        .iter()
        .map(|(name, data)| RawContext { name, data })
        .collect();
    let mut response = describe(metadata, known.file_id, known.action, contexts);
    response.oplock_level = caching.level;
    Progress::Done(Reply::message(|out| response.encode(out)))
}

/// Reports a new or truncated file to the watches.
fn report(context: &mut Context<'_>, entered: &Entered, open: &Open) {
    let (action, filter) = if entered.opened.created {
        (FileAction::ADDED, of_name(open))
    } else if entered.wanted.overwrites() {
        let filter =
            CompletionFilter::ATTRIBUTES | CompletionFilter::SIZE | CompletionFilter::LAST_WRITE;
        (FileAction::MODIFIED, filter)
    } else {
        return;
    };
    context.report_at(open, action, filter, &entered.opened.path);
}

/// Enters an open in its session's table. Fails if the session or tree has ended meanwhile. The end
/// of a session or tree removes it from its table first and closes its opens after that, so that
/// this check, that close, or both see the open.
fn register(context: &Context<'_>, open: &Arc<Open>) -> Result<(), Status> {
    let session = &context.session;
    let limit = context.config.limits.opens_per_session;
    let mut opens = session.opens.lock();
    if opens.len() >= limit {
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    opens.insert(open.id.volatile, open.clone());
    drop(opens);
    let is_there = session.trees.lock().contains_key(&open.tree());
    if !is_there && session.opens.lock().remove(&open.id.volatile).is_some() {
        return Err(Status::NETWORK_NAME_DELETED);
    }
    Ok(())
}

fn describe<'a>(
    metadata: &Metadata,
    file_id: FileId,
    create_action: CreateAction,
    contexts: Vec<RawContext<'a>>,
) -> Response<'a> {
    Response {
        oplock_level: OplockLevel::NONE,
        flags: ResponseFlags::NONE,
        create_action,
        creation_time: metadata.created,
        last_access_time: metadata.accessed,
        last_write_time: metadata.written,
        change_time: metadata.changed,
        allocation_size: metadata.allocation,
        end_of_file: metadata.size,
        file_attributes: wire_attributes(metadata),
        file_id,
        contexts,
    }
}

#[cfg(test)]
mod tests;
