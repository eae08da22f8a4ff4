//! A driver around the client's core: channels, the choice among them, and what becomes of the
//! requests of one that is lost. It does what crates/client does, in the time of the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use auth::{Framing, Initiator, InitiatorStep};
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
use wire::{Guid, TreeId};

use super::books::Books;
use super::script::{Intent, Script};
use super::world::Link;
use super::{Outcome, Sessions};
use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::host::assemble;
use crate::login;
use crate::schedule::Timer;

/// How long after its loss a channel is opened again, at most. crates/client waits for a second.
const REOPEN: Duration = Duration::from_secs(1);
/// How long a client thinks before it does the next thing, at most.
pub(super) const THOUGHT: Duration = Duration::from_millis(20);

/// What a peer wants of the world.
#[derive(Debug)]
pub(super) enum Order {
    /// Send a frame on a connection.
    Frame(u64, Vec<u8>),
    /// The client's end of a connection is closed.
    Close(u64),
    /// Open a connection, a little later.
    Open(Duration),
    /// Ask again what to do.
    Think,
}

/// What a peer sees of the world.
pub(super) struct Around<'a> {
    pub(super) now: Now,
    pub(super) scenario: &'a Sessions,
    pub(super) books: &'a mut Books,
    pub(super) outcome: &'a mut Outcome,
    pub(super) orders: &'a mut Vec<Order>,
    /// Connections that are whole: neither end has closed and no byte was lost.
    pub(super) whole: &'a BTreeSet<u64>,
    /// Connections, for the memory that is named on them.
    pub(super) links: &'a mut BTreeMap<u64, Link>,
    /// Whether nothing goes wrong any more.
    pub(super) is_calm: bool,
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No connection, or one that is to become the first channel.
    Away,
    /// It enters the share.
    Entering,
    /// It works.
    Running,
    /// It closes what it has open.
    Tidying,
    /// It says goodbye.
    Leaving,
    /// It has done all that it was to do.
    Done,
}

/// The client's end of a connection.
struct Channel {
    core: Connection,
    effects: Effects,
    login: Initiator,
    has_spoken: bool,
    /// Whether it carries the session.
    has_joined: bool,
    /// Bytes on their way.
    load: u64,
    /// The timer that is set.
    timer: Timer,
}

/// A request that is not done.
pub(super) struct Call {
    pub(super) intent: Intent,
    /// What a WRITE sends.
    data: Vec<u8>,
    cost: u64,
    channel: u64,
    /// The request that it waits behind, where both are on one channel.
    behind: Option<RequestId>,
    /// When it was asked for first.
    pub(super) start: u64,
    /// The connections on which it may have left without an answer.
    pub(super) links: BTreeSet<u64>,
    /// Whether it was sent again.
    pub(super) was_resent: bool,
    /// Keys of its memory, and what came back with that.
    keys: Vec<u32>,
    memory: Vec<u8>,
}

/// How a request ended.
pub(super) enum End {
    /// It was answered: for each step a result, and bytes where it is a READ.
    Answer(Vec<Result<Reply, Failure>>, Vec<Vec<u8>>),
    /// It was given up on. It left or not.
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
    /// Connections that were asked for and are not there yet.
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
        // So that messages of SMB Direct hold what must not go by RDMA.
        config.max_io = 100 << 10;
        let protections = [Protection::AsAsked, Protection::Sign, Protection::Seal];
        config.protection = match newest < Dialect::SMB_3_0 {
            true => Protection::Sign,
            false => choices.pick(&protections),
        };
        // Before the connection is given up, and after.
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

