//! A driver around the client's core: channels, the choice among them, and the requests of a lost
//! channel. It works like crates/client, on the clock of the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use auth::{Framing, Initiator, InitiatorStep};
use crypto::SigningAlgorithm;
use proto::carrier::Carrier;
use proto::client::config::Protection;
use proto::client::effect::Leg;
use proto::client::request::{ReadData, Reply};
use proto::client::{
    Config, Connection, Direction, Effect, Effects, Expect, Failure, Fate, Request, RequestId,
    Role, Session, Violation, replay,
};
use proto::effect::{Inbound, Outbound};
use proto::time::{Instant, Now};
use wire::dialect::Dialect;
use wire::{Guid, SessionId, TreeId};

use super::books::Books;
use super::script::{Intent, Script};
use super::world::Link;
use super::{Outcome, Sessions};
use crate::check::nonces::SigningNonces;
use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::host::assemble;
use crate::login;
use crate::schedule::Timer;

/// Maximum delay until a lost channel is opened again. crates/client waits one second.
const REOPEN: Duration = Duration::from_secs(1);
/// Maximum pause of a client between two operations.
pub(super) const THOUGHT: Duration = Duration::from_millis(20);

/// A request of a peer to the world.
#[derive(Debug)]
pub(super) enum Order {
    /// Send a frame on a connection.
    Frame(u64, Vec<u8>),
    /// Close the client's end of a connection.
    Close(u64),
    /// Open a connection after a delay.
    Open(Duration),
    /// Call the peer again.
    Think,
}

/// The peer's view of the world.
pub(super) struct Around<'a> {
    pub(super) now: Now,
    pub(super) scenario: &'a Sessions,
    pub(super) books: &'a mut Books,
    pub(super) nonces: &'a mut SigningNonces,
    pub(super) outcome: &'a mut Outcome,
    pub(super) orders: &'a mut Vec<Order>,
    /// Intact connections: neither end has closed, and no byte was lost.
    pub(super) whole: &'a BTreeSet<u64>,
    /// The connections, for the memory that is registered on them.
    pub(super) links: &'a mut BTreeMap<u64, Link>,
    /// Whether the faults have stopped.
    pub(super) is_calm: bool,
}

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No connection, or one that may become the first channel.
    Away,
    /// Connecting to the share.
    Entering,
    /// Executing operations.
    Running,
    /// Closing its opens.
    Tidying,
    /// Logging off.
    Leaving,
    /// Finished.
    Done,
}

/// The client's end of a connection.
struct Channel {
    core: Connection,
    effects: Effects,
    login: Initiator,
    has_spoken: bool,
    /// Whether it is a channel of the session.
    has_joined: bool,
    /// Bytes in flight.
    load: u64,
    /// The scheduled timer.
    timer: Timer,
}

/// A request that has not ended.
pub(super) struct Call {
    pub(super) intent: Intent,
    /// Data of a WRITE.
    data: Vec<u8>,
    cost: u64,
    channel: u64,
    /// The request that it follows, if both use one channel.
    behind: Option<RequestId>,
    /// Time of the first attempt.
    pub(super) start: u64,
    /// Connections on which it may have been sent without a response.
    pub(super) links: BTreeSet<u64>,
    /// Whether it was resent.
    pub(super) was_resent: bool,
    /// Keys of its memory, and the bytes after the end of the registration.
    keys: Vec<u32>,
    memory: Vec<u8>,
}

/// How a request ended.
pub(super) enum End {
    /// With a response: a result for each step, and bytes for a READ.
    Answer(Vec<Result<Reply, Failure>>, Vec<Vec<u8>>),
    /// Canceled, before or after it was sent.
    GivenUp(Fate),
}

/// A session with its channels.
pub(super) struct Peer {
    pub(super) id: usize,
    config: Arc<Config>,
    wanted: usize,
    choices: Choices,
    pub(super) phase: Phase,
    session: Option<Arc<Session>>,
    channels: BTreeMap<u64, Channel>,
    calls: BTreeMap<RequestId, Call>,
    next_request: u64,
    pub(super) tree: Option<TreeId>,
    pub(super) script: Script,
    /// Number of requested connections that are not established yet.
    opening: usize,
    log: Vec<String>,
}

