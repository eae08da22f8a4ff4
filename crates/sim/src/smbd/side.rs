//! One end: the core, a driver with a separate ledger, and the messages of the upper layer.
//!
//! The checks of the core use only the bytes that were sent and received.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use proto::smbd::{
    Config, Connection, Effect, Effects, MessageToken, Negotiated, Outgoing, Refusal, Role, SendId,
    Snapshot, Violation,
};
use proto::time::Instant;
use wire::smbd::{DataTransfer, NegotiateResponse};

use crate::check::{Check, ensure};

/// A SEND in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Packet {
    pub(crate) id: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Messages in the order in which an end sends them.
pub(crate) type Messages = Rc<Vec<Vec<u8>>>;

/// The results of effects that concern the world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deeds {
    /// SENDs.
    pub(crate) packets: Vec<Packet>,
    /// Whether the core requested receives.
    pub(crate) asks: bool,
}

/// One end.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    role: Role,
    core: Connection,
    /// The messages that it sends.
    messages: Messages,
    /// The messages that it must receive; `None` if the peer may break the rules.
    expected: Option<Messages>,
    /// Number of requested receives that are not posted.
    asked: u32,
    posted: u32,
    /// Number of receives that may be posted at once.
    receives: u32,
    /// SENDs that are not completed, and whether each ends a message.
    unfinished: VecDeque<(SendId, bool)>,
    /// Number of SENDs.
    sends: u64,
    /// Number of SENDs of the peer.
    receipts: u64,
    /// Number of messages passed to the core, and number of those that the core has finished.
    said: usize,
    done: usize,
    /// Messages in progress, and the number of their bytes that were sent.
    in_flight: BTreeMap<MessageToken, u32>,
    /// Number of received messages, and the bytes of the next one.
    heard: usize,
    partial: Vec<u8>,
    /// Credits that the peer has granted and that were not used.
    balance: u64,
    /// Credits that this end has granted and that the peer has not used.
    granted: u64,
    ready: Option<Negotiated>,
    end: Option<Violation>,
}

impl Side {
    pub(crate) fn new(config: Config, messages: Messages, expected: Option<Messages>) -> Self {
        Self {
            role: config.role,
            receives: config.receives(),
            core: Connection::new(config),
            messages,
            expected,
            asked: 0,
            posted: 0,
            unfinished: VecDeque::new(),
            sends: 0,
            receipts: 0,
            said: 0,
            done: 0,
            in_flight: BTreeMap::new(),
            heard: 0,
            partial: Vec::new(),
            balance: 0,
            granted: 0,
            ready: None,
            end: None,
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.core.next_timeout()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.core.is_ready()
    }

    pub(crate) fn end(&self) -> Option<Violation> {
        self.end
    }

    /// Returns whether a receive is posted for a SEND of the peer.
    pub(crate) fn can_receive(&self) -> bool {
        self.posted > 0
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked
    }

    pub(crate) fn heard(&self) -> usize {
        self.heard
    }

    pub(crate) fn said(&self) -> usize {
        self.said
    }

    /// Returns the number of received bytes of the current message.
    pub(crate) fn partial(&self) -> usize {
        self.partial.len()
    }

    /// Returns the SENDs that are not completed: whether each ends a message.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = bool> + '_ {
        self.unfinished.iter().map(|(_, ends)| *ends)
    }

    /// Returns the number of messages that the upper layer has not passed to the core.
    pub(crate) fn unsaid(&self) -> usize {
        self.messages.len() - self.said
    }

    /// Returns whether all messages were sent and their memory is free.
    pub(crate) fn is_done(&self) -> bool {
        self.done == self.messages.len()
    }

    pub(crate) fn start(&mut self, now: Instant) -> Check<Deeds> {
        let mut effects = Effects::new();
        self.core.started(now, &mut effects);
        self.act(effects, &[])
    }

