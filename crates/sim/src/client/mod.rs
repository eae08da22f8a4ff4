//! A scripted client: a sequence of connections, each with a ledger and keys. It checks every
//! response.

mod act;
mod answers;
mod audit;
mod breaks;
mod cache;
pub(crate) mod call;
mod connect;
mod keys;
mod ledger;
mod lock;
mod memory;
mod mischief;
mod names;
mod send;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use auth::Initiator;
use crypto::PreauthHash;
use proto::carrier::Carrier;
use proto::time::Now;
use wire::access::AccessMask;
use wire::dialect::Dialect;
use wire::{FileId, SessionId, TreeId};

use crate::Report;
use crate::adapter::Adapter;
use crate::check::Check;
use crate::check::caching::Caching;
use crate::check::contents::{CELLS, Contents, Filling, Key, Stamp};
use crate::check::directories::Directories;
use crate::check::locks::{Locks, Place};
use crate::check::names::Names;
use crate::check::opens::Opens;
use crate::check::refused_locks::RefusedLocks;
use crate::choices::Choices;
use crate::scenario::{Faults, Protection, Scenario};
use call::{Call, Intent};
use keys::{Agreed, Keys};
use ledger::{Ledger, Pending};

/// A request of a client to the world.
#[derive(Debug)]
pub(crate) enum Order {
    /// Send this frame.
    Frame(Vec<u8>),
    /// Call the client again.
    Think,
    /// End the connection.
    HangUp,
}

/// The client's view of the world, and the ledgers that all clients share.
pub(crate) struct Shared<'a> {
    pub(crate) tick: &'a mut u64,
    pub(crate) now: Now,
    pub(crate) scenario: &'a Scenario,
    pub(crate) faults: &'a Faults,
    pub(crate) contents: &'a mut Contents,
    pub(crate) opens: &'a mut Opens,
    pub(crate) locks: &'a mut Locks,
    pub(crate) caching: &'a mut Caching,
    pub(crate) directories: &'a mut Directories,
    pub(crate) names: &'a mut Names,
    pub(crate) refused_locks: &'a mut RefusedLocks,
    /// FileIds of all clients, for clients that violate the protocol.
    pub(crate) file_ids: &'a mut Vec<FileId>,
    pub(crate) orders: Vec<Order>,
    pub(crate) report: &'a mut Report,
    /// The memory that is registered on the connection.
    pub(crate) adapter: &'a mut Adapter,
}

impl Shared<'_> {
    /// Returns the next tick of the world.
    pub(crate) fn tick(&mut self) -> u64 {
        *self.tick += 1;
        *self.tick
    }
}

/// The phase of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The client has no connection.
    Away,
    Negotiating,
    LoggingIn,
    EnteringTree,
    Running,
    /// The client has violated the protocol and waits for the end of the connection.
    Doomed,
    /// The client has finished.
    Done,
}

/// The state of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Opening,
    Open,
    /// It may exist or not: a CLOSE, LOGOFF or the like is in flight.
    Closing,
}

/// An open, or a requested open.
#[derive(Debug)]
struct Slot {
    state: State,
    file_id: FileId,
    /// The name in its CREATE, in lower case.
    path: String,
    key: Key,
    /// The resume key, after the client has requested it.
    resume_key: Option<[u8; 24]>,
    /// Whether the open outlives a lost connection.
    is_resilient: bool,
    access: AccessMask,
    /// The holder of its caching rights, if it requested any.
    holder: Option<u64>,
    /// Whether no application uses the open: the client delays its CLOSE.
    is_idle: bool,
    /// Whether the open has the SMB3 POSIX extensions.
    is_posix: bool,
    /// Whether a LOCK or UNLOCK of a POSIX open is in flight: its application waits for it.
    is_locking: bool,
    deletion: Deletion,
}

/// The deletion of a file through an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletion {
    None,
    /// The client has requested it, or requested it with the CREATE.
    Requested,
    /// The server has marked the file: with POSIX semantics, the name goes with the open.
    Posix,
}

impl Slot {
    /// Returns the slot of the open after a reconnect to it.
    fn reclaimed(&self) -> Self {
        Self {
            state: State::Opening,
            file_id: self.file_id,
            path: self.path.clone(),
            key: self.key,
            resume_key: None,
            is_resilient: true,
            access: AccessMask(0),
            holder: None,
            is_idle: false,
            is_posix: self.is_posix,
            is_locking: false,
            deletion: self.deletion,
        }
    }
}

/// A resilient open of a lost connection.
#[derive(Debug)]
struct Lost {
    number: u64,
    slot: Slot,
}

