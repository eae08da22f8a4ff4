//! A transport connection: received frames, completed operations and timers. \[MS-SMB2\] 3.3.1.7
//!
//! The path of a request: `receive` here, decrypted and counted in `frame.rs`, run member by
//! member in `task.rs`, checked in `admit.rs`, handed to its command's file in `dispatch.rs`,
//! answered in `reply.rs`. What ends together with a tree, a session or the connection is in
//! `drain.rs`.

mod admit;
mod bind;
mod breaks;
mod cancel;
mod close_open;
mod dispatch;
mod drain;
mod frame;
pub(super) mod login;
pub(super) mod reply;
mod responses;
pub(super) mod task;
mod tasks;
mod waits;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use crypto::{Cipher, PreauthHash, SigningAlgorithm};
use wire::dialect::{Capabilities, Dialect};
use wire::{Guid, SessionId, Status};

use crate::carrier::Carrier;
use crate::credit::SequenceWindow;
use crate::effect::{Effect, Effects, Inbound, Outcome};
use crate::entropy::Entropy;
use crate::id::{ConnectionId, OpId};
use crate::login::Account;
use crate::notice::Notice;
use crate::server::Server;
use crate::server::config::Config;
use crate::server::ledger::Charge;
use crate::server::negotiated::Negotiated;
use crate::server::quota::Quotas;
use crate::server::session::Session;
use crate::time::{Instant, Now};
use crate::violation::Violation;
use breaks::UnsentBreaks;
use drain::Drains;
use login::Logins;
pub use responses::Responses;
use tasks::Tasks;
use waits::{Waiter, Waits};

/// Bytes of a frame beside the payload of its largest message: headers, contexts, the other
/// members of a compound.
const FRAME_OVERHEAD: usize = 64 << 10;

/// The server's protocol state of one transport connection. It performs no I/O. One thread owns it.
/// The driver (the code with the socket) passes received frames and outcomes of operations to the
/// methods, and performs the effects that they append.
#[derive(Debug)]
pub struct Connection {
    pub(super) server: Arc<Server>,
    /// The configuration when the connection began, without shares.
    pub(super) config: Arc<Config>,
    pub(super) id: ConnectionId,
    pub(super) entropy: Entropy,
    /// The transport.
    pub(super) carrier: Carrier,
    /// The address of the client; `None` if the transport has none.
    pub(super) peer: Option<IpAddr>,
    /// The negotiated values; `None` before NEGOTIATE.
    pub(super) negotiated: Option<Negotiated>,
    /// Connection.PreauthIntegrityHashValue.
    pub(super) preauth: PreauthHash,
    /// Connection.CommandSequenceWindow.
    pub(super) window: SequenceWindow,
    /// Connection.SessionTable.
    pub(super) sessions: BTreeMap<SessionId, Arc<Session>>,
    /// The quotas that the sessions of the connection share.
    pub(super) quotas: Quotas,
    /// Counts the connection for the user of each session.
    pub(super) charges: BTreeMap<SessionId, Charge>,
    pub(super) logins: Logins,
    tasks: Tasks,
    waits: Waits,
    drains: Drains,
    unsent_breaks: UnsentBreaks,
    /// Nothing is received or sent any more.
    is_over: bool,
    next_number: u64,
    responses: Responses,
    /// A buffer in which a header is encoded before it is copied into its message.
    scratch: Vec<u8>,
}

/// A description of a server's connection for logs and status displays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// SMB dialect that client and server negotiated; `None` before NEGOTIATE.
    pub dialect: Option<Dialect>,
    /// Negotiated cipher; `None` before NEGOTIATE, and if the connection cannot encrypt.
    pub cipher: Option<Cipher>,
    /// Signing algorithm that client and server negotiated; `None` before NEGOTIATE.
    pub signing: Option<SigningAlgorithm>,
    /// ClientGuid, by which the client identifies itself; `None` before NEGOTIATE.
    pub client_guid: Option<Guid>,
    /// The sessions that use the connection: the id and the account of each.
    pub sessions: Vec<(SessionId, Account)>,
    /// Number of received frames with at least one request without a final response.
    pub requests: usize,
    /// The sent responses.
    pub responses: Responses,
}

