//! One transport connection: drives its core and does what the core asks for.

mod answers;
mod crypto_timer;
mod receive;
mod reclaim;
mod report;
mod send;
mod serve;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::SystemTime;

use net::{Stream, TimeoutHandler, Timer, Transport};
use proto::effect::{
    Delivery, Effect, Effects, Inbound, Outbound, Outcome, ReadPlan, WriteData, WritePlan,
};
use proto::id::{ConnectionId, OpId};
use proto::notice::Notice;
use proto::server;
use proto::time::{Instant, Now};
use proto::violation::Violation;
use ring::{Handle, JobSource, Signal};
use tracing::{error, warn};

use crate::codes::{EndedConnection, Reason as _};
use crate::counters::WorkerLoad;
use crate::datapath::{self, Context, Frame, Output, Started, Target};
use crate::gate::Permit;
use crate::observer;
use crate::status::{self, ConnectionStatus};
use crate::worker_context::WorkerContext;

use self::crypto_timer::CryptoTimer;
pub(crate) use self::report::refusal;

/// One connection of a worker.
pub(crate) struct Connection {
    /// The part of the connection that running operations use.
    context: Rc<Context>,
    state: RefCell<State>,
    /// Sleeps until the next time-out of the core.
    timer: Timer,
    /// Time at which the server accepted the connection.
    since: SystemTime,
    /// Bytes received since then.
    received: Cell<u64>,
    /// Bytes sent since then.
    sent: Cell<u64>,
    /// Acknowledged bytes at a time: the last progress of the running send.
    progress: Cell<(u64, std::time::Instant)>,
    /// End of the last send, if no request was in progress then, until more bytes arrive.
    idle_since: Cell<Option<std::time::Instant>>,
    /// Bytes of responses in plain memory: in the making, queued or being sent.
    answers: Cell<usize>,
    /// The connection waits before it handles a further request.
    is_paused: Cell<bool>,
    /// Raised when frames are queued, and when the connection ends.
    to_send: Signal,
    /// Number of pending operations.
    pending: Cell<usize>,
    /// Raised when a pending operation completes.
    completed: Signal,
    /// Whether a thread looks for the reason of a denied access.
    explains_denial: Cell<bool>,
}

/// The part of a connection that changes in calls of the core.
struct State {
    core: server::Connection,
    effects: Effects,
    permit: Permit,
}

/// A pending operation. Dropping it without an outcome ends the connection.
struct Pending {
    connection: Rc<Connection>,
    is_done: bool,
}

impl Pending {
    fn new(connection: &Rc<Connection>) -> Self {
        connection.pending.set(connection.pending.get() + 1);
        Self {
            connection: Rc::clone(connection),
            is_done: false,
        }
    }
}

impl Drop for Pending {
    /// It also runs when the operation panics: the connection must not wait for its outcome.
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.pending.set(connection.pending.get() - 1);
        connection.completed.raise();
        if !self.is_done {
            connection.context.ended.raise();
        }
    }
}

impl Connection {
    /// Makes the state of an accepted connection.
    pub(crate) fn new(
        id: ConnectionId,
        worker: Rc<WorkerContext>,
        transport: Transport,
        stream: Stream,
        peer: SocketAddr,
        permit: Permit,
    ) -> Rc<Self> {
        let state = State {
            core: worker
                .new_core(id, stream.carrier(transport))
                .with_peer(peer.ip()),
            effects: Effects::new(),
            permit,
        };
        let context = Context::new(worker, transport, stream, peer);
        context.source.set(JobSource {
            group: 0,
            member: id.0,
        });
        Rc::new(Self {
            context,
            state: RefCell::new(state),
            timer: Timer::default(),
            since: SystemTime::now(),
            received: Cell::new(0),
            sent: Cell::new(0),
            progress: Cell::new((0, std::time::Instant::now())),
            idle_since: Cell::new(None),
            answers: Cell::new(0),
            is_paused: Cell::new(false),
            to_send: Signal::default(),
            pending: Cell::new(0),
            completed: Signal::default(),
            explains_denial: Cell::new(false),
        })
    }

    /// The status of the connection, for `smbeam status`.
    pub(crate) fn describe(&self, id: ConnectionId) -> ConnectionStatus {
        let Context {
            peer,
            transport,
            stream,
            ..
        } = &*self.context;
        let local = stream.local_addr().ok();
        let known = ConnectionStatus {
            id: status::connection_name(id),
            peer: peer.to_string(),
            local: local.map(|local| local.to_string()),
            transport: transport.to_string(),
            rdma: local.and_then(|local| self.rdma_network(local.ip())),
            since: observer::seconds(self.since),
            received: self.received.get(),
            sent: self.sent.get(),
            path: stream.path().map(Into::into),
            ..ConnectionStatus::default()
        };
        status::complete(known, &self.state.borrow().core.summary())
    }

