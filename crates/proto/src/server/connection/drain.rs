//! The end of a tree, a session or a connection: no new request starts, running requests end, the
//! opens are closed, and then the request that ends the object continues. \[MS-SMB2\] 3.3.4.8,
//! 3.3.5.6, 3.3.5.8, 3.3.7.1

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::{Command, SessionId, Status, TreeId};

use super::Connection;
use super::task::TaskId;
use super::waits::Waiter;
use crate::audit::{Action, Event};
use crate::effect::{Effect, Effects, Outcome};
use crate::id::OpId;
use crate::notice::Notice;
use crate::server::audit;
use crate::server::close::{self, Abandoned};
use crate::server::config::Share;
use crate::server::notices::Notices;
use crate::server::open::Open;
use crate::server::session::Session;
use crate::time::Now;

/// Identifies a drain within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DrainId(u64);

/// The end of a tree, of a session, or of a session on this connection only.
#[derive(Debug)]
struct Drain {
    session: Arc<Session>,
    /// The tree; `None` for all opens of the session.
    tree: Option<TreeId>,
    stage: Stage,
    /// The request that continues afterwards.
    after: Option<TaskId>,
}

#[derive(Debug)]
enum Stage {
    /// Requests still act on it.
    Busy,
    /// This many operations close its opens.
    Closing(usize),
    /// Other channels of the session live, or have requests left: the last of them closes it.
    Left,
}

/// The drains of one connection.
#[derive(Debug, Default)]
pub(super) struct Drains {
    drains: BTreeMap<DrainId, Drain>,
    /// The operations that remove files, with the share and the event for the audit log.
    deletions: BTreeMap<OpId, (Arc<Share>, Box<Event>)>,
}

impl Drains {
    /// Whether nothing is being closed.
    pub(super) fn is_empty(&self) -> bool {
        self.drains.is_empty()
    }
}

impl Connection {
    /// Ends a session on all its channels; of an ended one, this connection leaves.
    pub(in crate::server) fn end_session(
        &mut self,
        now: Now,
        session: &Arc<Session>,
        effects: &mut Effects,
    ) {
        let notices = self.server.close_session(session).into_iter();
        let others = notices.filter(|(connection, _)| *connection != self.id);
        others.for_each(|(other, notice)| effects.push(Effect::Notify(other, notice)));
        self.leave_session(now, session.id, effects);
    }

    /// Handles the loss of the transport. A session continues on its other channels, where pending
    /// break notifications are sent again. \[MS-SMB2\] 3.3.7.1
    pub(super) fn lose_session(&mut self, now: Now, session: &Arc<Session>, effects: &mut Effects) {
        if session.channels.lose(self.id) {
            session.state.lock().leave_opens();
            self.server.refuse_requests(session);
        }
        self.resend_breaks(session, effects);
        self.leave_session(now, session.id, effects);
    }

