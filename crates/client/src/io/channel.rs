//! One channel: a connection on its I/O thread, its requests, and its send queue.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use auth::{Initiator, InitiatorStep};
use crypto::Cipher;
use net::{Framing, Outbox, Stream, TimeoutHandler, Timer, Transport};
use proto::client::effect::Leg;
use proto::client::{
    Connection, Effect, Effects, Expect, Fate, LeaseBreak, Negotiated, RequestId, Role, Session,
    Violation,
};
use proto::effect::{Inbound, Outbound};
use proto::time::Instant;
use ring::{Buffer, Either, Handle, Part, Region, Signal, either};
use tracing::{debug, info, warn};
use wire::nbt::KEEP_ALIVE;
use wire::smbd::BufferDescriptorV1;

use crate::error::{Cause, ConnectCause};
use crate::io::answer::{Frame, Retained, answer};
use crate::io::call::Call;
use crate::io::calls::{Calls, Outcome};
use crate::io::connect;
use crate::io::context::ThreadContext;
use crate::io::dispatch::{ChannelHandle, ChannelKey, Left};
use crate::io::leases::{self, Breaking};
use crate::io::message::{Open, Target, ThreadMailbox};
use crate::io::rdma_registration::{Registrations, released};
use crate::io::slot::{Filler, slot};

/// Time before a lost channel is opened again. It doubles with each attempt up to the maximum: an
/// adapter is back soon after a reset, but may stay away for long after a removal.
const REOPEN_AFTER: Duration = Duration::from_secs(1);
const REOPEN_AFTER_MAX: Duration = Duration::from_secs(30);
/// NetBIOS keep-alives in the idle time before an ECHO: one each 20 seconds by default.
const KEEP_ALIVES_PER_ECHO: u32 = 3;

/// A connection on its I/O thread.
pub(crate) struct Channel {
    thread: Rc<ThreadContext>,
    target: Target,
    handle: Arc<ChannelHandle>,
    pub(crate) stream: Stream,
    pub(crate) state: RefCell<State>,
    /// Raised when the outbox has parts to send.
    to_send: Signal,
    /// Raised when the connection ends.
    pub(crate) ended: Signal,
    /// Raised when no request is pending.
    idle: Signal,
    /// Raised when the server cannot access the memory of a request any more.
    memory_released: Signal,
    /// Whether the channel carries the session.
    has_joined: Cell<bool>,
    /// `None`: the channel does not replace a lost one.
    replacement: Option<Replacement>,
    /// Handles the timeouts of the core.
    timer: Timer,
}

/// The mutable state of a channel.
pub(crate) struct State {
    pub(crate) core: Connection,
    effects: Effects,
    pub(crate) framing: Framing,
    outbox: Outbox,
    /// Frames whose data the send of a first try still holds.
    held_back: Vec<Outbound>,
    calls: Calls,
    /// Memory that is registered for RDMA.
    registrations: Registrations,
    /// `None` while a thread runs a step of it.
    login: Option<Initiator>,
    has_spoken: bool,
    ready: Option<Filler<Result<(), ConnectCause>>>,
    /// Reason of the end.
    reason: Option<ConnectCause>,
}

/// An attempt to replace a lost channel.
struct Replacement {
    /// Time before the attempt.
    after: Duration,
    /// The session to which the channel binds.
    session: Arc<Session>,
}

/// A new connection.
struct Connected {
    stream: Stream,
    framing: Framing,
    peer: SocketAddr,
    local: SocketAddr,
}

impl Connected {
    /// Fails if the server has closed the connection already.
    fn new((stream, framing): (Stream, Framing)) -> io::Result<Self> {
        Ok(Self {
            peer: stream.peer_addr()?,
            local: stream.local_addr()?,
            stream,
            framing,
        })
    }
}

/// What follows the end of a channel.
pub(crate) enum Next {
    Nothing,
    /// A channel to open in its place.
    Replace(Box<Open>),
    /// It was the last one: the client resumes the session by this target.
    Resume(Box<Target>),
}