impl Peer {
    pub(super) fn new(id: usize, scenario: &Sessions, mut choices: Choices) -> Self {
        let newest = choices.pick(&scenario.dialects);
        let mut config = Config::new(Guid([id as u8 + 1; 16]), "sim");
        config.dialects.retain(|dialect| *dialect <= newest);
        config.credits = scenario.credits;
        // Two cells.
        config.rdma_threshold = 1024;
        // So that some data of SMB Direct do not go by RDMA.
        config.max_io = 100 << 10;
        let protections = [Protection::AsAsked, Protection::Sign, Protection::Encrypt];
        config.protection = match newest < Dialect::SMB_3_0 {
            true => Protection::Sign,
            false => choices.pick(&protections),
        };
        // With AES-GMAC alone the session has one channel.
        if choices.per_mille(160) {
            config.signing_algorithms = vec![SigningAlgorithm::AesGmac];
        }
        // Timeouts before and after the end of the connection.
        let seconds = choices.pick(&[5, 30]);
        config.request_timeout = Some(Duration::from_secs(seconds));
        config.echo_interval = Duration::from_secs(10);
        let wanted = match newest < Dialect::SMB_3_0 {
            true => 1,
            false => scenario.channels,
        };
        Self {
            id,
            config: Arc::new(config),
            wanted,
            script: Script::new(scenario.operations, choices.fork()),
            choices,
            phase: Phase::Away,
            session: None,
            channels: BTreeMap::new(),
            calls: BTreeMap::new(),
            next_request: 0,
            tree: None,
            opening: 1,
            log: Vec::new(),
        }
    }

    /// A connection is established.
    pub(super) fn connected(
        &mut self,
        link: u64,
        carrier: Carrier,
        around: &mut Around<'_>,
    ) -> Check {
        self.opening -= 1;
        let becomes_first = self.session.is_none();
        if matches!(self.phase, Phase::Leaving | Phase::Done)
            || becomes_first && !self.channels.is_empty()
        {
            // Its purpose no longer exists.
            around.orders.push(Order::Close(link));
            return Ok(());
        }
        let role = match &self.session {
            Some(session) => Role::Binding(Arc::clone(session)),
            None => Role::First,
        };
        let credentials = login::credentials(0, true);
        let channel = Channel {
            core: Connection::new(
                Arc::clone(&self.config),
                role,
                carrier,
                &self.choices.bytes(),
            ),
            effects: Effects::new(),
            login: Initiator::new(credentials, "cifs/sim", Framing::Spnego),
            has_spoken: false,
            has_joined: false,
            load: 0,
            timer: Timer::default(),
        };
        self.channels.insert(link, channel);
        self.with_core(link, None, around, Connection::start)
    }

    /// Receives a frame.
    pub(super) fn frame(
        &mut self,
        link: u64,
        mut frame: Vec<u8>,
        key: Option<u32>,
        around: &mut Around<'_>,
    ) -> Check {
        let Some(channel) = self.channels.get_mut(&link) else {
            return Ok(());
        };
        if let Some(key) = key {
            channel.core.invalidated(key);
        }
        let len = frame.len();
        match channel.core.expect(&frame[..len.min(80)], len) {
            Expect::Frame => {
                let Channel { core, effects, .. } = channel;
                let bytes = &mut frame[..];
                core.receive(
                    around.now,
                    Inbound {
                        bytes,
                        scratch: &mut Vec::new(),
                    },
                    effects,
                );
                self.perform(link, &frame, around)
            }
            Expect::Split { head, .. } => {
                let Channel { core, effects, .. } = channel;
                let (head, payload) = frame.split_at_mut(head);
                core.receive_split(around.now, head, payload, effects);
                let payload = payload.to_vec();
                self.perform(link, &payload, around)
            }
        }
    }

    /// The transport of a connection has ended.
    pub(super) fn disconnected(&mut self, link: u64, around: &mut Around<'_>) -> Check {
        self.with_core(link, None, around, Connection::closed)
    }

    /// The timer has fired.
    pub(super) fn timeout(&mut self, link: u64, around: &mut Around<'_>) -> Check {
        let now = around.now.instant;
        if let Some(channel) = self.channels.get_mut(&link) {
            channel.timer.clear();
        }
        self.with_core(link, None, around, Connection::timeout)?;
        let next = self.channels.get(&link);
        let next = next.and_then(|channel| channel.core.next_timeout());
        ensure(next.is_none_or(|at| at > now), || {
            format!("the client's timer of connection {link} is due again and again")
        })
    }

