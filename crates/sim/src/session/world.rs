//! The world of a run: the server, its disk, the network, the sessions, and the next events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proto::id::{ConnectionId, OpId};
use proto::login::{AccountsRevision, LoginScope};
use proto::notice::Notice;
use proto::report::LoginRefusal;
use proto::server::config::Config;
use proto::server::{Server, SessionSnapshot, SnapshotLimits};
use proto::time::Instant;
use proto::violation::Violation;

use super::audit::audit;
use super::books::Books;
use super::peer::{Around, Order, Peer, Phase, THOUGHT};
use super::{Outcome, Sessions};
use crate::adapter::Adapter;
use crate::check::nonces::SigningNonces;
use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::disk::Disk;
use crate::host::{Host, Surroundings, Wish};
use crate::login::{self, Accounts};
use crate::network::{Pipe, delay};
use crate::scenario::{Faults, Scenario};
use crate::schedule::{Schedule, Timer};
use crate::world::config;

/// Maximum number of events of a run: a longer run never ends.
const STEPS_MAX: u64 = 1_000_000;
/// Time limit of the final phase, without faults.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// Maximum delay until an end learns that a connection was cut; now and then ten times as long.
const HEARSAY: Duration = Duration::from_secs(2);

/// Maximum time for which the account is disabled.
const DISABLED: Duration = Duration::from_secs(3);

/// An event.
#[derive(Debug)]
enum Event {
    /// The disabled account is enabled.
    Enable,
    Connect(usize),
    Think(usize),
    ToServer(u64),
    ToClient(u64),
    Ripe(u64, OpId),
    Notice(ConnectionId, Notice),
    ServerTimer(u64),
    ClientTimer(u64),
    /// An end learns that the connection has ended.
    ServerHears(u64),
    ClientHears(u64),
}

/// A connection: its two streams and the server's end. The peer holds the client's end, except for
/// the registered memory.
pub(super) struct Link {
    peer: usize,
    /// The server's end; `None` after a restart of the server.
    host: Option<Host>,
    up: Pipe,
    down: Pipe,
    /// The scheduled timer of the server's end.
    timer: Timer,
    pub(super) adapter: Adapter,
    is_client_open: bool,
    is_server_open: bool,
}

/// The world of a run.
pub(super) struct World {
    scenario: Sessions,
    /// The current faults.
    faults: Faults,
    is_calm: bool,
    choices: Choices,
    schedule: Schedule<Event>,
    server: Arc<Server>,
    accounts: Arc<Accounts>,
    /// The version of the accounts since the account was disabled for the last time.
    disabled_at: Option<AccountsRevision>,
    disk: Disk,
    nonces: SigningNonces,
    links: BTreeMap<u64, Link>,
    next_link: u64,
    /// Intact connections.
    whole: BTreeSet<u64>,
    peers: Vec<Peer>,
    books: Books,
    /// Deadline of the final phase; set when the faults stop.
    deadline: Option<Instant>,
    outcome: Outcome,
}

fn server_config(scenario: &Sessions) -> Config {
    Config {
        gmac_channels: scenario.gmac_channels,
        ..config(&Scenario::calm())
    }
}