/// Connects a channel. One that replaces a lost channel waits before, and tries until it connects
/// or the session has no use for it any more.
pub(crate) async fn connect(thread: &Rc<ThreadContext>, open: Open) -> Option<Rc<Channel>> {
    let Open {
        target,
        mut role,
        mut after,
        ready,
    } = open;
    let mut replacement = None;
    let connected = loop {
        if !after.is_zero() {
            thread.handle.sleep(after).await;
            if target.dispatch.is_resuming() {
                continue;
            }
            // The session may have been resumed meanwhile.
            let session = target.dispatch.current_session()?;
            role = Role::Binding(Arc::clone(&session));
            replacement = Some(Replacement { after, session });
        }
        debug!(address = %target.address, transport = %target.transport, "opening a connection");
        let connected = connect::stream(&thread.handle, &target).await;
        let connected = connected.and_then(Connected::new);
        if connected.is_ok() || after.is_zero() || !target.dispatch.wants_another() {
            break connected;
        }
        after = longer(after);
    };
    match connected {
        Err(error) => {
            let (address, transport) = (target.address, target.transport);
            debug!(%address, %transport, %error, "connecting failed");
            let _ = ready.fill(Err(ConnectCause::Io(Arc::new(error))));
            None
        }
        Ok(connected) => Some(Channel::new(
            thread,
            target,
            (role, replacement),
            connected,
            ready,
        )),
    }
}

/// The time before the next attempt to replace a channel.
fn longer(after: Duration) -> Duration {
    (after * 2).min(REOPEN_AFTER_MAX)
}

impl Channel {
    fn new(
        thread: &Rc<ThreadContext>,
        target: Target,
        (role, replacement): (Role, Option<Replacement>),
        Connected {
            stream,
            framing,
            peer,
            local,
        }: Connected,
        ready: Filler<Result<(), ConnectCause>>,
    ) -> Rc<Self> {
        let key = ChannelKey::fresh();
        let mailbox = ThreadMailbox {
            key,
            sender: thread.sender.clone(),
        };
        let handle = Arc::new(ChannelHandle::new(
            key,
            Box::new(mailbox),
            peer,
            local,
            target.transport,
        ));
        let seed = auth::fresh_entropy();
        let mut carrier = stream.carrier(target.transport);
        carrier.secure &= target.tls.verifies();
        let name = format!("cifs/{}", target.config.server_name);
        let mechanism = target.credentials.start(&name);
        let login = Initiator::with_mechanism(mechanism, auth::Framing::Spnego);
        let state = State {
            core: Connection::new(Arc::clone(&target.config), role, carrier, &seed),
            effects: Effects::new(),
            framing,
            outbox: Outbox::default(),
            held_back: Vec::new(),
            calls: Calls::new(target.transport.sends_files()),
            registrations: Registrations::default(),
            login: Some(login),
            has_spoken: false,
            ready: Some(ready),
            reason: None,
        };
        Rc::new(Self {
            thread: Rc::clone(thread),
            target,
            handle,
            stream,
            state: RefCell::new(state),
            to_send: Signal::default(),
            ended: Signal::default(),
            idle: Signal::default(),
            memory_released: Signal::default(),
            has_joined: Cell::new(false),
            replacement,
            timer: Timer::default(),
        })
    }

    pub(crate) fn key(&self) -> ChannelKey {
        self.handle.key
    }

    pub(crate) fn io(&self) -> &Handle {
        &self.thread.handle
    }

    /// Calls the core and performs its effects.
    pub(crate) fn with_core(
        self: &Rc<Self>,
        call: impl FnOnce(&mut Connection, proto::time::Now, &mut Effects),
    ) {
        let now = self.thread.now();
        let mut state = self.state.borrow_mut();
        let State { core, effects, .. } = &mut *state;
        call(core, now, effects);
        self.perform(&mut state, None);
        drop(state);
        self.finish_calls();
        Timer::arm(self);
    }

    /// Passes a frame to the core whose buffer has other frames too.
    pub(crate) fn handle_frame(self: &Rc<Self>, bytes: &mut [u8]) {
        self.take_in(&mut self.state.borrow_mut(), bytes, false);
        self.finish_calls();
        Timer::arm(self);
    }

    /// Passes a frame of `len` bytes to the core that has a separate buffer.
    pub(crate) fn buffered_frame(self: &Rc<Self>, mut buffer: Buffer, len: usize) {
        let may_stay = !buffer.is_scarce();
        let mut state = self.state.borrow_mut();
        match self.take_in(&mut state, &mut buffer[..len], may_stay) {
            Some(Retained::One(request, range)) => {
                let data = Region::of_buffer(buffer, range);
                state.calls.placed(request, data);
            }
            Some(Retained::Each(request, ranges)) => {
                let parts = Region::from(buffer).into_parts(&ranges);
                state.calls.bring_each(request, parts);
            }
            None => {}
        }
        drop(state);
        self.finish_calls();
        Timer::arm(self);
    }

