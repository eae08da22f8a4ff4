//! Two ends over a simulated queue pair, from one seed.
//!
//! The queue pair is a reliable connection: SENDs arrive in order, into posted receives. A SEND
//! without a posted receive is an error, as with an adapter that does not retry. The loss of a
//! connection loses the SENDs in flight; a new connection follows, and messages that did not arrive
//! are sent again.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use proto::smbd::{Config, Role, Violation};
use proto::time::Instant;

use super::scenario::Scenario;
use super::side::{Deeds, Messages, Packet, Side};
use crate::check::{Check, ensure};
use crate::choices::Choices;
use crate::schedule::Schedule;

/// Maximum number of events of a run.
const STEPS_MAX: u64 = 3_000_000;
/// Duration of a run after the last message, to check that no SEND follows.
const REST: Duration = Duration::from_secs(3600);
/// Maximum time that a connection lives without a response: a message that waits one minute for a
/// credit, then a keep-alive, and a reserve.
const DEAD_AFTER: Duration = Duration::from_secs(400);

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Counts of the events in one simulation of SMB Direct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of simulated events, such as the arrival or completion of a SEND.
    pub steps: u64,
    /// Number of connections that the simulation made.
    pub connections: u64,
    /// Number of SENDs that both ends posted.
    pub sends: u64,
    /// Number of complete messages that arrived at either end.
    pub messages: usize,
    /// Number of connections that one of the two protocol cores ended because of a violation or a
    /// timeout.
    pub ended: u64,
    /// Reason for which a core ended a connection last; `None` if none did.
    pub last_violation: Option<Violation>,
}

/// An event of the connection with a number.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next SEND of an end arrives.
    Arrive(usize),
    /// The SENDs of an end up to this one are completed.
    Complete(usize, u64),
    /// An end posts receives.
    Post(usize),
    /// The upper layer of an end sends.
    Say(usize),
    /// The timer of an end fires.
    Tick(usize),
    /// The connection is lost.
    Lose,
    /// The connection falls silent.
    Stall,
    /// A corrupted or silent connection must have ended by now.
    Judge,
    /// A new connection is established.
    Connect,
    /// The run ends.
    Rest,
}

/// The fault of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Good,
    /// Nothing arrives.
    Stalled,
    /// A SEND was corrupted: the checks of received data do not apply.
    Spoiled,
}

pub(super) struct World {
    scenario: Scenario,
    choices: Choices,
    schedule: Schedule<(u64, Event)>,
    /// The number of the current connection.
    connection: u64,
    health: Health,
    sides: [Side; 2],
    /// SENDs of each end in flight.
    wires: [VecDeque<Packet>; 2],
    /// Arrival time of the last of them.
    arrivals: [Instant; 2],
    /// All messages of each end, and the number of those that have arrived.
    messages: [Vec<Vec<u8>>; 2],
    arrived: [usize; 2],
    is_calm: bool,
    /// Number of SENDs at the time of the last message.
    quiet_since: Option<u64>,
    pub(super) report: Report,
}

impl World {
    pub(super) fn new(scenario: &Scenario, mut choices: Choices) -> Self {
        let mut all = |count| {
            (0..count)
                .map(|_| message(scenario, &mut choices))
                .collect()
        };
        let messages: [Vec<Vec<u8>>; 2] = [all(scenario.messages), all(scenario.messages)];
        let (client, server) = scenario.configs(&mut choices);
        Self {
            scenario: scenario.clone(),
            schedule: Schedule::new(),
            connection: 0,
            health: Health::Good,
            sides: sides(client, server, &messages, [0, 0], true),
            wires: Default::default(),
            arrivals: [Instant::default(); 2],
            messages,
            arrived: [0, 0],
            is_calm: false,
            quiet_since: None,
            report: Report::default(),
            choices,
        }
    }

    /// Runs until everything has arrived, and then for a while.
    pub(super) fn run(&mut self) -> Check {
        self.plan(Duration::ZERO, Event::Connect);
        while let Some((connection, event)) = self.schedule.next() {
            self.report.steps += 1;
            ensure(self.report.steps < STEPS_MAX, || {
                "it never comes to rest".into()
            })?;
            if matches!(event, Event::Rest) {
                return self.audit();
            }
            if connection == self.connection {
                self.happen(event)?;
                self.look()?;
            }
        }
        Err("nothing happens any more".into())
    }

    fn plan(&mut self, delay: Duration, event: Event) {
        self.schedule.after(delay, (self.connection, event));
    }

    fn delay(&mut self, most: Duration) -> Duration {
        let micros = most.as_micros() as u64;
        Duration::from_micros(self.choices.below(micros + 1))
    }

    fn now(&self) -> Instant {
        self.schedule.now().instant
    }

