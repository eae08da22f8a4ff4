//! The driver of SMB Direct on a queue pair: executes the effects of the core and reports events to
//! it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proto::smbd::{self, Config, Effect, Effects, MessageToken, Negotiated, SendId, Violation};
use proto::time::Instant as CoreInstant;
use rdma::{Event, Exposed, Failure, Piece, QueuePair, Request, Sink, Slot, Stock, Wait, WorkId};
use ring::{Either, Handle, Interest, Readiness, Signal, either};
use tracing::{debug, warn};

use crate::PREFIX_LEN;
use crate::smbdirect::once::Once;
use crate::smbdirect::send::{Batch, HEAD_BYTES, Message};
use crate::smbdirect::settings::Settings;
use crate::{Refusal, Transport, tcp};

/// Unread bytes from which on the driver posts no receives. The limit is larger than all requests
/// without data that SMB has credits for. Below it the peer can send, so it can grant the credits
/// that responses need.
const UNREAD_MAX: usize = 4 << 20;
/// Largest number of unread bytes in one chunk.
const CHUNK_BYTES: usize = 64 << 10;
/// Time limit for the end of a connection after its last use.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of headers of SENDs with memory at first. More SENDs in flight allocate memory for all.
const HEADS_AT_FIRST: usize = 16;

/// A pending operation, with its memory.
pub(crate) type Pending<T> = Once<(io::Result<()>, T)>;

/// The shared state of a connection and its users.
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) state: RefCell<State>,
    /// Wakes the task of the connection.
    wake: Signal,
    /// Raised when data was received, or when no more data will be.
    pub(crate) readable: Signal,
    /// Raised when the negotiation has succeeded or failed.
    settled: Signal,
    /// Time for which the queue pair is polled after its last event.
    busy_poll: Duration,
}

/// The mutable state of a connection.
pub(crate) struct State {
    pub(crate) pair: Box<dyn QueuePair>,
    pub(crate) core: smbd::Connection,
    pub(crate) effects: Effects,
    pub(crate) negotiated: Option<Negotiated>,
    /// Start of the core's clock.
    epoch: Instant,
    peer: SocketAddr,
    events: Vec<Event>,
    /// Memory of the receives.
    slots: Stock,
    /// Memory of the headers of SENDs.
    pub(crate) heads: Stock,
    /// Number of receives that the core has requested and that are not posted.
    wanted: u32,
    /// Received data, with the prefixes of its frames.
    pub(crate) unread: VecDeque<Vec<u8>>,
    /// Number of read bytes of the first buffer.
    pub(crate) unread_start: usize,
    pub(crate) unread_bytes: usize,
    pub(crate) messages: BTreeMap<MessageToken, Message>,
    /// Sent batches with memory in operations without a completion.
    stuck: Vec<Rc<Batch>>,
    pub(crate) last_token: u64,
    last_work: u64,
    writes: BTreeMap<WorkId, Pending<Vec<Piece>>>,
    reads: BTreeMap<WorkId, Pending<Sink>>,
    pub(crate) exposed: BTreeMap<u32, Once<Exposed>>,
    needs_flush: bool,
    /// Why the connection has ended.
    end: Option<End>,
    /// The queue pair has no pending operation any more.
    has_ended: bool,
    /// The readiness that the task of the connection waits for.
    interest: Interest,
    deadline: Option<CoreInstant>,
}

/// How a connection ended.
#[derive(Clone, Debug)]
enum End {
    /// A user of the connection, or the peer, has closed it.
    Closed,
    /// Another reason.
    Failed(io::ErrorKind, String),
}

impl State {
    /// The state for a queue pair that connects.
    pub(crate) fn new(pair: Box<dyn QueuePair>, config: &Config) -> Self {
        let slots = slots(config);
        let core = smbd::Connection::new(config.clone());
        Self::with(pair, core, slots, config)
    }

    /// The state for a connection request. It posts a receive for the client's first message before
    /// it accepts.
    pub(crate) fn accept(request: Box<dyn Request>, settings: &Settings) -> io::Result<Self> {
        let config = settings.core(smbd::Role::Server);
        let slots = slots(&config);
        let mut core = smbd::Connection::new(config.clone());
        let mut effects = Effects::new();
        core.started(CoreInstant::default(), &mut effects);
        let mut receives = Vec::new();
        while let Some(effect) = effects.pop() {
            let Effect::PostReceives(count) = effect else {
                unreachable!("a server listens first");
            };
            receives.extend((0..count).filter_map(|_| slots.take()));
            core.posted(CoreInstant::default(), count, &mut effects);
        }
        let pair = request.accept(&settings.attributes(&config), receives)?;
        Ok(Self::with(pair, core, slots, &config))
    }

