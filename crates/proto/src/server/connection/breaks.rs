//! Breaks of oplocks: notifications to the clients that hold them, and the requests that wait.
//! \[MS-SMB2\] 3.3.4.6, 3.3.6.1

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::create_context::LeaseState;
use wire::header::{HEADER_LEN, Target};
use wire::oplock_break::{LeaseBreakFlags, LeaseBreakNotification, Notification, OplockBreak};
use wire::{Command, FileId, Flags, Guid, Header, MessageId, SessionId, Status, TreeId};

use super::Connection;
use super::task::Task;
use crate::effect::{Effect, Effects, OutMessage, Outbound, Outcome};
use crate::id::OpId;
use crate::notice::Notice;
use crate::server::fsa::caching::oplock_level;
use crate::server::notices::{Notices, Waiter};
use crate::server::open::Open;
use crate::server::session::Session;
use crate::time::Now;

/// The break of an oplock of which the client has not been notified yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnsentBreak {
    pub(super) session: SessionId,
    /// The open through which the client receives the notification.
    pub(super) file_id: FileId,
    /// The lease; `None` where an oplock breaks.
    pub(super) lease_key: Option<Guid>,
    /// The rights before the break.
    pub(super) from: LeaseState,
    /// The rights after the break.
    pub(super) to: LeaseState,
}

impl UnsentBreak {
    /// The notice from which the break came, for another connection.
    fn into_notice(self) -> Notice {
        let Self {
            session,
            file_id,
            lease_key,
            from,
            to,
        } = self;
        Notice::BreakCaching {
            session,
            file_id,
            lease_key,
            from,
            to,
        }
    }

    /// The notification that the client receives. \[MS-SMB2\] 2.2.23
    fn notification(self) -> Notification {
        match self.lease_key {
            None => Notification::Oplock(OplockBreak {
                oplock_level: oplock_level(self.to),
                file_id: self.file_id,
            }),
            Some(lease_key) => Notification::Lease(LeaseBreakNotification {
                // Leases of version 1 only. \[MS-SMB2\] 3.3.4.7
                new_epoch: 0,
                flags: match self.from {
                    LeaseState::READ_CACHING => LeaseBreakFlags::NONE,
                    _ => LeaseBreakFlags::ACK_REQUIRED,
                },
                lease_key,
                current_lease_state: self.from,
                new_lease_state: self.to,
            }),
        }
    }
}

/// The breaks of which clients have not been notified yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct UnsentBreaks(Vec<UnsentBreak>);

impl UnsentBreaks {
    /// Adds a break. The connection sends it at the end of the call.
    pub(super) fn push(&mut self, unsent: UnsentBreak) {
        self.0.push(unsent);
    }

    /// Forgets all breaks: the connection has closed, and another channel sends them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Connection {
    /// Sends break notifications to clients. Waits while the answer to a CREATE is held back by
    /// other members of its compound: the client does not know its open yet.
    pub(super) fn send_breaks(&mut self, effects: &mut Effects) {
        if self.unsent_breaks.0.is_empty() || self.tasks.iter().any(Task::hides_an_open) {
            return;
        }
        for unsent in core::mem::take(&mut self.unsent_breaks.0) {
            self.send_break(unsent, effects);
        }
    }

    /// \[MS-SMB2\] 3.3.4.6: never signed. An open that is closed meanwhile needs no notification.
    fn send_break(&mut self, unsent: UnsentBreak, effects: &mut Effects) {
        let Some(session) = self.find_session(unsent.session) else {
            // The connection lost the session, but another may carry it.
            let notices = Notices::from([(self.id, unsent.into_notice())]);
            self.server.post(notices, effects);
            return;
        };
        let open = session.opens.lock().get(&unsent.file_id.volatile).cloned();
        let Some(open) = open.filter(|_| !self.is_over) else {
            return;
        };
        let mut head = Vec::with_capacity(HEADER_LEN + 44);
        notification_header().encode(&mut head);
        unsent.notification().encode(&mut head);
        let message = OutMessage {
            head,
            payload: None,
            padding: 0,
            sign: None,
        };
        // Another channel of the session may use a transport that does not encrypt.
        let is_encrypted = open.is_encrypted || self.must_encrypt(session.state.lock().encrypt);
        let encryption = is_encrypted.then(|| session.encryption()).flatten();
        effects.push(Effect::Send(Outbound {
            messages: Vec::from([message]),
            encryption,
            invalidate: None,
        }));
    }

    /// Sends the break notifications of a lost channel again on another channel of the session.
    /// The client may receive a notification twice, which does no harm. \[MS-SMB2\] 3.3.4.6
    pub(super) fn resend_breaks(&self, session: &Session, effects: &mut Effects) {
        let opens: Vec<Arc<Open>> = session.opens.lock().values().cloned().collect();
        let notified_here = |open: &&Arc<Open>| open.state.lock().notified_on == Some(self.id);
        let files = &self.server.files;
        let notice = |open: &Arc<Open>| {
            let (from, to) = files.rights(open.key, open.file);
            Notice::BreakCaching {
                session: session.id,
                file_id: open.id,
                // No lease is granted yet.
                lease_key: None,
                from,
                to,
            }
        };
        let mut opens: Vec<&Arc<Open>> = opens.iter().collect();
        opens.retain(notified_here);
        let notices: Notices = opens
            .into_iter()
            .map(|open| (self.id, notice(open)))
            .collect();
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
        self.server.files.forget_waiter(parked.key, waiter);
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