    /// Adds the connection to the load of its worker.
    pub(crate) fn add_load(&self, load: &mut WorkerLoad) {
        load.add_connection(self.context.transport, &self.state.borrow().core.load());
    }

    /// The kind of RDMA network of a connection over SMB Direct.
    fn rdma_network(&self, local: IpAddr) -> Option<String> {
        let is_rdma = self.context.transport == Transport::SmbDirect;
        let devices = self.context.worker.shared.rdma.get();
        let network = devices.filter(|_| is_rdma)?.network(local)?;
        Some(network.to_string())
    }

    fn handle(&self) -> &Handle {
        self.context.handle()
    }

    fn peer(&self) -> SocketAddr {
        self.context.peer
    }

    /// Calls the core, then does what it asks for. `frame` is the frame of the call.
    fn with_core(
        self: &Rc<Self>,
        frame: &mut Frame<'_>,
        call: impl FnOnce(&mut server::Connection, Now, &mut Frame<'_>, &mut Effects),
    ) {
        let now = self.context.worker.now();
        let mut state = self.state.borrow_mut();
        let State { core, effects, .. } = &mut *state;
        call(core, now, frame, effects);
        self.perform(&mut state, frame);
        drop(state);
        self.count_answers();
        Timer::arm(self);
    }

    /// Passes a frame to the core.
    fn handle_frame(self: &Rc<Self>, frame: &mut Frame<'_>) {
        self.state.borrow().permit.note_frame();
        self.with_core(frame, |core, now, frame, effects| {
            let bytes = frame.bytes();
            let scratch = &mut Vec::new();
            let timer = CryptoTimer::of_frame(bytes);
            core.receive(now, Inbound { bytes, scratch }, effects);
            timer.count(&self.context.worker.counters);
        });
    }

    /// Passes the outcome of a pending operation to the core.
    fn complete(self: &Rc<Self>, op: OpId, outcome: Outcome) {
        let now = self.context.worker.now();
        let mut state = self.state.borrow_mut();
        self.complete_in(&mut state, now, op, outcome);
        self.perform(&mut state, &mut Frame::None);
        drop(state);
        self.count_answers();
        Timer::arm(self);
    }

    /// Passes an outcome to the core. The caller performs the effects.
    fn complete_in(&self, state: &mut State, now: Now, op: OpId, outcome: Outcome) {
        let State { core, effects, .. } = state;
        core.complete(now, op, outcome, effects);
    }

    /// Passes a notice of another connection to the core.
    pub(crate) fn notice(self: &Rc<Self>, notice: Notice) {
        self.with_core(&mut Frame::None, |core, now, _, effects| {
            core.notice(now, notice, effects);
        });
    }

    /// Runs a call that is not part of the connection's own task. If a bug panics in it, only this
    /// connection ends: the caller may serve other connections.
    pub(crate) fn guarded(&self, call: impl FnOnce()) {
        // Unwind safety: the connection is only closed afterwards.
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            error!(
                peer = %self.peer(),
                code = EndedConnection::ServerBug.code(),
                "disconnecting: a bug in the server (see the panic message)"
            );
            self.context.ended.raise();
        }
    }

    /// Does what the core asks for, in order.
    fn perform(self: &Rc<Self>, state: &mut State, frame: &mut Frame<'_>) {
        while let Some(effect) = state.effects.pop() {
            match effect {
                Effect::Send(outbound) => self.send_frame(outbound),
                Effect::Read(plan) => self.read(state, &plan),
                Effect::Write(plan) => self.write(state, plan, frame),
                Effect::File(op, operation) => {
                    let started = datapath::execute(&self.context, operation);
                    self.proceed(state, op, started);
                }
                Effect::Store(op, operation) => {
                    let started = datapath::store(&self.context, operation);
                    self.proceed(state, op, started);
                }
                Effect::Authenticate(op, step) => {
                    let started = datapath::authenticate(&self.context, step);
                    self.proceed(state, op, started);
                }
                Effect::LookUpAccounts(op, query) => {
                    let started = datapath::look_up_accounts(&self.context, query);
                    self.proceed(state, op, started);
                }
                Effect::EndConversation(conversation) => {
                    datapath::end_login(&self.context, conversation);
                }
                // No operation here runs long enough to be canceled: the core divides long ones.
                Effect::Cancel(_) => {}
                Effect::Release(token) => {
                    self.context.output.borrow_mut().payloads.release(token);
                }
                Effect::Notify(connection, notice) => {
                    self.context.worker.shared.notify(connection, notice);
                }
                Effect::ArmServerTimer => self.context.worker.shared.arm_server_timer(),
                Effect::Report(report) => self.report(state, *report),
                Effect::Audit(event) => self.audit(&event),
                Effect::Disconnect(violation) => self.disconnect(&violation),
            }
        }
    }

