//! The core against every peer that keeps the rules: [`search_peers`] has the other side send what
//! it likes, when it likes, with any grant that is allowed, and ask for other numbers of credits
//! each time.
//!
//! Only this is expected of the peer: it spends its last credit with a grant alone, or, as Linux
//! does, where it believes that we can still send; and when it has left us without credits, and
//! can send, it grants one or more sooner or later.

use std::collections::VecDeque;
use std::rc::Rc;

use proto::smbd::{Config, Role, Snapshot};
use proto::time::Instant;
use wire::Status;
use wire::smbd::{DataTransfer, NegotiateRequest, NegotiateResponse, TransferFlags, VERSION_1};

use super::graph::{self, Searched};
use super::side::{Deeds, Side};
use crate::check::{Check, ensure};

/// The core and the bounds of its peers.
#[derive(Clone, Debug)]
pub struct Peers {
    /// What the core is.
    pub role: Role,
    /// SENDs that the core asks for, and allows.
    pub credits: (u16, u16),
    /// Bytes of the messages of the core; a SEND holds 104.
    pub messages: Vec<usize>,
    /// SENDs that the peer grants at most at once.
    pub grants_max: u16,
    /// Messages that the peer sends without having to.
    pub whims: u8,
    /// Whether it takes the rule of the last credit as Linux does.
    pub is_lax: bool,
    /// SENDs that the core has posted at once.
    pub send_depth: u16,
    /// States at most: more are a mistake of who made the model.
    pub states_max: usize,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The next SEND of the core arrives.
    ArriveThere,
    /// The next SEND of the peer arrives.
    ArriveHere,
    /// The core's driver posts a receive.
    Post,
    /// The oldest SEND of the core completes.
    Complete,
    /// The upper layer of the core sends.
    Say,
    /// The peer sends because it wants to.
    Whim(Whim),
    /// The peer grants because it must.
    Grant(u16),
}

/// A message of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Whim {
    has_data: bool,
    asks: bool,
    requested: u16,
    granted: u16,
}

#[derive(Clone, Debug)]
struct World {
    side: Side,
    /// SENDs of the core on their way, and those of the peer.
    there: VecDeque<Vec<u8>>,
    here: VecDeque<Vec<u8>>,
    peer: Peer,
}

/// What the peer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// SENDs that it may do.
    held: u32,
    /// SENDs that it has granted and that did not come.
    granted: u16,
    grants_max: u16,
    whims: u8,
    is_lax: bool,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    core: Snapshot,
    peer: Peer,
    unsaid: usize,
    heard: usize,
    unfinished: Vec<bool>,
    there: VecDeque<Vec<u8>>,
    here: VecDeque<Vec<u8>>,
}

/// Goes through all states.
///
/// # Errors
/// With the way that leads to a state that must not be.
pub fn search_peers(peers: &Peers) -> Result<Searched, String> {
    graph::search(start(peers)?, peers.states_max)
}

fn start(peers: &Peers) -> Check<World> {
    let (send_credit_target, receive_credit_max) = peers.credits;
    let config = Config {
        send_credit_target,
        receive_credit_max,
        max_send_size: 128,
        max_receive_size: 128,
        send_depth: peers.send_depth,
        queue_depth: 8,
        ..Config::new(peers.role)
    };
    let messages = peers
        .messages
        .iter()
        .map(|length| vec![1; *length])
        .collect();
    let expected = vec![vec![7]; usize::from(peers.whims)];
    let mut world = World {
        side: Side::new(config, Rc::new(messages), Some(Rc::new(expected))),
        there: VecDeque::new(),
        here: VecDeque::new(),
        peer: Peer {
            held: 0,
            granted: 0,
            grants_max: peers.grants_max,
            whims: peers.whims,
            is_lax: peers.is_lax,
        },
    };
    world.negotiate(peers)?;
    Ok(world)
}

impl World {
    /// Goes through the negotiation, in which there is nothing to choose.
    fn negotiate(&mut self, peers: &Peers) -> Check {
        let now = Instant::default();
        let _ = self.side.start(now)?;
        let deeds = self.side.post(now, 1)?;
        let mut word = Vec::new();
        match peers.role {
            Role::Client => {
                ensure(deeds.packets.len() == 1, || {
                    "the client says nothing".into()
                })?;
                self.peer.granted = peers.grants_max;
                response(peers.grants_max).encode(&mut word);
            }
            Role::Server => request(peers.grants_max).encode(&mut word),
        }
        let _ = self.side.receive(now, &word)?;
        let deeds = self.side.post(now, self.side.asked())?;
        if let Some(answer) = deeds.packets.first() {
            let answer = NegotiateResponse::decode(&answer.bytes);
            let answer = answer.map_err(|error| error.to_string())?;
            self.peer.held = answer.credits_granted.into();
        }
        ensure(self.side.is_ready(), || "it is not negotiated".into())
    }

    /// What the peer may send.
    fn whims(&self) -> Vec<Step> {
        let Peer {
            held,
            granted,
            grants_max,
            whims,
            is_lax,
        } = self.peer;
        if held == 0 || whims == 0 {
            return Vec::new();
        }
        let is_last = held == 1 && !(is_lax && granted > 0);
        let least = u16::from(is_last);
        let mut steps = Vec::new();
        for count in least..=grants_max - granted {
            for requested in [1, 3] {
                for (has_data, asks) in [(true, false), (false, false), (false, true)] {
                    steps.push(Step::Whim(Whim {
                        has_data,
                        asks,
                        requested,
                        granted: count,
                    }));
                }
            }
        }
        steps
    }