    /// Passes a frame to the core. Returns the part that becomes the memory of a request.
    fn take_in(
        self: &Rc<Self>,
        state: &mut State,
        bytes: &mut [u8],
        may_stay: bool,
    ) -> Option<Retained> {
        let now = self.thread.now();
        let State { core, effects, .. } = state;
        let mut scratch = Vec::new();
        let message = Inbound {
            bytes: &mut *bytes,
            scratch: &mut scratch,
        };
        core.receive(now, message, effects);
        self.note_credits(core);
        let mut frame = Frame::new(bytes, may_stay);
        self.perform(state, Some(&mut frame));
        frame.retained()
    }

    /// Passes a READ response to the core whose data are in their destination.
    pub(crate) fn split_frame(
        self: &Rc<Self>,
        head: &mut [u8],
        request: RequestId,
        destination: Region,
        len: usize,
    ) {
        let now = self.thread.now();
        let mut state = self.state.borrow_mut();
        let State {
            core,
            effects,
            calls,
            ..
        } = &mut *state;
        core.receive_split(now, head, &destination[..len], effects);
        self.note_credits(core);
        calls.placed(request, destination);
        self.perform(&mut state, None);
        drop(state);
        self.finish_calls();
        Timer::arm(self);
    }

    /// Determines from the start of a frame where its rest belongs.
    pub(crate) fn expected(&self, start: &[u8], frame_len: usize) -> Expect {
        self.state.borrow().core.expect(start, frame_len)
    }

    /// Takes the memory for the data of a response.
    pub(crate) fn destination(&self, request: RequestId) -> Option<Region> {
        self.state
            .borrow_mut()
            .calls
            .take_destination(request, &self.io().pool())
    }

    /// Returns that memory if the data did not arrive.
    pub(crate) fn misplaced(self: &Rc<Self>, request: RequestId, destination: Region) {
        self.state.borrow_mut().calls.placed(request, destination);
        self.finish_calls();
    }

    /// Sends a request.
    pub(crate) fn call(self: &Rc<Self>, mut call: Box<Call>) {
        let request = call.request.take().expect("a new call has its request");
        let id = call.id;
        if self.ended.is_raised() {
            // Another channel gets the call only after this one has left the session. Until then
            // the session would choose this channel again, without an end.
            let lost = Outcome::Lost(request, Fate::Unsent);
            self.state.borrow_mut().calls.keep_lost(call, lost);
            return;
        }
        self.state.borrow_mut().calls.insert(call);
        self.with_core(|core, now, effects| {
            core.request(now, id, request, effects);
        });
    }

    /// Cancels a request whose caller does not wait any more.
    pub(crate) fn cancel(self: &Rc<Self>, id: RequestId) {
        if self.state.borrow().calls.has(id) && !self.ended.is_raised() {
            self.with_core(|core, now, effects| core.cancel(now, id, effects));
        }
    }

    /// Whether the transport has keep-alives.
    pub(crate) fn has_keep_alives(&self) -> bool {
        self.target.transport == Transport::Nbt
    }

    /// Whether the kernel closes the connection in good order when the process ends.
    pub(crate) fn ends_with_process(&self) -> bool {
        matches!(self.target.transport, Transport::Tcp | Transport::Nbt)
    }

    /// Waits until no request is pending.
    pub(crate) async fn idle(&self) {
        while !self.state.borrow().calls.is_empty() && !self.ended.is_raised() {
            self.idle.lower();
            self.idle.raised().await;
        }
    }

    /// Ends the channel after its pending requests, or after the time `grace`.
    pub(crate) async fn close(self: Rc<Self>, grace: Duration) {
        let _ = self.io().timeout(grace, self.idle()).await;
        if !self.ended.is_raised() {
            self.with_core(Connection::close);
            self.end();
        }
    }