impl World {
    pub(super) fn new(scenario: &Sessions, mut choices: Choices) -> Self {
        let schedule = Schedule::new();
        let disk = Disk::new(2, &Scenario::calm(), choices.fork());
        let mut world = Self {
            scenario: scenario.clone(),
            faults: scenario.faults.clone(),
            is_calm: false,
            server: Server::new(server_config(scenario), schedule.now()),
            accounts: Accounts::new(1),
            disabled_at: None,
            disk,
            choices,
            schedule,
            links: BTreeMap::new(),
            next_link: 1,
            whole: BTreeSet::new(),
            peers: Vec::new(),
            books: Books::default(),
            nonces: SigningNonces::for_policy(scenario.gmac_channels),
            deadline: None,
            outcome: Outcome::default(),
        };
        for id in 0..scenario.sessions {
            let choices = world.choices.fork();
            world.peers.push(Peer::new(id, scenario, choices));
            world.schedule.after(Duration::ZERO, Event::Connect(id));
        }
        world
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Runs until all sessions have finished and nothing is in flight.
    pub(super) fn run(&mut self) -> Check {
        while !self.is_finished() {
            let event = self.schedule.step(&mut self.outcome.steps, STEPS_MAX)?;
            self.happen(event)?;
            self.check_accounts()?;
            self.watch_the_clock()?;
        }
        Ok(())
    }

    /// Checks the disk at the end.
    pub(super) fn audit(&mut self) -> Check {
        self.disk.check_idle()?;
        let audit = audit(&mut self.disk, &mut self.books, self.scenario.sessions)?;
        self.outcome.reads_checked = audit.reads;
        self.outcome.appends = audit.appends;
        self.outcome.names = audit.names;
        Ok(())
    }

    /// Describes the state for a failure report.
    pub(super) fn describe(&self) -> String {
        let peers = self.peers.iter().map(Peer::describe);
        let links = self.links.iter().map(|(id, link)| {
            let state = link.host.as_ref().map(Host::describe);
            let (client, server) = (link.is_client_open, link.is_server_open);
            format!(
                "connection {id} of {}: {client} {server} {state:?}",
                link.peer
            )
        });
        let now = format!("at {:?}, {:?}", self.schedule.now().instant, self.outcome);
        peers
            .chain(links)
            .chain([now])
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn is_finished(&self) -> bool {
        self.links.is_empty() && self.peers.iter().all(|peer| peer.phase == Phase::Done)
    }

    /// Stops the faults after the last operation, and checks the deadline.
    fn watch_the_clock(&mut self) -> Check {
        let now = self.schedule.now().instant;
        if !self.is_calm && self.peers.iter().all(|peer| peer.script.quota == 0) {
            self.is_calm = true;
            self.deadline = Some(now.after(TIME_LIMIT));
            self.faults = self.faults.calmed();
        }
        self.schedule.check_deadline(self.deadline)
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::Enable => {
                self.accounts.set_disabled(None);
                Ok(())
            }
            Event::Connect(peer) => self.connect(peer),
            Event::Think(peer) => self.think(peer),
            Event::ToServer(link) => self.arrive_at_server(link),
            Event::ToClient(link) => self.arrive_at_client(link),
            Event::Ripe(link, op) => self.on_host(link, |host, around| host.ripe(op, around)),
            Event::Notice(to, notice) => {
                self.on_host(to.0, |host, around| host.notice(notice, around))
            }
            Event::ServerTimer(link) => self.server_timer(link),
            Event::ClientTimer(link) => self.with_peer_of(link, Peer::timeout),
            Event::ServerHears(link) => self.server_hears(link),
            Event::ClientHears(link) => self.client_hears(link),
        }
    }

    fn connect(&mut self, peer: usize) -> Check {
        let id = self.next_link;
        self.next_link += 1;
        self.outcome.connections += 1;
        let (server, accounts) = (self.server.clone(), self.accounts.clone());
        let now = self.schedule.now();
        let carrier = self.choices.pick(&self.scenario.transports);
        let (connection, choices) = (ConnectionId(id), &mut self.choices);
        let host = Host::new(server, connection, carrier, accounts, now, choices);
        let link = Link {
            peer,
            host: Some(host),
            up: Pipe::default(),
            down: Pipe::default(),
            timer: Timer::default(),
            adapter: Adapter::default(),
            is_client_open: true,
            is_server_open: true,
        };
        self.links.insert(id, link);
        self.whole.insert(id);
        self.books.born(id);
        self.set_server_timer(id);
        self.with_peer(peer, |peer, around| peer.connected(id, carrier, around))
    }

    fn think(&mut self, peer: usize) -> Check {
        if !self.is_calm {
            if self.choices.per_mille(self.faults.reset) {
                let links = self.peers[peer].links();
                if !links.is_empty() {
                    let link = self.choices.pick(&links);
                    self.cut(link);
                }
            }
            if self.choices.per_mille(self.scenario.restart) {
                self.restart();
            }
            if self.choices.per_mille(self.scenario.disable) {
                self.disable_account();
            }
            if self.choices.per_mille(self.scenario.end) {
                self.end_session();
            }
        }
        self.with_peer(peer, Peer::think)
    }

    /// The account of all sessions is disabled: the server ends them. It is enabled again later.
    fn disable_account(&mut self) {
        let revision = self.accounts.set_disabled(Some(0));
        self.disabled_at = Some(revision);
        self.outcome.disabled += 1;
        let notices = self
            .server
            .end_account(LoginScope::Account(&login::user_name(0)), revision);
        self.outcome.ended_by_disabling += self.note_ended(notices);
        let pause = delay(DISABLED, &mut self.choices);
        self.schedule.after(pause, Event::Enable);
    }

    /// The sessions of the server.
    fn sessions(&self) -> Vec<SessionSnapshot> {
        let limits = SnapshotLimits {
            sessions: usize::MAX,
            opens: 0,
            locks: 0,
        };
        self.server.snapshot(limits).sessions
    }

    /// An administrator ends one of the sessions.
    fn end_session(&mut self) {
        let ids: Vec<_> = self.sessions().iter().map(|session| session.id).collect();
        if ids.is_empty() {
            return;
        }
        let id = self.choices.pick(&ids);
        let notices = self.server.end_session(id).unwrap_or_default();
        self.outcome.ended_by_administrator += self.note_ended(notices);
    }

    /// Notes the sessions that the server has ended, and delivers the notices. Returns their
    /// number.
    fn note_ended(&mut self, notices: Vec<(ConnectionId, Notice)>) -> u64 {
        let ended = notices.iter().filter_map(|(_, notice)| match notice {
            Notice::SessionClosed(id) => Some(*id),
            _ => None,
        });
        let sessions: BTreeSet<_> = ended.collect();
        let count = sessions.len() as u64;
        self.books.ended.extend(sessions);
        for (to, notice) in notices {
            let pause = delay(self.faults.network_delay, &mut self.choices);
            self.schedule.after(pause, Event::Notice(to, notice));
        }
        count
    }

    /// No session exists with a login from before the account was disabled.
    fn check_accounts(&self) -> Check {
        let Some(disabled_at) = self.disabled_at else {
            return Ok(());
        };
        let sessions = self.sessions();
        let old = sessions
            .iter()
            .find(|session| session.account.revision < disabled_at);
        ensure(old.is_none(), || {
            format!("{old:?} logged in before the account was disabled at {disabled_at:?}")
        })
    }

    /// A connection breaks: some bytes in flight still arrive, and each end learns of it after a
    /// delay.
    fn cut(&mut self, id: u64) {
        self.outcome.cuts += 1;
        self.whole.remove(&id);
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        link.up.cut(&mut self.choices);
        link.down.cut(&mut self.choices);
        link.adapter.end();
        for is_server in [false, true] {
            let times = match self.choices.per_mille(100) {
                true => 10,
                false => 1,
            };
            let pause = delay(HEARSAY * times, &mut self.choices);
            self.hear(id, is_server, pause);
        }
    }

    /// An end learns that the connection has ended, after the bytes that still arrive.
    fn hear(&mut self, id: u64, is_server: bool, pause: Duration) {
        let now = self.schedule.now().instant;
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let (pipe, event) = match is_server {
            true => (&link.up, Event::ServerHears(id)),
            false => (&link.down, Event::ClientHears(id)),
        };
        self.schedule.at(pipe.last().max(now).after(pause), event);
    }

    /// The server process ends, and a new one starts.
    fn restart(&mut self) {
        self.outcome.restarts += 1;
        self.server = Server::new(server_config(&self.scenario), self.schedule.now());
        self.disk.crash();
        self.whole.clear();
        let ids: Vec<u64> = self.links.keys().copied().collect();
        for id in ids {
            let link = self.links.get_mut(&id).expect("it was just seen");
            link.host = None;
            link.adapter.end();
            link.is_server_open = false;
            link.up.reset();
            link.up.cut(&mut self.choices);
            link.down.cut(&mut self.choices);
            let pause = delay(HEARSAY, &mut self.choices);
            self.hear(id, false, pause);
            self.books.buried(id);
            self.bury(id);
        }
    }

    fn arrive_at_server(&mut self, id: u64) -> Check {
        let Some(link) = self.links.get_mut(&id) else {
            return Ok(());
        };
        link.up.arrive();
        while let Some(frame) = self.links.get_mut(&id).and_then(|link| link.up.frame()) {
            self.on_host(id, |host, around| host.receive(frame, around))?;
        }
        Ok(())
    }

    fn arrive_at_client(&mut self, id: u64) -> Check {
        // A closed end receives nothing.
        let receive = |links: &mut BTreeMap<u64, Link>| {
            let link = links.get_mut(&id).filter(|link| link.is_client_open)?;
            Some((link.down.frame()?, link.adapter.hears()))
        };
        if let Some(link) = self.links.get_mut(&id) {
            link.down.arrive();
        }
        while let Some((frame, key)) = receive(&mut self.links) {
            let key = key?;
            self.with_peer_of(id, |peer, link, around| {
                peer.frame(link, frame, key, around)
            })?;
        }
        Ok(())
    }

    fn server_timer(&mut self, id: u64) -> Check {
        let Some(link) = self.links.get_mut(&id) else {
            return Ok(());
        };
        link.timer.clear();
        self.on_host(id, Host::timeout)?;
        let now = self.schedule.now().instant;
        let host = self.links.get(&id).and_then(|link| link.host.as_ref());
        let next = host.and_then(Host::next_timeout);
        ensure(next.is_none_or(|next| next > now), || {
            format!("the timer of connection {id} is due again and again")
        })
    }

    /// The server's end has closed; the client's end learns of it.
    fn server_hears(&mut self, id: u64) -> Check {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_server_open) else {
            return Ok(());
        };
        link.is_server_open = false;
        self.whole.remove(&id);
        self.hear(id, false, Duration::from_millis(1));
        self.on_host(id, Host::closed)
    }

