//! A CREATE that reconnects to a durable open of a lost session. \[MS-SMB2\] 3.3.5.9.7, 3.3.5.9.12
//!
//! Apart from the durable context and the lease, the server ignores the parameters of such a
//! request, as Windows and Samba do: smbtorture smb2.durable-open.reopen2.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use wire::access::AccessMask;
use wire::create::{CreateAction, Request};
use wire::create_context::{Lease, find, name};
use wire::upcase::is_same_name;
use wire::{FileId, Guid, SessionId, Status};

use super::contexts::Asked;
use super::durable::Reconnect;
use super::replayed::{Replayed, check_lease};
use super::wanted::Wanted;
use super::{Step, place, register};
use crate::file::FileKey;
use crate::path::SharePath;
use crate::server::close;
use crate::server::context::{Context, Parked, Progress};
use crate::server::fsa::caching::{BreakTarget, HolderId, LeaseId};
use crate::server::notices::Waiter;
use crate::server::open::{Attachment, Open, malformed};
use crate::server::replay::CompletedCreate;
use crate::time::Instant;

/// A reconnect and what the server checks of its request.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    reconnect: Reconnect,
    /// LeaseKey of the lease context.
    lease_key: Option<Guid>,
    /// The name in the request, and the same name in a POSIX open.
    path: Result<SharePath, Status>,
    posix_path: Result<SharePath, Status>,
    /// When the wait for the former session of the open ends.
    deadline: Instant,
}

/// An open that its former session still has.
#[derive(Clone, Copy, Debug)]
struct Attached {
    session: SessionId,
    /// The file of the open.
    key: FileKey,
    /// The end of the wait for the session.
    until: Option<Instant>,
}

/// Maximum time that a reconnect waits for the end of the connection that has the open. A client
/// that lost its connection may come again before the server notices the loss: the last messages
/// of the connection are still on their way. Then the open has a session, and the response is
/// OBJECT_NAME_NOT_FOUND (\[MS-SMB2\] 3.3.5.9.7, 3.3.5.9.12), with Windows and Samba at once. A
/// client gives the open up after this response, so the server takes some time for it. A client
/// that names its previous session in SESSION_SETUP ends the session there, and does not wait here.
const OLD_CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Starts on a request that reconnects.
pub(super) fn begin(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reconnect: Reconnect,
) -> Result<Progress<Step>, Status> {
    let attempt = Attempt {
        reconnect,
        lease_key: lease_key(request)?,
        path: SharePath::from_wire(request.name),
        posix_path: SharePath::from_posix_wire(request.name),
        deadline: context.now.instant.after(OLD_CONNECTION_TIMEOUT),
    };
    attempt.run(context)
}

impl Attempt {
    /// Reconnects to the open: it moves to the session of the request. Waits until its former
    /// session has ended and no request of that session acts on it.
    pub(super) fn run(self, context: &mut Context<'_>) -> Result<Progress<Step>, Status> {
        let file_id = self.reconnect.file_id;
        if let Some(parked) = self.wait_for_session(context) {
            return Ok(Progress::Park(parked, Step::Reconnecting(Box::new(self))));
        }
        let open = find_open(context, file_id)?;
        let create_guid = open.create_guid.unwrap_or_default();
        // An open of version 1 has a CreateGuid of zero: smbtorture
        // smb2.durable-open.reopen2-lease, smb2.durable-v2-open.reopen2c.
        let requested = self.reconnect.create_guid;
        if requested.is_some_and(|guid| guid != create_guid) {
            return Err(Status::OBJECT_NAME_NOT_FOUND);
        }
        self.check_lease(context, &open)?;
        check_owner(context, &open)?;
        reclaim(context, &open)?;
        let known = CompletedCreate {
            session: context.session.id,
            file_id: open.id,
            action: CreateAction::OPENED,
            maximal: AccessMask::NONE,
        };
        // The client has received the answer to the CREATE.
        open.replay_entry.iter().for_each(|entry| entry.mark_used());
        let replayed = Replayed {
            open,
            known,
            asked: Asked::default(),
            level: None,
        };
        Ok(replayed.stat(context))
    }

    /// Waits for the former session of the open, if it still has the open: without a limit if the
    /// session ends, and up to the deadline if the server does not know yet that it is lost.
    fn wait_for_session(&self, context: &mut Context<'_>) -> Option<Parked> {
        let Attached {
            session,
            key,
            until,
        } = self.find_attached(context)?;
        let waiter = Waiter {
            connection: context.connection,
            op: context.op(),
        };
        if !context.server.disconnected.lock().wait(session, waiter) {
            return None;
        }
        // The session may have ended meanwhile. If it has the open now, its end wakes the waiter.
        let attached = self.find_attached(context);
        if attached.is_none_or(|attached| attached.session != session) {
            context.server.disconnected.lock().forget(waiter);
            return None;
        }
        Some(Parked {
            op: waiter.op,
            key,
            until,
            is_limited: true,
        })
    }

    /// The file of the open, if its former session still has it, and the end of the wait for that
    /// session.
    fn find_attached(&self, context: &Context<'_>) -> Option<Attached> {
        let file_id = self.reconnect.file_id;
        let may_wait = context.now.instant < self.deadline;
        find_ending(context, file_id).or_else(|| {
            let connected = may_wait.then(|| find_connected(context, file_id))??;
            Some(Attached {
                until: Some(self.deadline),
                ..connected
            })
        })
    }

