//! What happens when nothing happens: requests and logins that take too long, a server that says
//! nothing. \[MS-SMB2\] 3.2.6

use alloc::vec;
use alloc::vec::Vec;

use wire::{Command, MessageId};

use super::connection::{Connection, Phase};
use super::effect::{Effect, Effects};
use super::encode;
use super::flight::{Flight, Owner, Waiting};
use super::request::{Failure, FileRef, RequestId, Step};
use super::send::pending_requests;
use super::violation::Violation;
use crate::time::{Instant, Now};

impl Connection {
    /// Takes note that bytes came, though perhaps no whole frame yet: the server lives.
    pub fn heard(&mut self, now: Now) {
        self.heard = now.instant;
        self.echoed = None;
    }

    /// When [`Connection::timeout`] wants to be called at the latest.
    pub fn next_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Fresh | Phase::Over => None,
            Phase::LoggingIn => self.login_deadline,
            Phase::Ready => {
                let request = self.deadlines.first().map(|(at, _)| *at);
                let again = self.retries.keys().next().map(|(at, _)| *at);
                let first = request.into_iter().chain(again).min();
                Some(first.map_or(self.silence(), |at| at.min(self.silence())))
            }
        }
    }

    /// When the silence has lasted for long enough to ask, or to give up.
    fn silence(&self) -> Instant {
        // Whoever slept for an hour asks first, and then waits for the answer.
        let since = self.echoed.unwrap_or(self.heard);
        since.after(self.config.echo_interval)
    }

    /// Does what is due.
    pub fn timeout(&mut self, now: Now, effects: &mut Effects) {
        match self.phase {
            Phase::Fresh | Phase::Over => {}
            Phase::LoggingIn => {
                if self.login_deadline.is_some_and(|at| at <= now.instant) {
                    self.end(Violation::TimedOut, effects);
                }
            }
            Phase::Ready => self.ready_timeout(now, effects),
        }
    }

    /// Lets a request wait to be sent. Who gets no credits in time will have to do without.
    pub(super) fn enqueue(&mut self, now: Now, mut waiting: Waiting) {
        let ahead = self.flying + self.bytes_queued() + waiting.bytes;
        waiting.deadline = self.deadline(now, waiting.request.timeout, ahead);
        self.deadlines
            .extend(waiting.deadline.map(|at| (at, waiting.id)));
        self.queue.push(waiting);
    }

    /// Forgets when a request was to be given up on.
    pub(super) fn stop_clock(&mut self, id: RequestId, deadline: Option<Instant>) {
        if let Some(at) = deadline {
            self.deadlines.remove(&(at, id));
        }
    }

    /// Whose turn has not come has its time from now on: what it is behind has a time of its own.
    fn wait_for_turns(&mut self, now: Now) {
        let early: Vec<_> = {
            let is_pending = pending_requests(&self.flights, &self.exposing, &self.retries);
            let due = self.deadlines.range(..=(now.instant, RequestId(u64::MAX)));
            let due = due.map(|(_, id)| *id);
            due.filter(|id| self.queue.is_behind(*id, &is_pending))
                .collect()
        };
        for id in early {
            let waiting = self.queue.remove(id).expect("it waits");
            self.stop_clock(id, waiting.deadline);
            self.enqueue(now, waiting);
        }
    }

    fn ready_timeout(&mut self, now: Now, effects: &mut Effects) {
        self.wait_for_turns(now);
        while let Some(&(at, id)) = self.deadlines.first() {
            if at > now.instant {
                break;
            }
            if self.unvalidated.contains(&id) {
                // Whoever keeps the proof from us must not win by patience.
                let missing = Violation::NegotiateTampered("no proof of it in time");
                self.end(missing, effects);
                return;
            }
            self.give_up(id, effects);
        }
        self.send_retries(now, effects);
        if self.silence() > now.instant {
            return;
        }
        if self.echoed.is_some() {
            self.end(Violation::TimedOut, effects);
            return;
        }
        self.echoed = Some(now.instant);
        self.send_echo(effects);
    }

    /// Gives up on a request that takes too long. Its late answer is swallowed.
    fn give_up(&mut self, id: RequestId, effects: &mut Effects) {
        if self.give_up_waiting(id, &Failure::TimedOut, effects) {
            return;
        }
        let mut flight = self.land(id).expect("what has a deadline waits or flies");
        // Should the server use it yet, the connection breaks: better than a caller that waits.
        Self::withdraw(id, flight.memory.take(), effects);
        for (index, message) in flight.ids.iter().enumerate() {
            self.abandon(*message, &flight, index);
            self.send_cancel(*message, effects);
        }
        let results = flight.results.into_iter();
        let results = results.map(|result| result.unwrap_or(Err(Failure::TimedOut)));
        effects.push(Effect::Answer(id, results.collect()));
    }

    /// Answers a request that was not sent, if it is one.
    fn give_up_waiting(&mut self, id: RequestId, why: &Failure, effects: &mut Effects) -> bool {
        let exposing = self.exposing.remove(&id);
        let Some(waiting) = exposing.or_else(|| self.queue.remove(id)) else {
            return false;
        };
        self.stop_clock(id, waiting.deadline);
        Self::withdraw(id, waiting.placement.into_memory(), effects);
        let results = vec![Err(why.clone()); waiting.request.steps.len()];
        effects.push(Effect::Answer(id, results));
        true
    }

    fn abandon(&mut self, message: MessageId, flight: &Flight, index: usize) {
        let Some(pending) = self.pending.get_mut(&message) else {
            return;
        };
        let command = encode::command(&flight.request.steps[index]);
        let later = &flight.request.steps[index + 1..];
        let is_undone = later.iter().any(undoes);
        let makes = matches!(command, Command::CREATE | Command::TREE_CONNECT);
        pending.owner = Owner::Abandoned {
            is_to_be_undone: makes && !is_undone,
            seal: flight.request.seal,
        };
    }

    /// Takes a request out of those that fly.
    pub(super) fn land(&mut self, id: RequestId) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        self.stop_clock(id, flight.deadline);
        self.flying -= flight.bytes;
        Some(flight)
    }

    /// Gives up on a request because the driver wants it no more. One that was not sent is
    /// answered at once; for one that was the server is told, and its answer says what came of
    /// it. \[MS-SMB2\] 3.2.4.24
    pub fn cancel(&mut self, now: Now, id: RequestId, effects: &mut Effects) {
        if self.give_up_waiting(id, &Failure::Cancelled, effects) {
            self.pump(now, effects);
            return;
        }
        let retries = self.retries.keys().find(|(_, waiting)| *waiting == id);
        if let Some(key) = retries.copied() {
            self.retries.remove(&key);
            effects.push(Effect::Answer(id, vec![Err(Failure::Cancelled)]));
            return;
        }
        let Some(flight) = self.flights.get_mut(&id) else {
            // Its answer was on its way.
            return;
        };
        flight.is_cancelled = true;
        for message in flight.ids.clone() {
            self.send_cancel(message, effects);
        }
    }
}

/// Whether a step closes what the CREATE in front of it in the compound opened.
fn undoes(step: &Step) -> bool {
    let file = FileRef::Previous;
    matches!(step, Step::Close { file: closed, .. } if *closed == file)
}
