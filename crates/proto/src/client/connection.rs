//! One transport connection. \[MS-SMB2\] 3.2.1.2

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crypto::{PreauthHash, SigningKey};
use wire::dialect::SecurityMode;
use wire::{MessageId, TreeId};

use super::config::Config;
use super::credits::{self, Credits};
use super::effect::{Effect, Effects, Fate};
use super::encode;
use super::flight::{Flight, Pending, Queue, Waiting};
use super::login::Login;
use super::negotiated::Negotiated;
use super::registration::Placement;
use super::request::{Failure, Request, RequestId, Step};
use super::session::Session;
use super::violation::Violation;
use crate::carrier::Carrier;
use crate::effect::Inbound;
use crate::entropy::Entropy;
use crate::time::{Instant, Now};

/// The role of a connection in its session: it logs the user in as the first connection, or joins
/// an existing session as a further channel.
pub enum Role {
    /// The connection is the first of its session: it logs the user in.
    First,
    /// The connection becomes a further channel of this session. Only with dialects 3.x.
    Binding(Arc<Session>),
    /// The connection logs in again after this session lost all its connections. The server then
    /// ends the lost session, if it still exists, and the client reclaims its durable opens. The
    /// new session has the same parameters as the lost one, or the login fails.
    /// \[MS-SMB2\] 3.2.4.2.3, 3.3.5.5.3
    Resuming(Arc<Session>),
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No message was sent.
    Fresh,
    /// NEGOTIATE and SESSION_SETUP are in progress.
    LoggingIn,
    /// The connection accepts requests.
    Ready,
    /// The connection has ended.
    Over,
}

/// The client's protocol state of one transport connection. It performs no I/O. \[MS-SMB2\] 3.2.1.2
///
/// The driver (the code with the socket) owns the connection. It passes received frames and
/// requests to the methods, and performs the effects that they append: actions such as a send.
pub struct Connection {
    pub(super) config: Arc<Config>,
    pub(super) carrier: Carrier,
    /// The session to bind to.
    pub(super) binding: Option<Arc<Session>>,
    /// The lost session that the login replaces.
    pub(super) previous: Option<Arc<Session>>,
    pub(super) entropy: Entropy,
    pub(super) phase: Phase,
    /// Connection.PreauthIntegrityHashValue.
    pub(super) preauth: PreauthHash,
    pub(super) negotiated: Option<Negotiated>,
    /// SecurityMode of the server.
    pub(super) server_security_mode: SecurityMode,
    pub(super) login: Option<Login>,
    /// The session after the login.
    pub(super) session: Option<Arc<Session>>,
    /// Channel.SigningKey; none for guest and anonymous.
    pub(super) channel: Option<Arc<SigningKey>>,
    /// Whether the server has confirmed NEGOTIATE, or need not do so.
    pub(super) is_validated: bool,
    /// TREE_CONNECTs that wait for the confirmation.
    pub(super) unvalidated: Vec<RequestId>,
    pub(super) credits: Credits,
    pub(super) queue: Queue,
    /// Requests that wait for the registration of their memory.
    pub(super) exposing: BTreeMap<RequestId, Waiting>,
    /// Count of available credits when an ECHO requested more for the first waiting request.
    pub(super) credits_at_echo: Option<u32>,
    pub(super) flights: BTreeMap<RequestId, Flight>,
    pub(super) pending: BTreeMap<MessageId, Pending>,
    /// The connection's own requests that wait for a credit: step, tree, whether the share requires
    /// encryption.
    pub(super) owed: VecDeque<(Step, Option<TreeId>, bool)>,
    /// Count of bytes of the requests in flight.
    pub(super) flying: u64,
    /// Requests that are sent again, by the time of the retry.
    pub(super) retries: BTreeMap<(Instant, RequestId), Waiting>,
    /// Deadlines of requests.
    pub(super) deadlines: BTreeSet<(Instant, RequestId)>,
    pub(super) login_deadline: Option<Instant>,
    /// Time of the last received bytes.
    pub(super) heard: Instant,
    /// Time of an ECHO that was sent since then.
    pub(super) echoed: Option<Instant>,
    /// Length of the longest requested response in bytes.
    pub(super) longest_answer: u64,
    /// READs of compounds with a response in the current frame.
    pub(super) fresh_reads: Vec<RequestId>,
    pub(super) scratch: Vec<u8>,
}