    fn happen(&mut self, event: Event) -> Check {
        let now = self.now();
        match event {
            Event::Connect => self.connect(),
            Event::Arrive(from) => self.arrive(from),
            Event::Complete(index, id) => {
                let count = self.sides[index].unfinished_up_to(id);
                let deeds = self.sides[index].complete(now, count)?;
                self.put(index, deeds)
            }
            Event::Post(index) => {
                let asked = self.sides[index].asked();
                let count = 1 + self.choices.below(u64::from(asked.max(1))) as u32;
                let deeds = self.sides[index].post(now, count)?;
                self.put(index, deeds)?;
                self.plan_post(index);
                Ok(())
            }
            Event::Say(index) => self.say(index),
            Event::Tick(index) => self.tick(index),
            Event::Lose => self.lose(),
            Event::Stall => {
                self.health = Health::Stalled;
                self.plan(DEAD_AFTER, Event::Judge);
                Ok(())
            }
            Event::Judge => {
                // The corruption may have been harmless, or its effect invisible.
                ensure(self.health == Health::Spoiled, || {
                    "a silent connection has not ended".into()
                })?;
                self.lose()
            }
            Event::Rest => Ok(()),
        }
    }

    fn connect(&mut self) -> Check {
        let (client, server) = self.scenario.configs(&mut self.choices);
        let is_honest = self.is_calm || self.scenario.faults.spoil == 0;
        self.sides = sides(client, server, &self.messages, self.arrived, is_honest);
        self.health = Health::Good;
        self.wires = Default::default();
        self.arrivals = [self.now(); 2];
        self.report.connections += 1;
        let now = self.now();
        for index in [SERVER, CLIENT] {
            let deeds = self.sides[index].start(now)?;
            self.put(index, deeds)?;
            self.plan(Duration::ZERO, Event::Say(index));
        }
        // A server posts its first receive before it accepts.
        let deeds = self.sides[SERVER].post(now, 1)?;
        self.put(SERVER, deeds)?;
        if !self.is_calm {
            let faults = self.scenario.faults.clone();
            if self.choices.per_mille(faults.lose) {
                let delay = self.delay(faults.lose_within);
                self.plan(delay, Event::Lose);
            }
            if self.choices.per_mille(faults.stall) {
                let delay = self.delay(faults.lose_within);
                self.plan(delay, Event::Stall);
            }
        }
        Ok(())
    }

