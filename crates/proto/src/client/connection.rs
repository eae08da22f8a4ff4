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

/// What a connection is for.
pub enum Role {
    /// It logs in and makes a session.
    First,
    /// It becomes a further channel of this session. Dialects 3.x.
    Binding(Arc<Session>),
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was said.
    Fresh,
    /// NEGOTIATE and SESSION_SETUP.
    LoggingIn,
    /// Requests go.
    Ready,
    /// Nothing is said any more.
    Over,
}

/// One transport connection. \[MS-SMB2\] 3.2.1.2
///
/// It has one owner, who gives it what came in and does what its effects say.
pub struct Connection {
    pub(super) config: Arc<Config>,
    pub(super) carrier: Carrier,
    /// The session to bind to.
    pub(super) binding: Option<Arc<Session>>,
    pub(super) entropy: Entropy,
    pub(super) phase: Phase,
    /// Connection.PreauthIntegrityHashValue.
    pub(super) preauth: PreauthHash,
    pub(super) negotiated: Option<Negotiated>,
    /// What the server said of signing.
    pub(super) server_security_mode: SecurityMode,
    pub(super) login: Option<Login>,
    /// The session, once it is logged in.
    pub(super) session: Option<Arc<Session>>,
    /// Channel.SigningKey; none for guest and anonymous.
    pub(super) channel: Option<Arc<SigningKey>>,
    /// Whether the server has proven what it said in NEGOTIATE, or need not.
    pub(super) is_validated: bool,
    /// TREE_CONNECTs that are answered when it has.
    pub(super) unvalidated: Vec<RequestId>,
    pub(super) credits: Credits,
    pub(super) queue: Queue,
    /// Requests whose memory is being named.
    pub(super) exposing: BTreeMap<RequestId, Waiting>,
    /// Credits that were free when an ECHO was sent to get more for the first that waits.
    pub(super) begged: Option<u32>,
    pub(super) flights: BTreeMap<RequestId, Flight>,
    pub(super) pending: BTreeMap<MessageId, Pending>,
    /// Acknowledgements and such that wait for a credit: step, tree, whether the share is sealed.
    pub(super) owed: VecDeque<(Step, Option<TreeId>, bool)>,
    /// Bytes of the flights.
    pub(super) flying: u64,
    /// Requests that the server put off, and when they are sent again.
    pub(super) retries: BTreeMap<(Instant, RequestId), Waiting>,
    /// When requests are given up on.
    pub(super) deadlines: BTreeSet<(Instant, RequestId)>,
    pub(super) login_deadline: Option<Instant>,
    /// When something came last.
    pub(super) heard: Instant,
    /// When an ECHO was sent since.
    pub(super) echoed: Option<Instant>,
    /// Bytes of the longest answer that was asked for.
    pub(super) longest_answer: u64,
    /// READs of compounds that were answered in the frame at hand.
    pub(super) fresh_reads: Vec<RequestId>,
    pub(super) scratch: Vec<u8>,
}