    /// Returns the time for the timer, if it is earlier than the scheduled time.
    pub(super) fn set_timer(&mut self, link: u64) -> Option<Instant> {
        let channel = self.channels.get_mut(&link)?;
        channel.timer.set(channel.core.next_timeout())
    }

    /// Returns the established connections.
    pub(super) fn links(&self) -> Vec<u64> {
        self.channels.keys().copied().collect()
    }

    /// Returns the id of the session; `None` without one.
    pub(super) fn session_id(&self) -> Option<SessionId> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Returns the number of requests in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// Returns the maximum length of a READ or a WRITE in bytes.
    pub(super) fn max_io(&self) -> u32 {
        let negotiated = self.session.as_ref().map(|session| &session.negotiated);
        negotiated.map_or(0, |agreed| agreed.max_read.min(agreed.max_write))
    }

    /// Sends a request on the channel with the fewest requests in flight.
    pub(super) fn submit(
        &mut self,
        request: Request,
        data: Vec<u8>,
        intent: Intent,
        around: &mut Around<'_>,
    ) -> Check {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        around.outcome.requests += 1;
        let call = Call {
            intent,
            cost: 512 + data.len() as u64,
            data,
            channel: 0,
            behind: request.behind,
            start: around.books.tick(),
            links: BTreeSet::new(),
            was_resent: false,
            keys: Vec::new(),
            memory: Vec::new(),
        };
        self.calls.insert(id, call);
        self.send(id, request, around)
    }

    fn send(&mut self, id: RequestId, request: Request, around: &mut Around<'_>) -> Check {
        let joined = self.channels.iter().filter(|(_, channel)| {
            // An open that is being closed stays until its requests have ended.
            channel.has_joined && !channel.core.is_over()
        });
        let Some(link) = joined.min_by_key(|(_, c)| c.load).map(|(link, _)| *link) else {
            return self.end(id, End::GivenUp(Fate::Unsent), around);
        };
        let call = self.calls.get_mut(&id).expect("it was just inserted");
        call.channel = link;
        call.links.insert(link);
        let channel = self.channels.get_mut(&link).expect("it was found");
        channel.load += call.cost;
        self.with_core(link, None, around, |core, now, effects| {
            core.request(now, id, request, effects);
        })
    }

    /// Cancels requests that wait, except those that can end by themselves.
    pub(super) fn cancel_waiting(&mut self, around: &mut Around<'_>) -> Check {
        let waiting: Vec<_> = (self.calls.iter())
            .filter(|(_, call)| call.intent.may_wait() && !self.script.is_due(&call.intent))
            .map(|(id, call)| (*id, call.channel))
            .collect();
        for (id, link) in waiting {
            self.with_core(link, None, around, |core, now, effects| {
                core.cancel(now, id, effects);
            })?;
        }
        Ok(())
    }

    /// Logs off on all channels.
    pub(super) fn hang_up(&mut self, around: &mut Around<'_>) -> Check {
        self.phase = Phase::Done;
        for link in self.links() {
            self.with_core(link, None, around, Connection::close)?;
        }
        Ok(())
    }

    fn with_core(
        &mut self,
        link: u64,
        frame: Option<&[u8]>,
        around: &mut Around<'_>,
        call: impl FnOnce(&mut Connection, Now, &mut Effects),
    ) -> Check {
        let Some(Channel { core, effects, .. }) = self.channels.get_mut(&link) else {
            return Ok(());
        };
        call(core, around.now, effects);
        self.perform(link, frame.unwrap_or_default(), around)
    }

