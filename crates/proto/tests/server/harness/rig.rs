//! The driver of the tests: performs each effect at once, unless a test holds it back.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::account::{AccountQuery, KnownAccount};
use proto::audit::Event;
use proto::carrier::Carrier;
use proto::effect::{
    AnsweredRequest, Delivery, Effect, Effects, Inbound, Outbound, Outcome, ReadPlan, WriteData,
    WritePlan,
};
use proto::file::{FileOp, LocalEvent, ShareId};
use proto::id::{ConnectionId, OpId};
use proto::login::{
    Accepted, Account, AccountKind, AccountsRevision, AppPassword, Authenticate, Authenticated,
};
use proto::notice::Notice;
use proto::report::Report;
use proto::server::config::{Config, Share, ShareKind, SyncPolicy};
use proto::server::hosts::HostRules;
use proto::server::share_users::{Principal, ShareUsers};
use proto::server::{Connection, GmacChannels, Server};
use proto::time::Now;
use proto::token::Token;
use proto::violation::Violation;
use wire::rpc::lsarpc::SidKind;
use wire::security::{WELL_KNOWN, WellKnownSid};
use wire::{FileTime, Status};

use super::disk::Disk;
use super::memory::Memory;

/// A server process: its connections, clock, disk and network.
pub(crate) struct Rig {
    pub(crate) server: Arc<Server>,
    pub(crate) disk: Disk,
    pub(crate) now: Now,
    connections: BTreeMap<ConnectionId, Connection>,
    /// The address of the clients of later connections.
    pub(crate) peer: Option<IpAddr>,
    /// Frames that the client of each connection has not read yet.
    inboxes: BTreeMap<ConnectionId, VecDeque<Vec<u8>>>,
    /// The violations that ended connections.
    pub(crate) violations: BTreeMap<ConnectionId, Violation>,
    /// While set, operations on files wait in `held`.
    pub(crate) is_holding: bool,
    pub(crate) held: VecDeque<(ConnectionId, OpId, Outcome)>,
    /// While set, operations on files do not begin: they wait in `slow`, and notices in
    /// `notices`.
    pub(crate) is_slow: bool,
    pub(crate) slow: VecDeque<(ConnectionId, Work)>,
    /// Notices from connections to each other and to themselves. The rig delivers them after the
    /// current call returns.
    pub(crate) notices: VecDeque<(ConnectionId, Notice)>,
    is_performing: bool,
    /// Operations that connections canceled.
    pub(crate) cancelled: Vec<OpId>,
    /// Number of ended authentication conversations.
    pub(crate) ended_conversations: usize,
    /// The version of the accounts that logins use.
    pub(crate) revision: AccountsRevision,
    /// Memory that clients expose by RDMA.
    pub(crate) memory: Memory,
    /// Keys of client memory that responses invalidated.
    pub(crate) invalidated: Vec<u32>,
    /// Reports of all connections.
    pub(crate) reports: Vec<Report>,
    /// Events of all connections and of the server for the audit log.
    pub(crate) audited: Vec<Event>,
    /// The answered requests of all connections, as the statistics of a driver have them.
    pub(crate) answered: Vec<AnsweredRequest>,
}

/// An operation that has not begun.
pub(crate) enum Work {
    Read(ReadPlan),
    /// Its data are owned.
    Write(WritePlan),
    File(OpId, FileOp),
}

/// The lists of a share for this user.
pub(crate) fn only(user: &str) -> ShareUsers {
    ShareUsers {
        valid: Some(vec![Principal::User(user.to_owned())]),
        ..ShareUsers::default()
    }
}

/// A disk share for all users.
pub(crate) fn share(name: &str) -> Share {
    Share {
        id: ShareId(0),
        name: name.to_owned(),
        kind: ShareKind::Disk,
        comment: String::new(),
        read_only: false,
        listed: true,
        encryption_required: false,
        oplocks: true,
        directory_leases: true,
        durable_handles: true,
        notify: true,
        sync: SyncPolicy::default(),
        users: ShareUsers::default(),
        hosts: HostRules::default(),
        guest: false,
        force_token: None,
        access_based_enumeration: false,
        audit: Arc::default(),
        posix: true,
    }
}