    fn with(
        pair: Box<dyn QueuePair>,
        core: smbd::Connection,
        slots: Stock,
        config: &Config,
    ) -> Self {
        Self {
            peer: pair.peer_addr(),
            pair,
            core,
            effects: Effects::new(),
            negotiated: None,
            epoch: Instant::now(),
            events: Vec::new(),
            slots,
            heads: Stock::new(HEADS_AT_FIRST, config.send_depth.into(), HEAD_BYTES),
            wanted: 0,
            unread: VecDeque::new(),
            unread_start: 0,
            unread_bytes: 0,
            messages: BTreeMap::new(),
            stuck: Vec::new(),
            last_token: 0,
            last_work: 0,
            writes: BTreeMap::new(),
            reads: BTreeMap::new(),
            exposed: BTreeMap::new(),
            needs_flush: false,
            end: None,
            has_ended: false,
            interest: Interest::Readable,
            deadline: None,
        }
    }

    pub(crate) fn now(&self) -> CoreInstant {
        CoreInstant(self.epoch.elapsed())
    }

    /// Whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// The error of later sends.
    pub(crate) fn error(&self) -> io::Error {
        match &self.end {
            Some(End::Failed(kind, why)) => io::Error::new(*kind, why.clone()),
            Some(End::Closed) | None => io::ErrorKind::NotConnected.into(),
        }
    }

    /// The result of a receive at the end: the end of the stream, or an error.
    pub(crate) fn end_of_stream(&self) -> Option<io::Result<()>> {
        self.end.as_ref().map(|end| match end {
            End::Closed => Ok(()),
            End::Failed(..) => Err(self.error()),
        })
    }

    /// Ends the connection with a local error.
    pub(crate) fn fail(&mut self, kind: io::ErrorKind, why: &str) {
        self.end.get_or_insert(End::Failed(kind, why.to_owned()));
        self.core.closed();
        self.pair.disconnect();
    }

    fn close(&mut self) {
        self.end.get_or_insert(End::Closed);
        self.core.closed();
        self.pair.disconnect();
    }

    fn violated(&mut self, violation: &Violation) {
        let transport = Transport::SmbDirect;
        let code = Refusal::RdmaProtocol.code();
        warn!(peer = %self.peer, %transport, reason = %violation, code, "disconnecting");
        let kind = match violation {
            Violation::Refused(_) | Violation::Version { .. } => io::ErrorKind::ConnectionRefused,
            _ => io::ErrorKind::ConnectionAborted,
        };
        self.fail(kind, &violation.to_string());
    }

    /// Handles all events and their consequences, and starts all posted operations. Returns whether
    /// there were any events.
    pub(crate) fn run(&mut self) -> bool {
        let mut has_worked = false;
        loop {
            let mut events = std::mem::take(&mut self.events);
            self.pair.poll(&mut events);
            let is_idle = events.is_empty();
            events.drain(..).for_each(|event| self.handle(event));
            self.events = events;
            self.flush();
            has_worked |= !is_idle;
            if is_idle || self.has_ended {
                return has_worked;
            }
        }
    }

