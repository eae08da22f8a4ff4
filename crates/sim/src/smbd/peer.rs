//! The core against every peer that keeps the rules: [`search_peers`] has the peer send any message
//! at any time, with any permitted grant, and request other numbers of credits each time.
//!
//! The peer has only these duties: it uses its last credit only for a grant, or, like Linux, if it
//! believes that the core can still send; and if the core has no credits and the peer can send, the
//! peer grants at least one eventually.

use std::collections::VecDeque;
use std::rc::Rc;

use proto::smbd::{Config, Role, Snapshot};
use proto::time::Instant;
use wire::Status;
use wire::smbd::{DataTransfer, NegotiateRequest, NegotiateResponse, TransferFlags, VERSION_1};

use super::graph::{self, Searched};
use super::side::{Deeds, Side};
use crate::check::{Check, ensure};

/// The parameters of a search of all states of one SMB Direct end with any peer that obeys the
/// protocol: credits, messages and limits.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Role of the tested end in the negotiation: client or server.
    pub role: Role,
    /// Number of credits that the tested end requests, and maximum number that it grants.
    pub credits: (u16, u16),
    /// Lengths in bytes of the messages that the tested end sends; a SEND carries 104 bytes.
    pub messages: Vec<usize>,
    /// Maximum number of credits that the peer grants in one message.
    pub grants_max: u16,
    /// Maximum number of messages that the peer sends although nothing requires them.
    pub whims: u8,
    /// Whether the peer interprets the rule of the last credit like Linux: it may use its last
    /// credit without a grant while this end has a credit.
    pub is_lax: bool,
    /// Maximum number of SENDs of the tested end that are posted and not completed.
    pub send_depth: u16,
    /// Maximum number of states: a larger search is a mistake in the model.
    pub states_max: usize,
}

/// An event.
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
    /// The peer sends without need.
    Whim(Whim),
    /// The peer grants credits because it must.
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
    /// SENDs of the core in flight, and those of the peer.
    there: VecDeque<Vec<u8>>,
    here: VecDeque<Vec<u8>>,
    peer: Peer,
}

/// The state of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// Credits of the peer.
    held: u32,
    /// Credits that it has granted and that the core has not used.
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

/// Searches all states of the tested end that any order of events and any permitted messages of the
/// peer reach. Returns the size of the graph.
///
/// # Errors
/// Contains the path to a wrong state.
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
    /// Runs the negotiation, which has no choices.
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

    /// Returns the messages that the peer may send.
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

    /// Returns the grants that the peer must make.
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

    /// The peer receives a SEND of the core.
    fn hear(&mut self) -> Check {
        let bytes = self.there.pop_front().expect("a SEND is in flight");
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
                let bytes = next.here.pop_front().expect("a SEND is in flight");
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

    /// Messages without need never have to happen; of the grants that must, one represents all.
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