/// A client.
pub(crate) struct Client {
    pub(crate) id: usize,
    user: usize,
    /// Identifies the computer of the client. In scenarios with leases, all clients of a user run
    /// on one computer: they have one ClientGuid and share leases.
    machine: usize,
    /// The clients on the computer.
    peers: Range<usize>,
    protection: Protection,
    offered: Vec<Dialect>,
    /// Whether the client offers the SMB3 POSIX extensions.
    has_posix: bool,
    choices: Choices,
    /// The transport of its connections.
    pub(crate) carrier: Carrier,
    /// The connection; each has a new number.
    pub(crate) link: Option<u64>,
    pub(crate) phase: Phase,
    /// Number of operations left.
    pub(crate) quota: u32,
    /// Names that the audit has still to check; `None` for other clients.
    audit: Option<VecDeque<String>>,
    agreed: Option<Agreed>,
    /// Preauthentication hash of the connection, and of the login.
    preauth: PreauthHash,
    login_preauth: PreauthHash,
    initiator: Option<Initiator>,
    /// Number of logins: it identifies responses to an abandoned login.
    logins: u64,
    session: SessionId,
    /// Whether the login of the session is complete.
    is_logged_in: bool,
    /// The session of the previous connection, for replacement.
    previous: SessionId,
    /// Keys of each session of the connection: a response may arrive after the end of its session.
    keys: BTreeMap<SessionId, Keys>,
    tree: TreeId,
    ledger: Ledger,
    /// Requests that wait for credits.
    deferred: VecDeque<Call>,
    slots: BTreeMap<u64, Slot>,
    /// The resilient opens of the previous connection.
    lost: Vec<Lost>,
    /// Number of locks of each open and range.
    locked: BTreeMap<(u64, Place), u32>,
    next_slot: u64,
    next_stamp: u64,
}

impl Client {
    pub(crate) fn new(id: usize, user: usize, scenario: &Scenario, mut choices: Choices) -> Self {
        let newest = choices.pick(&scenario.dialects);
        let offered = scenario.dialects.iter().copied();
        let count = scenario.connections_per_user;
        let (machine, peers) = match scenario.leases > 0 {
            true => (user, user * count..(user + 1) * count),
            false => (id, id..id + 1),
        };
        Self {
            id,
            user,
            machine,
            peers,
            protection: choices.pick(&scenario.protections),
            offered: offered.filter(|dialect| *dialect <= newest).collect(),
            carrier: choices.pick(&scenario.transports),
            has_posix: choices.per_mille(scenario.posix),
            choices,
            link: None,
            phase: Phase::Away,
            quota: scenario.operations,
            audit: None,
            agreed: None,
            preauth: PreauthHash::new(),
            login_preauth: PreauthHash::new(),
            initiator: None,
            logins: 0,
            session: SessionId(0),
            is_logged_in: false,
            previous: SessionId(0),
            keys: BTreeMap::new(),
            tree: TreeId(0),
            ledger: Ledger::new(scenario.credits),
            deferred: VecDeque::new(),
            slots: BTreeMap::new(),
            lost: Vec::new(),
            locked: BTreeMap::new(),
            next_slot: 0,
            next_stamp: 0,
        }
    }

    /// A connection is established.
    pub(crate) fn connected(&mut self, link: u64, shared: &mut Shared<'_>) {
        self.link = Some(link);
        self.ledger = Ledger::new(shared.scenario.credits);
        self.preauth = PreauthHash::new();
        self.agreed = None;
        self.session = SessionId(0);
        self.is_logged_in = false;
        self.keys.clear();
        self.tree = TreeId(0);
        self.negotiate(shared);
    }

    /// The connection has ended: a request in flight may have had its effect, or may still have it.
    pub(crate) fn disconnected(&mut self, shared: &mut Shared<'_>) {
        let link = self.link.take().expect("there was one");
        self.lose_opens(shared);
        for pending in self.ledger.abandon() {
            self.lose(&pending, link, shared);
        }
        self.slots.clear();
        let lost = &self.lost;
        let is_lost = |slot: u64| lost.iter().any(|lost| lost.number == slot);
        self.locked.retain(|(slot, _), _| is_lost(*slot));
        self.deferred.clear();
        if self.session != SessionId(0) {
            self.previous = self.session;
        }
        self.phase = match self.is_finished() {
            true => Phase::Done,
            false => Phase::Away,
        };
    }

    /// Returns whether no operation is left, and no name of the audit.
    fn is_finished(&self) -> bool {
        self.quota == 0 && self.audit.as_ref().is_none_or(VecDeque::is_empty)
    }