/// The negotiated values and the load of a server's connection, for statistics over all
/// connections. It costs no allocation, unlike a [`Summary`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// SMB dialect that client and server negotiated; `None` before NEGOTIATE.
    pub dialect: Option<Dialect>,
    /// Negotiated cipher; `None` before NEGOTIATE, and if the connection cannot encrypt.
    pub cipher: Option<Cipher>,
    /// Signing algorithm that client and server negotiated; `None` before NEGOTIATE.
    pub signing: Option<SigningAlgorithm>,
    /// Number of received frames with at least one request without a final response.
    pub requests: usize,
    /// Number of credits that the client holds: granted, and not used yet.
    pub credits: u64,
}

impl Connection {
    /// Makes the state of a connection that the I/O driver has just accepted. `id` is its number;
    /// `carrier` describes its transport. The time limit of the login starts at `now`. `entropy`
    /// must be random and different for each connection: the protocol core derives session ids and
    /// the salt of the preauthentication integrity from it.
    pub fn new(
        server: Arc<Server>,
        id: ConnectionId,
        carrier: Carrier,
        entropy: [u8; 32],
        now: Now,
    ) -> Self {
        let config = server.settings();
        let limits = &config.limits;
        let window = SequenceWindow::new(limits.credits);
        let logins = Logins::new(now.instant.after(limits.login_timeout));
        Self {
            server,
            config,
            id,
            entropy: Entropy::new(&entropy),
            carrier,
            peer: None,
            negotiated: None,
            preauth: PreauthHash::new(),
            window,
            sessions: BTreeMap::new(),
            quotas: Quotas::default(),
            charges: BTreeMap::new(),
            logins,
            tasks: Tasks::default(),
            waits: Waits::default(),
            drains: Drains::default(),
            unsent_breaks: UnsentBreaks::default(),
            is_over: false,
            next_number: 0,
            responses: Responses::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns the connection with the address of its client, for the rules of shares about
    /// addresses ([`HostRules`](crate::server::hosts::HostRules)). A connection without it may not
    /// connect to a share with such rules.
    #[must_use]
    pub fn with_peer(self, address: IpAddr) -> Self {
        Self {
            peer: Some(address),
            ..self
        }
    }

    /// Processes a received frame, and appends the resulting effects to `effects`: operations for
    /// the I/O driver, responses, notices to other connections. The driver calls this for each
    /// frame in the order of their arrival. A frame that violates the protocol ends the connection
    /// with [`Effect::Disconnect`]; later frames are ignored.
    pub fn receive(&mut self, now: Now, message: Inbound<'_>, effects: &mut Effects) {
        if self.is_over {
            return;
        }
        if let Err(violation) = self.frame(now, message, effects) {
            self.end(violation, effects);
        }
        self.settle(now, effects);
    }

    /// Processes the outcome of the operation `op`, which an earlier effect requested. Appends the
    /// next effects of the request that needs it, such as the response or a further operation. The
    /// I/O driver calls this once for each operation, in any order, also after
    /// [`closed`](Self::closed).
    pub fn complete(&mut self, now: Now, op: OpId, outcome: Outcome, effects: &mut Effects) {
        match self.waits.complete(op) {
            Some(Waiter::Task(task)) => self.resume(now, task, outcome, effects),
            Some(Waiter::Drain(drain)) => self.drained_one(drain, (op, outcome), effects),
            None => discard(&outcome, effects),
        }
        self.settle(now, effects);
    }

    /// Processes a notice: another connection of this process, or the server, reports that a
    /// session or an open of this connection has ended, that the server withdraws caching rights of
    /// its client, or that an event has happened for which one of its requests waits. The I/O
    /// driver calls this once for each [`Effect::Notify`] to this connection.
    ///
    /// Appends the resulting effects: responses of the requests that waited or the next operations
    /// for them, oplock or lease break notifications, and closes of the open files of an ended
    /// session. A notice about a session, an open or an operation that has ended meanwhile has no
    /// effect. Only a break for a session that left this connection goes to another connection of
    /// that session.
    #[expect(clippy::needless_pass_by_value, reason = "a notice is handed over")]
    pub fn notice(&mut self, now: Now, notice: Notice, effects: &mut Effects) {
        match notice {
            Notice::SessionClosed(id) => {
                if let Some(session) = self.sessions.get(&id).cloned() {
                    self.end_session(now, &session, effects);
                }
            }
            Notice::TreeClosed(session, tree) => {
                if let Some(session) = self.sessions.get(&session).cloned() {
                    self.close_tree(session, tree, None, effects);
                }
            }
            Notice::OpenClosed(session, open) => {
                if let Some(session) = self.sessions.get(&session).cloned() {
                    self.close_open(now, &session, open, effects);
                }
            }
            Notice::OpensClosed(session) => self.session_gone(now, session, effects),
            Notice::BreakCaching(unsent) => self.unsent_breaks.push(unsent),
            Notice::CachingBroken(op) | Notice::DirectoryChanged(op) | Notice::PipeReadable(op) => {
                self.unpark(now, op, Outcome::Woken, effects);
            }
            Notice::LockSettled { op, is_granted } => {
                let outcome = match is_granted {
                    true => Outcome::Woken,
                    false => Outcome::Failed(Status::RANGE_NOT_LOCKED),
                };
                self.unpark(now, op, outcome, effects);
            }
        }
        self.settle(now, effects);
    }

    /// Handles the time limits that have passed: appends interim responses, ends a connection
    /// without a login, and ends overdue breaks of oplocks and leases. The I/O driver calls this at
    /// the time that [`Self::next_timeout`] returns. An early call has no effect.
    pub fn timeout(&mut self, now: Now, effects: &mut Effects) {
        if !self.is_over {
            self.send_interims(now, effects);
            if self.logins.deadline.is_some_and(|at| at <= now.instant) {
                self.end(Violation::LoginTimeout, effects);
            }
        }
        self.expire_breaks(now, effects);
        while let Some(op) = self.waits.first_limited(now.instant) {
            self.unpark(now, op, Outcome::Woken, effects);
        }
        self.stop_waiting_for_replaced(now, effects);
        self.settle(now, effects);
    }

    /// Reports that the transport connection was closed. The I/O driver calls this once, and
    /// performs the appended effects: cancels of running operations, and closes of the open files
    /// of sessions without another connection. A file closes at once, or when the running
    /// operations on it are complete.
    pub fn closed(&mut self, now: Now, effects: &mut Effects) {
        self.stop();
        self.end_logins(effects);
        while let Some(op) = self.waits.first_parked() {
            self.unpark(now, op, Outcome::Failed(Status::CANCELLED), effects);
        }
        for op in self.waits.operations_of_tasks() {
            effects.push(Effect::Cancel(op));
        }
        // Another channel of the session sends the notifications again.
        self.unsent_breaks.clear();
        let sessions: Vec<Arc<Session>> = self.sessions.values().cloned().collect();
        for session in sessions {
            self.lose_session(now, &session, effects);
        }
        self.end_waits_for_replaced(now, effects);
        self.settle(now, effects);
    }

    /// Returns the time at which the I/O driver must call [`timeout`](Self::timeout) at the latest;
    /// `None` while no request or login has a time limit.
    pub fn next_timeout(&self) -> Option<Instant> {
        let interim = self.tasks.next_interim();
        [
            interim,
            self.logins.next_timeout(),
            self.waits.next_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns whether at least one client user has logged in: the connection has a session.
    pub fn is_logged_in(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// Returns the maximum length in bytes that the next frame may have now, without its length
    /// prefix. A longer frame violates the protocol and ends the connection.
    pub fn max_frame(&self) -> usize {
        let config = &self.config;
        if !self.is_logged_in() {
            return config.limits.frame_before_login;
        }
        let largest = config.max_write.max(config.max_transact) as usize;
        (largest + FRAME_OVERHEAD).max(config.limits.frame_before_login)
    }

    /// Returns an upper bound of the bytes of memory that the responses to waiting requests need,
    /// apart from payloads of the driver. A driver with too much of it handles no further frame
    /// until operations complete. A request that waits for another client does not count.
    pub fn pending_response_bytes(&self) -> usize {
        self.tasks.response_bytes()
    }

    /// Returns a description of the connection for logs and status displays.
    pub fn summary(&self) -> Summary {
        let account = |session: &Arc<Session>| session.state.lock().account.clone();
        let negotiated = self.negotiated.as_ref();
        Summary {
            dialect: negotiated.map(|negotiated| negotiated.dialect),
            cipher: negotiated.and_then(|negotiated| negotiated.cipher),
            signing: negotiated.map(|negotiated| negotiated.signing),
            client_guid: negotiated.map(|negotiated| negotiated.client_guid),
            sessions: (self.sessions.iter())
                .map(|(id, session)| (*id, account(session)))
                .collect(),
            requests: self.tasks.len(),
            responses: self.responses,
        }
    }

    /// Returns the negotiated values and the load of the connection.
    pub fn load(&self) -> Load {
        let negotiated = self.negotiated.as_ref();
        Load {
            dialect: negotiated.map(|negotiated| negotiated.dialect),
            cipher: negotiated.and_then(|negotiated| negotiated.cipher),
            signing: negotiated.map(|negotiated| negotiated.signing),
            requests: self.tasks.len(),
            credits: self.window.held(),
        }
    }

    /// Returns whether the connection has no request in progress, no unfinished operation and no
    /// session to close. After [`closed`](Self::closed), the I/O driver may drop such a connection.
    pub fn is_idle(&self) -> bool {
        self.tasks.len() == 0 && self.unfinished().is_none() && self.drains.is_empty()
    }

    /// Returns the number of an operation that the I/O driver has not completed yet; `None` if all
    /// are complete. If the driver has no operation in flight, it has lost the returned one: a bug.
    pub fn unfinished(&self) -> Option<OpId> {
        self.waits.unfinished()
    }

    /// A number for an operation that the driver will complete.
    pub(super) fn allocate_op(&mut self) -> OpId {
        self.waits.op_ids().allocate()
    }

    /// A number that this connection has not used yet.
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Whether a request may ask for more than 64 KiB and pay with its credits.
    pub(super) fn has_large_mtu(&self) -> bool {
        self.negotiated
            .as_ref()
            .is_some_and(|negotiated| negotiated.has_large_mtu)
    }

    /// Whether a session of this connection may have others besides.
    pub(super) fn has_multichannel(&self) -> bool {
        (self.negotiated.as_ref())
            .is_some_and(|it| it.capabilities.contains(Capabilities::MULTI_CHANNEL))
    }

    /// Whether the client may use the SMB3 POSIX extensions, in the shares that have them.
    pub(super) fn has_posix(&self) -> bool {
        (self.negotiated.as_ref()).is_some_and(|negotiated| negotiated.has_posix)
    }

    /// Whether messages that must be encrypted have to be encrypted here: not if client and server
    /// agreed that the transport encrypts. \[MS-SMB2\] 3.3.5.2.9,
    /// Connection.AcceptTransportSecurity
    ///
    /// Asked of each connection, and not kept with the session: that may have others, over
    /// transports that protect nothing.
    pub(super) fn must_encrypt(&self, is_required: bool) -> bool {
        let is_secured = self
            .negotiated
            .as_ref()
            .is_some_and(|negotiated| negotiated.transport_security);
        is_required && !is_secured
    }

    /// Ends the connection because of a violation by the peer.
    pub(super) fn end(&mut self, violation: Violation, effects: &mut Effects) {
        if !self.is_over {
            self.stop();
            effects.push(Effect::Disconnect(violation));
        }
    }

    /// Stops receiving and sending, interim responses included.
    fn stop(&mut self) {
        self.is_over = true;
        self.logins.deadline = None;
        self.tasks.stop_interims();
    }

    /// Continues drains and breaks that became possible, until none remains.
    fn settle(&mut self, now: Now, effects: &mut Effects) {
        while self.advance_drains(now, effects) {}
        self.send_breaks(effects);
        self.tasks.forget_stale_interims();
    }
}

/// Releases the payload of an outcome that no request waits for.
fn discard(outcome: &Outcome, effects: &mut Effects) {
    if let Outcome::Read(payload) = outcome {
        effects.push(Effect::Release(payload.token));
    }
}