    /// \[MS-SMB2\] 3.3.5.9.7: the open and the request have the same lease or none, and a lease
    /// belongs to a client and a file. smbtorture smb2.durable-open.reopen2-lease, reopen1a-lease
    fn check_lease(&self, context: &Context<'_>, open: &Open) -> Result<(), Status> {
        let files = &context.server.files;
        let held = files.holder(open.key, open.file).and_then(HolderId::lease);
        let client = context.session.origin.client_guid;
        if held != self.lease_key.map(|key| LeaseId { client, key }) {
            return Err(Status::OBJECT_NAME_NOT_FOUND);
        }
        if self.lease_key.is_none() {
            return Ok(());
        }
        // The open stays one of the SMB3 POSIX extensions, without their context in the request.
        let path = match open.is_posix {
            true => &self.posix_path,
            false => &self.path,
        };
        let path = path.as_ref().map_err(|status| *status)?;
        let is_same = |at: SharePath| match open.is_posix {
            true => at == *path,
            false => is_same_name(at.as_str(), path.as_str()),
        };
        match files.path(open.key, open.file).is_some_and(is_same) {
            true => Ok(()),
            false => Err(Status::INVALID_PARAMETER),
        }
    }
}

/// Reconnects to the open of a replayed CREATE. smbtorture smb2.replay.durable-reconnect-replay1;
/// of an open that is not disconnected, the name is taken: durable-reconnect-replay2.
pub(super) fn by_replay(
    context: &mut Context<'_>,
    known: &CompletedCreate,
    wanted: &Wanted,
) -> Result<Arc<Open>, Status> {
    if find_ending(context, known.file_id).is_some() {
        return Err(Status::FILE_NOT_AVAILABLE);
    }
    let taken = Status::DUPLICATE_OBJECTID;
    let open = find_open(context, known.file_id).map_err(|_| taken)?;
    check_lease(context, wanted, &open)?;
    check_owner(context, &open)?;
    reclaim(context, &open)?;
    Ok(open)
}

/// An open that is not disconnected yet although its session has ended, because requests still act
/// on opens of the session.
fn find_ending(context: &Context<'_>, file_id: FileId) -> Option<Attached> {
    let ending = context.server.disconnected.lock().ending();
    ending.iter().find_map(|session| {
        let opens = session.opens.lock();
        let open = opens.get(&file_id.volatile);
        let open = open.filter(|open| open.id == file_id)?;
        Some(Attached {
            session: session.id,
            key: open.key,
            until: None,
        })
    })
}

/// A durable open of another session of the client, by the same user and on another connection: the
/// client has perhaps lost that connection.
fn find_connected(context: &Context<'_>, file_id: FileId) -> Option<Attached> {
    let own = &context.session;
    let client = own.origin.client_guid;
    let sessions = context.server.sessions.lock();
    let of_client: Vec<_> = sessions.of_client(client).cloned().collect();
    drop(sessions);
    of_client.iter().find_map(|session| {
        let is_same_user = Arc::ptr_eq(&session.user, &own.user);
        if !is_same_user || session.channels.has(context.connection) {
            return None;
        }
        let opens = session.opens.lock();
        let open = opens.get(&file_id.volatile)?;
        let is_lasting = open.state.lock().durability.is_lasting();
        (open.id == file_id && is_lasting).then_some(Attached {
            session: session.id,
            key: open.key,
            until: None,
        })
    })
}

/// The disconnected open with a persistent id. One that is connected is not found: smbtorture
/// smb2.durable-open.reopen1. Neither is one of a tree connect for writing in one for reading: the
/// user may have lost the rights since the CREATE, or has logged in with a password for reading.
fn find_open(context: &Context<'_>, file_id: FileId) -> Result<Arc<Open>, Status> {
    let now = context.now.instant;
    let disconnected = context.server.disconnected.lock();
    let found = disconnected.find(file_id.persistent, now);
    drop(disconnected);
    found
        .filter(|open| open.share.id == context.tree.share.id)
        .filter(|open| open.is_read_only || !context.tree.is_read_only)
        .ok_or(Status::OBJECT_NAME_NOT_FOUND)
}

fn lease_key(request: &Request<'_>) -> Result<Option<Guid>, Status> {
    let Some(data) = find(&request.contexts, name::LEASE) else {
        return Ok(None);
    };
    let lease = Lease::decode(data).map_err(malformed)?;
    Ok(Some(lease.lease_key))
}

/// Open.DurableOwner: an open belongs to the user that made it. smbtorture
/// smb2.durable-open.reopen6
fn check_owner(context: &Context<'_>, open: &Open) -> Result<(), Status> {
    let is_owner = Arc::ptr_eq(&open.owner(), &context.session.user);
    match is_owner && context.session.state.lock().is_named() {
        true => Ok(()),
        false => Err(Status::ACCESS_DENIED),
    }
}

/// Moves a disconnected open to the session of the request. Fails if another request was faster, or
/// the open was given up.
fn reclaim(context: &mut Context<'_>, open: &Arc<Open>) -> Result<(), Status> {
    let quota = Arc::new(place(context)?);
    let now = context.now.instant;
    let server = context.server;
    let taken = server.disconnected.lock().reclaim(open.id.persistent, now);
    taken.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    let target = BreakTarget {
        connection: context.connection,
        session: context.session.id,
        file_id: open.id,
    };
    server.files.retarget(open.key, open.file, &target);
    let attachment = Attachment::new(context.tree.id, context.is_encrypted, Some(quota));
    open.attachment.replace(attachment);
    open.sequence.lock().restart(context.channel_sequence());
    if let Some(entry) = &open.replay_entry {
        entry.move_to(context.session.id);
    }
    let registered = register(context, open);
    if registered.is_err() {
        // The session has ended meanwhile. The client may try again.
        let (session, effects) = (&*context.session, &mut *context.effects);
        if !server.keep(context.now, session, open, effects) {
            let closed = (&**open, session);
            let abandoned = close::abandon(server, context.now, closed, context.op_ids, effects);
            abandoned.detach(open, effects);
        }
    }
    registered
}
