//! Breaks of oplocks and leases: notifications to the clients that hold them, and the requests that
//! wait. \[MS-SMB2\] 3.3.4.6, 3.3.6.1

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::header::{HEADER_LEN, Target};
use wire::oplock_break::{LeaseBreakFlags, LeaseBreakNotification, Notification, OplockBreak};
use wire::{Command, Flags, Header, MessageId, SessionId, Status, TreeId};

use super::Connection;
use super::task::{Task, TaskId};
use crate::effect::{Effect, Effects, OutMessage, Outbound, Outcome};
use crate::id::OpId;
use crate::notice::{CachingBreak, Notice};
use crate::server::fsa::caching::oplock_level;
use crate::server::notices::{Notices, Waiter};
use crate::server::open::Open;
use crate::server::session::Session;
use crate::time::Now;

/// The breaks of which clients have not been notified yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct UnsentBreaks {
    breaks: Vec<CachingBreak>,
    /// Whether the connection has ever been asked to send the break of a lease: the open can be one
    /// of another session.
    were_of_leases: bool,
}

impl UnsentBreaks {
    /// Adds a break. The connection sends it at the end of the call.
    pub(super) fn push(&mut self, unsent: CachingBreak) {
        self.were_of_leases |= unsent.lease.is_some();
        self.breaks.push(unsent);
    }

    /// Forgets all breaks: the connection has closed, and another channel sends them.
    pub(super) fn clear(&mut self) {
        self.breaks.clear();
    }
}

impl Connection {
    /// Sends break notifications to clients. Before it, sends the answers to CREATEs that waiting
    /// members of their compound hold back: the client does not know the opens yet. Waits for those
    /// members that need no other client.
    pub(super) fn send_breaks(&mut self, effects: &mut Effects) {
        if self.unsent_breaks.breaks.is_empty() {
            return;
        }
        for id in self.tasks.hiding_opens() {
            self.send_held_answers(id, effects);
        }
        if self.tasks.iter().any(Task::hides_an_open) {
            return;
        }
        for unsent in core::mem::take(&mut self.unsent_breaks.breaks) {
            self.send_break(unsent, effects);
        }
    }

    fn send_held_answers(&mut self, id: TaskId, effects: &mut Effects) {
        let Some(mut task) = self.tasks.remove(id) else {
            return;
        };
        let op = task.current.as_ref().and_then(|pending| pending.op);
        if op.is_some_and(|op| self.waits.is_parked(op)) {
            self.send(&mut task, effects);
        }
        self.tasks.insert(task);
    }

    /// \[MS-SMB2\] 3.3.4.6, 3.3.4.7: never signed. An oplock of an open that is closed meanwhile
    /// needs no notification; a lease may have other opens.
    fn send_break(&mut self, unsent: CachingBreak, effects: &mut Effects) {
        let Some(session) = self.find_session(unsent.session) else {
            // The connection lost the session, but another may carry it.
            let notices = Notices::from([(self.id, Notice::BreakCaching(unsent))]);
            self.server.post(notices, effects);
            return;
        };
        let open = session.opens.lock().get(&unsent.file_id.volatile).cloned();
        if self.is_over || (open.is_none() && unsent.lease.is_none()) {
            return;
        }
        let mut head = Vec::with_capacity(HEADER_LEN + 44);
        notification_header().encode(&mut head);
        notification(&unsent).encode(&mut head);
        let message = OutMessage {
            head,
            payload: None,
            padding: 0,
            sign: None,
            answers: None,
        };
        // Another channel of the session may use a transport that does not encrypt.
        let is_encrypted = open.is_some_and(|open| open.is_encrypted())
            || self.must_encrypt(session.state.lock().encrypt);
        let encryption = is_encrypted.then(|| session.encryption()).flatten();
        effects.push(Effect::Send(Outbound {
            messages: Vec::from([message]),
            encryption,
            invalidate: None,
        }));
    }

    /// Sends the break notifications of a lost channel again on another channel: of the session, or
    /// of another session of the client for a lease. The client may receive a notification twice,
    /// which does no harm. \[MS-SMB2\] 3.3.4.6, 3.3.4.7
    pub(super) fn resend_breaks(&self, session: &Arc<Session>, effects: &mut Effects) {
        let mut sessions = Vec::from([session.clone()]);
        if self.unsent_breaks.were_of_leases {
            let table = self.server.sessions.lock();
            let of_client = table.of_client(session.origin.client_guid);
            sessions.extend(of_client.filter(|other| other.id != session.id).cloned());
        }
        let files = &self.server.files;
        let mut notices = Notices::new();
        for session in sessions {
            let opens: Vec<Arc<Open>> = session.opens.lock().values().cloned().collect();
            let notified_here = |open: &&Arc<Open>| open.state.lock().notified_on == Some(self.id);
            let opens = opens.iter().filter(notified_here);
            notices.extend(opens.filter_map(|open| files.last_notification(open.key, open.file)));
        }
        self.server.post(notices, effects);
    }

    /// Continues a request that waits for another client, if it still waits.
    pub(super) fn unpark(&mut self, now: Now, op: OpId, outcome: Outcome, effects: &mut Effects) {
        let Some((parked, task)) = self.waits.unpark(op) else {
            return;
        };
        let waiter = Waiter {
            connection: self.id,
            op,
        };
        match parked.is_limited {
            true => self.server.disconnected.lock().forget(waiter),
            false => self.server.files.forget_waiter(parked.key, waiter),
        }
        self.resume(now, task, outcome, effects);
    }

    /// Ends the breaks that have reached their time limit. Notices wake the waiting requests.
    /// \[MS-SMB2\] 3.3.6.1
    pub(super) fn expire_breaks(&mut self, now: Now, effects: &mut Effects) {
        let mut notices = Notices::new();
        let files = &self.server.files;
        self.waits.expire(now.instant, |key| {
            files.expire(key, now.instant, &mut notices)
        });
        self.server.post(notices, effects);
    }
}

/// The notification that a client receives. \[MS-SMB2\] 2.2.23
fn notification(unsent: &CachingBreak) -> Notification {
    match unsent.lease {
        None => Notification::Oplock(OplockBreak {
            oplock_level: oplock_level(unsent.to),
            file_id: unsent.file_id,
        }),
        Some(lease) => Notification::Lease(LeaseBreakNotification {
            new_epoch: lease.epoch,
            flags: match lease.needs_ack {
                true => LeaseBreakFlags::ACK_REQUIRED,
                false => LeaseBreakFlags::NONE,
            },
            lease_key: lease.key,
            current_lease_state: unsent.from,
            new_lease_state: unsent.to,
        }),
    }
}

/// The header of a notification, which answers no request. \[MS-SMB2\] 3.3.4.6
fn notification_header() -> Header {
    Header {
        credit_charge: 0,
        status: Status::SUCCESS,
        command: Command::OPLOCK_BREAK,
        credits: 0,
        flags: Flags::SERVER_TO_REDIR,
        next_command: 0,
        message_id: MessageId::UNSOLICITED,
        target: Target::Sync {
            process_id: 0,
            tree_id: TreeId(0),
        },
        session_id: SessionId(0),
        signature: [0; 16],
    }
}