impl Connection {
    /// A connection whose transport is there and on which nothing was said. `seed` is secret and
    /// never used twice.
    pub fn new(config: Arc<Config>, role: Role, carrier: Carrier, seed: &[u8; 32]) -> Self {
        let binding = match role {
            Role::First => None,
            Role::Binding(session) => Some(session),
        };
        Self {
            credits: Credits::new(config.credits),
            config,
            carrier,
            binding,
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
            begged: None,
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

    /// Says the first word.
    ///
    /// # Panics
    /// When it was called before.
    pub fn start(&mut self, now: Now, effects: &mut Effects) {
        assert!(self.phase == Phase::Fresh, "a connection starts once");
        self.phase = Phase::LoggingIn;
        self.heard = now.instant;
        self.login_deadline = Some(now.instant.after(self.config.login_timeout));
        let result = self.send_negotiate(effects);
        self.settle(now, result, effects);
    }

    /// Asks for something. It goes out when the login is done and the server's credits allow it.
    ///
    /// # Panics
    /// When the request has no steps, or more than one WRITE, or its number is that of another one
    /// that is unanswered.
    pub fn request(&mut self, now: Now, id: RequestId, request: Request, effects: &mut Effects) {
        assert!(!request.steps.is_empty(), "a request asks for something");
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

    /// Takes a frame.
    pub fn receive(&mut self, now: Now, message: Inbound<'_>, effects: &mut Effects) {
        let Inbound { bytes } = message;
        if self.phase == Phase::Over {
            return;
        }
        self.heard(now);
        let result = self.frame(bytes, effects);
        self.settle(now, result, effects);
    }

    /// Ends the connection because the driver wants it.
    pub fn close(&mut self, _now: Now, effects: &mut Effects) {
        self.end(Violation::Asked, effects);
    }

    /// Takes note that the transport is gone.
    pub fn closed(&mut self, _now: Now, effects: &mut Effects) {
        self.end(Violation::Closed, effects);
    }

    /// Bytes of the next frame at most: as many as the longest answer that was asked for can have.
    pub fn max_frame(&self) -> usize {
        /// Room for what is said in a login: two tokens of 64 KiB.
        const LEAST: u64 = 128 * 1024;
        usize::try_from(self.longest_answer.max(LEAST)).unwrap_or(usize::MAX)
    }

    /// Credits that can be spent.
    pub fn credits_free(&self) -> u32 {
        self.credits.free()
    }

    /// Credits that can be spent, or were spent on what is under way.
    pub fn credits_held(&self) -> u32 {
        self.credits.held()
    }

    /// Requests that were sent and are not answered.
    pub fn requests_in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Bytes that these send and ask for.
    pub fn bytes_in_flight(&self) -> u64 {
        self.flying
    }

    /// Requests that wait to be sent.
    pub fn requests_queued(&self) -> usize {
        self.queue.len() + self.exposing.len() + self.retries.len()
    }

    /// Bytes that these send and ask for.
    pub fn bytes_queued(&self) -> u64 {
        let exposing = self.exposing.values().map(|waiting| waiting.bytes);
        self.queue.bytes() + exposing.sum::<u64>()
    }

    /// The session, once the login is done.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// What was negotiated, once it was.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// Whether the connection has ended.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Makes a request ready to wait, or answers it if it can never be sent.
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
            // What the server allows is not known yet.
            return Some(waiting);
        }
        self.admit_to_session(waiting, effects)
    }

    /// The same, with what the login brought.
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

    /// Answers a request that cannot be sent.
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

    /// Looks at all that came before the login was done.
    pub(super) fn admit_waiting(&mut self, effects: &mut Effects) {
        for _ in 0..self.queue.len() {
            let waiting = self.queue.pop().expect("there are so many");
            let (id, deadline) = (waiting.id, waiting.deadline);
            match self.admit_to_session(waiting, effects) {
                Some(waiting) => self.queue.push(waiting),
                None => self.stop_clock(id, deadline),
            }
        }
    }

    /// Why a request cannot be sent at all, if so.
    fn check(&self, request: &Request) -> Result<(), &'static str> {
        let session = self.session.as_ref().expect("the login is done");
        if request.seal && !session.can_seal() {
            return Err("the share is sealed, and nothing can be");
        }
        let negotiated = &session.negotiated;
        let mut steps = request.steps.iter();
        steps.try_for_each(|step| encode::check(step, negotiated))?;
        match self.transfer(request).is_some() || session.fits_inline(&self.carrier, request) {
            true => Ok(()),
            false => Err("longer than a message of the transport"),
        }
    }

    /// Whether requests may cost more than one credit.
    pub(super) fn has_large_mtu(&self) -> bool {
        (self.negotiated.as_ref()).is_some_and(Negotiated::has_large_mtu)
    }

    /// Sends what became possible, or ends the connection.
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

    /// Ends the connection: gives back all that is unanswered.
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
