//! Every order of events, for small numbers: [`search`] goes through all states that two sides
//! can come to, and finds those from which they do not go on.
//!
//! What happens at once in a state is one of: a SEND arrives, a receive is posted, the oldest SEND
//! completes, the upper layer sends its next message. As receives are posted one by one, or not,
//! at any time, every grant that the rules allow comes up.
//!
//! Three things must be true of the graph of states: nothing in it breaks a rule; where nothing
//! can happen any more everything has arrived; and no way through it leads in circles, for what
//! goes on forever after the last message is chatter. Circles in which something could happen all
//! the time and never does are left out: a driver that never posts a receive again is no driver.

use std::collections::VecDeque;
use std::rc::Rc;

use proto::smbd::{Config, Role, Snapshot};
use proto::time::Instant;

use super::graph::{self, Searched};
use super::side::{Deeds, Messages, Packet, Side};
use crate::check::{Check, ensure};

/// The two sides of a search.
#[derive(Clone, Debug)]
pub struct Model {
    /// SENDs that the client asks for, and allows.
    pub client: (u16, u16),
    /// The same of the server.
    pub server: (u16, u16),
    /// Bytes of the messages of the client; a SEND holds 104.
    pub client_messages: Vec<usize>,
    /// The same of the server.
    pub server_messages: Vec<usize>,
    /// SENDs that are posted at once, of each side.
    pub send_depth: u16,
    /// States at most: more are a mistake of who made the model.
    pub states_max: usize,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The next SEND of a side arrives.
    Arrive(usize),
    /// A side posts a receive.
    Post(usize),
    /// The oldest SEND of a side completes.
    Complete(usize),
    /// The upper layer of a side sends.
    Say(usize),
}

/// Everything.
#[derive(Clone, Debug)]
struct Pair {
    sides: [Side; 2],
    /// What each side has on its way.
    wires: [VecDeque<Packet>; 2],
}

/// What tells states apart. Numbers of SENDs, of which there is no end, are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    cores: [Snapshot; 2],
    drivers: [Driver; 2],
    wires: [Vec<Vec<u8>>; 2],
}

/// What a driver knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Driver {
    unsaid: usize,
    heard: usize,
    partial: usize,
    unfinished: Vec<bool>,
}

/// Goes through all states.
///
/// # Errors
/// With the way that leads to a state that must not be.
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
    // A server is started, and its first receive posted, before it accepts.
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

    /// What can happen next.
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

    /// The state after a step.
    fn after(&self, step: Step) -> Check<Self> {
        let mut next = self.clone();
        let now = Instant::default();
        let (index, deeds) = match step {
            Step::Arrive(from) => {
                let packet = next.wires[from]
                    .pop_front()
                    .expect("something is on its way");
                let to = &mut next.sides[1 - from];
                ensure(to.can_receive(), || {
                    "no receive is posted for what comes".into()
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

    /// Nothing can happen: then nothing waits.
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
        // And it could go on: nobody is out of credits with nothing to come.
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
