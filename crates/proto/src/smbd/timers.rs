//! Timers. \[MS-SMBD\] 3.1.2, 3.1.6

use super::config::Config;
use super::connection::{Connection, Phase};
use super::effect::{Effects, Violation};
use crate::time::Instant;

/// State of the own keep-alive: Connection.KeepaliveRequested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum KeepAlive {
    /// None.
    None,
    /// The next message requests an answer.
    Pending,
    /// A request for an answer was sent.
    Sent,
}

/// The three timers.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// Deadline of the negotiation.
    negotiate: Instant,
    /// Deadline of the silence, after which this side sends a keep-alive or gives up.
    idle: Instant,
    pub(super) keep_alive: KeepAlive,
    /// Deadline for a message that waits for a credit.
    credit: Option<Instant>,
}

impl Timers {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            negotiate: Instant::default().after(config.negotiate_timeout),
            idle: Instant::default(),
            keep_alive: KeepAlive::None,
            credit: None,
        }
    }

    /// Starts the timer of the negotiation.
    pub(super) fn start(&mut self, now: Instant, config: &Config) {
        self.negotiate = now.after(config.negotiate_timeout);
    }

    /// Restarts the timers after a message of the peer.
    pub(super) fn restart(&mut self, now: Instant, config: &Config) {
        self.keep_alive = KeepAlive::None;
        self.idle = now.after(config.keep_alive_interval);
    }

    /// Whether the message that is sent now requests an answer. The time limit for the answer
    /// starts here, as in Linux: the message may have waited for a credit.
    pub(super) fn ask(&mut self, now: Instant, config: &Config) -> bool {
        if self.keep_alive != KeepAlive::Pending {
            return false;
        }
        self.keep_alive = KeepAlive::Sent;
        self.idle = now.after(config.keep_alive_timeout);
        true
    }

    /// Starts or stops the timer for messages that wait for credits.
    pub(super) fn wait(&mut self, is_waiting: bool, now: Instant, config: &Config) {
        self.credit = match (is_waiting, self.credit) {
            (false, _) => None,
            (true, None) => Some(now.after(config.credit_timeout)),
            (true, since) => since,
        };
    }
}

impl Connection {
    /// Returns the time at which the I/O driver must call [`Connection::timeout`] at the latest;
    /// `None` if no time limit is in progress.
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Fresh | Phase::Over => None,
            Phase::Ready => {
                let idle = self.timers.idle;
                Some(self.timers.credit.map_or(idle, |credit| credit.min(idle)))
            }
            _ => Some(self.timers.negotiate),
        }
    }

    /// Handles the time limits that have passed: appends a SEND with a keep-alive message, or ends
    /// the connection with [`Effect::Disconnect`](super::effect::Effect::Disconnect). The I/O
    /// driver calls this at the time that [`Connection::next_timeout`] returns. An early call has
    /// no effect.
    pub fn timeout(&mut self, now: Instant, effects: &mut Effects) {
        match self.phase {
            Phase::Fresh | Phase::Over => {}
            Phase::Ready => self.ready_timeout(now, effects),
            Phase::Refusing(violation) => {
                if self.timers.negotiate <= now {
                    self.end(violation, effects);
                }
            }
            _ => {
                if self.timers.negotiate <= now {
                    self.end(Violation::NegotiateTimeout, effects);
                }
            }
        }
    }

    fn ready_timeout(&mut self, now: Instant, effects: &mut Effects) {
        if self.timers.credit.is_some_and(|at| at <= now) {
            self.end(Violation::CreditTimeout, effects);
            return;
        }
        if self.timers.idle > now {
            return;
        }
        if self.timers.keep_alive != KeepAlive::None {
            self.end(Violation::KeepAliveTimeout, effects);
            return;
        }
        self.timers.keep_alive = KeepAlive::Pending;
        self.timers.idle = now.after(self.config.keep_alive_timeout);
        self.pump(now, effects);
    }
}