    /// Posts requested receives.
    pub(crate) fn post(&mut self, now: Instant, count: u32) -> Check<Deeds> {
        let count = count.min(self.asked);
        self.asked -= count;
        self.posted += count;
        let mut effects = Effects::new();
        self.core.posted(now, count, &mut effects);
        self.act(effects, &[])
    }

    /// A SEND of the peer arrives.
    pub(crate) fn receive(&mut self, now: Instant, bytes: &[u8]) -> Check<Deeds> {
        assert!(self.posted > 0, "a receive is posted");
        self.posted -= 1;
        self.keep_book(bytes);
        let mut effects = Effects::new();
        self.core.received(now, bytes, &mut effects);
        self.act(effects, bytes)
    }

    /// Records a grant of the peer. If the grant breaks the rules, the core ends the connection.
    fn keep_book(&mut self, bytes: &[u8]) {
        let granted = match (self.receipts, self.role) {
            (0, Role::Server) => None,
            (0, Role::Client) => {
                let response = NegotiateResponse::decode(bytes).ok();
                response.map(|found| found.credits_granted)
            }
            _ => {
                self.granted = self.granted.saturating_sub(1);
                let transfer = DataTransfer::decode(bytes).ok();
                transfer.map(|found| found.credits_granted)
            }
        };
        self.receipts += 1;
        self.balance += u64::from(granted.unwrap_or(0));
    }

    /// This number of SENDs, the oldest ones, have completed.
    pub(crate) fn complete(&mut self, now: Instant, count: usize) -> Check<Deeds> {
        let drained: Vec<_> = self.unfinished.drain(..count).collect();
        let Some((id, _)) = drained.last() else {
            return Ok(Deeds::default());
        };
        let ended = drained.iter().filter(|(_, ends)| *ends).count();
        let (done, is_over) = (self.done, self.core.is_over());
        let mut effects = Effects::new();
        self.core.sent(now, *id, &mut effects);
        let deeds = self.act(effects, &[])?;
        ensure(is_over || self.done - done == ended, || {
            format!("{} messages are done, not {ended}", self.done - done)
        })?;
        Ok(deeds)
    }

    /// Returns the number of posted SENDs up to this one that are not completed.
    pub(crate) fn unfinished_up_to(&self, id: u64) -> usize {
        self.unfinished
            .iter()
            .take_while(|(posted, _)| posted.0 <= id)
            .count()
    }

    /// The upper layer sends its next message, unless too many messages wait.
    pub(crate) fn say(&mut self, now: Instant) -> Check<Deeds> {
        let token = MessageToken(self.said as u64);
        let length = self.messages[self.said].len() as u32;
        let mut effects = Effects::new();
        match self.core.send(now, token, length, None, &mut effects) {
            Ok(()) => {
                self.said += 1;
                self.in_flight.insert(token, 0);
            }
            Err(Refusal::QueueFull) => {}
            Err(refusal) => return Err(format!("{:?}: {refusal}", self.role)),
        }
        self.act(effects, &[])
    }

    pub(crate) fn timeout(&mut self, now: Instant) -> Check<Deeds> {
        let mut effects = Effects::new();
        self.core.timeout(now, &mut effects);
        self.act(effects, &[])
    }

    pub(crate) fn close(&mut self) {
        self.core.closed();
    }

    fn act(&mut self, mut effects: Effects, received: &[u8]) -> Check<Deeds> {
        let mut deeds = Deeds::default();
        while let Some(effect) = effects.pop() {
            ensure(self.end.is_none(), || format!("{effect:?} after the end"))?;
            match effect {
                Effect::PostReceives(count) => {
                    self.asked += count;
                    deeds.asks = true;
                    ensure(self.asked + self.posted <= self.receives, || {
                        format!("{} receives are requested", self.asked + self.posted)
                    })?;
                }
                Effect::Send(send) => deeds.packets.push(self.send(&send)?),
                Effect::Fragment {
                    range,
                    offset,
                    total,
                } => {
                    let data = received
                        .get(range)
                        .ok_or("a fragment outside of the received bytes")?;
                    ensure(offset as usize == self.partial.len(), || {
                        format!("a fragment at {offset} behind {}", self.partial.len())
                    })?;
                    self.partial.extend_from_slice(data);
                    ensure(self.partial.len() <= total as usize, || "too much".into())?;
                }
                Effect::Message { length } => self.hear(length)?,
                Effect::MessageSent(token) => self.free(token)?,
                Effect::Ready(sizes) => {
                    ensure(self.ready.is_none(), || "ready twice".into())?;
                    self.ready = Some(sizes);
                }
                Effect::Disconnect(violation) => self.end = Some(violation),
            }
        }
        Ok(deeds)
    }