    /// Performs the effects of the core. Lost requests are processed last: after the channel has
    /// left the session.
    fn perform(&mut self, link: u64, frame: &[u8], around: &mut Around<'_>) -> Check {
        let mut lost = Vec::new();
        let mut ended = None;
        while let Some(channel) = self.channels.get_mut(&link)
            && let Some(effect) = channel.effects.pop()
        {
            match effect {
                Effect::Send(outbound) => self.push(link, outbound, around)?,
                Effect::Authenticate(token) => {
                    let leg = leg(channel, &token, around.now, &mut self.choices);
                    let Channel { core, effects, .. } = channel;
                    core.authenticated(around.now, leg, effects);
                }
                Effect::Ready(session) => self.ready(link, &session, around)?,
                Effect::Answer(id, results) => {
                    let call = self.calls.get(&id);
                    let memory = call.map_or(&[][..], |call| &call.memory);
                    let end = answer(results, frame, memory);
                    self.end(id, end, around)?;
                }
                Effect::Lost(id, request, fate) => lost.push((id, request, fate)),
                Effect::OplockBreak { .. } | Effect::LeaseBreak(_) => {}
                Effect::Expose {
                    request,
                    direction,
                    length,
                } => self.expose(link, request, direction, length, around)?,
                Effect::Withdraw {
                    request,
                    is_revoked,
                } => self.withdraw(link, request, is_revoked, around)?,
                Effect::Disconnect(violation) => {
                    ensure(ended.is_none(), || "disconnected twice".into())?;
                    ended = Some(violation);
                }
            }
        }
        match ended {
            Some(violation) => self.lose(link, &violation, lost, around),
            None if lost.is_empty() => Ok(()),
            None => self.send_again(lost, around),
        }
    }

    /// Registers the memory of a request; now and then that fails.
    fn expose(
        &mut self,
        link: u64,
        id: RequestId,
        direction: Direction,
        length: u32,
        around: &mut Around<'_>,
    ) -> Check {
        let call = self
            .calls
            .get_mut(&id)
            .ok_or("memory for an unknown request")?;
        let destination = vec![0xEE; length as usize];
        let bytes = match direction {
            Direction::Read => &destination,
            Direction::Write => &call.data,
        };
        assert_eq!(bytes.len(), length as usize);
        let world = around.links.get_mut(&link).ok_or("no connection")?;
        let pieces = match self.choices.per_mille(50) {
            true => None,
            false => Some(world.adapter.expose(direction, bytes, &mut self.choices)),
        };
        around.outcome.named += u64::from(pieces.is_some());
        call.keys = pieces.iter().flatten().map(|piece| piece.token).collect();
        let Channel { core, effects, .. } = self.channels.get_mut(&link).expect("it asked");
        core.exposed(around.now, id, pieces, effects);
        Ok(())
    }

    /// Ends the registration of the memory of a request.
    fn withdraw(
        &mut self,
        link: u64,
        id: RequestId,
        is_revoked: bool,
        around: &mut Around<'_>,
    ) -> Check {
        let call = self
            .calls
            .get_mut(&id)
            .ok_or("memory of an unknown request")?;
        let world = around.links.get_mut(&link).ok_or("no connection")?;
        call.memory = world.adapter.withdraw(&call.keys, is_revoked)?;
        Ok(())
    }

    fn push(&mut self, link: u64, outbound: Outbound, around: &mut Around<'_>) -> Check {
        let payloads = outbound.messages.iter().filter_map(|it| it.payload);
        for payload in payloads {
            self.check_turn(link, RequestId(payload.token.0))?;
        }
        let frame = assemble(outbound, around.nonces, |payload| {
            let call = self.calls.get(&RequestId(payload.token.0));
            Ok(call.ok_or("a WRITE without a caller")?.data.clone())
        })?;
        around.orders.push(Order::Frame(link, frame));
        Ok(())
    }

    /// A request does not follow a request that is no longer in flight on its channel.
    fn check_turn(&self, link: u64, id: RequestId) -> Check {
        let behind = self.calls.get(&id).and_then(|call| call.behind);
        let other = behind.and_then(|behind| self.calls.get(&behind));
        ensure(other.is_none_or(|other| other.channel != link), || {
            format!("{id:?} went out before {behind:?} was answered")
        })
    }

    /// Returns the latest request, if it is in flight.
    pub(super) fn newest(&self) -> Option<RequestId> {
        self.calls.keys().next_back().copied()
    }

    /// A connection becomes a channel of the session.
    fn ready(&mut self, link: u64, session: &Arc<Session>, around: &mut Around<'_>) -> Check {
        let channel = self.channels.get_mut(&link).expect("it has an effect");
        channel.has_joined = true;
        match self.session.replace(Arc::clone(session)) {
            Some(before) => {
                around.outcome.bindings += 1;
                ensure(before.id == session.id, || "another session".into())
            }
            None => {
                around.outcome.sessions += 1;
                self.phase = Phase::Entering;
                self.open_more(around, Duration::ZERO);
                self.enter(around)
            }
        }
    }

