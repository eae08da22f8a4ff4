//! The server's end of a connection: a driver around the core, like the worker of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crypto::Plaintext;
use proto::carrier::Carrier;
use proto::effect::{
    Delivery, Effect, Effects, Inbound, Outbound, Outcome, Payload, WriteData, WritePlan,
};
use proto::id::{ConnectionId, OpId};
use proto::login::{Account, Authenticate};
use proto::notice::Notice;
use proto::report::{LoginRefusal, Report};
use proto::server::{Connection, Server};
use proto::time::{Instant, Now};
use proto::violation::Violation;
use vfs::Effort;
use wire::Status;
use wire::smbd::BufferDescriptorV1;

use crate::adapter::Adapter;
use crate::check::nonces::SigningNonces;
use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::disk::{Disk, Work};
use crate::login::{Accounts, Logins};
use crate::misbehavior::Misbehavior;
use crate::scenario::Faults;

/// A request of the host to the world.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Send a frame, with or without a key to invalidate.
    Send(Vec<u8>, Option<u32>),
    /// Complete a slow operation later.
    Later(OpId),
    /// Deliver a notice to another connection.
    Notify(ConnectionId, Notice),
    /// Count a login that the core refused after the authentication.
    Refused(LoginRefusal),
    /// Arm the timer of the server.
    ArmServerTimer,
    /// End the transport connection after all sent frames have arrived.
    Disconnect(Violation),
}

/// The surroundings of a call.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Now,
    pub(crate) disk: &'a mut Disk,
    pub(crate) choices: &'a mut Choices,
    pub(crate) faults: &'a Faults,
    pub(crate) adapter: &'a mut Adapter,
    pub(crate) nonces: &'a mut SigningNonces,
    pub(crate) wishes: &'a mut Vec<Wish>,
}

/// A slow operation.
#[derive(Debug)]
enum Slow {
    Work(Work),
    /// Done, but not completed yet.
    Done(Outcome),
    Login(Authenticate),
    /// An RDMA WRITE of these bytes to the client's memory.
    Place(Vec<BufferDescriptorV1>, Vec<u8>),
    /// An RDMA READ from the client's memory.
    Fetch(WritePlan, Vec<BufferDescriptorV1>),
}

/// The server's end of a connection.
pub(crate) struct Host {
    connection: Connection,
    effects: Effects,
    slow: BTreeMap<OpId, Slow>,
    cancelled: BTreeSet<OpId>,
    /// Operations that are not completed.
    asked: BTreeSet<OpId>,
    logins: Logins,
    is_closed: bool,
    is_disconnected: bool,
    /// The fault of the server itself.
    misbehavior: Option<Misbehavior>,
}

impl Host {
    pub(crate) fn new(
        server: Arc<Server>,
        id: ConnectionId,
        carrier: Carrier,
        accounts: Arc<Accounts>,
        now: Now,
        choices: &mut Choices,
    ) -> Self {
        Self {
            connection: Connection::new(server, id, carrier, choices.bytes(), now),
            effects: Effects::new(),
            slow: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            asked: BTreeSet::new(),
            logins: Logins::new(accounts),
            is_closed: false,
            is_disconnected: false,
            misbehavior: None,
        }
    }

    /// From now on the server has this fault.
    pub(crate) fn misbehave(&mut self, misbehavior: Option<Misbehavior>) {
        self.misbehavior = misbehavior;
    }

    /// From now on every login succeeds, as a guest.
    pub(crate) fn accept_all_logins(&mut self) {
        self.logins.is_open = true;
    }

    /// Receives a frame.
    pub(crate) fn receive(&mut self, mut frame: Vec<u8>, around: &mut Surroundings<'_>) -> Check {
        if self.is_closed || self.is_disconnected {
            return Ok(());
        }
        let inbound = Inbound {
            bytes: &mut frame,
            scratch: &mut Vec::new(),
        };
        self.connection
            .receive(around.now, inbound, &mut self.effects);
        self.perform(&frame, around)
    }