    /// Performs the effects of the core, in order.
    fn perform(self: &Rc<Self>, state: &mut State, mut frame: Option<&mut Frame<'_>>) {
        while let Some(effect) = state.effects.pop() {
            match effect {
                Effect::Send(outbound) => self.push(state, outbound),
                Effect::Authenticate(token) => self.authenticate(state, &token),
                Effect::Ready(session) => self.ready(state, &session),
                Effect::Answer(id, results) => {
                    answer(&mut state.calls, frame.as_deref_mut(), id, results);
                }
                Effect::Expose {
                    request, length, ..
                } => self.expose(state, request, length),
                Effect::Withdraw { request, .. } => self.withdraw(state, request),
                Effect::Lost(id, request, fate) => {
                    state.calls.settle(id, Outcome::Lost(request, fate));
                }
                Effect::OplockBreak { file_id, level } => {
                    debug!(
                        ?file_id,
                        ?level,
                        "the server breaks an oplock that was not requested"
                    );
                }
                Effect::LeaseBreak(notification) => self.break_lease(notification),
                Effect::Disconnect(violation) => {
                    debug!(peer = %self.handle.peer, reason = %violation, "disconnecting");
                    set_reason(state, ConnectCause::Violation(violation));
                    self.end();
                }
            }
        }
    }

    fn push(&self, state: &mut State, outbound: Outbound) {
        let mut payloads = outbound
            .messages
            .iter()
            .filter_map(|message| message.payload);
        if payloads.any(|payload| state.calls.is_away(RequestId(payload.token.0))) {
            state.held_back.push(outbound);
            return;
        }
        let State {
            outbox,
            calls,
            framing,
            ..
        } = state;
        if !outbox.push(framing, &self.io().pool(), calls, outbound) {
            warn!(
                peer = %self.handle.peer,
                "disconnecting: a request is too long for the transport"
            );
            self.end();
        }
        self.to_send.raise();
    }

    /// Runs one step of the login, on a thread if it may block.
    fn authenticate(self: &Rc<Self>, state: &mut State, token: &[u8]) {
        let is_first = !std::mem::replace(&mut state.has_spoken, true);
        let token = (!is_first).then_some(token);
        let login = state.login.as_mut();
        let login = login.expect("the core requests one step at a time");
        if !login.may_block() {
            let leg = leg(login, token);
            let now = self.thread.now();
            let State { core, effects, .. } = state;
            core.authenticated(now, leg, effects);
            return;
        }
        let login = state.login.take().expect("it is there");
        let step = Rc::clone(self).authenticate_on_thread(login, token.map(<[u8]>::to_vec));
        self.io().spawn(step);
    }

    async fn authenticate_on_thread(self: Rc<Self>, mut login: Initiator, token: Option<Vec<u8>>) {
        let step = self.io().blocking(move || {
            let leg = leg(&mut login, token.as_deref());
            (login, leg)
        });
        let (login, leg) = step.await;
        self.state.borrow_mut().login = Some(login);
        // The core gave the login up if the connection has ended.
        if !self.ended.is_raised() {
            self.with_core(|core, now, effects| core.authenticated(now, leg, effects));
        }
    }

    fn log_end(&self, reason: &str) {
        let peer = self.handle.peer;
        match self.target.dispatch.is_closing() {
            true => debug!(%peer, reason, "connection closed"),
            false => info!(%peer, reason, "channel lost"),
        }
    }

    /// Logs the negotiated parameters of the session on this channel.
    fn log_ready(&self, session: &Session) {
        let Negotiated {
            dialect,
            cipher,
            signing_algorithm,
            ..
        } = &session.negotiated;
        info!(
            peer = %self.handle.peer,
            local = %self.handle.local,
            transport = %self.target.transport,
            %dialect,
            cipher = cipher.map_or("none", Cipher::name),
            signing = signing_algorithm.name(),
            is_signed = session.signing_required,
            is_encrypted = session.encrypt,
            is_guest = session.is_guest,
            "logged in"
        );
    }

    fn ready(&self, state: &mut State, session: &Arc<Session>) {
        self.log_ready(session);
        let channel = Arc::clone(&self.handle);
        let is_wanted = self.target.dispatch.joined(channel, session);
        let result = match is_wanted {
            true => Ok(()),
            false => Err(ConnectCause::Violation(Violation::Asked)),
        };
        let is_heard = match state.ready.take() {
            Some(ready) => ready.fill(result).is_ok(),
            None => true,
        };
        self.has_joined.set(is_wanted);
        let is_only = self.target.dispatch.channels().len() == 1;
        if !is_wanted || (is_only && !is_heard) {
            // The caller does not wait for the channel any more.
            self.end();
        }
    }

    /// The transport failed: ends the connection.
    pub(crate) fn fail(&self, error: io::Error) {
        debug!(peer = %self.handle.peer, %error, "connection lost");
        let cause = ConnectCause::Io(Arc::new(error));
        set_reason(&mut self.state.borrow_mut(), cause);
        self.end();
    }