    /// A connection is there.
    pub(super) fn connected(
        &mut self,
        link: u64,
        carrier: Carrier,
        around: &mut Around<'_>,
    ) -> Check {
        self.opening -= 1;
        let is_to_be_first = self.session.is_none();
        if matches!(self.phase, Phase::Leaving | Phase::Done)
            || is_to_be_first && !self.channels.is_empty()
        {
            // What it was for is no more.
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

    /// A frame has come.
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
                core.receive(around.now, Inbound { bytes }, effects);
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

    /// The transport of a connection is gone.
    pub(super) fn gone(&mut self, link: u64, around: &mut Around<'_>) -> Check {
        self.with_core(link, None, around, Connection::closed)
    }

    /// The time that was set is there.
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

    /// When it is to be set to, if to something earlier than it is.
    pub(super) fn set_timer(&mut self, link: u64) -> Option<Instant> {
        let channel = self.channels.get_mut(&link)?;
        channel.timer.set(channel.core.next_timeout())
    }

    /// The connections that there are.
    pub(super) fn links(&self) -> Vec<u64> {
        self.channels.keys().copied().collect()
    }

    /// Requests under way.
    pub(super) fn under_way(&self) -> usize {
        self.calls.len()
    }

    /// Bytes of a READ or a WRITE, at most.
    pub(super) fn max_io(&self) -> u32 {
        let negotiated = self.session.as_ref().map(|session| &session.negotiated);
        negotiated.map_or(0, |agreed| agreed.max_read.min(agreed.max_write))
    }

    /// Asks for something, on the channel with the least under way.
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
            // One that is being closed stays until its requests are dealt with.
            channel.has_joined && !channel.core.is_over()
        });
        let Some(link) = joined.min_by_key(|(_, c)| c.load).map(|(link, _)| *link) else {
            return self.end(id, End::GivenUp(Fate::Unsent), around);
        };
        let call = self.calls.get_mut(&id).expect("it was put there");
        call.channel = link;
        call.links.insert(link);
        let channel = self.channels.get_mut(&link).expect("it was found");
        channel.load += call.cost;
        self.with_core(link, None, around, |core, now, effects| {
            core.request(now, id, request, effects);
        })
    }

    /// Gives up on requests that wait for something, but for one that waits for nothing any more.
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

    /// Says goodbye on all channels.
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

    /// Does what the core asks for. What is lost with the connection is dealt with at the end:
    /// not before the channel has left.
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
                Effect::OplockBreak { .. } | Effect::LeaseBreak { .. } => {}
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

    /// Names the memory of a request; now and then there is none.
    fn expose(
        &mut self,
        link: u64,
        id: RequestId,
        direction: Direction,
        length: u32,
        around: &mut Around<'_>,
    ) -> Check {
        let call = self.calls.get_mut(&id).ok_or("memory for nobody")?;
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

    /// Takes the memory of a request back.
    fn withdraw(
        &mut self,
        link: u64,
        id: RequestId,
        is_revoked: bool,
        around: &mut Around<'_>,
    ) -> Check {
        let call = self.calls.get_mut(&id).ok_or("memory of nobody")?;
        let world = around.links.get_mut(&link).ok_or("no connection")?;
        call.memory = world.adapter.withdraw(&call.keys, is_revoked)?;
        Ok(())
    }

    fn push(&mut self, link: u64, outbound: Outbound, around: &mut Around<'_>) -> Check {
        let payloads = outbound.messages.iter().filter_map(|it| it.payload);
        for payload in payloads {
            self.check_turn(link, RequestId(payload.token.0))?;
        }
        let frame = assemble(outbound, |payload| {
            let call = self.calls.get(&RequestId(payload.token.0));
            Ok(call.ok_or("a WRITE without a caller")?.data.clone())
        })?;
        around.orders.push(Order::Frame(link, frame));
        Ok(())
    }

    /// What a request waits behind is not under way where it goes out.
    fn check_turn(&self, link: u64, id: RequestId) -> Check {
        let behind = self.calls.get(&id).and_then(|call| call.behind);
        let other = behind.and_then(|behind| self.calls.get(&behind));
        ensure(other.is_none_or(|other| other.channel != link), || {
            format!("{id:?} went out before {behind:?} was answered")
        })
    }

    /// The request that was asked for last, if it is under way.
    pub(super) fn newest(&self) -> Option<RequestId> {
        self.calls.keys().next_back().copied()
    }

    /// A connection carries the session.
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

    /// Opens as many channels as there should be.
    fn open_more(&mut self, around: &mut Around<'_>, pause: Duration) {
        let is_at_work = matches!(self.phase, Phase::Entering | Phase::Running);
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
            format!("connection {link} kept {flying} and {queued} requests to itself")
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

    /// Logs in anew, unless all is done.
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
            format!("the session is over, and nobody heard of {left:?}")
        })?;
        self.session = None;
        self.tree = None;
        self.script.session_over(around.books);
        if !matches!(self.phase, Phase::Leaving | Phase::Done) {
            self.phase = Phase::Away;
        }
        // Those that were to join what is no more.
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
                return Err(format!("{id:?} is lost, and was not asked for"));
            };
            if fate == Fate::Unsent {
                call.links.remove(&call.channel);
            }
            let session = self.session.as_ref().expect("what was sent has a session");
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

    /// Without a reason that the simulator made neither side ends a connection.
    fn check_violation(&self, link: u64, violation: &Violation, around: &Around<'_>) -> Check {
        let has_whole_sibling = (self.channels.iter()).any(|(other, channel)| {
            *other != link && channel.has_joined && around.whole.contains(other)
        });
        let is_fine = match violation {
            Violation::Closed => !around.whole.contains(&link),
            Violation::Asked => true,
            // The answer that proves what was negotiated was held back, too.
            Violation::TimedOut | Violation::NegotiateTampered("no proof of it in time") => {
                around.scenario.held > 0 || !around.whole.contains(&link)
            }
            // Of a compound that was given up on, what is behind its LOGOFF has no key.
            Violation::BadSignature(_) => matches!(self.phase, Phase::Leaving),
            // The session may have ended over there, if each of its channels may.
            Violation::SessionGone(_) | Violation::LoginRefused(_) => {
                matches!(self.phase, Phase::Leaving) || !has_whole_sibling
            }
            _ => false,
        };
        ensure(is_fine, || {
            format!("client {} ended connection {link}: {violation}", self.id)
        })
    }

    /// What a failure report says.
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
    if !std::mem::replace(&mut channel.has_spoken, true) {
        return Leg::Token(channel.login.start());
    }
    let time = auth::FileTime(now.wall.0);
    match channel.login.step(token, time, &choices.bytes()) {
        Ok(InitiatorStep::Continue(token)) => Leg::Token(token),
        Ok(InitiatorStep::Done(key)) => Leg::Done {
            session_key: key.map_or_else(Vec::new, |key| key.to_vec()),
        },
        Err(_) => Leg::Failed,
    }
}

/// Takes the bytes of each READ out of its frame, or out of the memory that was named.
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
