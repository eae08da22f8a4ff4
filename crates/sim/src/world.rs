//! The world of a run: the server, its disk, the network, the clients, and the next events.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use proto::carrier::Carrier;
use proto::file::{FileKey, LocalChange, LocalEvent, ShareId, StreamId};
use proto::id::{ConnectionId, OpId};
use proto::notice::Notice;
use proto::path::SharePath;
use proto::server::Server;
use proto::server::config::{Config, Limits, Share, ShareKind, SyncPolicy};
use proto::server::hosts::HostRules;
use proto::server::ledger::Resource;
use proto::server::share_users::{Principal, ShareUsers};
use proto::time::Instant;
use proto::violation::Violation;
use wire::FileId;
use wire::change_notify::CompletionFilter;
use wire::fscc::FileAction;

use crate::Report;
use crate::adapter::Adapter;
use crate::backpressure::Backpressure;
use crate::check::caching::Caching;
use crate::check::contents::Contents;
use crate::check::directories::Directories;
use crate::check::locks::Locks;
use crate::check::names::Names;
use crate::check::nonces::SigningNonces;
use crate::check::opens::Opens;
use crate::check::refused_locks::RefusedLocks;
use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::client::{Client, Order, Phase, Shared};
use crate::disk::Disk;
use crate::host::{Host, Surroundings, Wish};
use crate::login::{self, Accounts};
use crate::misbehavior::Misbehavior;
use crate::network::{Pipe, delay};
use crate::scenario::{Faults, Scenario};
use crate::schedule::{Schedule, Timer};
use crate::server_host::{self, ServerHost};

/// Maximum number of events of a run: a longer run never ends.
const STEPS_MAX: u64 = 2_000_000;
/// Time limit of the final phase, without faults.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Maximum pause of a client between two operations.
const THOUGHT: Duration = Duration::from_millis(20);

/// Probability per mille that another process changes a share when a client acts.
const LOCAL: u16 = 20;
/// Range of file numbers of these changes: those of the first files of a run.
const FILES: u64 = 24;

/// An event.
#[derive(Debug)]
enum Event {
    Connect(usize),
    Think(usize, u64),
    ToServer(u64),
    ToClient(u64),
    Ripe(u64, OpId),
    Notice(ConnectionId, Notice),
    Timer(u64),
    HangUp(u64),
    ServerTimer,
    ServerRipe(OpId),
}

/// A connection: its two streams and the server's end. The client holds the other end.
struct Link {
    client: usize,
    host: Host,
    up: Pipe,
    down: Pipe,
    adapter: Adapter,
    backpressure: Backpressure,
    /// The timer of the server's end.
    timer: Timer,
    is_up: bool,
}

/// The world of a run.
pub(crate) struct World {
    scenario: Scenario,
    /// The current faults.
    faults: Faults,
    choices: Choices,
    schedule: Schedule<Event>,
    server: Arc<Server>,
    server_host: ServerHost,
    /// The timer of the server.
    server_timer: Timer,
    accounts: Arc<Accounts>,
    disk: Disk,
    nonces: SigningNonces,
    links: BTreeMap<u64, Link>,
    next_link: u64,
    clients: Vec<Client>,
    contents: Contents,
    opens: Opens,
    locks: Locks,
    caching: Caching,
    directories: Directories,
    names: Names,
    refused_locks: RefusedLocks,
    file_ids: Vec<FileId>,
    tick: u64,
    /// Deadline of the final phase; set when the faults stop.
    deadline: Option<Instant>,
    pub(crate) report: Report,
    /// All frames that clients sent.
    pub(crate) captured: Vec<Vec<u8>>,
}

