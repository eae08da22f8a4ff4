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

/// The protocol state of SMB Direct on one RDMA connection (queue pair). It performs no I/O: the
/// I/O driver reports events to the methods, and performs the effects that they append.
/// \[MS-SMBD\] 3.1.1.1
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

/// A copy of the state of an SMB Direct connection without its times, for logs and for tests that
/// compare states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// Phase of the connection: 0 not started, 1 waits until the first receive is posted, 2 waits
    /// for the message of the peer in the negotiation, 3 negotiated and posts the receives for the
    /// first credits, 4 data transfer, 5 has refused the client and waits until the refusal is
    /// sent, 6 ended. Only in phase 4 messages can be sent.
    pub phase: u8,
    /// Number of SENDs that this end may still post with its credits.
    pub send_credits: u32,
    /// Number of SENDs that the peer may still post with its credits.
    pub receive_credits: u32,
    /// Number of credits that the peer wants to hold, by its last message.
    pub receive_credit_target: u32,
    /// Number of receive buffers that are posted and wait for a SEND of the peer.
    pub posted: u32,
    /// Number of receive buffers that the protocol core requested from the I/O driver and that are
    /// not posted yet.
    pub asked: u32,
    /// Number of SENDs of this end that are posted and not completed.
    pub in_flight: usize,
    /// Number of SMB2 messages of this end that are queued or partly sent.
    pub queued: usize,
    /// Number of bytes of the queued messages that are not sent yet.
    pub queued_bytes: u64,
    /// Number of bytes that are missing of the SMB2 message that the peer is sending; 0 between
    /// messages.
    pub missing: u32,
    /// Whether this end must still answer a keep-alive message of the peer.
    pub is_reply_owed: bool,
    /// Number of the peer's credits at or below which this end grants further ones in an empty
    /// message. `None` until the credits of the peer are that low for the first time, and after a
    /// grant has raised them.
    pub low_water: Option<u32>,
    /// State of the keep-alive message of this end: 0 none, 1 must be sent, 2 sent and not
    /// answered.
    pub keep_alive: u8,
}

impl Connection {
    /// Makes a connection that has not started. [`started`](Self::started) begins the negotiation.
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

    /// Returns the maximum lengths on which both ends agreed; `None` before and during the
    /// negotiation, and after the end of the connection.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.is_ready().then_some(self.sizes)
    }

    /// Returns whether the negotiation is complete, so that [`send`](Self::send) accepts messages.
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Returns whether the connection has ended. It then accepts no messages and has no further
    /// effects.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Starts the connection. The I/O driver calls this once: on a client when the queue pair is
    /// connected, on a server before it accepts the queue pair. Appends [`Effect::PostReceives`];
    /// the time limit of the negotiation starts.
    ///
    /// # Panics
    /// This is the second call.
    pub fn started(&mut self, now: Instant, effects: &mut Effects) {
        assert!(self.phase == Phase::Fresh, "a connection starts once");
        self.phase = Phase::Opening;
        self.timers.start(now, &self.config);
        effects.push(Effect::PostReceives(self.credits.ask_for_first()));
    }

    /// Reports that the I/O driver has posted `count` further receive buffers, of those that
    /// [`Effect::PostReceives`] requested. Several calls may report them. Appends the SENDs that
    /// became possible, such as the first message of the negotiation or a grant of credits.
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

    /// Raises the maximum number of the peer's credits from `receive_credits_at_first` to
    /// `receive_credit_max` of the configuration. The I/O driver calls this after the peer has
    /// logged in. Appends [`Effect::PostReceives`] for the additional receive buffers. The next
    /// SEND grants the further credits for which buffers are posted by then.
    pub fn trust(&mut self, effects: &mut Effects) {
        self.credits.raise_max(self.config.receive_credit_max);
        if self.is_ready() {
            self.ask_for_receives(effects);
        }
    }

    /// Queues an SMB2 message of `length` bytes, which the I/O driver holds under the number
    /// `token`. Appends the SENDs that the credits allow now; later calls append the others.
    /// [`Effect::MessageSent`] reports the end. If `invalidate` is a remote key of the peer, the
    /// last SEND of the message is a Send with Invalidate of that key.
    ///
    /// # Errors
    /// The reason why the connection cannot send the message: no data transfer yet, an ended
    /// connection, an empty or too long message, or a full queue. Nothing has changed, and the
    /// driver still owns the message.
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

    /// Reports that the RDMA SEND with the number `id` is complete, and all SENDs before it: a
    /// reliable connection completes them in order. Appends [`Effect::MessageSent`] for each
    /// message with all its SENDs complete, and further SENDs that wait.
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

    /// Reports that the RDMA connection (queue pair) has ended. The protocol core drops its queue
    /// and ignores later calls. The I/O driver frees all messages that it holds: no
    /// [`Effect::MessageSent`] follows for them.
    pub fn closed(&mut self) {
        self.phase = Phase::Over;
        self.queue.clear();
    }

    /// Returns a copy of the state of the connection without its times, for logs and tests.
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