    /// The client's end has closed; the server's end learns of it.
    fn client_hears(&mut self, id: u64) -> Check {
        if !self.links.get(&id).is_some_and(|link| link.is_client_open) {
            return Ok(());
        }
        self.whole.remove(&id);
        self.with_peer_of(id, Peer::disconnected)?;
        self.close_client(id);
        Ok(())
    }

    fn close_client(&mut self, id: u64) {
        self.whole.remove(&id);
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_client_open) else {
            return;
        };
        link.is_client_open = false;
        link.adapter.end();
        self.hear(id, true, Duration::from_millis(1));
        self.bury(id);
    }

    /// Calls the server's end, and grants its requests.
    fn on_host(
        &mut self,
        id: u64,
        call: impl FnOnce(&mut Host, &mut Surroundings<'_>) -> Check,
    ) -> Check {
        let Some(link) = self.links.get_mut(&id) else {
            return Ok(());
        };
        let Some(host) = link.host.as_mut() else {
            return Ok(());
        };
        let mut wishes = Vec::new();
        let mut around = Surroundings {
            now: self.schedule.now(),
            disk: &mut self.disk,
            choices: &mut self.choices,
            faults: &self.faults,
            adapter: &mut link.adapter,
            nonces: &mut self.nonces,
            wishes: &mut wishes,
        };
        call(host, &mut around)?;
        for wish in wishes {
            self.grant(id, wish)?;
        }
        self.set_server_timer(id);
        self.bury(id);
        Ok(())
    }

    fn grant(&mut self, id: u64, wish: Wish) -> Check {
        match wish {
            Wish::Send(frame, invalidate) => {
                if let Some(link) = self.links.get_mut(&id) {
                    link.adapter.sends(invalidate);
                }
                self.send(id, &frame, false);
            }
            Wish::Later(op) => {
                let pause = delay(self.faults.disk_delay, &mut self.choices);
                self.schedule.after(pause, Event::Ripe(id, op));
            }
            Wish::Notify(to, notice) => {
                let pause = delay(self.faults.network_delay, &mut self.choices);
                self.schedule.after(pause, Event::Notice(to, notice));
            }
            Wish::Refused(refusal) => {
                let is_known = refusal == LoginRefusal::AccountChanged;
                self.outcome.outdated_logins += u64::from(is_known);
            }
            Wish::ArmServerTimer => return Err("no open outlives its session here".into()),
            Wish::Disconnect(violation) => {
                // The network held back a part of a login; or a frame arrived after the end of its
                // session.
                let peer = self.links.get(&id).map(|link| &self.peers[link.peer]);
                let is_leaving = peer.is_some_and(|peer| peer.phase == Phase::Leaving);
                let link = self.links.get(&id);
                let is_broken = link.is_some_and(|link| link.adapter.is_over());
                let is_fine = match violation {
                    // The RDMA failed, or the memory is no longer registered.
                    Violation::RemoteMemory => is_broken,
                    Violation::LoginTimeout => self.scenario.held > 0,
                    Violation::CannotDecrypt(session) => {
                        let is_ended = self.books.ended.contains(&session);
                        !self.whole.contains(&id) || is_leaving || is_ended
                    }
                    _ => false,
                };
                ensure(is_fine, || {
                    format!("the server ended connection {id}: {violation}")
                })?;
                self.whole.remove(&id);
                self.hear(id, true, Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn send(&mut self, id: u64, frame: &[u8], is_up: bool) {
        let now = self.schedule.now().instant;
        let mut faults = self.faults.clone();
        if !self.is_calm && self.choices.per_mille(self.scenario.held) {
            faults.network_delay = self.scenario.hold;
        }
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let pipe = if is_up { &mut link.up } else { &mut link.down };
        for at in pipe.send(frame, now, &faults, &mut self.choices) {
            let event = match is_up {
                true => Event::ToServer(id),
                false => Event::ToClient(id),
            };
            self.schedule.at(at, event);
        }
    }

    fn set_server_timer(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let next = link.host.as_ref().and_then(Host::next_timeout);
        if let Some(at) = link.timer.set(next) {
            self.schedule.at(at, Event::ServerTimer(id));
        }
    }

    /// Removes a connection that has ended for the server, or on both ends.
    fn bury(&mut self, id: u64) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        if link.is_server_open || !link.host.as_ref().is_none_or(Host::is_drained) {
            return;
        }
        let is_over = !link.is_client_open;
        self.books.buried(id);
        if is_over {
            self.links.remove(&id);
        }
    }

    fn with_peer_of(
        &mut self,
        id: u64,
        call: impl FnOnce(&mut Peer, u64, &mut Around<'_>) -> Check,
    ) -> Check {
        let Some(link) = self.links.get(&id).filter(|link| link.is_client_open) else {
            return Ok(());
        };
        self.with_peer(link.peer, |peer, around| call(peer, id, around))
    }

    /// Calls a session, and executes its orders.
    fn with_peer(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Peer, &mut Around<'_>) -> Check,
    ) -> Check {
        let mut orders = Vec::new();
        let mut around = Around {
            now: self.schedule.now(),
            scenario: &self.scenario,
            books: &mut self.books,
            nonces: &mut self.nonces,
            outcome: &mut self.outcome,
            orders: &mut orders,
            whole: &self.whole,
            links: &mut self.links,
            is_calm: self.is_calm,
        };
        call(&mut self.peers[index], &mut around)?;
        for order in orders {
            match order {
                Order::Frame(link, frame) => self.send(link, &frame, true),
                Order::Close(link) => self.close_client(link),
                Order::Open(pause) => self.schedule.after(pause, Event::Connect(index)),
                Order::Think => {
                    let pause = delay(THOUGHT, &mut self.choices);
                    self.schedule.after(pause, Event::Think(index));
                }
            }
        }
        for link in self.peers[index].links() {
            if let Some(at) = self.peers[index].set_timer(link) {
                self.schedule.at(at, Event::ClientTimer(link));
            }
        }
        Ok(())
    }
}
