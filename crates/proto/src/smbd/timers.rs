//! What happens when nothing happens. \[MS-SMBD\] 3.1.2, 3.1.6

use super::config::Config;
use super::connection::{Connection, Phase};
use super::effect::{Effects, Violation};
use crate::time::Instant;

/// Whether the peer was asked if it lives: Connection.KeepaliveRequested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum KeepAlive {
    /// No.
    None,
    /// It is to be asked with the next message.
    Pending,
    /// It was asked.
    Sent,
}

/// The three timers.
#[derive(Clone, Debug)]
pub(super) struct Timers {
    /// When the negotiation has taken too long.
    negotiate: Instant,
    /// When the silence has lasted long enough to ask, or to give up.
    idle: Instant,
    pub(super) keep_alive: KeepAlive,
    /// When a message has waited too long for a credit.
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

    /// The negotiation begins.
    pub(super) fn start(&mut self, now: Instant, config: &Config) {
        self.negotiate = now.after(config.negotiate_timeout);
    }

    /// Something came from the peer.
    pub(super) fn heard(&mut self, now: Instant, config: &Config) {
        self.keep_alive = KeepAlive::None;
        self.idle = now.after(config.keep_alive_interval);
    }

    /// A message goes out; whether it asks for an answer. The time for it counts from here, as
    /// with Linux: the message may have waited for a credit.
    pub(super) fn ask(&mut self, now: Instant, config: &Config) -> bool {
        if self.keep_alive != KeepAlive::Pending {
            return false;
        }
        self.keep_alive = KeepAlive::Sent;
        self.idle = now.after(config.keep_alive_timeout);
        true
    }

    /// Messages wait for credits, or do not.
    pub(super) fn wait(&mut self, is_waiting: bool, now: Instant, config: &Config) {
        self.credit = match (is_waiting, self.credit) {
            (false, _) => None,
            (true, None) => Some(now.after(config.credit_timeout)),
            (true, since) => since,
        };
    }
}

impl Connection {
    /// When [`Connection::timeout`] wants to be called at the latest.
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

    /// Does what is due.
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