    /// Checks a SEND and returns its bytes.
    fn send(&mut self, send: &Outgoing) -> Check<Packet> {
        ensure(send.id.0 == self.sends, || {
            format!("{:?} after {}", send.id, self.sends)
        })?;
        let mut bytes = send.header.as_slice().to_vec();
        let mut ends = false;
        if let Some(piece) = &send.piece {
            let at = self.in_flight.get_mut(&piece.token);
            let at = at.ok_or("a fragment of a message that is not in progress")?;
            ensure(*at == piece.range.start, || {
                format!("{:?} after {at}", piece.range)
            })?;
            *at = piece.range.end;
            let message = &self.messages[piece.token.0 as usize];
            ends = piece.range.end as usize == message.len();
            let range = piece.range.start as usize..piece.range.end as usize;
            bytes.extend_from_slice(&message[range]);
        }
        match (self.sends, self.role) {
            (0, Role::Client) => {}
            (0, Role::Server) => {
                let answer = NegotiateResponse::decode(&bytes);
                let answer = answer.map_err(|error| error.to_string())?;
                self.grant(answer.credits_granted)?;
            }
            _ => self.check_send(&bytes)?,
        }
        self.sends += 1;
        self.unfinished.push_back((send.id, ends));
        let id = send.id.0;
        Ok(Packet { id, bytes })
    }

    fn check_send(&mut self, bytes: &[u8]) -> Check {
        let sizes = self.ready.ok_or("a SEND before it is negotiated")?;
        ensure(bytes.len() <= sizes.max_send_size as usize, || {
            format!("a SEND of {} bytes", bytes.len())
        })?;
        let transfer = DataTransfer::decode(bytes).map_err(|error| error.to_string())?;
        ensure(self.balance > 0, || "a SEND without a credit".into())?;
        ensure(self.balance > 1 || transfer.credits_granted > 0, || {
            "the last credit without a grant".into()
        })?;
        self.balance -= 1;
        self.grant(transfer.credits_granted)
    }

    /// Records a grant of this end: receives are posted for it.
    fn grant(&mut self, count: u16) -> Check {
        self.granted += u64::from(count);
        ensure(self.granted <= u64::from(self.posted), || {
            format!(
                "{} are granted where {} are posted",
                self.granted, self.posted
            )
        })
    }

    fn hear(&mut self, length: u32) -> Check {
        ensure(self.partial.len() == length as usize, || {
            format!(
                "a message of {length} bytes, received {}",
                self.partial.len()
            )
        })?;
        if let Some(expected) = &self.expected {
            ensure(expected.get(self.heard) == Some(&self.partial), || {
                format!("message {} differs from the sent message", self.heard)
            })?;
        }
        self.partial.clear();
        self.heard += 1;
        Ok(())
    }

    fn free(&mut self, token: MessageToken) -> Check {
        ensure(token.0 == self.done as u64, || {
            format!("{token:?} after {}", self.done)
        })?;
        let sent = self
            .in_flight
            .remove(&token)
            .ok_or("a message is done twice")?;
        ensure(sent as usize == self.messages[self.done].len(), || {
            format!("{token:?} is done after {sent} bytes")
        })?;
        self.done += 1;
        Ok(())
    }
}
