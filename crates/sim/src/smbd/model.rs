//! Every order of events with small numbers: [`search`] visits all states of two ends, and finds
//! the states from which they do not continue.
//!
//! The next event in a state is one of these: a SEND arrives, a receive is posted, the oldest SEND
//! completes, the upper layer sends its next message. Receives are posted one by one, at any time,
//! so that every grant that the rules permit occurs.
//!
//! Three conditions must hold for the graph of states: no state breaks a rule; in a state without a
//! next event everything has arrived; and no path is a circle, because endless SENDs after the last
//! message are a fault. Circles in which a possible event never happens do not count: every driver
//! posts a receive eventually.

use std::collections::VecDeque;
use std::rc::Rc;

use proto::smbd::{Config, Role, Snapshot};
use proto::time::Instant;

use super::graph::{self, Searched};
use super::side::{Deeds, Messages, Packet, Side};
use crate::check::{Check, ensure};

/// The parameters of a search of all states of two SMB Direct ends: credits, messages and limits.
#[derive(Clone, Debug)]
pub struct Model {
    /// Number of credits that the client requests, and maximum number that it grants.
    pub client: (u16, u16),
    /// Number of credits that the server requests, and maximum number that it grants.
    pub server: (u16, u16),
    /// Lengths of the messages of the client in bytes; a SEND carries 104.
    pub client_messages: Vec<usize>,
    /// Lengths of the messages of the server in bytes.
    pub server_messages: Vec<usize>,
    /// Maximum number of SENDs of each end that are posted and not completed.
    pub send_depth: u16,
    /// Maximum number of states: a larger search is a mistake in the model.
    pub states_max: usize,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The next SEND of an end arrives.
    Arrive(usize),
    /// An end posts a receive.
    Post(usize),
    /// The oldest SEND of an end completes.
    Complete(usize),
    /// The upper layer of an end sends.
    Say(usize),
}

/// The state of both ends.
#[derive(Clone, Debug)]
struct Pair {
    sides: [Side; 2],
    /// SENDs of each end in flight.
    wires: [VecDeque<Packet>; 2],
}

/// Identifies a state. It excludes the unbounded numbers of SENDs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    cores: [Snapshot; 2],
    drivers: [Driver; 2],
    wires: [Vec<Vec<u8>>; 2],
}

/// The state of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Driver {
    unsaid: usize,
    heard: usize,
    partial: usize,
    unfinished: Vec<bool>,
}

/// Searches all states of the two ends that any order of events reaches. Returns the size of the
/// graph.
///
/// # Errors
/// Contains the path to a wrong state.
pub fn search(model: &Model) -> Result<Searched, String> {
    graph::search(start(model)?, model.states_max)
}

fn start(model: &Model) -> Check<Pair> {
    let config = |role, (target, max), send_depth| Config {
        send_credit_target: target,
        receive_credit_max: max,
        max_send_size: 128,
        max_receive_size: 128,
        send_depth,
        queue_depth: 8,
        ..Config::new(role)
    };
    let messages = |lengths: &[usize], seed: u8| -> Messages {
        let message = |(index, length): (usize, &usize)| vec![seed + index as u8; *length];
        Rc::new(lengths.iter().enumerate().map(message).collect())
    };
    let (there, back) = (
        messages(&model.client_messages, 0),
        messages(&model.server_messages, 100),
    );
    let client = config(Role::Client, model.client, model.send_depth);
    let server = config(Role::Server, model.server, model.send_depth);
    let mut state = Pair {
        sides: [
            Side::new(client, Rc::clone(&there), Some(Rc::clone(&back))),
            Side::new(server, back, Some(there)),
        ],
        wires: Default::default(),
    };
    // A server starts and posts its first receive before it accepts.
    for index in [1, 0] {
        let deeds = state.sides[index].start(Instant::default())?;
        state.put(index, deeds);
    }
    let deeds = state.sides[1].post(Instant::default(), 1)?;
    state.put(1, deeds);
    Ok(state)
}

impl graph::State for Pair {
    type Step = Step;
    type Key = Key;

    fn key(&self) -> Key {
        let driver = |side: &Side| Driver {
            unsaid: side.unsaid(),
            heard: side.heard(),
            partial: side.partial(),
            unfinished: side.unfinished().collect(),
        };
        let wire = |wire: &VecDeque<Packet>| wire.iter().map(|sent| sent.bytes.clone()).collect();
        let [client, server] = &self.sides;
        Key {
            cores: [client.snapshot(), server.snapshot()],
            drivers: [driver(client), driver(server)],
            wires: [wire(&self.wires[0]), wire(&self.wires[1])],
        }
    }

    /// Returns the possible events.
    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (index, side) in self.sides.iter().enumerate() {
            let can = [
                (!self.wires[index].is_empty(), Step::Arrive(index)),
                (side.asked() > 0, Step::Post(index)),
                (side.unfinished().next().is_some(), Step::Complete(index)),
                (side.is_ready() && side.unsaid() > 0, Step::Say(index)),
            ];
            steps.extend(
                can.into_iter()
                    .filter_map(|(can, step)| can.then_some(step)),
            );
        }
        steps
    }

    /// Returns the state after an event.
    fn after(&self, step: Step) -> Check<Self> {
        let mut next = self.clone();
        let now = Instant::default();
        let (index, deeds) = match step {
            Step::Arrive(from) => {
                let packet = next.wires[from].pop_front().expect("a SEND is in flight");
                let to = &mut next.sides[1 - from];
                ensure(to.can_receive(), || {
                    "no receive is posted for a SEND".into()
                })?;
                (1 - from, to.receive(now, &packet.bytes)?)
            }
            Step::Post(index) => (index, next.sides[index].post(now, 1)?),
            Step::Complete(index) => (index, next.sides[index].complete(now, 1)?),
            Step::Say(index) => (index, next.sides[index].say(now)?),
        };
        if let Some(violation) = next.sides[index].end() {
            return Err(format!("it ends: {violation}"));
        }
        next.put(index, deeds);
        Ok(next)
    }

    /// Checks a state without a next event: no message waits.
    fn check_end(&self) -> Check {
        for (index, side) in self.sides.iter().enumerate() {
            let sent = side.unsaid() == 0 && side.is_done();
            ensure(sent, || format!("side {index} waits forever"))?;
            let heard = self.sides[1 - index].heard();
            ensure(heard == side.said(), || {
                format!(
                    "{heard} messages of side {index} arrived, {} were sent",
                    side.said()
                )
            })?;
        }
        // Both ends could continue: each has a credit.
        let credits = self.sides.iter().map(|side| side.snapshot().send_credits);
        let credits: Vec<_> = credits.collect();
        ensure(credits.iter().all(|credits| *credits > 0), || {
            format!("at rest with {credits:?} credits")
        })
    }

    fn is_due(_: Step) -> bool {
        true
    }
}

impl Pair {
    fn put(&mut self, index: usize, deeds: Deeds) {
        self.wires[index].extend(deeds.packets);
    }
}
