//! One queue pair. \[MS-SMBD\] 3.1.1.1

use alloc::vec::Vec;

use super::config::{Config, Negotiated, Role};
use super::credit::Credits;
use super::effect::{Effect, Effects, MessageToken, Refusal, SendId, Violation};
use super::fragment::Queue;
use super::reassembly::Reassembly;
use super::timers::{KeepAlive, Timers};
use crate::time::Instant;

/// How far a connection has come: Connection.Role, but for who speaks first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was done.
    Fresh,
    /// The first receive is being posted.
    Opening,
    /// The peer's word in the negotiation is awaited.
    Negotiating,
    /// It is known what was negotiated, and the receives for the peer's first credits are being
    /// posted.
    Preparing,
    /// Data are transferred.
    Ready,
    /// A client was told that there will be no connection. It ends when that is sent.
    Refusing(Violation),
    /// Nothing is said any more.
    Over,
}

/// One queue pair: the state of SMB Direct on it. It has one owner, who tells it what happened
/// and does what its effects say.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) phase: Phase,
    /// What was negotiated; before that, what we want.
    pub(super) sizes: Negotiated,
    pub(super) credits: Credits,
    pub(super) queue: Queue,
    pub(super) reassembly: Reassembly,
    /// Whether the peer wants to hear from us: Connection.SendImmediate.
    pub(super) is_reply_owed: bool,
    pub(super) timers: Timers,
    pub(super) scratch: Vec<u8>,
}

/// What decides what a connection does next, but for the time. For logs, and to know a state again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// How far it has come: 0 before the negotiation, 4 in data transfer, the last when it is over.
    pub phase: u8,
    /// SENDs that we may do.
    pub send_credits: u32,
    /// SENDs that the peer may do.
    pub receive_credits: u32,
    /// SENDs that the peer is to be allowed.
    pub receive_credit_target: u32,
    /// Receives that are posted.
    pub posted: u32,
    /// Receives that the driver was asked for and has not posted.
    pub asked: u32,
    /// SENDs that are posted and not completed.
    pub in_flight: usize,
    /// Messages that wait to be sent or are being sent.
    pub queued: usize,
    /// Bytes of them that were not sent.
    pub queued_bytes: u64,
    /// Bytes that are missing of the message that is being received.
    pub missing: u32,
    /// Whether the peer waits for a sign of life.
    pub is_reply_owed: bool,
    /// Up to how many credits the peer is granted more without data, where it runs low.
    pub low_water: Option<u32>,
    /// Whether we wait for a sign of life: 0 no, 1 it is to be asked for, 2 it was.
    pub keep_alive: u8,
}

impl Connection {
    /// A connection on which nothing was done.
    ///
    /// # Panics
    /// When the protocol does not allow what the configuration wants.
    pub fn new(config: Config) -> Self {
        config.check();
        Self {
            phase: Phase::Fresh,
            sizes: Negotiated {
                max_send_size: config.max_send_size,
                max_receive_size: config.max_receive_size,
                max_fragmented_send_size: 0,
                max_fragmented_receive_size: config.max_fragmented_size,
                max_read_write_size: config.max_read_write_size,
            },
            credits: Credits::new(config.credits_at_first()),
            queue: Queue::default(),
            reassembly: Reassembly::default(),
            is_reply_owed: false,
            timers: Timers::new(&config),
            scratch: Vec::new(),
            config,
        }
    }

