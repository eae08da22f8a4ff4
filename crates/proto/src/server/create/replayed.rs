//! A replayed CREATE after the client lost the response with a channel: it returns the open of the
//! first try.
//! \[MS-SMB2\] 3.3.5.9.10

use alloc::boxed::Box;
use alloc::sync::Arc;

use wire::access::OplockLevel;
use wire::dialect::Dialect;
use wire::{Flags, Status};

use super::contexts::Asked;
use super::wanted::Wanted;
use super::{Caching, Step, answer, reconnect};
use crate::file::{FileOp, Metadata, Operation};
use crate::server::close;
use crate::server::context::{Context, Progress, RelatedOpen};
use crate::server::durability::{Durability, is_enough_level};
use crate::server::fsa::caching::{HolderId, of_oplock};
use crate::server::notices::Notices;
use crate::server::open::Open;
use crate::server::replay::{Attempt, CompletedCreate, Found};

/// An open that exists already, and the response that the client receives.
pub(crate) struct Replayed {
    pub(super) open: Arc<Open>,
    pub(super) known: CompletedCreate,
    pub(super) asked: Asked,
    /// The oplock level that a replay requests; `None` for a reconnect, which ignores it.
    pub(super) level: Option<OplockLevel>,
}

/// Looks a CREATE up by the name that its client gave it, and takes the name if it is new.
pub(super) fn begin(
    context: &mut Context<'_>,
    wanted: &mut Wanted,
) -> Result<Option<Progress<Step>>, Status> {
    let named = wanted.asked.durable.create_guid();
    let Some(create_guid) = named.filter(|_| context.dialect >= Dialect::SMB_3_0) else {
        return Ok(None);
    };
    let key = (context.session.origin.client_guid, create_guid);
    let attempt = Attempt {
        session: context.session.id,
        sequence: context.channel_sequence(),
        is_replay: context.header.flags.contains(Flags::REPLAY_OPERATION),
    };
    let known = match context.server.replays.begin(key, attempt)? {
        Found::Nothing(replay_entry) => {
            wanted.replay_entry = Some(Arc::new(replay_entry));
            return Ok(None);
        }
        Found::Open(known) => known,
    };
    let opens = context.session.opens.lock();
    let open = opens.get(&known.file_id.volatile).cloned();
    drop(opens);
    // It was closed a moment ago, or the tree is another one: the client mixes up its names. Or
    // the open has lost its session: then the replay reconnects to it.
    let open = match open {
        Some(open) if open.tree() == context.tree.id => {
            check_lease(context, wanted, &open)?;
            open
        }
        Some(_) => return Err(Status::DUPLICATE_OBJECTID),
        None => reconnect::by_replay(context, &known, wanted)?,
    };
    let replayed = Replayed {
        open,
        known,
        asked: wanted.asked.clone(),
        level: Some(wanted.oplock),
    };
    // The first try is an event.
    *context.audit = None;
    Ok(Some(replayed.stat(context)))
}

/// A replay with a lease has that of the first try. smbtorture
/// smb2.replay.replay-dhv2-oplock-lease, replay-dhv2-lease3
pub(super) fn check_lease(
    context: &Context<'_>,
    wanted: &Wanted,
    open: &Open,
) -> Result<(), Status> {
    let Some(lease) = wanted.lease() else {
        return Ok(());
    };
    let holder = context.server.files.holder(open.key, open.file);
    let held = holder.and_then(HolderId::lease);
    match held.is_some_and(|held| held.key == lease.lease_key) {
        true => Ok(()),
        false => Err(Status::ACCESS_DENIED),
    }
}

impl Replayed {
    /// Reads the metadata for the response.
    pub(super) fn stat(self, context: &mut Context<'_>) -> Progress<Step> {
        let operation = FileOp::OnOpen(self.open.file, Operation::Stat);
        context.wait(operation, Step::Replaying(Box::new(self)))
    }

    /// The answer of the first try, or of a reconnect, as things are now.
    pub(super) fn answer(
        &self,
        context: &mut Context<'_>,
        metadata: Result<Metadata, Status>,
    ) -> Result<Progress<Step>, Status> {
        let metadata = match metadata {
            Ok(metadata) if metadata.links == 0 && self.is_lost(context) => {
                self.give_back(context, false);
                return Err(Status::OBJECT_NAME_NOT_FOUND);
            }
            Ok(metadata) => metadata,
            Err(status) => {
                if self.is_reconnect() {
                    self.give_back(context, true);
                }
                return Err(status);
            }
        };
        let Self {
            open, known, asked, ..
        } = self;
        let mut notices = Notices::new();
        let (rights, lease) = context
            .server
            .files
            .settle(open.key, open.file, &mut notices);
        open.state.lock().notified_on = None;
        context.post(notices);
        *context.related_open = RelatedOpen::Open(open.id);
        let granted = match self.level {
            _ if lease.is_some() => (Caching::new(rights, lease), self.durability()),
            None => (Caching::new(rights, None), Durability::None),
            // Windows and Samba tell the level that the replay requests. It is never more than the
            // open has. smbtorture smb2.replay.replay-dhv2-oplock2
            Some(level) => {
                let durability = Some(self.durability()).filter(|_| is_enough_level(level));
                let caching = Caching::new(rights & of_oplock(level), None);
                (caching, durability.unwrap_or_default())
            }
        };
        Ok(answer(asked, &metadata, known, (&granted.0, granted.1)))
    }

    /// Whether a reconnect to a file without a name fails: if a local program has deleted the file.
    /// Samba refuses every such reconnect. But a file that a client has deleted with POSIX
    /// semantics, or replaced, stays usable for its opens, as in Unix.
    fn is_lost(&self, context: &Context<'_>) -> bool {
        let open = &self.open;
        let is_deleted = context.server.files.is_delete_pending(open.key, open.file);
        self.is_reconnect() && !open.is_posix && !is_deleted
    }

    /// The durability that the response to a replay reports. A reconnect reports none.
    fn durability(&self) -> Durability {
        match self.is_reconnect() {
            true => Durability::None,
            false => self.open.state.lock().durability,
        }
    }

    fn is_reconnect(&self) -> bool {
        self.level.is_none()
    }

    /// The client does not receive the open: it waits for another reconnect, if `may_wait`, or
    /// closes.
    fn give_back(&self, context: &mut Context<'_>, may_wait: bool) {
        let taken = context.session.opens.lock().remove(&self.open.id.volatile);
        let Some(open) = taken else {
            return;
        };
        let (server, session) = (context.server, &*context.session);
        let (now, effects) = (context.now, &mut *context.effects);
        if !may_wait || !server.keep(now, session, &open, effects) {
            let closed = (&*open, session);
            let abandoned = close::abandon(server, now, closed, context.op_ids, effects);
            abandoned.detach(&open, effects);
        }
    }
}
