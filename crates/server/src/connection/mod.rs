//! One connection: the core, what it waits for, and what waits to be sent.

mod receive;

use std::cell::{Cell, RefCell};
use std::net::{Shutdown, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use net::{Framing, Outbox, Payloads, Stream, TimeoutHandler, Timer, Transport};
use proto::effect::{Effect, Effects, Inbound, Outcome, WriteData, WritePlan};
use proto::id::{ConnectionId, OpId};
use proto::notice::Notice;
use proto::server;
use proto::time::Instant;
use proto::violation::Violation;
use ring::{Either, Handle, Part, Signal, either};
use tracing::{debug, error, info, warn};
use wire::Status;

use crate::accounts::Logins;
use crate::datapath::{Frame, Room};
use crate::gate::Permit;
use crate::observer;

use crate::status::{self, ConnectionStatus};
use crate::worker::Worker;

/// Bytes that may wait to be sent before the connection stops reading: four answers of the
/// largest kind. A client that asks and does not listen costs no more.
const MAX_QUEUED: usize = 32 << 20;
/// Bytes a second that a client must take in, on average over what is sent at once. The slowest
/// line that anybody would put a file server on is faster.
const MIN_RATE: usize = 16 << 10;
/// But how long it may take at most, however much is sent at once: a client that takes nothing in
/// holds that memory so long. All that answers may take goes over a line of 600 kbit/s by then.
const MAX_PATIENCE: Duration = Duration::from_secs(900);

/// One connection of a worker.
pub(crate) struct Connection {
    pub(crate) worker: Rc<Worker>,
    pub(crate) peer: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) stream: Stream,
    since: SystemTime,
    received: Cell<u64>,
    bytes_sent: Cell<u64>,
    pub(crate) state: RefCell<State>,
    /// Sleeps for the time-outs of the core.
    timer: Timer,
    /// Something is to be sent, or nothing will be any more.
    to_send: Signal,
    /// Something was sent.
    sent: Signal,
    /// The connection ends.
    pub(crate) ended: Signal,
    /// Bytes of buffers that READs under way have.
    pub(crate) reading: Cell<usize>,
    /// Bytes that are being sent.
    sending: Cell<usize>,
    /// Operations that the world has not completed.
    running: Cell<usize>,
    /// An operation was completed.
    completed: Signal,
    /// Memory that RDMA works on.
    pub(crate) remote: Rc<Room>,
}

/// What of a connection changes.
pub(crate) struct State {
    pub(crate) core: server::Connection,
    pub(crate) effects: Effects,
    pub(crate) framing: Framing,
    pub(crate) outbox: Outbox,
    pub(crate) payloads: Payloads,
    pub(crate) logins: Logins,
    pub(crate) permit: Permit,
}

/// An operation that runs, as long as it lives.
struct Running {
    connection: Rc<Connection>,
    is_done: bool,
}

impl Running {
    fn new(connection: &Rc<Connection>) -> Self {
        connection.running.set(connection.running.get() + 1);
        Self {
            connection: Rc::clone(connection),
            is_done: false,
        }
    }
}

impl Drop for Running {
    /// Also where a bug panics: nobody is to wait for what never comes.
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.running.set(connection.running.get() - 1);
        connection.completed.raise();
        if !self.is_done {
            connection.ended.raise();
        }
    }
}

/// The task that sends: the connection does not outlive it.
struct Sending(Rc<Connection>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.ended.raise();
        self.0.sent.raise();
    }
}

impl State {
    /// Whether little enough waits to be sent.
    pub(crate) fn has_room_to_answer(&self) -> bool {
        self.outbox.queued() <= MAX_QUEUED
    }
}

impl Connection {
    /// A connection that was just accepted.
    pub(crate) fn new(
        id: ConnectionId,
        worker: Rc<Worker>,
        transport: Transport,
        stream: Stream,
        peer: SocketAddr,
        permit: Permit,
    ) -> Rc<Self> {
        let core = worker.new_core(id, stream.carrier(transport));
        let logins = Logins::new(Rc::clone(&worker));
        let state = State {
            core,
            effects: Effects::new(),
            framing: Framing::new(transport),
            outbox: Outbox::default(),
            payloads: Payloads::default(),
            logins,
            permit,
        };
        Rc::new(Self {
            worker,
            peer,
            transport,
            stream,
            since: SystemTime::now(),
            received: Cell::new(0),
            bytes_sent: Cell::new(0),
            state: RefCell::new(state),
            timer: Timer::default(),
            to_send: Signal::default(),
            sent: Signal::default(),
            ended: Signal::default(),
            reading: Cell::new(0),
            sending: Cell::new(0),
            running: Cell::new(0),
            completed: Signal::default(),
            remote: Rc::default(),
        })
    }