    /// Opens the missing channels.
    fn open_more(&mut self, around: &mut Around<'_>, pause: Duration) {
        let may_bind = self
            .session
            .as_ref()
            .is_none_or(|session| session.may_bind());
        let is_at_work = matches!(self.phase, Phase::Entering | Phase::Running) && may_bind;
        while is_at_work && self.channels.len() + self.opening < self.wanted {
            self.opening += 1;
            around.orders.push(Order::Open(pause));
        }
    }

    /// A connection has ended.
    fn lose(
        &mut self,
        link: u64,
        violation: &Violation,
        lost: Vec<(RequestId, Request, Fate)>,
        around: &mut Around<'_>,
    ) -> Check {
        self.log.push(format!("{link}: {violation}"));
        self.check_violation(link, violation, around)?;
        let channel = self.channels.remove(&link).expect("it has an effect");
        let (flying, queued) = (
            channel.core.requests_in_flight(),
            channel.core.requests_queued(),
        );
        ensure(flying + queued == 0, || {
            format!("connection {link} ended without reporting {flying} and {queued} requests")
        })?;
        let named = around
            .links
            .get(&link)
            .map_or(0, |link| link.adapter.named());
        ensure(named == 0, || {
            format!("{named} pieces of memory are named on connection {link}, which is over")
        })?;
        around.orders.push(Order::Close(link));
        let has_others = (self.channels.values()).any(|channel| channel.has_joined);
        if has_others || self.session.is_none() {
            self.send_again(lost, around)?;
        } else {
            self.session_over(lost, around)?;
        }
        if self.session.is_none() && self.channels.is_empty() && self.opening == 0 {
            return self.come_again(around);
        }
        let pause = Duration::from_micros(self.choices.below(REOPEN.as_micros() as u64));
        self.open_more(around, pause);
        Ok(())
    }

    /// Starts a new login, unless the session has finished.
    fn come_again(&mut self, around: &mut Around<'_>) -> Check {
        if matches!(self.phase, Phase::Leaving | Phase::Done) {
            self.phase = Phase::Done;
            return Ok(());
        }
        self.opening += 1;
        let pause = Duration::from_micros(self.choices.below(REOPEN.as_micros() as u64));
        around.orders.push(Order::Open(pause));
        Ok(())
    }

    /// The last channel is lost, and all opens with it.
    fn session_over(
        &mut self,
        lost: Vec<(RequestId, Request, Fate)>,
        around: &mut Around<'_>,
    ) -> Check {
        for (id, _, fate) in lost {
            self.end(id, End::GivenUp(fate), around)?;
        }
        ensure(self.calls.is_empty(), || {
            let left: Vec<_> = self.calls.values().map(|call| &call.intent).collect();
            format!("the session has ended without reporting {left:?}")
        })?;
        self.session = None;
        self.tree = None;
        self.script.session_over(around.books);
        if !matches!(self.phase, Phase::Leaving | Phase::Done) {
            self.phase = Phase::Away;
        }
        // Connections that were to join the ended session.
        for link in self.links() {
            self.with_core(link, None, around, Connection::close)?;
        }
        Ok(())
    }

    fn send_again(
        &mut self,
        lost: Vec<(RequestId, Request, Fate)>,
        around: &mut Around<'_>,
    ) -> Check {
        for (id, mut request, fate) in lost {
            let Some(call) = self.calls.get_mut(&id) else {
                return Err(format!("{id:?} is lost, but was not requested"));
            };
            if fate == Fate::Unsent {
                call.links.remove(&call.channel);
            }
            let session = self.session.as_ref().expect("a sent request has a session");
            if !replay::resend(&mut request, fate, session) {
                self.end(id, End::GivenUp(fate), around)?;
                continue;
            }
            call.was_resent |= fate == Fate::Sent;
            around.outcome.resent += 1;
            self.send(id, request, around)?;
        }
        Ok(())
    }