impl World {
    pub(crate) fn new(scenario: &Scenario, mut choices: Choices) -> Self {
        let schedule = Schedule::new();
        let config = config(scenario);
        let shares = config.shares.len() as u32;
        let server = Server::new(config, schedule.now());
        Self {
            disk: Disk::new(shares, scenario, choices.fork()),
            nonces: SigningNonces::default(),
            scenario: scenario.clone(),
            faults: scenario.faults.clone(),
            choices,
            schedule,
            server_host: ServerHost::new(server.clone()),
            server_timer: Timer::default(),
            server,
            accounts: Accounts::new(scenario.users),
            links: BTreeMap::new(),
            next_link: 1,
            clients: Vec::new(),
            contents: Contents::default(),
            opens: Opens::default(),
            locks: Locks::default(),
            caching: Caching::default(),
            directories: Directories::default(),
            names: Names::default(),
            refused_locks: RefusedLocks::default(),
            file_ids: Vec::new(),
            tick: 0,
            deadline: None,
            report: Report::default(),
            captured: Vec::new(),
        }
    }

    /// Returns a server's end for a connection that is not in the world.
    pub(crate) fn host(&self, carrier: Carrier, choices: &mut Choices) -> Host {
        let (server, accounts) = (self.server.clone(), self.accounts.clone());
        Host::new(
            server,
            ConnectionId(0),
            carrier,
            accounts,
            self.schedule.now(),
            choices,
        )
    }

    pub(crate) fn disk(&mut self) -> &mut Disk {
        &mut self.disk
    }

    /// Adds the clients of the scenario.
    pub(crate) fn populate(&mut self) {
        for user in 0..self.scenario.users {
            for _ in 0..self.scenario.connections_per_user {
                let choices = self.choices.fork();
                self.admit(|id, scenario| Client::new(id, user, scenario, choices));
            }
        }
    }

    /// Adds one client that follows the decisions of a fuzzer.
    pub(crate) fn populate_scripted(&mut self, script: Choices) {
        self.admit(|id, scenario| Client::new(id, 0, scenario, script));
    }

    fn admit(&mut self, client: impl FnOnce(usize, &Scenario) -> Client) {
        let id = self.clients.len();
        self.clients.push(client(id, &self.scenario));
        self.schedule.after(Duration::ZERO, Event::Connect(id));
    }

    /// Runs until all clients have finished and nothing is in flight.
    pub(crate) fn run(&mut self) -> Check {
        while !self.is_finished() {
            let event = self.schedule.step(&mut self.report.steps, STEPS_MAX)?;
            self.happen(event)?;
            self.watch_the_clock()?;
        }
        Ok(())
    }

    /// Checks the files that the clients left, one user after the other, without faults.
    pub(crate) fn audit(&mut self) -> Check {
        self.disk.check_idle()?;
        self.faults = Faults {
            space: self.scenario.faults.space,
            ..Faults::default()
        };
        for user in 0..self.scenario.users {
            let choices = self.choices.fork();
            self.admit(|id, scenario| Client::new(id, user, scenario, choices).auditing());
            self.deadline = Some(self.schedule.now().instant.after(TIME_LIMIT));
            self.run()?;
        }
        self.disk.check_idle()?;
        self.report.reads_checked = self.contents.check()?;
        self.directories.check()?;
        (self.report.names_checked, self.report.names_removed) = self.names.check()?;
        self.report.refusals_checked = self.refused_locks.check()?;
        self.check_ledger()
    }

    /// Checks that no user has a resource after the end of all connections.
    fn check_ledger(&self) -> Check {
        for resource in Resource::ALL {
            let used = self.server.ledger().used(resource);
            ensure(used == 0, || {
                format!("{used} of {resource:?} are still counted after the last connection")
            })?;
        }
        Ok(())
    }

    /// Describes the state for a failure report.
    pub(crate) fn describe(&self) -> String {
        let clients = self.clients.iter().map(Client::describe);
        let links = self.links.iter().map(|(id, link)| {
            let state = link.host.describe();
            format!("connection {id} of client {}: {state}", link.client)
        });
        clients.chain(links).collect::<Vec<_>>().join("\n")
    }