    /// Serves the connection until it ends, then closes what it had open.
    pub(crate) async fn serve(self: Rc<Self>) {
        debug!(peer = %self.peer, transport = %self.transport, "connected");
        let sender = self.handle().spawn(Rc::clone(&self).send());
        Timer::arm(&self);
        self.receive().await;
        // Nothing starts any more; what runs is finished and answered.
        self.drained().await;
        self.ended.raise();
        self.to_send.raise();
        let grace = self.worker.shutdown_grace();
        let _ = self.handle().timeout(grace, sender).await;
        self.close().await;
        debug!(peer = %self.peer, transport = %self.transport, "disconnected");
    }

    /// Takes frames in until the peer closes, the connection ends or the server stops.
    async fn receive(self: &Rc<Self>) {
        let mut receiving = pin!(receive::frames(self));
        let (ended, stopping) = (
            pin!(self.ended.raised()),
            pin!(self.worker.stopping.raised()),
        );
        let stop = pin!(either(ended, stopping));
        match either(receiving.as_mut(), stop).await {
            Either::First(Ok(())) | Either::Second(_) => {}
            Either::First(Err(error)) => debug!(peer = %self.peer, %error, "connection lost"),
        }
    }

    /// Bytes came in.
    pub(crate) fn note_received(&self, bytes: usize) {
        self.received.set(self.received.get() + bytes as u64);
    }

    /// What whoever looks at the server is told.
    pub(crate) fn describe(&self, id: ConnectionId) -> ConnectionStatus {
        let known = ConnectionStatus {
            id: status::connection_name(id),
            peer: self.peer.to_string(),
            local: self.stream.local_addr().ok().map(|local| local.to_string()),
            transport: self.transport.to_string(),
            since: observer::seconds(self.since),
            received: self.received.get(),
            sent: self.bytes_sent.get(),
            path: self.stream.path().map(Into::into),
            ..ConnectionStatus::default()
        };
        status::complete(known, &self.state.borrow().core.summary())
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.worker.handle
    }

    /// Gives a frame to the core and does what it asks for.
    pub(crate) fn handle_frame(self: &Rc<Self>, frame: &mut Frame<'_>) {
        let now = self.worker.now();
        let mut state = self.state.borrow_mut();
        let State { core, effects, .. } = &mut *state;
        core.receive(
            now,
            Inbound {
                bytes: frame.bytes(),
            },
            effects,
        );
        self.perform(&mut state, frame);
        drop(state);
        Timer::arm(self);
    }

    /// Tells the core what came of an operation that had to wait.
    pub(crate) fn complete(self: &Rc<Self>, op: OpId, outcome: Outcome) {
        let now = self.worker.now();
        let mut state = self.state.borrow_mut();
        let State { core, effects, .. } = &mut *state;
        core.complete(now, op, outcome, effects);
        self.perform(&mut state, &mut Frame::Gone);
        drop(state);
        Timer::arm(self);
    }

    /// Tells the core what another connection says.
    pub(crate) fn notice(self: &Rc<Self>, notice: Notice) {
        let now = self.worker.now();
        let mut state = self.state.borrow_mut();
        let State { core, effects, .. } = &mut *state;
        core.notice(now, notice, effects);
        self.perform(&mut state, &mut Frame::Gone);
        drop(state);
        Timer::arm(self);
    }

    /// Does something outside of the task that serves the connection: a bug that panics ends the
    /// connection, and not who does it, who may serve others besides.
    pub(crate) fn guarded(&self, act: impl FnOnce()) {
        // Unwind safety: the connection is only closed then.
        if catch_unwind(AssertUnwindSafe(act)).is_err() {
            error!(peer = %self.peer, "serving the connection failed");
            self.ended.raise();
        }
    }

    /// Runs a task that completes an operation.
    pub(crate) fn run<F>(self: &Rc<Self>, op: OpId, task: F)
    where
        F: Future<Output = Outcome> + 'static,
    {
        let mut running = Running::new(self);
        self.handle().spawn(async move {
            let outcome = task.await;
            running.is_done = true;
            let connection = &running.connection;
            connection.guarded(|| connection.complete(op, outcome));
        });
    }

    /// Waits until no operation runs.
    async fn drained(&self) {
        while self.running.get() > 0 {
            self.completed.lower();
            self.completed.raised().await;
        }
    }

    /// Ends the connection: what waits to be sent still goes out.
    pub(crate) fn end(&self, violation: &Violation) {
        warn!(peer = %self.peer, transport = %self.transport, reason = %violation, "disconnecting");
        self.ended.raise();
    }

    /// Wakes the task that sends.
    pub(crate) fn wake_sender(&self) {
        self.to_send.raise();
    }

