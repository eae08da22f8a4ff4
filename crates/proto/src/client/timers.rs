//! Time limits of requests and logins, and of a silent server. \[MS-SMB2\] 3.2.6

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
    /// Reports that the I/O driver received bytes, which need not complete a frame. This restarts
    /// the idle time after which the client sends an ECHO.
    pub fn heard(&mut self, now: Now) {
        self.heard = now.instant;
        self.echoed = None;
    }

    /// Returns the time at which the I/O driver must call [`Connection::timeout`] at the latest;
    /// `None` before the start and after the end of the connection.
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

    /// Time at which the client sends an ECHO, or ends the connection.
    fn silence(&self) -> Instant {
        // After a suspend of the machine, the client sends an ECHO first and waits for its
        // response.
        let since = self.echoed.unwrap_or(self.heard);
        since.after(self.config.echo_interval)
    }

    /// Handles the time limits that have passed: fails requests, sends an ECHO, sends a delayed
    /// request again, or ends the connection. Appends the resulting effects. The I/O driver calls
    /// this at the time that [`Connection::next_timeout`] returns. An early call has no effect.
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

    /// Queues a request. It fails if it does not get credits within the time limit.
    pub(super) fn enqueue(&mut self, now: Now, mut waiting: Waiting) {
        let ahead = self.flying + self.bytes_queued() + waiting.bytes;
        waiting.deadline = self.deadline(now, waiting.request.timeout, ahead);
        self.deadlines
            .extend(waiting.deadline.map(|at| (at, waiting.id)));
        self.queue.push(waiting);
    }

    /// Removes the deadline of a request.
    pub(super) fn stop_clock(&mut self, id: RequestId, deadline: Option<Instant>) {
        if let Some(at) = deadline {
            self.deadlines.remove(&(at, id));
        }
    }

    /// Extends the deadline of a request that waits behind another one, which has its own deadline.
    fn wait_for_turns(&mut self, now: Now) {
        let early: Vec<_> = {
            let is_pending = pending_requests(&self.flights, &self.exposing, &self.retries);
            let due = self.deadlines.range(..=(now.instant, RequestId(u64::MAX)));
            let due = due.map(|(_, id)| *id);
            due.filter(|id| self.queue.is_behind(*id, &is_pending))
                .collect()
        };
        for id in early {
            let waiting = self.queue.remove(id).expect("it is in the queue");
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
                // An attacker who withholds the proof must not succeed by a timeout.
                let missing = Violation::NegotiateTampered("the server did not confirm it in time");
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

    /// Fails a request that timed out. Its late response is ignored.
    fn give_up(&mut self, id: RequestId, effects: &mut Effects) {
        if self.give_up_waiting(id, &Failure::TimedOut, effects) {
            return;
        }
        let mut flight = self
            .land(id)
            .expect("a request with a deadline waits or is in flight");
        // If the server still accesses the memory, the connection breaks. That is better than a
        // caller that waits without a limit.
        Self::withdraw(id, flight.memory.take(), effects);
        for (index, message) in flight.ids.iter().enumerate() {
            self.abandon(*message, &flight, index);
            self.send_cancel(*message, effects);
        }
        let results = flight.results.into_iter();
        let results = results.map(|result| result.unwrap_or(Err(Failure::TimedOut)));
        effects.push(Effect::Answer(id, results.collect()));
    }

    /// Fails a request if it was not sent. Returns whether it did.
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
            encrypt: flight.request.encrypt,
        };
    }

    /// Removes a request from those in flight.
    pub(super) fn land(&mut self, id: RequestId) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        self.stop_clock(id, flight.deadline);
        self.flying -= flight.bytes;
        Some(flight)
    }

    /// Cancels the request `id`; an unknown or completed one is ignored. If the client has not sent
    /// it, this appends [`Effect::Answer`] with [`Failure::Cancelled`]. Otherwise it appends a send
    /// of CANCEL; the server then answers the request, with success if the CANCEL was late.
    /// \[MS-SMB2\] 3.2.4.24
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
            // The driver has its answer already.
            return;
        };
        flight.is_cancelled = true;
        for message in flight.ids.clone() {
            self.send_cancel(message, effects);
        }
    }
}

/// Whether a step closes the file that the preceding CREATE of the compound opened.
fn undoes(step: &Step) -> bool {
    let file = FileRef::Previous;
    matches!(step, Step::Close { file: closed, .. } if *closed == file)
}