impl Rig {
    /// The session key of every login with a user name.
    pub(crate) const SESSION_KEY: [u8; 16] = *b"sixteen bytes ok";

    /// A server with IPC$ and a share called `files`. `change` may change the configuration.
    pub(crate) fn new(change: impl FnOnce(&mut Config)) -> Self {
        let ipc = Share {
            kind: ShareKind::Pipe,
            ..share("IPC$")
        };
        let mut config = Config {
            security_blob: b"the server's first word".to_vec(),
            shares: vec![Arc::new(share("files")), Arc::new(ipc)],
            gmac_channels: GmacChannels::Allow,
            ..Config::default()
        };
        change(&mut config);
        let now = Now {
            wall: FileTime::from_unix(1_800_000_000, 0),
            ..Now::default()
        };
        Self {
            server: Server::new(config, now),
            disk: Disk::default(),
            now,
            connections: BTreeMap::new(),
            peer: None,
            inboxes: BTreeMap::new(),
            violations: BTreeMap::new(),
            is_holding: false,
            held: VecDeque::new(),
            is_slow: false,
            slow: VecDeque::new(),
            notices: VecDeque::new(),
            is_performing: false,
            cancelled: Vec::new(),
            ended_conversations: 0,
            revision: AccountsRevision::default(),
            memory: Memory::default(),
            invalidated: Vec::new(),
            reports: Vec::new(),
            audited: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Accepts a connection.
    pub(crate) fn accept(&mut self) -> ConnectionId {
        self.accept_over(Carrier::TCP)
    }

    /// Accepts a connection over the given kind of transport.
    pub(crate) fn accept_over(&mut self, carrier: Carrier) -> ConnectionId {
        let id = ConnectionId(self.connections.len() as u64 + 1);
        let entropy = [id.0 as u8; 32];
        let connection = Connection::new(self.server.clone(), id, carrier, entropy, self.now);
        let connection = match self.peer {
            Some(address) => connection.with_peer(address),
            None => connection,
        };
        self.connections.insert(id, connection);
        self.inboxes.insert(id, VecDeque::new());
        id
    }

    pub(crate) fn connection(&self, id: ConnectionId) -> &Connection {
        &self.connections[&id]
    }

    /// Delivers a frame to the server.
    pub(crate) fn deliver(&mut self, id: ConnectionId, frame: &[u8]) {
        let mut bytes = frame.to_vec();
        let now = self.now;
        let mut effects = Effects::new();
        let bytes_in = Inbound {
            bytes: &mut bytes,
            scratch: &mut Vec::new(),
        };
        self.connection_mut(id).receive(now, bytes_in, &mut effects);
        self.perform(id, effects, &bytes);
    }

    /// The next frame for the client.
    pub(crate) fn read(&mut self, id: ConnectionId) -> Option<Vec<u8>> {
        self.inboxes
            .get_mut(&id)
            .expect("it was accepted")
            .pop_front()
    }

    /// Advances the clock and runs the timers.
    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now.instant = self.now.instant.after(duration);
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in ids {
            let now = self.now;
            let connection = self.connection_mut(id);
            if connection
                .next_timeout()
                .is_some_and(|at| at <= now.instant)
            {
                let mut effects = Effects::new();
                connection.timeout(now, &mut effects);
                self.perform(id, effects, &[]);
            }
            let due = self.connection(id).next_timeout();
            assert!(
                due.is_none_or(|at| at > now.instant),
                "a timer that ran is not due again"
            );
        }
        self.pass_server();
    }

    /// Runs the timer of the server if it is due.
    fn pass_server(&mut self) {
        let (server, now) = (self.server.clone(), self.now);
        let is_due = |at| at <= now.instant;
        if !server.next_timeout().is_some_and(is_due) {
            return;
        }
        let mut effects = Effects::new();
        server.timeout(now, &mut effects);
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::File(op, operation) => {
                    let outcome = self.disk.perform(operation, now).into();
                    server.complete(now, op, outcome, &mut effects);
                }
                Effect::Notify(to, notice) => self.notices.push_back((to, notice)),
                Effect::Audit(event) => self.audited.push(*event),
                Effect::ArmServerTimer => {}
                other => panic!("the server requests no {other:?}"),
            }
        }
        assert!(
            !server.next_timeout().is_some_and(is_due),
            "a timer that ran is not due again"
        );
        while !self.notices.is_empty() {
            self.deliver_notice(0);
        }
    }

    /// Cuts the transport.
    pub(crate) fn cut(&mut self, id: ConnectionId) {
        let mut effects = Effects::new();
        let now = self.now;
        self.connection_mut(id).closed(now, &mut effects);
        self.perform(id, effects, &[]);
    }

    /// Completes all operations that were held back, the oldest first.
    pub(crate) fn release(&mut self) {
        self.is_holding = false;
        while let Some((id, op, outcome)) = self.held.pop_front() {
            self.complete(id, op, outcome);
        }
    }

    /// Completes the oldest operation that was held back.
    pub(crate) fn release_one(&mut self) {
        let (id, op, outcome) = self.held.pop_front().expect("something is held back");
        self.complete(id, op, outcome);
    }

    /// Reports changes of the first share by local processes.
    pub(crate) fn happen_locally(&mut self, events: &[LocalEvent]) {
        for (id, notice) in self.server.local_events(self.now, ShareId(0), events) {
            let mut effects = Effects::new();
            let now = self.now;
            self.connection_mut(id).notice(now, notice, &mut effects);
            self.perform(id, effects, &[]);
        }
    }

    pub(crate) fn complete(&mut self, id: ConnectionId, op: OpId, outcome: Outcome) {
        let now = self.now;
        let mut effects = Effects::new();
        let connection = self.connection_mut(id);
        connection.complete(now, op, outcome, &mut effects);
        self.perform(id, effects, &[]);
    }

    fn connection_mut(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections.get_mut(&id).expect("it was accepted")
    }

    fn perform(&mut self, id: ConnectionId, effects: Effects, frame: &[u8]) {
        let is_outermost = !core::mem::replace(&mut self.is_performing, true);
        self.perform_all(id, effects, frame);
        if !is_outermost {
            return;
        }
        while !self.is_slow && !self.notices.is_empty() {
            self.deliver_notice(0);
        }
        self.is_performing = false;
    }

    /// Delivers all notices, in their order.
    pub(crate) fn deliver_notices(&mut self) {
        while !self.notices.is_empty() {
            self.deliver_notice(0);
        }
    }

    /// Delivers one of the waiting notices.
    pub(crate) fn deliver_notice(&mut self, index: usize) {
        let (to, notice) = self.notices.remove(index).expect("a notice waits");
        let now = self.now;
        let mut effects = Effects::new();
        if let Some(connection) = self.connections.get_mut(&to) {
            connection.notice(now, notice, &mut effects);
            self.perform_all(to, effects, &[]);
        }
    }

    /// Performs one of the waiting operations.
    pub(crate) fn work(&mut self, index: usize) {
        let (id, work) = self.slow.remove(index).expect("there is work");
        let (op, outcome) = match work {
            Work::Read(plan) => (plan.op, self.read_disk(&plan)),
            Work::Write(plan) => (plan.op, self.write_disk(plan, &[])),
            Work::File(op, operation) => (op, self.disk.perform(operation, self.now).into()),
        };
        self.complete(id, op, outcome);
    }

    fn perform_all(&mut self, id: ConnectionId, mut effects: Effects, frame: &[u8]) {
        while let Some(effect) = effects.pop() {
            match effect {
                Effect::Read(plan) if self.is_slow => {
                    self.slow.push_back((id, Work::Read(plan)));
                }
                Effect::Write(mut plan) if self.is_slow => {
                    if let WriteData::Inbound(range) = plan.data {
                        plan.data = WriteData::Owned(frame[range].to_vec());
                    }
                    self.slow.push_back((id, Work::Write(plan)));
                }
                Effect::File(op, operation) if self.is_slow => {
                    self.slow.push_back((id, Work::File(op, operation)));
                }
                Effect::Send(outbound) => {
                    let bytes = self.render(outbound);
                    self.inboxes
                        .get_mut(&id)
                        .expect("it was accepted")
                        .push_back(bytes);
                }
                Effect::Read(plan) => {
                    let outcome = self.read_disk(&plan);
                    self.finish(id, plan.op, outcome);
                }
                Effect::Write(plan) => {
                    let outcome = self.write_disk(plan.clone(), frame);
                    self.finish(id, plan.op, outcome);
                }
                Effect::File(op, operation) => {
                    let outcome = self.disk.perform(operation, self.now).into();
                    self.finish(id, op, outcome);
                }
                Effect::LookUpAccounts(op, query) => {
                    let found = look_up(query);
                    self.finish(id, op, Outcome::Accounts(found));
                }
                Effect::Store(..) => panic!("a connection stores nothing"),
                // `pass` reads the next timeout of the server.
                Effect::ArmServerTimer => {}
                Effect::Report(report) => self.reports.push(*report),
                Effect::Audit(event) => self.audited.push(*event),
                Effect::Authenticate(op, leg) => self.finish(id, op, verdict(&leg, self.revision)),
                Effect::EndConversation(_) => self.ended_conversations += 1,
                Effect::Cancel(op) => {
                    self.cancelled.push(op);
                    self.cancel(op);
                }
                Effect::Release(token) => self.disk.release(token),
                Effect::Notify(to, notice) => self.notices.push_back((to, notice)),
                Effect::Disconnect(violation) => {
                    self.violations.insert(id, violation);
                }
            }
        }
    }

    /// Reads, and writes the data into client memory if the plan says so.
    fn read_disk(&mut self, plan: &ReadPlan) -> Outcome {
        let outcome = self.disk.read(plan);
        match (&plan.delivery, outcome) {
            (Delivery::Remote(pieces), Outcome::Read(payload)) => {
                let bytes = self.disk.take(payload.token);
                match self.memory.put(pieces, &bytes) {
                    Some(()) => Outcome::Placed(payload.len),
                    None => Outcome::RemoteFailed,
                }
            }
            (_, outcome) => outcome,
        }
    }

    /// Reads the data from client memory if the plan says so, and writes.
    fn write_disk(&mut self, mut plan: WritePlan, frame: &[u8]) -> Outcome {
        if let WriteData::Remote(pieces) = &plan.data {
            let Some(bytes) = self.memory.get(pieces) else {
                return Outcome::RemoteFailed;
            };
            plan.data = WriteData::Owned(bytes);
        }
        self.disk.write(&plan, frame)
    }

    fn finish(&mut self, id: ConnectionId, op: OpId, outcome: Outcome) {
        if self.is_holding {
            self.held.push_back((id, op, outcome));
        } else {
            self.complete(id, op, outcome);
        }
    }

    fn cancel(&mut self, op: OpId) {
        let held = self.held.iter_mut().find(|(_, held, _)| *held == op);
        if let Some((_, _, outcome)) = held
            && let Outcome::Authenticated(_) = outcome
        {
            *outcome = Outcome::Failed(Status::CANCELLED);
        }
    }

    /// The bytes of a frame on the wire, signed or encrypted.
    fn render(&mut self, outbound: Outbound) -> Vec<u8> {
        let Outbound {
            messages,
            encryption,
            invalidate,
        } = outbound;
        // After a SEND with invalidation no peer can use the key.
        self.invalidated.extend(invalidate);
        if let Some(key) = invalidate {
            self.memory.revoke(key);
        }
        let mut frame = Vec::new();
        for mut message in messages {
            self.answered.extend(message.answers);
            let payload = message.payload.map(|payload| {
                let bytes = self.disk.take(payload.token);
                assert_eq!(bytes.len(), payload.len as usize);
                bytes
            });
            let payload = payload.unwrap_or_default();
            if let Some(sign) = &message.sign {
                assert!(
                    encryption.is_none(),
                    "messages of an encrypted frame are not signed"
                );
                sign.apply(&mut message.head, &payload, message.padding);
            }
            frame.extend_from_slice(&message.head);
            frame.extend_from_slice(&payload);
            frame.resize(frame.len() + usize::from(message.padding), 0);
        }
        match encryption {
            Some(encryption) => {
                let head = encryption.apply(&mut [frame.as_mut_slice().into()]);
                [head.as_slice(), &frame].concat()
            }
            None => frame,
        }
    }
}