    /// Waits until little enough waits to be sent.
    pub(crate) async fn room_to_answer(&self) {
        while !self.state.borrow().has_room_to_answer() && !self.ended.is_raised() {
            self.room().await;
        }
    }

    /// Waits until something was sent, or given back unsent.
    pub(crate) async fn room(&self) {
        self.sent.lower();
        self.sent.raised().await;
    }

    /// Something was sent, or given back unsent.
    pub(crate) fn made_room(&self) {
        self.sent.raise();
    }

    /// Bytes that are being sent.
    pub(crate) fn sending(&self) -> usize {
        self.sending.get()
    }

    /// Sends what waits, all of it at once, until the connection ends.
    async fn send(self: Rc<Self>) {
        let _sending = Sending(Rc::clone(&self));
        loop {
            let parts = self.state.borrow_mut().outbox.take();
            if !parts.is_empty() {
                let Some(parts) = self.send_parts(parts).await else {
                    return;
                };
                let mut state = self.state.borrow_mut();
                let State {
                    outbox, payloads, ..
                } = &mut *state;
                outbox.recycle(parts, payloads);
                drop(state);
                self.sent.raise();
                continue;
            }
            if self.ended.is_raised() && self.running.get() == 0 {
                return;
            }
            self.to_send.lower();
            self.to_send.raised().await;
        }
    }

    /// Sends, and gives the memory back; `None` where the client is gone or does not listen.
    async fn send_parts(&self, parts: Vec<Part>) -> Option<Vec<Part>> {
        let bytes: usize = parts.iter().map(Part::len).sum();
        let seconds = u64::try_from(bytes / MIN_RATE).unwrap_or(u64::MAX);
        let patience = Duration::from_secs(seconds).min(MAX_PATIENCE);
        let limit = self.worker.frame_timeout() + patience;
        self.sending.set(bytes);
        let sending = self.handle().timeout(limit, self.stream.send(parts));
        let sent = sending.await;
        self.sending.set(0);
        match sent {
            Ok((Ok(()), parts)) => {
                self.bytes_sent.set(self.bytes_sent.get() + bytes as u64);
                Some(parts)
            }
            Ok((Err(error), _)) => {
                debug!(peer = %self.peer, %error, "sending failed");
                None
            }
            Err(_) => {
                warn!(peer = %self.peer, bytes, "disconnecting: the client takes nothing in");
                None
            }
        }
    }

    /// Closes the socket and what the connection had open.
    async fn close(self: &Rc<Self>) {
        // A peer that is gone already has shut it down.
        let _ = self.stream.shutdown(Shutdown::Both);
        let now = self.worker.now();
        {
            let mut state = self.state.borrow_mut();
            let State { core, effects, .. } = &mut *state;
            forget_frame(effects);
            core.closed(now, effects);
            self.perform(&mut state, &mut Frame::Gone);
        }
        self.drained().await;
        self.fail_unfinished().await;
    }

    /// Fails what a bug kept from being completed: it would hold what is open for ever.
    async fn fail_unfinished(self: &Rc<Self>) {
        loop {
            let unfinished = self.state.borrow().core.unfinished();
            let Some(op) = unfinished else { return };
            self.complete(op, Outcome::Failed(Status::INTERNAL_ERROR));
            self.drained().await;
        }
    }

    /// Closes a connection whose task is gone: others would never again open what it had open.
    pub(crate) async fn abandon(self: Rc<Self>) {
        self.ended.raise();
        self.to_send.raise();
        self.close().await;
    }

    /// Says in the log who logged in.
    pub(crate) fn log_login(&self, account: &proto::login::Account) {
        let (peer, transport) = (self.peer, self.transport);
        info!(%peer, %transport, user = %account.name, kind = ?account.kind, "logged in");
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
        &self.ended
    }

    fn now(&self) -> Instant {
        self.worker.now().instant
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.state.borrow().core.next_timeout()
    }

    fn timeout(self: &Rc<Self>) {
        self.guarded(|| {
            let now = self.worker.now();
            let mut state = self.state.borrow_mut();
            let State { core, effects, .. } = &mut *state;
            core.timeout(now, effects);
            self.perform(&mut state, &mut Frame::Gone);
            drop(state);
            Timer::arm(self);
        });
    }
}

/// Drops what a panic left that needs the frame: it is gone.
fn forget_frame(effects: &mut Effects) {
    let mut left = std::mem::replace(effects, Effects::new());
    while let Some(effect) = left.pop() {
        let needs_frame = matches!(
            &effect,
            Effect::Write(WritePlan {
                data: WriteData::Inbound(_),
                ..
            })
        );
        if !needs_frame {
            effects.push(effect);
        }
    }
}

#[cfg(test)]
mod tests;
