//! Breaks of oplocks and leases. \[MS-SMB2\] 3.2.5.19

use wire::access::OplockLevel;
use wire::create_context::LeaseState;
use wire::oplock_break::{LeaseBreakFlags, LeaseBreakNotification, Notification, OplockBreak};
use wire::{Command, FileId, create};

use super::caching::{Caching, Early};
use super::connection::Connection;
use super::effect::{Effect, Effects, LeaseBreak};
use super::flight::Pending;
use super::message::Message;
use super::request::{Failure, FileRef, Reply, Request, Step};
use super::session::Session;
use super::violation::Violation;

/// Updates the caching state after the response to a step. Returns the acknowledgment of a break
/// that arrived before.
pub(super) fn learn(
    session: &Session,
    request: &Request,
    index: usize,
    results: &[Option<Result<Reply, Failure>>],
    reply: &Reply,
) -> Option<Step> {
    match (&request.steps[index], reply) {
        (Step::Create(create), Reply::Created(created)) => {
            if created.oplock == OplockLevel::NONE {
                return None;
            }
            let is_lease = created.oplock == OplockLevel::LEASE;
            let caching = Caching {
                tree: request.tree,
                encrypt: request.encrypt,
                level: created.oplock,
                lease: create.lease.map(|lease| lease.key).filter(|_| is_lease),
                driver_acknowledges: create.driver_acknowledges,
            };
            session.caching.lock().insert(created.file_id, caching)
        }
        (Step::Close { file, .. }, _) => {
            let id = resolve(*file, &results[..index])?;
            session.caching.lock().opens.remove(&id);
            None
        }
        _ => None,
    }
}

/// The file of a step.
fn resolve(file: FileRef, before: &[Option<Result<Reply, Failure>>]) -> Option<FileId> {
    match file {
        FileRef::Id(id) => Some(id),
        FileRef::Previous => before
            .iter()
            .rev()
            .flatten()
            .find_map(|result| match result {
                Ok(Reply::Created(created)) => Some(created.file_id),
                _ => None,
            }),
    }
}

impl Connection {
    /// Handles an unsolicited message. It is not signed. The break of an oplock is encrypted in an
    /// encrypted session. A lease belongs to the client and not to a session: smbd (4.25) sends its
    /// break with SessionId 0 and without encryption. \[MS-SMB2\] 3.2.5.19, 3.3.4.6, 3.3.4.7
    pub(super) fn take_break(
        &mut self,
        message: &Message<'_>,
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let header = &message.header;
        if header.command != Command::OPLOCK_BREAK {
            return Err(Violation::UnknownMessageId(header.message_id));
        }
        let Some(session) = self.session.clone() else {
            return Err(Violation::UnknownMessageId(header.message_id));
        };
        let notification = Notification::decode(message.bytes).map_err(Violation::Malformed)?;
        if !message.is_encrypted {
            if session.encrypt && matches!(notification, Notification::Oplock(_)) {
                return Err(Violation::NotEncrypted(session.id));
            }
            self.check_signature(message, false)?;
        }
        match notification {
            Notification::Oplock(oplock) => self.break_oplock(&session, oplock, effects),
            Notification::Lease(lease) => self.break_lease(&session, &lease, effects),
        }
        Ok(())
    }

    fn break_oplock(
        &mut self,
        session: &Session,
        notification: OplockBreak,
        effects: &mut Effects,
    ) {
        let OplockBreak {
            oplock_level: level,
            file_id,
        } = notification;
        let known = {
            let mut table = session.caching.lock();
            let known = table.opens.get_mut(&file_id).map(|caching| {
                let before = *caching;
                caching.level = level;
                before
            });
            if known.is_none() {
                table.keep_early(Early::Oplock(file_id, level));
            }
            known
        };
        effects.push(Effect::OplockBreak { file_id, level });
        // A break from level II is not acknowledged. [MS-SMB2] 3.2.5.19.1
        let due = known.filter(|caching| caching.level != OplockLevel::II);
        if let Some(caching) = due.filter(|caching| !caching.driver_acknowledges) {
            let step = Step::AcknowledgeOplock {
                file: file_id,
                level,
            };
            self.send_own(step, caching.tree, caching.encrypt, effects);
        }
    }

    fn break_lease(
        &mut self,
        session: &Session,
        notification: &LeaseBreakNotification,
        effects: &mut Effects,
    ) {
        let (key, LeaseState(state)) = (notification.lease_key, notification.new_lease_state);
        let is_due = notification.flags.contains(LeaseBreakFlags::ACK_REQUIRED);
        let holder = {
            let mut table = session.caching.lock();
            let holder = table.opens.values().find(|c| c.lease == Some(key)).copied();
            if holder.is_none() && is_due {
                table.keep_early(Early::Lease(key, state));
            }
            holder
        };
        effects.push(Effect::LeaseBreak(LeaseBreak {
            key,
            state,
            epoch: notification.new_epoch,
            must_be_acknowledged: is_due,
        }));
        let holder = holder.filter(|holder| is_due && !holder.driver_acknowledges);
        if let Some(Caching { tree, encrypt, .. }) = holder {
            self.send_own(
                Step::AcknowledgeLease { key, state },
                tree,
                encrypt,
                effects,
            );
        }
    }

    /// Undoes the effect of a request that timed out: closes its open or disconnects its tree.
    pub(super) fn undo(
        &mut self,
        message: &Message<'_>,
        pending: &Pending,
        encrypt: bool,
        effects: &mut Effects,
    ) {
        if message.header.status != wire::Status::SUCCESS {
            return;
        }
        match message.header.command {
            Command::CREATE => {
                let Ok(opened) = create::Response::decode(message.bytes) else {
                    return;
                };
                let file = FileRef::Id(opened.file_id);
                let step = Step::Close { file, query: false };
                self.send_own(step, pending.tree, encrypt, effects);
            }
            Command::TREE_CONNECT => {
                let tree = message.header.tree_id();
                self.send_own(Step::TreeDisconnect, tree, encrypt, effects);
            }
            _ => {}
        }
    }
}