impl Connection {
    /// Makes a connection over an open transport, which `carrier` describes. `role` says whether
    /// the connection logs in or joins a session as a channel. `seed` is the secret source of its
    /// random numbers, unique for each connection. [`start`](Self::start) sends the first message.
    pub fn new(config: Arc<Config>, role: Role, carrier: Carrier, seed: &[u8; 32]) -> Self {
        let (binding, previous) = match role {
            Role::First => (None, None),
            Role::Binding(session) => (Some(session), None),
            Role::Resuming(session) => (None, Some(session)),
        };
        Self {
            credits: Credits::new(config.credits),
            config,
            carrier,
            binding,
            previous,
            entropy: Entropy::new(seed),
            phase: Phase::Fresh,
            preauth: PreauthHash::new(),
            negotiated: None,
            server_security_mode: SecurityMode::NONE,
            login: None,
            session: None,
            channel: None,
            is_validated: false,
            unvalidated: Vec::new(),
            queue: Queue::default(),
            exposing: BTreeMap::new(),
            credits_at_echo: None,
            flights: BTreeMap::new(),
            pending: BTreeMap::new(),
            owed: VecDeque::new(),
            flying: 0,
            retries: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            login_deadline: None,
            heard: Instant::default(),
            echoed: None,
            longest_answer: 0,
            fresh_reads: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Starts the connection: appends an [`Effect::Send`] with the NEGOTIATE request. The protocol
    /// core continues with the login when the responses arrive. [`Effect::Ready`] reports a login
    /// that succeeded, [`Effect::Disconnect`] one that failed.
    ///
    /// # Panics
    /// The connection was started before.
    pub fn start(&mut self, now: Now, effects: &mut Effects) {
        assert!(self.phase == Phase::Fresh, "a connection starts once");
        self.phase = Phase::LoggingIn;
        self.heard = now.instant;
        self.login_deadline = Some(now.instant.after(self.config.login_timeout));
        let result = self.send_negotiate(effects);
        self.settle(now, result, effects);
    }

    /// Queues `request` under the number `id`. The protocol core sends it after the login when the
    /// credits allow it, in this call or in a later one. [`Effect::Answer`] reports its results;
    /// [`Effect::Lost`] reports that the connection ended before.
    ///
    /// # Panics
    /// The request has no steps or more than one WRITE, or another pending request has its number.
    pub fn request(&mut self, now: Now, id: RequestId, request: Request, effects: &mut Effects) {
        assert!(!request.steps.is_empty(), "a request has a step");
        let is_write = |step: &&Step| matches!(step, Step::Write { .. });
        let writes = request.steps.iter().filter(is_write).count();
        assert!(writes <= 1, "a request has one payload");
        let is_known = self.flights.contains_key(&id) || self.exposing.contains_key(&id);
        assert!(!is_known, "a request has its own number");
        if self.phase == Phase::Over {
            effects.push(Effect::Lost(id, request, Fate::Unsent));
            return;
        }
        if let Some(waiting) = self.admit(id, request, effects) {
            self.enqueue(now, waiting);
            self.pump(now, effects);
        }
    }

    /// Processes a received frame. Appends the resulting effects: results of requests, further
    /// requests that the granted credits allow, breaks of oplocks and leases. The I/O driver calls
    /// this for each frame in the order of their arrival. A frame that violates the protocol ends
    /// the connection with [`Effect::Disconnect`].
    pub fn receive(&mut self, now: Now, message: Inbound<'_>, effects: &mut Effects) {
        let Inbound { bytes, scratch: _ } = message;
        if self.phase == Phase::Over {
            return;
        }
        self.heard(now);
        let result = self.frame(bytes, effects);
        self.settle(now, result, effects);
    }

    /// Ends the connection at the request of the I/O driver. Appends [`Effect::Lost`] for each
    /// pending request, then [`Effect::Disconnect`]. A second call has no effect.
    pub fn close(&mut self, _now: Now, effects: &mut Effects) {
        self.end(Violation::Asked, effects);
    }

    /// Reports that the transport connection was closed. Appends
    /// [`Effect::Lost`] for each pending request, then
    /// [`Effect::Disconnect`]. The call has no effect after the
    /// end of the connection.
    pub fn closed(&mut self, _now: Now, effects: &mut Effects) {
        self.end(Violation::Closed, effects);
    }

    /// Returns the maximum length in bytes that the next frame may have, without its length prefix:
    /// the length of the longest valid response to the pending requests, at least 128 KiB.
    pub fn max_frame(&self) -> usize {
        /// Enough for a login: two tokens of 64 KiB.
        const LEAST: u64 = 128 * 1024;
        usize::try_from(self.longest_answer.max(LEAST)).unwrap_or(usize::MAX)
    }

    /// Returns the number of credits that the client may spend on further requests now.
    pub fn credits_free(&self) -> u32 {
        self.credits.free()
    }

    /// Returns the number of credits of the client in all: those that are available, and those that
    /// the responses to pending requests return.
    pub fn credits_held(&self) -> u32 {
        self.credits.held()
    }

    /// Returns the number of requests that the client has sent and the server has not finally
    /// answered.
    pub fn requests_in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Returns the number of bytes of file data that the unanswered requests write to the server or
    /// read from it.
    pub fn bytes_in_flight(&self) -> u64 {
        self.flying
    }

    /// Returns the number of requests that the protocol core has queued and not sent yet, mostly
    /// for lack of credits.
    pub fn requests_queued(&self) -> usize {
        self.queue.len() + self.exposing.len() + self.retries.len()
    }

    /// Returns the number of bytes of file data that the queued, unsent requests write to the
    /// server or read from it.
    pub fn bytes_queued(&self) -> u64 {
        let exposing = self.exposing.values().map(|waiting| waiting.bytes);
        self.queue.bytes() + exposing.sum::<u64>()
    }

    /// Returns the session that the connection carries; `None` before the login is complete.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// Returns the parameters that client and server agreed on; `None` before the NEGOTIATE
    /// response.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Returns whether the connection has ended. It then accepts no requests and processes no
    /// frames.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Prepares a request for the queue, or fails it if it can never be sent.
    fn admit(&self, id: RequestId, request: Request, effects: &mut Effects) -> Option<Waiting> {
        let mut waiting = Waiting {
            id,
            charge: 0,
            bytes: 0,
            retries: 0,
            deadline: None,
            placement: Placement::Undecided,
            request,
        };
        for step in &waiting.request.steps {
            let (sent, asked) = (encode::sent(step), encode::asked(step));
            waiting.charge += credits::charge(sent, asked);
            waiting.bytes += u64::from(sent) + u64::from(asked);
        }
        if self.phase != Phase::Ready {
            // The limits of the server are not known yet.
            return Some(waiting);
        }
        self.admit_to_session(waiting, effects)
    }

    /// Prepares a request for the queue after the login.
    fn admit_to_session(&self, mut waiting: Waiting, effects: &mut Effects) -> Option<Waiting> {
        match self.check(&waiting.request) {
            Ok(()) => {
                if !self.has_large_mtu() {
                    waiting.charge = u32::try_from(waiting.request.steps.len()).unwrap_or(u32::MAX);
                }
                Some(waiting)
            }
            Err(what) => {
                self.refuse(waiting.id, &waiting.request, what, effects);
                None
            }
        }
    }

    /// Fails a request that cannot be sent.
    pub(super) fn refuse(
        &self,
        id: RequestId,
        request: &Request,
        what: &'static str,
        effects: &mut Effects,
    ) {
        let results = vec![Err(Failure::Unsendable(what)); request.steps.len()];
        effects.push(Effect::Answer(id, results));
    }

    /// Checks the requests that were queued before the end of the login.
    pub(super) fn admit_waiting(&mut self, effects: &mut Effects) {
        for _ in 0..self.queue.len() {
            let waiting = self
                .queue
                .pop()
                .expect("the queue has this count of requests");
            let (id, deadline) = (waiting.id, waiting.deadline);
            match self.admit_to_session(waiting, effects) {
                Some(waiting) => self.queue.push(waiting),
                None => self.stop_clock(id, deadline),
            }
        }
    }

    /// Checks whether a request can be sent at all.
    fn check(&self, request: &Request) -> Result<(), &'static str> {
        let session = self.session.as_ref().expect("the login is done");
        if request.encrypt && !session.can_encrypt() {
            return Err("the share requires encryption, which was not negotiated");
        }
        let negotiated = &session.negotiated;
        let mut steps = request.steps.iter();
        steps.try_for_each(|step| encode::check(step, negotiated))?;
        match self.transfer(request).is_some() || session.fits_inline(&self.carrier, request) {
            true => Ok(()),
            false => Err("the data are longer than a message of the transport"),
        }
    }

    /// Whether a request may cost more than one credit.
    pub(super) fn has_large_mtu(&self) -> bool {
        (self.negotiated.as_ref()).is_some_and(Negotiated::has_large_mtu)
    }

    /// Sends the requests that are possible now, or ends the connection.
    pub(super) fn settle(
        &mut self,
        now: Now,
        result: Result<(), Violation>,
        effects: &mut Effects,
    ) {
        match result {
            Ok(()) => self.send_retries(now, effects),
            Err(violation) => self.end(violation, effects),
        }
    }

    /// Ends the connection, and returns all pending requests.
    pub(super) fn end(&mut self, violation: Violation, effects: &mut Effects) {
        if self.phase == Phase::Over {
            return;
        }
        self.phase = Phase::Over;
        self.login = None;
        self.login_deadline = None;
        self.pending.clear();
        self.deadlines.clear();
        self.unvalidated.clear();
        self.owed.clear();
        self.flying = 0;
        if let Some(session) = &self.session {
            session.channel_lost();
        }
        while let Some((id, flight)) = self.flights.pop_first() {
            Self::withdraw(id, flight.memory, effects);
            effects.push(Effect::Lost(id, flight.request, Fate::Sent));
        }
        while let Some((_, waiting)) = self.retries.pop_first() {
            effects.push(Effect::Lost(waiting.id, waiting.request, Fate::Sent));
        }
        for waiting in self.stop_exposing() {
            effects.push(Effect::Lost(waiting.id, waiting.request, Fate::Unsent));
        }
        while let Some(waiting) = self.queue.pop() {
            Self::withdraw(waiting.id, waiting.placement.into_memory(), effects);
            effects.push(Effect::Lost(waiting.id, waiting.request, Fate::Unsent));
        }
        effects.push(Effect::Disconnect(violation));
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("phase", &self.phase)
            .field("credits", &self.credits)
            .field("in_flight", &self.flights.len())
            .field("queued", &self.queue.len())
            .finish_non_exhaustive()
    }
}