    /// Executes the effects of the core, starts all posted operations, and handles operations that
    /// complete at once.
    pub(crate) fn pump(&mut self) {
        self.perform(&[]);
        if self.needs_flush {
            self.flush();
            self.run();
        }
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.needs_flush) {
            self.pair.flush();
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Connected => self.connected(),
            Event::Received(slot, bytes) => self.received(slot, bytes),
            Event::Unused(slot) => drop(slot),
            Event::Sent(work, pieces, result) => {
                drop(pieces);
                if result.is_ok() {
                    let now = self.now();
                    self.core.sent(now, SendId(work.0 >> 1), &mut self.effects);
                    self.perform(&[]);
                }
            }
            Event::Written(work, pieces, result) => {
                if let Some(once) = self.writes.remove(&work) {
                    once.set((result.map_err(io::Error::from), pieces));
                }
            }
            Event::Read(work, sink, result) => {
                if let Some(once) = self.reads.remove(&work) {
                    once.set((result.map_err(io::Error::from), sink));
                }
            }
            Event::Revoked(key, memory) => {
                if let Some(once) = self.exposed.remove(&key) {
                    once.set(memory);
                }
            }
            Event::Disconnected(failure) => self.disconnected(failure),
        }
    }

    fn connected(&mut self) {
        // A server has started the core before it accepted.
        if self.core.next_timeout().is_none() && !self.core.is_over() {
            let now = self.now();
            self.core.started(now, &mut self.effects);
        }
        self.perform(&[]);
    }

    fn received(&mut self, slot: Slot, bytes: usize) {
        let now = self.now();
        let message = &slot[..bytes];
        self.core.received(now, message, &mut self.effects);
        self.perform(message);
        drop(slot);
        self.post_receives();
        self.perform(&[]);
    }

    fn disconnected(&mut self, failure: Failure) {
        self.has_ended = true;
        self.core.closed();
        let end = match failure {
            Failure::Disconnected | Failure::PeerDisconnected => End::Closed,
            failure => {
                // A connection that ended for another reason has logged it.
                if self.end.is_none() && !matches!(failure, Failure::Refused(_)) {
                    let transport = Transport::SmbDirect;
                    let code = Refusal::RdmaFailure.code();
                    let peer = self.peer;
                    warn!(%peer, %transport, reason = %failure, code, "disconnecting");
                }
                let error = io::Error::from(failure);
                End::Failed(error.kind(), error.to_string())
            }
        };
        self.end.get_or_insert(end);
        let messages = std::mem::take(&mut self.messages);
        let mut batches: Vec<Rc<Batch>> = std::mem::take(&mut self.stuck);
        for (_, message) in messages {
            batches.push(message.batch());
        }
        for batch in batches {
            batch.finish(Err(self.error()));
        }
    }

    /// Executes the effects of the core. `message` is the last received message.
    pub(crate) fn perform(&mut self, message: &[u8]) {
        while let Some(effect) = self.effects.pop() {
            match effect {
                Effect::PostReceives(count) => {
                    self.wanted += count;
                    self.post_receives();
                }
                Effect::Send(outgoing) => {
                    let work = WorkId(outgoing.id.0 << 1);
                    self.post_send(work, &outgoing);
                    self.needs_flush = true;
                }
                Effect::Fragment {
                    range,
                    offset,
                    total,
                } => self.keep(&message[range], offset, total),
                Effect::Message { .. } => {}
                Effect::MessageSent(token) => self.message_sent(token),
                Effect::Ready(negotiated) => self.negotiated = Some(negotiated),
                Effect::Disconnect(violation) => self.violated(&violation),
            }
        }
    }

    /// Posts the receives that the core has requested, while the unread data is below its limit.
    pub(crate) fn post_receives(&mut self) {
        let mut count = 0;
        while self.wanted > count && self.unread_bytes < UNREAD_MAX && !self.is_over() {
            let Some(slot) = self.slots.take() else {
                break;
            };
            self.pair.post_receive(slot);
            count += 1;
        }
        self.wanted -= count;
        let now = self.now();
        self.core.posted(now, count, &mut self.effects);
    }

    /// Stores a fragment of a message for the receiver.
    fn keep(&mut self, bytes: &[u8], offset: u32, total: u32) {
        let is_first = offset == 0;
        let prefix = is_first.then(|| tcp::prefix(total as usize));
        let prefix = prefix.map(|prefix| prefix.expect("messages are as short as frames"));
        let needed = bytes.len() + PREFIX_LEN;
        let has_space = |last: &&mut Vec<u8>| last.len() + needed <= CHUNK_BYTES;
        let chunk = match self.unread.back_mut().filter(has_space) {
            Some(chunk) => chunk,
            None => self.unread.push_back_mut(Vec::with_capacity(needed)),
        };
        let before = chunk.len();
        chunk.extend_from_slice(prefix.as_ref().map_or(&[], |prefix| &prefix[..]));
        chunk.extend_from_slice(bytes);
        self.unread_bytes += chunk.len() - before;
    }

    fn message_sent(&mut self, token: MessageToken) {
        let message = self.messages.remove(&token).expect("it is sent once");
        let batch = message.batch();
        if batch.message_sent() && !batch.try_finish() {
            self.stuck.push(batch);
        }
    }

    /// An id for an operation other than a SEND.
    fn new_work(&mut self) -> WorkId {
        self.last_work += 1;
        WorkId(self.last_work << 1 | 1)
    }

    /// Posts an RDMA WRITE.
    pub(crate) fn post_write(
        &mut self,
        pieces: Vec<Piece>,
        remote: &[rdma::RemoteRegion],
    ) -> Pending<Vec<Piece>> {
        let (work, once) = (self.new_work(), Once::new());
        self.writes.insert(work, once.clone());
        self.pair.post_write(work, pieces, remote);
        self.needs_flush = true;
        once
    }

    /// Posts an RDMA READ.
    pub(crate) fn post_read(
        &mut self,
        sink: Sink,
        range: std::ops::Range<usize>,
        remote: &[rdma::RemoteRegion],
    ) -> Pending<Sink> {
        let (work, once) = (self.new_work(), Once::new());
        self.reads.insert(work, once.clone());
        self.pair.post_read(work, sink, range, remote);
        self.needs_flush = true;
        once
    }

    /// Exposes local memory to the peer, for later messages.
    pub(crate) fn expose(
        &mut self,
        memory: Exposed,
    ) -> Result<(rdma::RemoteRegion, Once<Exposed>), (io::Error, Exposed)> {
        let remote = self.pair.expose(memory)?;
        let once = Once::new();
        self.exposed.insert(remote.key, once.clone());
        Ok((remote, once))
    }

    /// Raises the credits of the peer to the configured maximum.
    pub(crate) fn trust(&mut self) {
        self.core.trust(&mut self.effects);
        self.pump();
    }

    /// Bytes of memory for receives and headers.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.bytes() + self.heads.bytes()
    }

    /// Ends the exposure of a region.
    pub(crate) fn revoke(&mut self, key: u32) {
        if self.exposed.contains_key(&key) {
            self.pair.revoke(key);
            self.needs_flush = true;
        }
    }
}