/// The accounts of the rig: the groups of the computer.
fn look_up(query: AccountQuery) -> Vec<Option<KnownAccount>> {
    let of = |is_same: &dyn Fn(&WellKnownSid) -> bool| {
        let known = WELL_KNOWN.iter().find(|known| is_same(known))?;
        Some(KnownAccount {
            sid: known.sid,
            domain: known.domain.to_owned(),
            name: known.name.to_owned(),
            kind: SidKind::ALIAS,
        })
    };
    match query {
        AccountQuery::Sids(sids) => sids
            .iter()
            .map(|sid| of(&|known| known.sid == *sid))
            .collect(),
        AccountQuery::Names(names) => {
            let names = names.iter();
            names.map(|name| of(&|known| known.name == name)).collect()
        }
    }
}

/// The outcome of an authentication leg. The token is `more`, `refuse`, `guest`, `anonymous`, or
/// the name of an authenticated user.
/// The account of a login as `name`, as `name@group`, or as `name#shares` with an app password for
/// reading in these shares.
fn account(login: &str, kind: AccountKind, revision: AccountsRevision) -> Account {
    let (login, shares) = match login.split_once('#') {
        Some((name, shares)) => (name, Some(shares)),
        None => (login, None),
    };
    let (name, groups) = match login.split_once('@') {
        Some((name, group)) => (name, vec![group.to_owned()]),
        None => (login, Vec::new()),
    };
    let app_password = shares.map(|shares| AppPassword {
        name: "phone".to_owned(),
        shares: shares.split(',').map(str::to_owned).collect(),
        read_only: true,
    });
    Account {
        name: name.to_owned(),
        kind,
        token: Arc::new(Token::new(1000, 1000, Vec::new())),
        revision,
        groups: groups.into(),
        app_password: app_password.map(Arc::new),
    }
}

fn verdict(leg: &Authenticate, revision: AccountsRevision) -> Outcome {
    let name = String::from_utf8_lossy(&leg.token).into_owned();
    let accepted = |kind| {
        Authenticated::Accepted(Accepted {
            token: b"welcome".to_vec(),
            session_key: match kind {
                AccountKind::Named => Rig::SESSION_KEY.to_vec(),
                AccountKind::Guest | AccountKind::Anonymous => Vec::new(),
            },
            account: account(&name, kind, revision),
        })
    };
    Outcome::Authenticated(match name.as_str() {
        "more" => Authenticated::Continue(b"challenge".to_vec()),
        "refuse" => Authenticated::Refused(Status::LOGON_FAILURE, Vec::new()),
        "guest" => accepted(AccountKind::Guest),
        "anonymous" => accepted(AccountKind::Anonymous),
        _ => accepted(AccountKind::Named),
    })
}