    /// Ends the requests of this connection for a session.
    fn leave_session(&mut self, now: Now, id: SessionId, effects: &mut Effects) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        self.charges.remove(&id);
        self.cancel_waits(id, None, effects);
        if self.sessions.is_empty() && !self.is_over {
            let timeout = self.config.limits.login_timeout;
            self.logins.deadline = Some(now.instant.after(timeout));
        }
        self.start_drain(session, None, None);
    }

    /// Closes the opens of a tree that was removed from its session's table. Then the request
    /// `after` continues.
    pub(in crate::server) fn close_tree(
        &mut self,
        session: Arc<Session>,
        tree: TreeId,
        after: Option<TaskId>,
        effects: &mut Effects,
    ) {
        self.cancel_waits(session.id, Some(tree), effects);
        self.start_drain(session, Some(tree), after);
    }

    fn start_drain(&mut self, session: Arc<Session>, tree: Option<TreeId>, after: Option<TaskId>) {
        let id = DrainId(self.number());
        let drain = Drain {
            session,
            tree,
            stage: Stage::Busy,
            after,
        };
        self.drains.drains.insert(id, drain);
    }

    /// Advances each drain. Returns whether one ended, because others may then advance further.
    pub(super) fn advance_drains(&mut self, now: Now, effects: &mut Effects) -> bool {
        let ids: Vec<DrainId> = self.drains.drains.keys().copied().collect();
        let mut has_ended = false;
        for id in ids {
            self.end_parked(now, id, effects);
            self.close_opens(now, id, effects);
            let is_done = |drain: &Drain| matches!(drain.stage, Stage::Closing(0) | Stage::Left);
            if self.drains.drains.get(&id).is_some_and(is_done) {
                let drain = self.drains.drains.remove(&id).expect("it was just seen");
                self.go_on(now, &drain, effects);
                has_ended = true;
            }
        }
        has_ended
    }

    /// An operation that closes something is done.
    pub(super) fn drained_one(
        &mut self,
        id: DrainId,
        (op, outcome): (OpId, Outcome),
        effects: &mut Effects,
    ) {
        if let Some((share, event)) = self.drains.deletions.remove(&op) {
            let removal = outcome.expect_file().map(drop);
            audit::removed(Some(event), &share, removal, effects);
        }
        let drain = self.drains.drains.get_mut(&id);
        if let Some(Stage::Closing(left)) = drain.map(|drain| &mut drain.stage) {
            *left -= 1;
        }
    }

    /// Closes the opens, if no request acts on them any more.
    fn close_opens(&mut self, now: Now, id: DrainId, effects: &mut Effects) {
        let Some(drain) = self.drains.drains.get(&id) else {
            return;
        };
        let (session, tree) = (drain.session.clone(), drain.tree);
        if !matches!(drain.stage, Stage::Busy) || self.is_busy(session.id, tree) {
            return;
        }
        if tree.is_none() && !session.channels.leave(self.id) {
            let drain = self.drains.drains.get_mut(&id).expect("it was just seen");
            drain.stage = Stage::Left;
            return;
        }
        end_pipes(&session, tree, effects);
        let may_outlive = tree.is_none() && session.state.lock().leaves_opens;
        let mut count = 0;
        for open in opens(&session, tree) {
            // Before it leaves the table, so that a reconnect finds it in one of both.
            let is_kept = may_outlive && self.server.keep(now, &session, &open, effects);
            let taken = session.opens.lock().remove(&open.id.volatile);
            if is_kept || taken.is_none() {
                continue;
            }
            let closed = (&*open, &*session);
            let abandoned = close::abandon(&self.server, now, closed, self.waits.op_ids(), effects);
            let Abandoned { ops, deletion } = abandoned;
            count += ops.len();
            if let Some((op, event)) = deletion {
                self.drains
                    .deletions
                    .insert(op, (open.share.clone(), event));
            }
            for op in ops {
                self.waits.insert(op, Waiter::Drain(id));
            }
        }
        let drain = self.drains.drains.get_mut(&id).expect("it was just seen");
        drain.stage = Stage::Closing(count);
    }

    /// Cancels requests that wait for an oplock break: an ending object does not wait for it.
    fn end_parked(&mut self, now: Now, id: DrainId, effects: &mut Effects) {
        let Some(drain) = self.drains.drains.get(&id) else {
            return;
        };
        let (session, tree) = (drain.session.id, drain.tree);
        while let Some(op) = self.parked_on(session, tree) {
            // The members behind it find neither session nor tree, and wait for nothing.
            self.unpark(now, op, Outcome::Failed(Status::CANCELLED), effects);
        }
    }

    /// A parked request that acts on a session, and on this tree if one is given.
    fn parked_on(&self, session: SessionId, tree: Option<TreeId>) -> Option<OpId> {
        self.tasks.acting_on(session, tree).find_map(|task| {
            let op = task.current.as_ref().and_then(|pending| pending.op);
            op.filter(|op| self.waits.is_parked(*op))
        })
    }

    fn is_busy(&self, session: SessionId, tree: Option<TreeId>) -> bool {
        self.tasks.acting_on(session, tree).next().is_some()
    }

    fn go_on(&mut self, now: Now, drain: &Drain, effects: &mut Effects) {
        if let Some(task) = drain.after {
            self.resume(now, task, Outcome::Woken, effects);
        }
        if drain.tree.is_some() || matches!(drain.stage, Stage::Left) {
            return;
        }
        let id = drain.session.id;
        if self.server.settings().audit {
            let account = drain.session.state.lock().account.clone();
            let event = Event::new(Some(id), &account, Action::LogOff);
            effects.push(Effect::Audit(Box::new(event)));
        }
        let mut notices = Notices::new();
        self.server.disconnected.lock().finish(id, &mut notices);
        self.server.post(notices, effects);
        for waiting in drain.session.channels.gone() {
            if waiting == self.id {
                self.session_gone(now, id, effects);
            } else {
                effects.push(Effect::Notify(waiting, Notice::OpensClosed(id)));
            }
        }
    }

    /// Cancels requests that could wait forever. Pending reads and writes complete.
    fn cancel_waits(&self, session: SessionId, tree: Option<TreeId>, effects: &mut Effects) {
        let acting = self.tasks.acting_on(session, tree);
        for pending in acting.filter_map(|task| task.current.as_ref()) {
            let command = pending.request.header.command;
            if let (Command::CHANGE_NOTIFY | Command::LOCK, Some(op)) = (command, pending.op) {
                effects.push(Effect::Cancel(op));
            }
        }
    }
}

/// Closes the pipes of a session, or of one tree. Requests that still wait for a pipe are those
/// of other channels.
fn end_pipes(session: &Session, tree: Option<TreeId>, effects: &mut Effects) {
    let mut notices = Vec::new();
    session.pipes.lock().retain(|_, pipe| {
        let is_meant = tree.is_none_or(|tree| pipe.tree == tree);
        if is_meant {
            notices.extend(pipe.end());
        }
        !is_meant
    });
    let notices = notices.into_iter();
    notices.for_each(|(to, notice)| effects.push(Effect::Notify(to, notice)));
}

/// The opens of a session, or of one tree.
fn opens(session: &Session, tree: Option<TreeId>) -> Vec<Arc<Open>> {
    let opens = session.opens.lock();
    let is_meant = |open: &&Arc<Open>| tree.is_none_or(|tree| open.tree() == tree);
    opens.values().filter(is_meant).cloned().collect()
}