fn slots(config: &Config) -> Stock {
    // One more, for the message that is being handled.
    let (first, most) = (config.receives_at_first() + 1, config.receives());
    Stock::new(
        first as usize,
        most as usize,
        config.max_receive_size as usize,
    )
}

impl Shared {
    /// Starts the task of a connection.
    pub(crate) fn start(
        handle: &Handle,
        state: State,
        busy_poll: Duration,
    ) -> io::Result<Rc<Self>> {
        let readiness = Readiness::new(handle, state.pair.descriptor())?;
        let shared = Rc::new(Self {
            handle: handle.clone(),
            peer: state.pair.peer_addr(),
            local: state.pair.local_addr(),
            state: RefCell::new(state),
            wake: Signal::default(),
            readable: Signal::default(),
            settled: Signal::default(),
            busy_poll,
        });
        handle.spawn(Rc::clone(&shared).drive(readiness));
        Ok(shared)
    }

    /// Waits for the end of the negotiation.
    pub(crate) async fn ready(&self) -> io::Result<()> {
        self.settled.raised().await;
        let state = self.state.borrow();
        match &state.end {
            None => Ok(()),
            Some(End::Failed(..)) => Err(state.error()),
            Some(End::Closed) => Err(io::ErrorKind::ConnectionReset.into()),
        }
    }

    /// Ends the connection.
    pub(crate) fn disconnect(&self) {
        let mut state = self.state.borrow_mut();
        state.close();
        drop(state);
        self.changed();
        self.wake.raise();
    }

    /// Raises the signals that a change of the state concerns.
    pub(crate) fn changed(&self) {
        let state = self.state.borrow();
        if !state.unread.is_empty() || state.is_over() {
            self.readable.raise();
        }
        if state.negotiated.is_some() || state.is_over() {
            self.settled.raise();
        }
        let is_earlier = match (state.core.next_timeout(), state.deadline) {
            (Some(next), Some(armed)) => next < armed,
            (next, None) => next.is_some(),
            (None, Some(_)) => false,
        };
        let is_blocked = state.pair.is_blocked() && state.interest == Interest::Readable;
        if is_earlier || is_blocked || state.has_ended {
            self.wake.raise();
        }
    }