    fn is_finished(&self) -> bool {
        let is_done = |client: &Client| client.phase == Phase::Done;
        let are_clients_done = self.links.is_empty() && self.clients.iter().all(is_done);
        are_clients_done && self.server_host.is_idle()
    }

    /// Stops the faults after the last operation, and checks the deadline.
    fn watch_the_clock(&mut self) -> Check {
        let now = self.schedule.now().instant;
        if self.deadline.is_none() && self.clients.iter().all(|client| client.quota == 0) {
            self.deadline = Some(now.after(TIME_LIMIT));
            self.faults = self.faults.calmed();
        }
        self.schedule.check_deadline(self.deadline)
    }

    fn happen(&mut self, event: Event) -> Check {
        let now = self.schedule.now().instant;
        self.opens.expire(now);
        self.locks.expire(now);
        self.happen_now(event)?;
        self.resume_paused()
    }

    fn happen_now(&mut self, event: Event) -> Check {
        match event {
            Event::Connect(client) => {
                self.connect(client);
                Ok(())
            }
            Event::Think(client, link) => {
                self.happen_locally();
                self.think(client, link)
            }
            Event::ToServer(link) => self.arrive_at_server(link),
            Event::ToClient(link) => self.arrive_at_client(link),
            Event::Ripe(link, op) => self.on_host(link, |host, around| host.ripe(op, around)),
            Event::Notice(to, notice) => {
                self.on_host(to.0, |host, around| host.notice(notice, around))
            }
            Event::Timer(link) => self.timer(link),
            Event::HangUp(link) => self.hang_up(link),
            Event::ServerTimer => self.server_timeout(),
            Event::ServerRipe(op) => self.on_server(|host, around| host.ripe(op, around)),
        }
    }

    /// Now and then another process changes a share, according to its file system.
    fn happen_locally(&mut self) {
        if !self.choices.per_mille(LOCAL) {
            return;
        }
        let directory = FileKey {
            volume: 1,
            file: self.choices.below(FILES),
            stream: StreamId::DATA,
        };
        let change = LocalEvent::Change(LocalChange {
            directory,
            path: SharePath::from_trusted("some/thing"),
            action: FileAction::ADDED,
            filter: CompletionFilter::FILE_NAME,
        });
        let event = match self.choices.below(4) {
            0 => LocalEvent::Lost(None),
            1 => LocalEvent::Removed(directory),
            _ => change,
        };
        for (to, notice) in self
            .server
            .local_events(self.schedule.now(), ShareId(0), &[event])
        {
            let pause = delay(self.faults.network_delay, &mut self.choices);
            self.schedule.after(pause, Event::Notice(to, notice));
        }
    }

    fn connect(&mut self, client: usize) {
        let id = self.next_link;
        self.next_link += 1;
        self.report.connections += 1;
        let (server, accounts) = (self.server.clone(), self.accounts.clone());
        let now = self.schedule.now();
        let (connection, carrier) = (ConnectionId(id), self.clients[client].carrier);
        let mut host = Host::new(
            server,
            connection,
            carrier,
            accounts,
            now,
            &mut self.choices,
        );
        host.misbehave(self.scenario.misbehavior);
        let link = Link {
            client,
            host,
            up: Pipe::default(),
            down: Pipe::default(),
            adapter: Adapter::default(),
            backpressure: Backpressure::default(),
            timer: Timer::default(),
            is_up: true,
        };
        self.links.insert(id, link);
        self.with_client(client, |client, shared| client.connected(id, shared));
        self.set_timer(id);
    }

    fn think(&mut self, client: usize, link: u64) -> Check {
        if self.clients[client].link != Some(link) {
            return Ok(());
        }
        let is_unlucky = self.choices.per_mille(self.faults.reset);
        if is_unlucky {
            return self.hang_up(link);
        }
        self.withhold(link);
        self.with_client(client, Client::think)
    }