    /// Ends the connection.
    pub(crate) fn end(&self) {
        if !self.ended.is_raised() {
            self.ended.raise();
            // This fails if the peer has closed the connection.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        self.to_send.raise();
        self.idle.raise();
    }

    /// Reason of the end, for the errors of pending requests.
    fn reason(&self) -> Arc<str> {
        match &self.state.borrow().reason {
            Some(reason) => reason.to_string().into(),
            None => "the connection was closed".into(),
        }
    }

    /// Completes the calls that are done and whose memory is released.
    pub(crate) fn finish_calls(&self) {
        loop {
            let Some((call, outcome)) = self.state.borrow_mut().calls.next_finished() else {
                break;
            };
            if let Outcome::Lost(..) = outcome {
                // Another channel gets the call only after this one has left the session.
                self.state.borrow_mut().calls.keep_lost(call, outcome);
                continue;
            }
            self.handle.relieve(call.cost);
            outcome.complete(*call);
        }
        if self.state.borrow().calls.is_empty() {
            self.idle.raise();
        }
    }

    /// Sends all queued parts at once, again and again until the connection ends.
    pub(crate) async fn send(self: Rc<Self>) {
        loop {
            let parts = self.state.borrow_mut().outbox.take();
            if !parts.is_empty() {
                let parts = self.send_parts(parts).await;
                self.recycle(parts);
                continue;
            }
            if self.ended.is_raised() {
                return;
            }
            self.to_send.lower();
            self.to_send.raised().await;
        }
    }

    async fn send_parts(&self, parts: Vec<Part>) -> Vec<Part> {
        let bytes: usize = parts.iter().map(Part::len).sum();
        let (result, parts) = self.stream.send(parts).await;
        match result {
            Ok(()) => {
                self.handle.sent.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) => {
                self.fail(error);
            }
        }
        parts
    }

    /// Returns the memory of sent parts.
    fn recycle(self: &Rc<Self>, parts: Vec<Part>) {
        let mut state = self.state.borrow_mut();
        let State { outbox, calls, .. } = &mut *state;
        outbox.recycle(parts, calls);
        for outbound in std::mem::take(&mut state.held_back) {
            self.push(&mut state, outbound);
        }
        drop(state);
        self.register_postponed();
        self.finish_calls();
    }

    fn note_credits(&self, core: &Connection) {
        let held = core.credits_held();
        self.handle.credits.store(held, Ordering::Relaxed);
    }

    /// Takes note of received bytes, which show that the server is alive.
    pub(crate) fn note_received(&self, bytes: usize) {
        let now = self.thread.now();
        self.state.borrow_mut().core.heard(now);
        self.handle
            .received
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Sends NetBIOS keep-alives after idle times, so that routers do not forget the connection.
    /// The server ignores them. RFC 1002 4.3.7
    pub(crate) async fn keep_alive(self: Rc<Self>) {
        let interval = self.target.config.echo_interval / KEEP_ALIVES_PER_ECHO;
        let mut last = None;
        loop {
            let sleep = pin!(self.io().sleep(interval));
            if let Either::Second(()) = either(sleep, pin!(self.ended.raised())).await {
                return;
            }
            let mut sent = self.handle.sent.load(Ordering::Relaxed);
            if last == Some(sent) {
                self.answer_raw(&KEEP_ALIVE);
                sent += KEEP_ALIVE.len() as u64;
            }
            last = Some(sent);
        }
    }

    /// Queues a response of the transport itself.
    pub(crate) fn answer_raw(&self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.state.borrow_mut().outbox.push_raw(bytes);
            self.to_send.raise();
        }
    }

    /// Removes the ended channel from the session, and passes its pending requests to other
    /// channels.
    /// Returns what follows.
    pub(crate) fn settle(&self) -> Next {
        let reason = self.reason();
        let has_lost = self.state.borrow().calls.has_lost();
        let (key, may_resume) = (self.handle.key, self.may_resume());
        let left = (self.target.dispatch).left(key, &reason, may_resume, has_lost);
        let mut state = self.state.borrow_mut();
        if let Some(ready) = state.ready.take() {
            set_reason(&mut state, ConnectCause::Violation(Violation::Closed));
            let cause = state.reason.clone().expect("it was set");
            let _ = ready.fill(Err(cause));
        }
        let lost = state.calls.take_lost();
        let forgotten = state.calls.take_all();
        drop(state);
        for (mut call, request, fate) in lost {
            call.request = Some(request);
            call.lost(fate, &reason);
        }
        // The core returns every request, so this is empty unless it has a bug.
        for call in forgotten {
            call.fail(Cause::Lost(Arc::clone(&reason)));
        }
        if self.has_joined.get() {
            self.log_end(&reason);
        }
        let target = self.target.clone();
        let after = match left {
            Left::Resume => return Next::Resume(Box::new(target)),
            Left::Replace => Some(REOPEN_AFTER),
            Left::Nothing => self.next_attempt(),
        };
        match (after, target.dispatch.current_session()) {
            (Some(after), Some(session)) => Next::Replace(Box::new(Open {
                target,
                role: Role::Binding(session),
                after,
                ready: slot().0,
            })),
            _ => Next::Nothing,
        }
    }

    /// The time before the next attempt, if this channel did not replace the lost one, and another
    /// attempt can: the connection broke, the client ended it, or it has another session by now.
    fn next_attempt(&self) -> Option<Duration> {
        let Replacement { after, session } = self.replacement.as_ref()?;
        let dispatch = &self.target.dispatch;
        let is_ended_here = matches!(
            self.state.borrow().reason,
            None | Some(ConnectCause::Violation(Violation::Asked))
        );
        let has_other_session = || {
            let current = dispatch.current_session();
            current.is_some_and(|current| !Arc::ptr_eq(&current, session))
        };
        let may_succeed = self.is_broken() || is_ended_here || has_other_session();
        (may_succeed && dispatch.wants_another()).then(|| longer(*after))
    }

    /// Whether the client resumes the session after the loss of this channel: the connection broke.
    /// A server that violates the protocol or ends the session would do that again.
    fn may_resume(&self) -> bool {
        self.is_broken() && self.has_joined.get() && !self.target.reconnect_timeout.is_zero()
    }

    /// Whether the connection broke.
    fn is_broken(&self) -> bool {
        match &self.state.borrow().reason {
            Some(ConnectCause::Violation(violation)) => {
                matches!(violation, Violation::Closed | Violation::TimedOut)
            }
            Some(ConnectCause::Io(_)) => true,
            None => false,
        }
    }

    /// Runs the callbacks of a lease that the server breaks, waits for its WRITEs in flight, and
    /// acknowledges the break. \[MS-SMB2\] 3.2.5.19.2
    fn break_lease(&self, notification: LeaseBreak) {
        let dispatch = Arc::clone(&self.target.dispatch);
        let Breaking {
            lease,
            event,
            callbacks,
        } = dispatch.break_lease(&notification);
        debug!(from = ?event.from, to = ?event.to, "the server breaks a lease");
        let writes = lease.as_ref().and_then(|lease| lease.writes_done());
        if callbacks.is_empty() && writes.is_none() {
            if notification.must_be_acknowledged {
                dispatch.acknowledge(lease.as_ref(), &notification);
            }
            return;
        }
        let handle = self.io().clone();
        self.io().spawn(async move {
            if !callbacks.is_empty() {
                // A callback may block, for example to write back cached data.
                handle
                    .blocking(move || leases::run_all(&callbacks, event))
                    .await;
            }
            // WRITEs of the callbacks and earlier ones.
            let last = lease.as_ref().and_then(|lease| lease.writes_done());
            for done in writes.into_iter().chain(last) {
                let _ = done.await;
            }
            if notification.must_be_acknowledged {
                dispatch.acknowledge(lease.as_ref(), &notification);
            }
        });
    }
}

impl TimeoutHandler for Channel {
    fn timer(&self) -> &Timer {
        &self.timer
    }