    /// What the peer has to grant.
    fn duties(&self) -> impl Iterator<Item = Step> {
        let is_due = self.peer.granted == 0 && self.peer.held > 0;
        let most = if is_due { self.peer.grants_max } else { 0 };
        (1..=most).map(Step::Grant)
    }

    fn say(&mut self, whim: Whim) {
        let flags = match whim.asks {
            true => TransferFlags::RESPONSE_REQUESTED,
            false => TransferFlags::NONE,
        };
        let length = u32::from(whim.has_data);
        let transfer = DataTransfer {
            credits_requested: whim.requested,
            credits_granted: whim.granted,
            flags,
            remaining_data_length: 0,
            data_offset: length * DataTransfer::DATA_OFFSET,
            data_length: length,
        };
        let mut bytes = Vec::new();
        transfer.encode(&mut bytes);
        if whim.has_data {
            bytes.resize(DataTransfer::DATA_OFFSET as usize, 0);
            bytes.push(7);
        }
        self.peer.held -= 1;
        self.peer.granted += whim.granted;
        self.here.push_back(bytes);
    }

    /// The peer hears the core.
    fn hear(&mut self) -> Check {
        let bytes = self.there.pop_front().expect("something is on its way");
        let granted = self.peer.granted.checked_sub(1);
        self.peer.granted = granted.ok_or("the core sent without a credit")?;
        let transfer = DataTransfer::decode(&bytes).map_err(|error| error.to_string())?;
        self.peer.held += u32::from(transfer.credits_granted);
        Ok(())
    }

    fn put(&mut self, deeds: Deeds) {
        let packets = deeds.packets.into_iter();
        self.there.extend(packets.map(|packet| packet.bytes));
    }
}

impl graph::State for World {
    type Step = Step;
    type Key = Key;

    fn key(&self) -> Key {
        Key {
            core: self.side.snapshot(),
            peer: self.peer,
            unsaid: self.side.unsaid(),
            heard: self.side.heard(),
            unfinished: self.side.unfinished().collect(),
            there: self.there.clone(),
            here: self.here.clone(),
        }
    }

    fn steps(&self) -> Vec<Step> {
        let side = &self.side;
        let can = [
            (!self.there.is_empty(), Step::ArriveThere),
            (!self.here.is_empty(), Step::ArriveHere),
            (side.asked() > 0, Step::Post),
            (side.unfinished().next().is_some(), Step::Complete),
            (side.unsaid() > 0, Step::Say),
        ];
        let can = can
            .into_iter()
            .filter_map(|(can, step)| can.then_some(step));
        can.chain(self.whims()).chain(self.duties()).collect()
    }

    fn after(&self, step: Step) -> Check<Self> {
        let mut next = self.clone();
        let now = Instant::default();
        let deeds = match step {
            Step::ArriveThere => {
                next.hear()?;
                Deeds::default()
            }
            Step::ArriveHere => {
                let bytes = next.here.pop_front().expect("something is on its way");
                ensure(next.side.can_receive(), || "no receive is posted".into())?;
                next.side.receive(now, &bytes)?
            }
            Step::Post => next.side.post(now, 1)?,
            Step::Complete => next.side.complete(now, 1)?,
            Step::Say => next.side.say(now)?,
            Step::Whim(whim) => {
                next.peer.whims -= 1;
                next.say(whim);
                Deeds::default()
            }
            Step::Grant(granted) => {
                next.say(Whim {
                    has_data: false,
                    asks: false,
                    requested: 1,
                    granted,
                });
                Deeds::default()
            }
        };
        if let Some(violation) = next.side.end() {
            return Err(format!("it ends: {violation}"));
        }
        next.put(deeds);
        Ok(next)
    }

    fn check_end(&self) -> Check {
        let sent = self.side.unsaid() == 0 && self.side.is_done();
        ensure(sent, || "the core waits forever".into())?;
        ensure(self.peer.held > 0, || {
            "the peer has no credit, and gets none".into()
        })
    }

    /// Not its whims; and of its duties one stands for all, as it can do each when it can do one.
    fn is_due(step: Step) -> bool {
        match step {
            Step::Whim(_) => false,
            Step::Grant(count) => count == 1,
            _ => true,
        }
    }
}

fn request(credits_requested: u16) -> NegotiateRequest {
    NegotiateRequest {
        min_version: VERSION_1,
        max_version: VERSION_1,
        credits_requested,
        preferred_send_size: 128,
        max_receive_size: 128,
        max_fragmented_size: 131_072,
    }
}

fn response(credits: u16) -> NegotiateResponse {
    NegotiateResponse {
        min_version: VERSION_1,
        max_version: VERSION_1,
        negotiated_version: VERSION_1,
        credits_requested: credits,
        credits_granted: credits,
        status: Status::SUCCESS,
        max_read_write_size: 0,
        preferred_send_size: 128,
        max_receive_size: 128,
        max_fragmented_size: 131_072,
    }
}