    /// Now and then a client stops to receive.
    fn withhold(&mut self, id: u64) {
        if !self.choices.per_mille(self.faults.withheld) {
            return;
        }
        let pause = delay(self.faults.withhold_time, &mut self.choices);
        let now = self.schedule.now().instant;
        if let Some(link) = self.links.get_mut(&id)
            && link.backpressure.withheld_until(now).is_none()
        {
            link.backpressure.withhold(now.after(pause));
            self.report.withheld += 1;
        }
    }

    fn arrive_at_server(&mut self, id: u64) -> Check {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_up) else {
            return Ok(());
        };
        link.up.arrive();
        self.handle_frames(id)
    }

    /// Passes the frames that have arrived to the server's end, unless the connection is paused.
    fn handle_frames(&mut self, id: u64) -> Check {
        while let Some(link) = self.links.get_mut(&id) {
            if !link.backpressure.may_handle(self.server.ledger()) {
                if !mem::replace(&mut link.backpressure.is_paused, true) {
                    self.report.paused += 1;
                }
                return Ok(());
            }
            link.backpressure.is_paused = false;
            let Some(frame) = link.up.frame() else {
                return Ok(());
            };
            self.on_host(id, |host, around| host.receive(frame, around))?;
        }
        Ok(())
    }

    /// Continues with the frames of paused connections where an event released memory.
    fn resume_paused(&mut self) -> Check {
        let links = self.links.iter();
        let paused = links.filter(|(_, link)| link.backpressure.is_paused);
        let paused: Vec<u64> = paused.map(|(id, _)| *id).collect();
        paused.into_iter().try_for_each(|id| self.handle_frames(id))
    }

    fn arrive_at_client(&mut self, id: u64) -> Check {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_up) else {
            return Ok(());
        };
        let client = link.client;
        let now = self.schedule.now().instant;
        if let Some(until) = link.backpressure.withheld_until(now) {
            self.schedule.at(until, Event::ToClient(id));
            return Ok(());
        }
        link.down.arrive();
        while let Some(frame) = self.links.get_mut(&id).and_then(|link| link.down.frame()) {
            let link = self.links.get_mut(&id).expect("it had a frame");
            link.adapter.hears()?;
            link.backpressure.received(frame.len());
            link.backpressure.count(&self.server, &link.host);
            let mut others = self.links.iter();
            if others.any(|(other, link)| *other != id && link.backpressure.is_paused) {
                self.report.answers_beside_paused += 1;
            }
            self.with_client(client, |client, shared| client.frame(frame, shared))?;
        }
        Ok(())
    }

    fn timer(&mut self, id: u64) -> Check {
        let Some(link) = self.links.get_mut(&id) else {
            return Ok(());
        };
        link.timer.clear();
        self.on_host(id, Host::timeout)?;
        let now = self.schedule.now().instant;
        let next = self
            .links
            .get(&id)
            .and_then(|link| link.host.next_timeout());
        ensure(next.is_none_or(|next| next > now), || {
            format!("the timer of connection {id} is due forever")
        })
    }

    fn server_timeout(&mut self) -> Check {
        self.server_timer.clear();
        let is_due = (self.server_host.next_timeout())
            .is_some_and(|next| next <= self.schedule.now().instant);
        if is_due && self.links.is_empty() {
            self.report.timeouts_without_connection += 1;
        }
        self.on_server(ServerHost::timeout)?;
        let now = self.schedule.now().instant;
        let next = self.server_host.next_timeout();
        ensure(next.is_none_or(|next| next > now), || {
            "the timer of the server is due forever".into()
        })
    }

    /// Calls the driver of the server, and grants its requests.
    fn on_server(
        &mut self,
        call: impl FnOnce(&mut ServerHost, &mut server_host::Surroundings<'_>) -> Check,
    ) -> Check {
        let mut wishes = Vec::new();
        let mut around = server_host::Surroundings {
            now: self.schedule.now(),
            disk: &mut self.disk,
            faults: &self.faults,
            wishes: &mut wishes,
        };
        call(&mut self.server_host, &mut around)?;
        for wish in wishes {
            match wish {
                Wish::Later(op) => {
                    let pause = delay(self.faults.disk_delay, &mut self.choices);
                    self.schedule.after(pause, Event::ServerRipe(op));
                }
                Wish::Notify(to, notice) => self.deliver(to, notice),
                other => return Err(format!("the server requests {other:?}")),
            }
        }
        self.set_server_timer();
        Ok(())
    }

    fn set_server_timer(&mut self) {
        let next = self.server_host.next_timeout();
        if let Some(at) = self.server_timer.set(next) {
            self.schedule.at(at, Event::ServerTimer);
        }
    }

    /// Delivers a notice after a delay.
    fn deliver(&mut self, to: ConnectionId, notice: Notice) {
        if let Notice::LockSettled {
            is_granted: true, ..
        } = notice
        {
            self.report.locks_waited_for += 1;
        }
        let mut pause = Duration::ZERO;
        if let Notice::BreakCaching(caching_break) = &notice {
            let misbehavior = self.scenario.misbehavior;
            if misbehavior.is_some_and(|fault| fault.forgets(caching_break)) {
                return;
            }
            self.tick += 1;
            let now = self.schedule.now().instant;
            self.caching.post(caching_break, self.tick, now);
            if misbehavior.is_some_and(|fault| fault.loses(caching_break)) {
                return;
            }
            pause += misbehavior.map_or(Duration::ZERO, |fault| fault.delay(caching_break));
        }
        pause += delay(self.faults.network_delay, &mut self.choices);
        self.schedule.after(pause, Event::Notice(to, notice));
    }

    /// The connection ends for both ends.
    fn hang_up(&mut self, id: u64) -> Check {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.is_up) else {
            return Ok(());
        };
        link.is_up = false;
        link.adapter.end();
        link.up.reset();
        link.down.reset();
        let client = link.client;
        self.with_client(client, Client::disconnected);
        if self.clients[client].phase == Phase::Away {
            let pause = delay(THOUGHT, &mut self.choices);
            self.schedule.after(pause, Event::Connect(client));
        }
        self.on_host(id, Host::closed)
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
        call(&mut link.host, &mut around)?;
        for wish in wishes {
            self.grant(id, wish)?;
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.backpressure.count(&self.server, &link.host);
        }
        self.set_timer(id);
        self.bury(id);
        Ok(())
    }

    fn grant(&mut self, id: u64, wish: Wish) -> Check {
        let now = self.schedule.now().instant;
        let link = self.links.get_mut(&id).expect("it has a request");
        match wish {
            Wish::Send(frame, invalidate) => {
                link.adapter.sends(invalidate);
                link.backpressure.sent(frame.len());
                let (faults, choices) = (&self.faults, &mut self.choices);
                for at in link.down.send(&frame, now, faults, choices) {
                    self.schedule.at(at, Event::ToClient(id));
                }
            }
            Wish::Later(op) => {
                let pause = delay(self.faults.disk_delay, &mut self.choices);
                self.schedule.after(pause, Event::Ripe(id, op));
            }
            Wish::Notify(to, notice) => self.deliver(to, notice),
            Wish::ArmServerTimer => self.set_server_timer(),
            Wish::Refused(_) => {}
            Wish::Disconnect(violation) => {
                let is_explained = violation != Violation::RemoteMemory || link.adapter.is_over();
                ensure(is_explained, || {
                    format!("the server reports an RDMA failure of connection {id}, which has none")
                })?;
                self.report.violations += 1;
                self.report.last_violation = Some(violation);
                let pause = self.faults.network_delay + Duration::from_millis(1);
                self.schedule.after(pause, Event::HangUp(id));
            }
        }
        Ok(())
    }

    fn set_timer(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let next = link.host.next_timeout();
        if let Some(at) = link.timer.set(next) {
            self.schedule.at(at, Event::Timer(id));
        }
    }

    /// Removes a connection that has ended on both ends: none of its requests can have an effect
    /// now.
    fn bury(&mut self, id: u64) {
        let is_over = |link: &Link| !link.is_up && link.host.is_drained();
        if self.links.get(&id).is_some_and(is_over) {
            self.links.remove(&id);
            self.tick += 1;
            self.contents.settle(id, self.tick);
            self.names.settle(id, self.tick);
        }
    }

    /// Calls a client, and executes its orders.
    fn with_client<T>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Client, &mut Shared<'_>) -> T,
    ) -> T {
        let link = self.clients[index].link;
        let named = link.and_then(|id| self.links.get_mut(&id));
        let mut adapter = named.map(|link| mem::take(&mut link.adapter));
        let mut shared = Shared {
            tick: &mut self.tick,
            now: self.schedule.now(),
            scenario: &self.scenario,
            faults: &self.faults,
            contents: &mut self.contents,
            opens: &mut self.opens,
            locks: &mut self.locks,
            caching: &mut self.caching,
            directories: &mut self.directories,
            names: &mut self.names,
            refused_locks: &mut self.refused_locks,
            file_ids: &mut self.file_ids,
            orders: Vec::new(),
            report: &mut self.report,
            adapter: adapter.get_or_insert_default(),
        };
        let client = &mut self.clients[index];
        let result = call(client, &mut shared);
        let orders = mem::take(&mut shared.orders);
        if let Some(present) = link.and_then(|id| self.links.get_mut(&id)) {
            present.adapter = adapter.unwrap_or_default();
        }
        if let Some(link) = client.link.or(link) {
            for order in orders {
                self.obey(index, link, order);
            }
        }
        result
    }

    fn obey(&mut self, client: usize, id: u64, order: Order) {
        let now = self.schedule.now().instant;
        match order {
            Order::Frame(frame) => {
                let Some(link) = self.links.get_mut(&id) else {
                    return;
                };
                let (faults, choices) = (&self.faults, &mut self.choices);
                for at in link.up.send(&frame, now, faults, choices) {
                    self.schedule.at(at, Event::ToServer(id));
                }
                self.captured.push(frame);
            }
            Order::Think => {
                let pause = delay(THOUGHT, &mut self.choices);
                self.schedule.after(pause, Event::Think(client, id));
            }
            Order::HangUp => self.schedule.after(Duration::ZERO, Event::HangUp(id)),
        }
    }
}

