//! OPLOCK_BREAK: the server asks a client to give an oplock up, and the client says that it has.
//! \[MS-SMB2\] 3.3.4.6, 3.3.5.22

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::access::OplockLevel;
use wire::header::{HEADER_LEN, Target};
use wire::oplock_break::{Notification, OplockBreak, Request, Response};
use wire::{Command, FileId, Flags, Header, MessageId, SessionId, Status, TreeId};

use crate::effect::{Effect, Effects, OutMessage, Outbound, Outcome};
use crate::id::{ConnectionId, OpId};
use crate::notice::Notice;
use crate::server::Server;
use crate::server::connection::{Connection, Waiter};
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::oplock::{self, Mail};
use crate::server::open::{Open, malformed};
use crate::server::session::Session;
use crate::server::task::Task;
use crate::time::Now;

/// The break of an oplock whose holder is not told yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct UntoldBreak {
    pub(super) session: SessionId,
    pub(super) file_id: FileId,
    pub(super) level: OplockLevel,
}

/// Takes an acknowledgement. \[MS-SMB2\] 3.3.5.22.1
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress, Status> {
    match Request::decode(message).map_err(malformed)? {
        Request::Oplock(acknowledgement) => acknowledge(context, acknowledgement),
        // No lease is ever granted. \[MS-SMB2\] 3.3.5.22.2
        Request::Lease(_) => Err(Status::OBJECT_NAME_NOT_FOUND),
    }
}

fn acknowledge(
    context: &mut Context<'_>,
    acknowledgement: OplockBreak,
) -> Result<Progress, Status> {
    let OplockBreak {
        oplock_level,
        file_id,
    } = acknowledgement;
    let open = context.open(file_id)?;
    open.state.lock().told_on = None;
    if oplock_level == OplockLevel::LEASE || !is_known(oplock_level) {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut mail = Mail::new();
    let files = &context.server.files;
    let kept = files.acknowledge(open.key, open.file, oplock_level, &mut mail);
    context.post(mail);
    let response = Response::Oplock(OplockBreak {
        oplock_level: kept?,
        file_id: open.id,
    });
    Ok(Progress::Done(Reply::message(|out| response.encode(out))))
}

fn is_known(level: OplockLevel) -> bool {
    matches!(
        level,
        OplockLevel::NONE | OplockLevel::II | OplockLevel::EXCLUSIVE | OplockLevel::BATCH
    )
}

impl Connection {
    /// Tells clients of broken oplocks, each once it knows the open by its name: an answer to a
    /// CREATE that others of its compound hold back goes first.
    pub(super) fn tell_breaks(&mut self, effects: &mut Effects) {
        if self.untold_breaks.is_empty() || self.tasks.values().any(Task::hides_an_open) {
            return;
        }
        for untold in core::mem::take(&mut self.untold_breaks) {
            self.tell_break(untold, effects);
        }
    }

    /// \[MS-SMB2\] 3.3.4.6: never signed. An open that is gone meanwhile has nothing to give up.
    fn tell_break(&mut self, untold: UntoldBreak, effects: &mut Effects) {
        let Some(session) = self.find_session(untold.session) else {
            // The connection lost the session, but another may carry it.
            let UntoldBreak {
                session,
                file_id,
                level,
            } = untold;
            let notice = Notice::BreakOplock {
                session,
                file_id,
                level,
            };
            self.server.post(Mail::from([(self.id, notice)]), effects);
            return;
        };
        let open = session.opens.lock().get(&untold.file_id.volatile).cloned();
        let Some(open) = open.filter(|_| !self.is_over) else {
            return;
        };
        let mut head = Vec::with_capacity(HEADER_LEN + 24);
        notification_header().encode(&mut head);
        let notification = OplockBreak {
            oplock_level: untold.level,
            file_id: untold.file_id,
        };
        Notification::Oplock(notification).encode(&mut head);
        let message = OutMessage {
            head,
            payload: None,
            padding: 0,
            sign: None,
        };
        // An open that was made where the transport is as good as a seal may be told of elsewhere.
        let is_sealed = open.is_sealed || self.must_seal(session.state.lock().encrypt);
        let seal = is_sealed.then(|| session.seal()).flatten();
        effects.push(Effect::Send(Outbound {
            messages: Vec::from([message]),
            seal,
            invalidate: None,
        }));
    }

    /// A channel of a session is lost: what was to be told on it of broken oplocks is told on one
    /// that lives. The client may have heard it before, which does no harm. \[MS-SMB2\] 3.3.4.6
    pub(super) fn tell_breaks_again(&self, session: &Session, effects: &mut Effects) {
        let opens: Vec<Arc<Open>> = session.opens.lock().values().cloned().collect();
        let told_here = |open: &&Arc<Open>| open.state.lock().told_on == Some(self.id);
        let files = &self.server.files;
        let notice = |open: &Arc<Open>| Notice::BreakOplock {
            session: session.id,
            file_id: open.id,
            level: files.level(open.key, open.file),
        };
        let told = opens.iter().filter(told_here);
        let mail: Mail = told.map(|open| (self.id, notice(open))).collect();
        self.server.post(mail, effects);
    }

    /// Goes on with a request that waited for an oplock, if it still does.
    pub(super) fn unpark(&mut self, now: Now, op: OpId, outcome: Outcome, effects: &mut Effects) {
        let Some(parked) = self.parked.remove(&op) else {
            return;
        };
        let waiter = oplock::Waiter {
            connection: self.id,
            op,
        };
        self.server.files.forget_waiter(parked.key, waiter);
        if let Some(Waiter::Task(task)) = self.waiting.remove(&op) {
            self.resume(now, task, outcome, effects);
        }
    }

    /// Takes oplocks away whose holders had their time. Everybody who waited is woken by notices.
    /// \[MS-SMB2\] 3.3.6.1
    pub(super) fn expire_oplocks(&mut self, now: Now, effects: &mut Effects) {
        let mut mail = Mail::new();
        for parked in self.parked.values_mut() {
            if parked.until.is_some_and(|until| until <= now.instant) {
                let files = &self.server.files;
                parked.until = files.expire(parked.key, now.instant, &mut mail);
            }
        }
        self.server.post(mail, effects);
    }
}

impl Server {
    /// Says what connections are to be told. What a client is to be told goes to a channel of its
    /// session that lives, if it can be the one that the open was made on.
    pub(crate) fn post(&self, mail: Mail, effects: &mut Effects) {
        for (to, notice) in mail {
            let to = match notice {
                Notice::BreakOplock {
                    session, file_id, ..
                } => self.teller(session, file_id, to),
                _ => Some(to),
            };
            if let Some(to) = to {
                effects.push(Effect::Notify(to, notice));
            }
        }
    }

    /// Nobody, where the session ends: then its oplocks do too.
    fn teller(&self, id: SessionId, file_id: FileId, wanted: ConnectionId) -> Option<ConnectionId> {
        let session = self.sessions.lock().get(&id).cloned()?;
        let teller = session.channels.living(wanted)?;
        let open = session.opens.lock().get(&file_id.volatile).cloned();
        if let Some(open) = open {
            open.state.lock().told_on = Some(teller);
        }
        Some(teller)
    }
}

/// What stands in the header of what no request asked for. \[MS-SMB2\] 3.3.4.6
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