    /// Runs and completes a slow operation.
    pub(crate) fn ripe(&mut self, op: OpId, around: &mut Surroundings<'_>) -> Check {
        let slow = self.slow.remove(&op).expect("it is in progress");
        let is_cancelled = self.cancelled.remove(&op);
        let outcome = match slow {
            Slow::Done(outcome) => outcome,
            // A canceled operation that has not begun is not run.
            Slow::Work(Work::Read(_)) if is_cancelled => Outcome::Failed(Status::CANCELLED),
            Slow::Work(work) => {
                let (faults, wall) = (around.faults, around.now.wall);
                let outcome = around.disk.attempt(&work, Effort::Blocking, faults, wall);
                let outcome = outcome.expect("a blocking operation blocks");
                match self.place(op, &work, outcome, around)? {
                    Some(outcome) => outcome,
                    None => return Ok(()),
                }
            }
            Slow::Place(to, bytes) => {
                let len = u32::try_from(bytes.len()).expect("a read has a limit");
                let is_lost = around.choices.per_mille(around.faults.remote);
                match !is_lost && around.adapter.write(&to, &bytes)? {
                    true => Outcome::Placed(len),
                    false => lost(around),
                }
            }
            Slow::Fetch(mut plan, from) => {
                let is_lost = around.choices.per_mille(around.faults.remote);
                let bytes = match is_lost {
                    true => None,
                    false => around.adapter.read(&from)?,
                };
                match bytes {
                    Some(bytes) => {
                        plan.data = WriteData::Owned(bytes);
                        let (faults, wall) = (around.faults, around.now.wall);
                        let work = write(plan, &[]);
                        let outcome = around.disk.attempt(&work, Effort::Blocking, faults, wall);
                        outcome.expect("a blocking operation blocks")
                    }
                    None => lost(around),
                }
            }
            Slow::Login(leg) => {
                let step = self.logins.step(&leg, around.now, around.choices);
                Outcome::Authenticated(step)
            }
        };
        self.complete(op, outcome, around)?;
        self.perform(&[], around)
    }

    pub(crate) fn notice(&mut self, notice: Notice, around: &mut Surroundings<'_>) -> Check {
        self.connection
            .notice(around.now, notice, &mut self.effects);
        self.perform(&[], around)
    }

    pub(crate) fn timeout(&mut self, around: &mut Surroundings<'_>) -> Check {
        self.connection.timeout(around.now, &mut self.effects);
        self.perform(&[], around)
    }

    /// The transport has ended.
    pub(crate) fn closed(&mut self, around: &mut Surroundings<'_>) -> Check {
        if self.is_closed {
            return Ok(());
        }
        self.is_closed = true;
        self.connection.closed(around.now, &mut self.effects);
        self.perform(&[], around)
    }

    /// Returns the account of a session of the connection; `None` without one.
    pub(crate) fn account(&self) -> Option<Account> {
        let sessions = self.connection.summary().sessions;
        sessions.into_iter().next().map(|(_, account)| account)
    }

    pub(crate) fn pending_response_bytes(&self) -> usize {
        self.connection.pending_response_bytes()
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.connection.next_timeout()
    }