    fn end(&mut self, id: RequestId, end: End, around: &mut Around<'_>) -> Check {
        let Some(call) = self.calls.remove(&id) else {
            return Err(format!(
                "{id:?} ended, and was not asked for or ended before"
            ));
        };
        if let Some(channel) = self.channels.get_mut(&call.channel) {
            channel.load = channel.load.saturating_sub(call.cost);
        }
        match &end {
            End::Answer(results, _) => {
                around.outcome.answers += 1;
                let is_late = results
                    .iter()
                    .any(|result| matches!(result, Err(Failure::TimedOut)));
                around.outcome.timed_out += u64::from(is_late);
                if let (true, Some(link)) = (is_late, around.links.get_mut(&call.channel)) {
                    link.adapter.give_up(&call.keys);
                }
            }
            End::GivenUp(_) => around.outcome.given_up += 1,
        }
        self.ended(&call, end, around)
    }

    /// Neither end closes a connection without a fault of the simulator.
    fn check_violation(&self, link: u64, violation: &Violation, around: &Around<'_>) -> Check {
        let has_whole_sibling = (self.channels.iter()).any(|(other, channel)| {
            *other != link && channel.has_joined && around.whole.contains(other)
        });
        let is_fine = match violation {
            Violation::Closed => !around.whole.contains(&link),
            Violation::Asked => true,
            // The network held back the response that proves the negotiation.
            Violation::TimedOut
            | Violation::NegotiateTampered("the server did not confirm it in time") => {
                around.scenario.held > 0 || !around.whole.contains(&link)
            }
            // In a canceled compound, the members after the LOGOFF have no key.
            // The same in a compound of a session that the server has ended.
            Violation::BadSignature(session) => {
                matches!(self.phase, Phase::Leaving) || around.books.ended.contains(session)
            }
            // The session may have ended on the server, if all its channels may have ended.
            Violation::SessionGone(_) | Violation::LoginRefused(_) => {
                matches!(self.phase, Phase::Leaving)
                    || !has_whole_sibling
                    || around.outcome.disabled > 0
                    || around.outcome.ended_by_administrator > 0
            }
            _ => false,
        };
        ensure(is_fine, || {
            format!("client {} ended connection {link}: {violation}", self.id)
        })
    }

    /// Describes the state for a failure report.
    pub(super) fn describe(&self) -> String {
        let calls: Vec<_> = (self.calls.iter())
            .map(|(id, call)| format!("{id:?} {:?} on {}", call.intent, call.channel))
            .collect();
        let channels: Vec<_> = (self.channels.iter())
            .map(|(link, channel)| format!("{link}: {:?}", channel.core))
            .collect();
        let log = &self.log[self.log.len().saturating_sub(8)..];
        format!(
            "session {} {:?} {:?}, opening {}, {:?}\n  {calls:?}\n  {channels:?}\n  {log:?}\n  {}",
            self.id,
            self.phase,
            self.session,
            self.opening,
            self.config.protection,
            self.script.describe()
        )
    }
}

fn leg(channel: &mut Channel, token: &[u8], now: Now, choices: &mut Choices) -> Leg {
    let time = auth::FileTime(now.wall.0);
    if !std::mem::replace(&mut channel.has_spoken, true) {
        // The first token of NTLM has no random bytes.
        let token = channel.login.start(time, &[0; 32]);
        return token.map_or(Leg::Failed, Leg::Token);
    }
    match channel.login.step(token, time, &choices.bytes()) {
        Ok(InitiatorStep::Continue(token)) => Leg::Token(token),
        Ok(InitiatorStep::Done(key)) => Leg::Done {
            session_key: key.map_or_else(Vec::new, |key| key.to_vec()),
        },
        Err(_) => Leg::Failed,
    }
}

/// Removes the bytes of each READ from its frame, or from the registered memory.
fn answer(results: Vec<Result<Reply, Failure>>, frame: &[u8], memory: &[u8]) -> End {
    let bytes = results.iter().map(|result| match result {
        Ok(Reply::Read(data)) => match data {
            ReadData::Placed(len) => frame[..*len as usize].to_vec(),
            ReadData::Inbound(range) => frame[range.clone()].to_vec(),
            ReadData::Remote(len) => memory[..*len as usize].to_vec(),
            ReadData::Held(held) => held.clone(),
        },
        _ => Vec::new(),
    });
    let bytes = bytes.collect();
    End::Answer(results, bytes)
}