    fn lose(&mut self, pending: &Pending, link: u64, shared: &mut Shared<'_>) {
        let start = pending.start;
        self.end_change(pending, shared);
        self.names_are_lost(&pending.intent, start, link, shared);
        match &pending.intent {
            Intent::Flush { holder, write } => {
                let key = self.slots.get(&write.by.1).and_then(|slot| slot.key);
                let what = (write.cells.clone(), Filling::Stamp(write.stamp));
                shared.contents.lost(key, what, write.at, link);
                let tick = shared.tick();
                if let Some(holder) = shared.caching.get_mut(*holder) {
                    holder.flushed(write, false, tick);
                }
            }
            // A resilient open may have the lock.
            Intent::Lock { slot, lock, .. } => {
                self.locked.entry((*slot, lock.place)).or_insert(1);
            }
            Intent::Acknowledge { holder, .. } => self.end_acknowledgment(*holder, shared),
            Intent::Write { slot, cells, stamp } => {
                let key = self.slots.get(slot).and_then(|slot| slot.key);
                let what = (cells.clone(), Filling::Stamp(*stamp));
                shared.contents.lost(key, what, start, link);
            }
            Intent::Create(opening) if call::overwrites(opening.disposition) => {
                let what = (0..CELLS, Filling::Stamp(Stamp::default()));
                shared.contents.lost(None, what, start, link);
            }
            Intent::Copy { slot, fillings } => {
                let key = self.slots.get(slot).and_then(|slot| slot.key);
                for what in fillings {
                    shared.contents.lost(key, what.clone(), start, link);
                }
            }
            _ => {}
        }
    }

    /// All opens end, or may end, without a CLOSE.
    fn leave_all(&mut self, shared: &mut Shared<'_>) {
        for (number, slot) in &mut self.slots {
            slot.state = State::Closing;
            shared.opens.closing((self.id, *number));
            shared.locks.closing((self.id, *number));
            cache::leave((self.id, *number), shared);
        }
    }

    /// The session loses its only connection. Its resilient opens outlive it for a time: meanwhile
    /// their share modes and locks hold.
    fn lose_opens(&mut self, shared: &mut Shared<'_>) {
        let timeout = shared.scenario.resilient_timeout;
        let until = shared.now.instant.after(timeout);
        for (number, slot) in &mut self.slots {
            let holder = (self.id, *number);
            let state = core::mem::replace(&mut slot.state, State::Closing);
            cache::leave(holder, shared);
            match state {
                State::Open if slot.is_resilient => {
                    let existed = shared.opens.disconnected(holder, until);
                    shared.locks.disconnected(holder, until);
                    shared.report.opens_disconnected += u64::from(existed);
                    let (number, slot) = (*number, slot.reclaimed());
                    self.lost.push(Lost { number, slot });
                }
                // The response to its reconnect is lost: the open exists until its earlier time.
                State::Opening if slot.is_resilient => {}
                _ => {
                    shared.opens.closing(holder);
                    shared.locks.closing(holder);
                }
            }
        }
    }

    /// Reconnects to the resilient opens of the previous connection.
    fn reconnect(&mut self, shared: &mut Shared<'_>) {
        for Lost { number, slot } in core::mem::take(&mut self.lost) {
            // As cifs.ko does for a POSIX open; the server needs no context.
            let is_posix = slot.is_posix && self.choices.per_mille(500);
            let call = Call::reconnect(number, slot.file_id, is_posix);
            self.slots.insert(number, slot);
            self.submit_one(call, shared);
        }
    }

    /// Describes the state for a failure report.
    pub(crate) fn describe(&self) -> String {
        let Self {
            id,
            user,
            protection,
            carrier,
            link,
            phase,
            quota,
            ledger,
            agreed,
            ..
        } = self;
        format!(
            "client {id} of user {user}, {protection:?}, connection {link:?} over {carrier:?}, \
             {phase:?}, {quota} to do, {agreed:?}, {}",
            ledger.describe()
        )
    }

    /// Starts the next operation, if one is left.
    pub(crate) fn think(&mut self, shared: &mut Shared<'_>) -> Check {
        if self.phase != Phase::Running {
            return Ok(());
        }
        if self.audit.is_some() {
            self.look(shared);
            return Ok(());
        }
        shared.caching.check_delivery(shared.now.instant)?;
        self.process_breaks(shared);
        // When the decisions of a fuzzer are used up, the client finishes.
        if self.quota == 0 || self.choices.is_exhausted() {
            self.quota = 0;
            self.finish(shared);
            return Ok(());
        }
        if self.ledger.in_flight() < shared.scenario.depth {
            self.act(shared);
        } else {
            self.maybe_cancel_lock(shared);
            self.cancel_watch(shared);
        }
        shared.orders.push(Order::Think);
        Ok(())
    }

    /// Disconnects after all responses have arrived and all locks are released.
    fn finish(&mut self, shared: &mut Shared<'_>) {
        self.cancel_watch(shared);
        let is_flushing = self.flush_one(shared);
        let order = match self.ledger.in_flight() {
            0 if !is_flushing => Order::HangUp,
            _ => {
                self.release_a_lock(shared);
                Order::Think
            }
        };
        shared.orders.push(order);
    }
}
