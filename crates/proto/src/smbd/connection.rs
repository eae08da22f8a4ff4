//! One queue pair. \[MS-SMBD\] 3.1.1.1

use alloc::vec::Vec;

use super::config::{Config, Negotiated, Role};
use super::credit::Credits;
use super::effect::{Effect, Effects, MessageToken, Refusal, SendId, Violation};
use super::fragment::Queue;
use super::reassembly::Reassembly;
use super::timers::{KeepAlive, Timers};
use crate::time::Instant;

/// Phase of a connection: Connection.Role, without the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Initial state.
    Fresh,
    /// The driver posts the first receive.
    Opening,
    /// The connection waits for the peer's message of the negotiation.
    Negotiating,
    /// The negotiation is decided, and the driver posts the receives for the peer's first credits.
    Preparing,
    /// Data transfer.
    Ready,
    /// The server has refused the client. The connection ends when the refusal is sent.
    Refusing(Violation),
    /// The connection has ended.
    Over,
}

/// The protocol state of SMB Direct on one queue pair. The driver owns it, reports events to the
/// methods, and performs the effects that they append. \[MS-SMBD\] 3.1.1.1
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) phase: Phase,
    /// The negotiated sizes; before the negotiation, the configured ones.
    pub(super) sizes: Negotiated,
    pub(super) credits: Credits,
    pub(super) queue: Queue,
    pub(super) reassembly: Reassembly,
    /// Whether the peer waits for a message: Connection.SendImmediate.
    pub(super) is_reply_owed: bool,
    pub(super) timers: Timers,
    pub(super) scratch: Vec<u8>,
}

/// A copy of the state of a connection, except for time, for logs and for tests that compare
/// states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// Phase of the connection: 0 not started, 1 waits until the first receive is posted, 2 waits
    /// for the message of the peer in the negotiation, 3 negotiated and posts the receives for the
    /// first credits, 4 data transfer, 5 has refused the client and waits until the refusal is
    /// sent, 6 ended. Only in phase 4 messages can be sent.
    pub phase: u8,
    /// Number of SENDs that this end may post with its credits.
    pub send_credits: u32,
    /// Number of SENDs that the peer may post with its credits.
    pub receive_credits: u32,
    /// Number of credits that the peer requests.
    pub receive_credit_target: u32,
    /// Number of receives that are posted.
    pub posted: u32,
    /// Number of receives that the core requested from the driver and that are not posted yet.
    pub asked: u32,
    /// Number of SENDs that are posted and not completed.
    pub in_flight: usize,
    /// Number of messages of this end that are queued or partly sent.
    pub queued: usize,
    /// Number of bytes of these messages that are not sent yet.
    pub queued_bytes: u64,
    /// Number of bytes that are missing of the message that the peer is sending; 0 between
    /// messages.
    pub missing: u32,
    /// Whether the peer waits for an answer to its keep-alive message.
    pub is_reply_owed: bool,
    /// Low-water mark: when the peer has at most this number of credits, it gets further ones in an
    /// empty message. `None` until the credits of the peer are that low for the first time, and
    /// after a grant has raised them.
    pub low_water: Option<u32>,
    /// State of the keep-alive message of this end: 0 none, 1 must be sent, 2 sent and not
    /// answered.
    pub keep_alive: u8,
}

impl Connection {
    /// Makes a connection before its negotiation.
    ///
    /// # Panics
    /// The protocol does not allow the configuration: a size or number is below its minimum.
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

    /// Returns the sizes that both ends agreed on; `None` before and during the negotiation, and
    /// after the end of the connection.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.is_ready().then_some(self.sizes)
    }

    /// Returns whether the negotiation is complete, so that messages can be sent.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns whether the connection has ended.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Starts the connection. The driver calls this once, when the queue pair of a client is
    /// connected, or before a server accepts the queue pair. Appends [`Effect::PostReceives`]; the
    /// time limit of the negotiation starts.
    ///
    /// # Panics
    /// This is the second call.
    pub fn started(&mut self, now: Instant, effects: &mut Effects) {
        assert!(self.phase == Phase::Fresh, "a connection starts once");
        self.phase = Phase::Opening;
        self.timers.start(now, &self.config);
        effects.push(Effect::PostReceives(self.credits.ask_for_first()));
    }

    /// Reports that the driver has posted `count` further receives, of those that
    /// [`Effect::PostReceives`] requested. It may report them in several calls. Appends the SENDs
    /// that became possible, such as the first message of the negotiation or a grant of credits.
    ///
    /// # Panics
    /// `count` exceeds the number of requested receives that are not posted.
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

    /// Raises the maximum of the peer's credits to the configured one. The driver calls this after
    /// the peer has logged in. Appends [`Effect::PostReceives`] for the additional receives. The
    /// next SEND grants the further credits for which receives are posted by then.
    pub fn trust(&mut self, effects: &mut Effects) {
        self.credits.raise_max(self.config.receive_credit_max);
        if self.is_ready() {
            self.ask_for_receives(effects);
        }
    }

    /// Queues a message of `length` bytes, which the driver holds under the number `token`. Appends
    /// the SENDs that the credits of this end allow now; later calls append the others.
    /// [`Effect::MessageSent`] reports the end. If `invalidate` is a remote key of the peer, the
    /// last SEND of the message is a Send with Invalidate of that key.
    ///
    /// # Errors
    /// The reason why the message cannot be sent: no data transfer yet, an ended connection, an
    /// empty or too long message, or a full queue. Nothing has changed, and the driver still owns
    /// the message.
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

    /// Reports the completed SEND `id`. All SENDs posted before it are completed, too: a reliable
    /// connection completes them in order, so a driver need not request a completion for each.
    /// Appends [`Effect::MessageSent`] for each message with all its SENDs completed, and further
    /// SENDs that wait.
    ///
    /// # Panics
    /// The SEND was not posted, or was reported before.
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

    /// Reports that the queue pair has ended. The connection drops its queue and ignores later
    /// calls. The driver frees all messages that it holds: no [`Effect::MessageSent`] follows for
    /// them.
    pub fn closed(&mut self) {
        self.phase = Phase::Over;
        self.queue.clear();
    }

    /// Returns a copy of the state of the connection, for logs and tests.
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