    fn read(self: &Rc<Self>, state: &mut State, plan: &ReadPlan) {
        let context = &self.context;
        match &plan.delivery {
            Delivery::Remote(pieces) => {
                let started = datapath::read_rdma(context, plan, pieces);
                self.proceed(state, plan.op, started);
            }
            Delivery::Inline => self.proceed(state, plan.op, datapath::read(context, plan)),
        }
    }

    fn write(self: &Rc<Self>, state: &mut State, plan: WritePlan, frame: &mut Frame<'_>) {
        let WritePlan {
            op,
            file,
            offset,
            data,
            through,
        } = plan;
        let context = &self.context;
        let target = Target::new(context, file, offset, through);
        match data {
            WriteData::Inbound(range) => {
                let started = datapath::write_inbound(context, target, frame, range);
                self.proceed(state, op, started);
            }
            WriteData::Owned(bytes) => {
                let started = datapath::write_owned(context, target, bytes);
                self.proceed(state, op, started);
            }
            WriteData::Remote(pieces) => {
                let started = datapath::write_rdma(context, target, pieces);
                self.proceed(state, op, started);
            }
        }
    }

    /// Completes a started operation: at once, or in a separate task.
    fn proceed<F>(self: &Rc<Self>, state: &mut State, op: OpId, started: Started<F>)
    where
        F: Future<Output = Outcome> + 'static,
    {
        match started {
            Started::Done(outcome) => {
                let now = self.context.worker.now();
                self.complete_in(state, now, op, outcome);
            }
            Started::Pending(operation) => self.run(op, operation),
        }
    }

    /// Starts a task that runs a pending operation and completes it.
    fn run<F>(self: &Rc<Self>, op: OpId, operation: F)
    where
        F: Future<Output = Outcome> + 'static,
    {
        let mut pending = Pending::new(self);
        self.handle().spawn(async move {
            let outcome = operation.await;
            pending.is_done = true;
            let connection = &pending.connection;
            connection.guarded(|| connection.complete(op, outcome));
        });
    }

    fn send_frame(&self, outbound: Outbound) {
        let answered = outbound
            .messages
            .iter()
            .filter_map(|message| message.answers.as_ref());
        answered.for_each(|request| self.context.worker.counters.count_answer(request));
        let mut output = self.context.output.borrow_mut();
        let Output {
            framing,
            outbox,
            payloads,
        } = &mut *output;
        let timer = CryptoTimer::of_outbound(&outbound);
        let is_queued = outbox.push(framing, &self.handle().pool(), payloads, outbound);
        timer.count(&self.context.worker.counters);
        if !is_queued {
            let (peer, code) = (self.peer(), EndedConnection::ResponseTooLong.code());
            warn!(%peer, code, "disconnecting: a response is too long for the transport");
            self.context.ended.raise();
        }
        self.to_send.raise();
    }

    /// Ends the connection. Queued frames are still sent.
    fn disconnect(&self, violation: &Violation) {
        let (peer, transport) = (self.peer(), self.context.transport);
        let code = EndedConnection::from(violation).code();
        warn!(%peer, %transport, reason = %violation, code, "disconnecting");
        self.context.ended.raise();
    }
}

impl TimeoutHandler for Connection {
    fn timer(&self) -> &Timer {
        &self.timer
    }

    fn runtime(&self) -> &Handle {
        self.handle()
    }

    fn ended(&self) -> &Signal {
        &self.context.ended
    }

    fn now(&self) -> Instant {
        self.context.worker.now().instant
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.state.borrow().core.next_timeout()
    }

    fn timeout(self: &Rc<Self>) {
        self.guarded(|| {
            self.with_core(&mut Frame::None, |core, now, _, effects| {
                core.timeout(now, effects);
            });
        });
    }
}

#[cfg(test)]
mod tests;