    /// What was negotiated.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.is_ready().then_some(self.sizes)
    }

    /// Whether messages can be sent.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Whether the connection has ended.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The queue pair is connected, or about to be accepted.
    ///
    /// # Panics
    /// When it was called before.
    pub fn started(&mut self, now: Instant, effects: &mut Effects) {
        assert!(self.phase == Phase::Fresh, "a connection starts once");
        self.phase = Phase::Opening;
        self.timers.start(now, &self.config);
        effects.push(Effect::PostReceives(self.credits.ask_for_first()));
    }

    /// So many receives are posted, of those that were asked for.
    ///
    /// # Panics
    /// When they are more than that.
    pub fn posted(&mut self, now: Instant, count: u32, effects: &mut Effects) {
        if self.is_over() || count == 0 {
            return;
        }
        self.credits.add_posted(count);
        match (self.phase, self.config.role) {
            (Phase::Opening, Role::Client) => self.send_negotiate_request(effects),
            (Phase::Opening, Role::Server) => self.phase = Phase::Negotiating,
            (Phase::Preparing, Role::Client) => self.become_ready(now, effects),
            (Phase::Preparing, Role::Server) => {
                self.send_negotiate_response(effects);
                self.become_ready(now, effects);
            }
            _ => self.pump(now, effects),
        }
    }

    /// The peer is somebody: it can have all the credits that we allow. What is sent next grants
    /// them, as far as receives are posted for them by then.
    pub fn trust(&mut self, effects: &mut Effects) {
        self.credits.raise_max(self.config.receive_credit_max);
        if self.is_ready() {
            self.ask_for_receives(effects);
        }
    }

    /// Sends a message of `length` bytes behind all others, and invalidates a key of the peer with
    /// it.
    ///
    /// # Errors
    /// When it cannot be sent: then nothing has changed, and the message is the caller's again.
    pub fn send(
        &mut self,
        now: Instant,
        token: MessageToken,
        length: u32,
        invalidate: Option<u32>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        self.check_message(length)?;
        self.queue.push(token, length, invalidate);
        self.pump(now, effects);
        Ok(())
    }

    fn check_message(&self, length: u32) -> Result<(), Refusal> {
        let limit = self.sizes.max_fragmented_send_size;
        match self.phase {
            Phase::Ready => {}
            Phase::Over => return Err(Refusal::Over),
            _ => return Err(Refusal::NotReady),
        }
        if length == 0 {
            return Err(Refusal::Empty);
        }
        if length > limit {
            return Err(Refusal::TooLong { length, limit });
        }
        if self.queue.len() >= self.config.queue_depth {
            return Err(Refusal::QueueFull);
        }
        Ok(())
    }

    /// A SEND is completed, and with it all that were posted before: a reliable connection
    /// completes them in order, so a driver need not ask for the completion of each.
    ///
    /// # Panics
    /// When it was not posted.
    pub fn sent(&mut self, now: Instant, id: SendId, effects: &mut Effects) {
        if self.is_over() {
            return;
        }
        for token in self.queue.complete(id) {
            effects.push(Effect::MessageSent(token));
        }
        match self.phase {
            Phase::Refusing(violation) => self.end(violation, effects),
            _ => self.pump(now, effects),
        }
    }

    /// The queue pair is gone. The driver frees all messages that it holds.
    pub fn closed(&mut self) {
        self.phase = Phase::Over;
        self.queue.clear();
    }

    /// What decides what it does next.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            phase: match self.phase {
                Phase::Fresh => 0,
                Phase::Opening => 1,
                Phase::Negotiating => 2,
                Phase::Preparing => 3,
                Phase::Ready => 4,
                Phase::Refusing(_) => 5,
                Phase::Over => 6,
            },
            send_credits: self.credits.held(),
            receive_credits: self.credits.granted(),
            receive_credit_target: self.credits.target(),
            posted: self.credits.posted(),
            asked: self.credits.asked(),
            in_flight: self.queue.in_flight(),
            queued: self.queue.len(),
            queued_bytes: self.queue.bytes(),
            missing: self.reassembly.remaining(),
            is_reply_owed: self.is_reply_owed,
            low_water: self.credits.low(),
            keep_alive: match self.timers.keep_alive {
                KeepAlive::None => 0,
                KeepAlive::Pending => 1,
                KeepAlive::Sent => 2,
            },
        }
    }

    /// Ends the connection.
    pub(super) fn end(&mut self, violation: Violation, effects: &mut Effects) {
        self.closed();
        effects.push(Effect::Disconnect(violation));
    }
}