    /// Returns whether a closed connection has no operation left.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_closed && self.slow.is_empty() && self.connection.is_idle()
    }

    /// Describes the state for a failure report.
    pub(crate) fn describe(&self) -> String {
        let Self {
            slow, connection, ..
        } = self;
        format!(
            "closed {}, waits for {:?}; {:?}",
            self.is_closed,
            slow,
            connection.summary()
        )
    }

    fn complete(&mut self, op: OpId, outcome: Outcome, around: &Surroundings<'_>) -> Check {
        ensure(self.asked.remove(&op), || {
            format!("{op:?} is completed, but was not requested")
        })?;
        self.connection
            .complete(around.now, op, outcome, &mut self.effects);
        Ok(())
    }

    /// Performs the effects, and the effects that follow from them.
    fn perform(&mut self, frame: &[u8], around: &mut Surroundings<'_>) -> Check {
        while let Some(effect) = self.effects.pop() {
            self.perform_one(effect, frame, around)?;
        }
        Ok(())
    }

    fn perform_one(
        &mut self,
        effect: Effect,
        frame: &[u8],
        around: &mut Surroundings<'_>,
    ) -> Check {
        match effect {
            Effect::Send(outbound) => self.send(outbound, around),
            Effect::Read(plan) => self.work(plan.op, Work::Read(plan), around),
            Effect::Write(plan) => self.write(plan, frame, around),
            Effect::File(op, operation) => self.work(op, Work::File(operation), around),
            Effect::Authenticate(op, leg) => {
                self.ask(op)?;
                self.slow.insert(op, Slow::Login(leg));
                around.wishes.push(Wish::Later(op));
                Ok(())
            }
            Effect::EndConversation(conversation) => {
                self.logins.end(conversation);
                Ok(())
            }
            Effect::Cancel(op) => {
                self.cancelled.insert(op);
                Ok(())
            }
            Effect::Report(report) => {
                if let Report::LoginRefused(_, refusal) = *report {
                    around.wishes.push(Wish::Refused(refusal));
                }
                Ok(())
            }
            // Shares of the simulation select nothing.
            Effect::Audit(event) => unreachable!("no share selects {event:?}"),
            Effect::Release(token) => around.disk.take(token).map(drop),
            Effect::Notify(to, notice) => {
                around.wishes.push(Wish::Notify(to, notice));
                Ok(())
            }
            Effect::ArmServerTimer => {
                around.wishes.push(Wish::ArmServerTimer);
                Ok(())
            }
            Effect::LookUpAccounts(op, query) => {
                self.ask(op)?;
                let found = vec![None; query.len()];
                self.slow.insert(op, Slow::Done(Outcome::Accounts(found)));
                around.wishes.push(Wish::Later(op));
                Ok(())
            }
            Effect::Store(op, _) => Err(format!("a connection requested {op:?} of the store")),
            Effect::Disconnect(violation) => {
                ensure(!self.is_disconnected, || "disconnected twice".into())?;
                self.is_disconnected = true;
                around.wishes.push(Wish::Disconnect(violation));
                Ok(())
            }
        }
    }

    /// Writes inbound data, and fetches remote data first.
    fn write(&mut self, plan: WritePlan, frame: &[u8], around: &mut Surroundings<'_>) -> Check {
        let op = plan.op;
        let WriteData::Remote(from) = &plan.data else {
            return self.work(op, write(plan, frame), around);
        };
        let from = from.clone();
        self.ask(op)?;
        self.slow.insert(op, Slow::Fetch(plan, from));
        around.wishes.push(Wish::Later(op));
        Ok(())
    }

    fn ask(&mut self, op: OpId) -> Check {
        ensure(self.asked.insert(op), || {
            format!("{op:?} was requested twice")
        })
    }

    /// Does work at once or later; or at once, but completes it later.
    fn work(&mut self, op: OpId, work: Work, around: &mut Surroundings<'_>) -> Check {
        self.ask(op)?;
        let (faults, wall) = (around.faults, around.now.wall);
        let Some(outcome) = around.disk.attempt(&work, Effort::Cached, faults, wall) else {
            self.slow.insert(op, Slow::Work(work));
            around.wishes.push(Wish::Later(op));
            return Ok(());
        };
        let Some(outcome) = self.place(op, &work, outcome, around)? else {
            return Ok(());
        };
        if around.choices.per_mille(around.faults.slow_disk / 2) {
            self.slow.insert(op, Slow::Done(outcome));
            around.wishes.push(Wish::Later(op));
            return Ok(());
        }
        self.complete(op, outcome, around)
    }

    /// Starts the RDMA WRITE of a remote read. Returns the outcome of any other work.
    fn place(
        &mut self,
        op: OpId,
        work: &Work,
        outcome: Outcome,
        around: &mut Surroundings<'_>,
    ) -> Check<Option<Outcome>> {
        let (Work::Read(plan), Outcome::Read(payload)) = (work, &outcome) else {
            return Ok(Some(outcome));
        };
        let Delivery::Remote(to) = &plan.delivery else {
            return Ok(Some(outcome));
        };
        let bytes = around.disk.take(payload.token)?;
        self.slow.insert(op, Slow::Place(to.clone(), bytes));
        around.wishes.push(Wish::Later(op));
        Ok(None)
    }

    fn send(&mut self, mut outbound: Outbound, around: &mut Surroundings<'_>) -> Check {
        ensure(!self.is_closed && !self.is_disconnected, || {
            "a response to a connection that has ended".into()
        })?;
        if let Some(misbehavior) = self.misbehavior {
            let messages = outbound.messages.iter_mut();
            messages.for_each(|message| misbehavior.spoil(&mut message.head));
        }
        let invalidate = outbound.invalidate;
        let frame = assemble(outbound, around.nonces, |payload| {
            around.disk.take(payload.token)
        })?;
        around.wishes.push(Wish::Send(frame, invalidate));
        Ok(())
    }
}

/// An RDMA operation failed: the connection is broken.
fn lost(around: &mut Surroundings<'_>) -> Outcome {
    around.adapter.end();
    Outcome::RemoteFailed
}

fn write(plan: WritePlan, frame: &[u8]) -> Work {
    let WritePlan {
        op: _,
        file,
        offset,
        data,
        through,
    } = plan;
    let bytes = match data {
        WriteData::Inbound(range) => frame[range].to_vec(),
        WriteData::Owned(bytes) => bytes,
        WriteData::Remote(_) => unreachable!("the host fetches it first"),
    };
    Work::Write {
        file,
        offset,
        bytes,
        through,
    }
}

/// Returns the bytes of a frame, with its payloads, signed and encrypted.
pub(crate) fn assemble(
    outbound: Outbound,
    nonces: &mut SigningNonces,
    mut fetch: impl FnMut(&Payload) -> Check<Vec<u8>>,
) -> Check<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for message in outbound.messages {
        let mut head = message.head;
        let payload = match message.payload {
            Some(payload) => {
                let bytes = fetch(&payload)?;
                assert_eq!(bytes.len(), payload.len as usize);
                bytes
            }
            None => Vec::new(),
        };
        if let Some(sign) = &message.sign {
            sign.apply(&mut head, &payload, message.padding);
        }
        let padding = vec![0; usize::from(message.padding)];
        if outbound.encryption.is_none() {
            nonces.record(message.sign.as_ref(), &[&head, &payload, &padding])?;
        }
        parts.extend([head, payload, padding]);
    }
    let mut frame = Vec::new();
    if let Some(encryption) = &outbound.encryption {
        let slices = parts.iter_mut().map(Vec::as_mut_slice);
        let mut slices: Vec<Plaintext<'_>> = slices.map(Plaintext::InPlace).collect();
        frame.extend(encryption.apply(&mut slices));
    }
    frame.extend(parts.concat());
    Ok(frame)
}