pub(crate) fn config(scenario: &Scenario) -> Config {
    let share = |id: u32, name: &str, valid: Option<Vec<Principal>>| {
        Arc::new(Share {
            id: ShareId(id),
            name: name.into(),
            kind: ShareKind::Disk,
            comment: String::new(),
            read_only: false,
            listed: true,
            encryption_required: false,
            users: ShareUsers {
                valid,
                ..ShareUsers::default()
            },
            hosts: HostRules::default(),
            guest: name == "data",
            oplocks: true,
            directory_leases: true,
            durable_handles: true,
            notify: true,
            sync: SyncPolicy::default(),
            force_token: None,
            access_based_enumeration: false,
            audit: Arc::default(),
            posix: true,
        })
    };
    let limits = Limits::default();
    let break_timeout = scenario.misbehavior.and_then(Misbehavior::break_timeout);
    Config {
        security_blob: auth::server_hint(),
        limits: Limits {
            oplock_break_timeout: break_timeout.unwrap_or(limits.oplock_break_timeout),
            credits: scenario.credits,
            durable_timeout_max: scenario.resilient_timeout,
            response_bytes: scenario.response_bytes,
            ..limits
        },
        shares: vec![
            share(0, "data", None),
            share(
                1,
                "private",
                Some(vec![Principal::User(login::user_name(0))]),
            ),
        ],
        ..Config::default()
    }
}