    /// Polls the queue pair and runs the timers until the connection has ended.
    async fn drive(self: Rc<Self>, readiness: Readiness) {
        let mut last_work = None;
        loop {
            let has_worked = self.state.borrow_mut().run();
            self.changed();
            if self.state.borrow().has_ended {
                return;
            }
            if self.polls_again(has_worked, &mut last_work) {
                // Other tasks of the thread run in between, and the core's timers expire.
                if self.is_late() && self.time_out() {
                    return;
                }
                self.handle.yield_now().await;
                continue;
            }
            let Some(interest) = self.arm() else {
                self.handle.yield_now().await;
                continue;
            };
            let mut ready = pin!(readiness.ready(interest));
            loop {
                match self.wait(ready.as_mut()).await {
                    Woken::Ready(Ok(())) => break,
                    Woken::Ready(Err(error)) => {
                        debug!(peer = %self.peer, %error, "the runtime has ended");
                        return;
                    }
                    Woken::Signaled if self.has_changed() => break,
                    Woken::Signaled => {}
                    Woken::TimedOut if self.time_out() => return,
                    // The timer may have ended the connection, which the queue pair then reports.
                    Woken::TimedOut if self.has_changed() => break,
                    Woken::TimedOut => {}
                }
            }
        }
    }

    /// Whether to poll the queue pair again before waiting for it.
    fn polls_again(&self, has_worked: bool, last_work: &mut Option<Instant>) -> bool {
        if self.busy_poll.is_zero() {
            return false;
        }
        if has_worked {
            *last_work = Some(Instant::now());
        }
        last_work.is_some_and(|last| last.elapsed() < self.busy_poll)
    }

    /// Whether a timer of the core has expired.
    fn is_late(&self) -> bool {
        let state = self.state.borrow();
        let next = state.core.next_timeout();
        next.is_some_and(|next| next <= state.now())
    }

    fn arm(&self) -> Option<Interest> {
        let mut state = self.state.borrow_mut();
        let interest = match state.pair.arm() {
            Wait::No => return None,
            Wait::Readable => Interest::Readable,
            Wait::ReadableOrWritable => Interest::ReadableOrWritable,
        };
        state.interest = interest;
        Some(interest)
    }

    /// Waits for the queue pair, for a wake-up, or for the core's next timer.
    async fn wait<F>(&self, ready: std::pin::Pin<&mut F>) -> Woken
    where
        F: Future<Output = io::Result<()>>,
    {
        self.wake.lower();
        let duration = {
            let mut state = self.state.borrow_mut();
            let next = state.core.next_timeout();
            state.deadline = next;
            let now = state.now();
            let left = next.map(|next| next.0.saturating_sub(now.0) + Duration::from_millis(1));
            // After the end, wait only for operations that the queue pair still has in flight.
            let is_needed = !state.exposed.is_empty();
            left.or((state.is_over() && !is_needed).then_some(CLOSE_TIMEOUT))
        };
        let woken = pin!(self.wake.raised());
        match duration {
            None => match either(ready, woken).await {
                Either::First(result) => Woken::Ready(result),
                Either::Second(()) => Woken::Signaled,
            },
            Some(duration) => {
                let sleep = pin!(self.handle.sleep(duration));
                match either(ready, pin!(either(woken, sleep))).await {
                    Either::First(result) => Woken::Ready(result),
                    Either::Second(Either::First(())) => Woken::Signaled,
                    Either::Second(Either::Second(())) => Woken::TimedOut,
                }
            }
        }
    }

    /// Whether the condition of the wait has changed.
    fn has_changed(&self) -> bool {
        let state = self.state.borrow();
        let is_blocked = state.pair.is_blocked() && state.interest == Interest::Readable;
        is_blocked || state.is_over()
    }

    /// Runs the core's timers. Returns whether the task may end, because no memory is exposed any
    /// more.
    fn time_out(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if state.is_over() {
            debug!(peer = %self.peer, "the queue pair did not end within its time limit");
            return true;
        }
        let now = state.now();
        let State { core, effects, .. } = &mut *state;
        core.timeout(now, effects);
        state.pump();
        drop(state);
        self.changed();
        false
    }
}

enum Woken {
    Ready(io::Result<()>),
    Signaled,
    TimedOut,
}

/// Ends the connection when a receive or a send is dropped midway: half of a frame may be read or
/// sent.
pub(crate) struct TornGuard<'a> {
    shared: &'a Shared,
    is_complete: bool,
}

impl<'a> TornGuard<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            is_complete: false,
        }
    }

    /// Marks the receive or send as complete.
    pub(crate) fn complete(mut self) {
        self.is_complete = true;
    }
}

impl Drop for TornGuard<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.shared.disconnect();
        }
    }
}