    fn arrive(&mut self, from: usize) -> Check {
        if self.health == Health::Stalled {
            return Ok(());
        }
        let mut packet = self.wires[from].pop_front().ok_or("nothing arrives")?;
        let to = 1 - from;
        if !self.sides[to].can_receive() {
            // Only a corrupted grant leads to this.
            ensure(self.health == Health::Spoiled, || {
                "no receive is posted".into()
            })?;
            return self.lose();
        }
        if !self.is_calm && self.choices.per_mille(self.scenario.faults.spoil) {
            self.spoil(&mut packet.bytes);
        }
        let (now, heard) = (self.now(), self.sides[to].heard());
        let deeds = self.sides[to].receive(now, &packet.bytes)?;
        let came = self.sides[to].heard() - heard;
        if self.health == Health::Good {
            let greeting = usize::from(from == CLIENT && heard == 0 && came > 0);
            self.arrived[from] += came - greeting;
        }
        self.put(to, deeds)?;
        // An adapter completes a SEND when the peer's adapter has it. Of several completions it may
        // report only the last.
        let delay = self.delay(self.scenario.network_delay);
        let is_last = self.sides[from].unfinished().count() < 2;
        if is_last || self.choices.per_mille(600) || self.wires[from].is_empty() {
            self.plan(delay, Event::Complete(from, packet.id));
        }
        Ok(())
    }

    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        if self.health == Health::Good {
            self.health = Health::Spoiled;
            self.plan(Duration::from_secs(5), Event::Judge);
        }
        match self.choices.below(4) {
            0 => bytes.truncate(self.choices.index(bytes.len())),
            1 => bytes.push(self.choices.number() as u8),
            _ => {
                // The headers are the interesting part.
                let at = self.choices.index(bytes.len().min(32));
                bytes[at] = self.choices.pick(&[0, 1, 0x7F, 0x80, 0xFF, 8, 24]);
            }
        }
    }

    fn say(&mut self, index: usize) -> Check {
        let side = &mut self.sides[index];
        if side.is_ready() && side.unsaid() > 0 {
            let now = self.schedule.now().instant;
            let deeds = side.say(now)?;
            self.put(index, deeds)?;
        }
        let is_over = self.sides[index].end().is_some();
        if self.sides[index].unsaid() > 0 && !is_over {
            // At once, or after a delay.
            let pause = self.choices.pick(&[0, 0, 1, 10]) * self.scenario.pause;
            let delay = self.delay(pause) + Duration::from_micros(1);
            self.plan(delay, Event::Say(index));
        }
        Ok(())
    }

    fn tick(&mut self, index: usize) -> Check {
        let now = self.now();
        if self.sides[index].next_timeout().is_some_and(|at| at <= now) {
            let deeds = self.sides[index].timeout(now)?;
            self.put(index, deeds)?;
        }
        Ok(())
    }

    /// Grants the requests of an end.
    fn put(&mut self, index: usize, deeds: Deeds) -> Check {
        for packet in deeds.packets {
            self.report.sends += 1;
            let delay = self.delay(self.scenario.network_delay);
            let at = self.arrivals[index].max(self.now().after(delay));
            self.arrivals[index] = at;
            self.wires[index].push_back(packet);
            self.schedule
                .at(at, (self.connection, Event::Arrive(index)));
        }
        if deeds.asks {
            self.plan_post(index);
        }
        if let Some(at) = self.sides[index].next_timeout() {
            self.schedule.at(at, (self.connection, Event::Tick(index)));
        }
        Ok(())
    }

    fn plan_post(&mut self, index: usize) {
        if self.sides[index].asked() > 0 {
            let delay = self.delay(self.scenario.post_delay);
            self.plan(delay, Event::Post(index));
        }
    }

    /// Checks whether an end has ended the connection, and whether the run has finished.
    fn look(&mut self) -> Check {
        let ends = [self.sides[CLIENT].end(), self.sides[SERVER].end()];
        if let Some(violation) = ends.into_iter().flatten().next() {
            ensure(self.health != Health::Good, || {
                format!("it ends: {violation}")
            })?;
            self.report.ended += 1;
            self.report.last_violation = Some(violation);
            return self.lose();
        }
        let is_all = (0..2).all(|index| self.arrived[index] == self.messages[index].len());
        if is_all && self.quiet_since.is_none() {
            // From now on faults would only hide needless SENDs. A faulty connection is replaced.
            self.is_calm = true;
            self.quiet_since = Some(self.report.sends);
            self.plan(REST, Event::Rest);
            if self.health != Health::Good {
                return self.lose();
            }
        }
        if self.report.connections >= self.scenario.connections_max {
            self.is_calm = true;
        }
        Ok(())
    }

    /// The connection ends for both ends.
    fn lose(&mut self) -> Check {
        self.sides.iter_mut().for_each(Side::close);
        self.connection += 1;
        let delay = self.delay(Duration::from_millis(100));
        self.plan(delay, Event::Connect);
        Ok(())
    }

    /// Checks that after the last message only keep-alives followed.
    fn audit(&mut self) -> Check {
        self.report.messages = self.arrived.iter().sum();
        let sends = self.report.sends - self.quiet_since.unwrap_or(0);
        // Two keep-alives and two responses in two minutes; and the SENDs that were in flight.
        let most = 4 * (REST.as_secs() / 120 + 1) + 1000;
        ensure(sends < most, || {
            format!("{sends} SENDs after the last message")
        })?;
        for (index, side) in self.sides.iter().enumerate() {
            ensure(side.is_ready() && side.is_done(), || {
                format!("side {index} is not done: {:?}", side.snapshot())
            })?;
        }
        Ok(())
    }

    /// Describes the state of both ends.
    pub(super) fn describe(&self) -> String {
        let [client, server] = [&self.sides[0], &self.sides[1]].map(Side::snapshot);
        let now = self.now().0;
        format!(
            "at {now:?}, {:?}\nclient {client:?}\nserver {server:?}",
            self.health
        )
    }
}

/// Returns the two ends of a new connection, which send the messages that did not arrive. The
/// client sends first, as in SMB: before that the server has no credit.
fn sides(
    client: Config,
    server: Config,
    messages: &[Vec<Vec<u8>>; 2],
    arrived: [usize; 2],
    is_honest: bool,
) -> [Side; 2] {
    assert!(client.role == Role::Client && server.role == Role::Server);
    let rest = |index: usize| messages[index][arrived[index]..].iter().cloned();
    let there: Messages = Rc::new(std::iter::once(vec![0; 100]).chain(rest(CLIENT)).collect());
    let back: Messages = Rc::new(rest(SERVER).collect());
    let expect = |messages: &Messages| is_honest.then(|| Rc::clone(messages));
    [
        Side::new(client, Rc::clone(&there), expect(&back)),
        Side::new(server, Rc::clone(&back), expect(&there)),
    ]
}

fn message(scenario: &Scenario, choices: &mut Choices) -> Vec<u8> {
    let most = choices.pick(&[10, 200, 5000, scenario.length_max]);
    let length = 1 + choices.index(most.min(scenario.length_max));
    let seed = choices.number() as u8;
    (0..length)
        .map(|index| (index as u8).wrapping_mul(41) ^ (index >> 8) as u8 ^ seed)
        .collect()
}