    fn runtime(&self) -> &Handle {
        self.io()
    }

    fn ended(&self) -> &Signal {
        &self.ended
    }

    fn now(&self) -> Instant {
        self.thread.now().instant
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.state.borrow().core.next_timeout()
    }

    fn timeout(self: &Rc<Self>) {
        self.with_core(Connection::timeout);
    }
}

/// Memory that the server uses by RDMA.
impl Channel {
    /// Registers the memory of a request, and notifies the core.
    fn expose(self: &Rc<Self>, state: &mut State, id: RequestId, length: u32) {
        if state.calls.is_away(id) {
            state.registrations.postpone(id, length);
            return;
        }
        let pieces = self.register(state, id, length);
        let now = self.thread.now();
        let State { core, effects, .. } = state;
        core.exposed(now, id, pieces, effects);
    }

    fn register(
        &self,
        state: &mut State,
        id: RequestId,
        length: u32,
    ) -> Option<Vec<BufferDescriptorV1>> {
        let remote = self.stream.rdma_memory()?;
        let State {
            calls,
            registrations,
            ..
        } = state;
        registrations.register(&remote, calls, &self.io().pool(), (id, length))
    }

    /// Invalidates the registration of a request's memory. The memory is back once that is done.
    fn withdraw(self: &Rc<Self>, state: &mut State, id: RequestId) {
        let Some(exposure) = state.registrations.release(id) else {
            return;
        };
        let channel = Rc::clone(self);
        self.io().spawn(async move {
            let memory = exposure.take_back().await;
            {
                let mut state = channel.state.borrow_mut();
                state.registrations.released();
                state.calls.come_home(id, released(memory));
            }
            channel.register_postponed();
            channel.finish_calls();
            channel.memory_released.raise();
        });
    }

    /// Registers the memory of requests that waited for a first try to give it back, be it a
    /// registration or a message.
    fn register_postponed(self: &Rc<Self>) {
        while let Some((id, length)) = self.next_postponed() {
            let pieces = self.register(&mut self.state.borrow_mut(), id, length);
            self.with_core(|core, now, effects| {
                core.exposed(now, id, pieces, effects);
            });
        }
    }

    fn next_postponed(&self) -> Option<(RequestId, u32)> {
        let mut state = self.state.borrow_mut();
        let State {
            calls,
            registrations,
            ..
        } = &mut *state;
        registrations.next_postponed(calls)
    }

    /// Waits until the server can use no memory any more. The connection has ended.
    pub(crate) async fn all_memory_released(&self) {
        while self.state.borrow().registrations.is_releasing() {
            self.memory_released.lower();
            self.memory_released.raised().await;
        }
    }
}

/// Sets the reason of the end, unless an earlier one is known.
fn set_reason(state: &mut State, cause: ConnectCause) {
    let State { core, reason, .. } = state;
    reason.get_or_insert_with(|| match core.negotiated() {
        Some(_) => cause,
        None => cause.before_negotiation(),
    });
}

/// One step of the login, with the server's token; `None` for the first step.
fn leg(login: &mut Initiator, token: Option<&[u8]>) -> Leg {
    let entropy = auth::fresh_entropy();
    let now = std::time::SystemTime::now().into();
    let step = match token {
        None => login.start(now, &entropy).map(InitiatorStep::Continue),
        Some(token) => login.step(token, now, &entropy),
    };
    match step {
        Ok(InitiatorStep::Continue(token)) => Leg::Token(token),
        Ok(InitiatorStep::Done(key)) => Leg::Done {
            session_key: key.map_or_else(Vec::new, |key| key.to_vec()),
        },
        Err(error) => {
            debug!(%error, "the login failed");
            Leg::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use auth::{
        Acceptor, AcceptorConfig, Credentials, FileTime, Framing, GuestLogins, Step, TargetNames,
    };

    use super::*;

    #[test]
    fn an_anonymous_login_has_no_key() {
        let names = TargetNames {
            netbios_computer: "SERVER".to_owned(),
            netbios_domain: "WORKGROUP".to_owned(),
            dns_computer: "server".to_owned(),
            dns_domain: String::new(),
        };
        let mut acceptor = Acceptor::new(Arc::new(AcceptorConfig {
            names,
            users: Arc::default(),
            allows_anonymous: true,
            guests: GuestLogins::Refused,
            mechanisms: Vec::new(),
        }));
        let mut login = Initiator::new(Credentials::Anonymous, "cifs/server", Framing::Spnego);
        let mut token = login.start(FileTime(1), &[7; 32]).expect("a first token");
        loop {
            let step = acceptor.step(&token, FileTime(1), &[7; 32]);
            let (reply, is_last) = match step {
                Step::Continue(reply) => (reply, false),
                Step::Done(accepted) => (accepted.token, true),
                refused => panic!("{refused:?}"),
            };
            token = match leg(&mut login, Some(&reply)) {
                Leg::Token(next) => next,
                Leg::Done { session_key } if is_last => return assert!(session_key.is_empty()),
                _ => panic!("the login does not end"),
            };
        }
    }
}
