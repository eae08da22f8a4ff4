//! Breaks of caching rights: notifications, and acknowledgments at once, late, wrongly, twice, on
//! another connection, or never.

use std::time::Duration;

use wire::access::OplockLevel;
use wire::create_context::LeaseState;
use wire::oplock_break::{
    LeaseBreak, LeaseBreakFlags, LeaseBreakNotification, Notification, OplockBreak, Request,
};
use wire::{Command, Header, SessionId, Status};

use super::cache::{lose, rights_of};
use super::call::{Call, Expected};
use super::{Client, Phase, Shared};
use crate::check::caching::{Arrival, Breaking, HANDLE, NONE, Name, Notified, READ, WRITE};
use crate::check::{Check, ensure};
use crate::network::delay;

/// Maximum delays of a late acknowledgment. The server waits 35 seconds.
const DELAYS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];
/// Time from a notification after which an acknowledgment may be too late.
const LATE: Duration = Duration::from_secs(30);
/// Time from a notification after which the server has taken the rights away.
const OVER: Duration = Duration::from_secs(36);
/// Time after which another client acknowledges in place of the chosen one.
const STEP_IN: Duration = Duration::from_secs(1);

impl Client {
    /// Processes the notification of a break.
    pub(super) fn broken(
        &mut self,
        header: &Header,
        message: &[u8],
        tick: u64,
        shared: &mut Shared<'_>,
    ) -> Check {
        let is_good = header.command == Command::OPLOCK_BREAK
            && header.status == Status::SUCCESS
            && header.session_id == SessionId(0)
            && header.credits == 0;
        ensure(is_good, || format!("a wrong notification: {header:?}"))?;
        let notification = Notification::decode(message);
        let notification = notification.map_err(|error| format!("OPLOCK_BREAK: {error}"))?;
        shared.report.breaks += 1;
        let notified = self.notified(&notification, shared);
        if shared.caching.rights_of(notified.name).is_none() {
            self.acknowledge_unknown(&notified, shared);
        }
        let arrival = Arrival {
            link: self.link.unwrap_or(0),
            tick,
            now: shared.now.instant,
        };
        if let Some(number) = shared.caching.notified(&notified, arrival)? {
            self.plan_acknowledgment(number, notified.to, shared);
            self.process_break(number, shared);
        }
        Ok(())
    }

    fn notified(&self, notification: &Notification, shared: &Shared<'_>) -> Notified {
        match notification {
            Notification::Oplock(oplock) => {
                let name = Name::Oplock(self.session, oplock.file_id);
                let rights = shared.caching.rights_of(name).unwrap_or(NONE);
                Notified {
                    name,
                    from: None,
                    to: rights_of(oplock.oplock_level),
                    epoch: 0,
                    needs_ack: rights.contains(WRITE),
                }
            }
            Notification::Lease(LeaseBreakNotification {
                new_epoch,
                flags,
                lease_key,
                current_lease_state,
                new_lease_state,
            }) => Notified {
                name: Name::Lease(self.guid(), *lease_key),
                from: Some(*current_lease_state),
                to: *new_lease_state,
                epoch: *new_epoch,
                needs_ack: flags.contains(LeaseBreakFlags::ACK_REQUIRED),
            },
        }
    }

    /// The client has closed its opens, or does not know yet that an open exists.
    fn acknowledge_unknown(&mut self, notified: &Notified, shared: &mut Shared<'_>) {
        if notified.needs_ack && self.phase == Phase::Running && self.can_send(1) {
            let request = acknowledgment(notified.name, notified.to);
            let call = Call::acknowledge(request, 0, Expected::Anything);
            self.submit(vec![call], shared);
        }
    }

    pub(super) fn plan_acknowledgment(
        &mut self,
        number: u64,
        to: LeaseState,
        shared: &mut Shared<'_>,
    ) {
        let now = shared.now.instant;
        let Some(holder) = shared.caching.get_mut(number) else {
            return;
        };
        let mut breaking = Breaking {
            to,
            since: now,
            due: Some(now),
            by: self.id,
            is_greedy: false,
            is_doubled: false,
        };
        if self.choices.per_mille(shared.faults.bad_acknowledgments) {
            match self.choices.below(7) {
                0..2 => {
                    let limit = self.choices.pick(&DELAYS);
                    breaking.due = Some(now.after(delay(limit, &mut self.choices)));
                }
                2 => breaking.due = None,
                3 => breaking.is_greedy = true,
                4 => breaking.is_doubled = true,
                _ if holder.owner.is_none() => {
                    breaking.by = self.peers.start + self.choices.index(self.peers.len());
                }
                _ => {}
            }
        }
        holder.breaking = Some(breaking);
    }

    /// Continues with all breaks of the computer.
    pub(super) fn process_breaks(&mut self, shared: &mut Shared<'_>) {
        let breaking = shared.caching.of_machine(self.machine);
        let breaking = breaking.filter(|(_, holder)| holder.breaking.is_some());
        let breaking: Vec<u64> = breaking.map(|(number, _)| number).collect();
        for number in breaking {
            self.process_break(number, shared);
        }
    }

    /// Writes delayed data, closes opens without use, and acknowledges a break.
    fn process_break(&mut self, number: u64, shared: &mut Shared<'_>) {
        let now = shared.now.instant;
        let holder = shared.caching.get(number);
        let Some((holder, breaking)) = holder.and_then(|it| Some((it, it.breaking?))) else {
            return;
        };
        if now >= breaking.since.after(OVER) {
            shared.report.unacknowledged += 1;
            let tick = shared.tick();
            let (key, lost) = shared.caching.give_up(number, tick);
            return lose(key, lost, shared);
        }
        let is_due = breaking.due.is_some_and(|due| now >= due);
        if !is_due || self.phase != Phase::Running || !self.can_send(3) {
            return;
        }
        if holder.is_dirty() {
            let is_own = (holder.delayed.front()).is_some_and(|write| write.by.0 == self.id);
            if is_own && holder.flushing.is_none() {
                self.flush(number, shared);
            }
            return;
        }
        let is_permitted = holder.owner.is_none_or(|owner| owner == self.id);
        let is_chosen = breaking.by == self.id || now >= breaking.since.after(STEP_IN);
        let is_mine = is_permitted && is_chosen;
        if !breaking.to.contains(HANDLE) && self.close_idle(number, shared) {
            return;
        }
        if is_mine && shared.caching.get(number).is_some() {
            self.acknowledge(number, breaking, shared);
        }
    }

    /// Closes an open of the holder without use. Returns whether one exists.
    fn close_idle(&mut self, number: u64, shared: &mut Shared<'_>) -> bool {
        let is_idle = |slot: &super::Slot| slot.is_idle && slot.holder == Some(number);
        let mut slots = self.slots.iter_mut();
        let Some((slot, found)) = slots.find(|(_, slot)| is_idle(slot)) else {
            return false;
        };
        found.is_idle = false;
        let (slot, file_id) = (*slot, found.file_id);
        self.is_closing(slot, shared);
        self.submit(vec![Call::close(slot, file_id, false)], shared);
        true
    }

    fn acknowledge(&mut self, number: u64, breaking: Breaking, shared: &mut Shared<'_>) {
        let holder = shared.caching.get(number).expect("it has opens");
        let (Some(name), is_opening) = (holder.name, holder.is_opening()) else {
            return;
        };
        let is_late = shared.now.instant >= breaking.since.after(LATE);
        let tick = shared.tick();
        let is_oplock = matches!(name, Name::Oplock(..));
        if breaking.is_greedy {
            let request = acknowledgment(name, READ | WRITE | HANDLE);
            let call = Call::acknowledge(request, number, Expected::Refusal);
            if is_oplock {
                // The server takes all rights away.
                shared.caching.acknowledges(number, NONE, tick);
                return self.submit(vec![call], shared);
            }
            if let Some(holder) = shared.caching.get_mut(number) {
                holder.acknowledging += 1;
            }
            self.submit(vec![call], shared);
        }
        let kept = match self.choices.per_mille(100) {
            true => breaking.to & READ,
            false => breaking.to,
        };
        let expected = match is_late {
            true => Expected::Anything,
            false => Expected::Success,
        };
        shared.caching.acknowledges(number, kept, tick);
        let call = |expected| Call::acknowledge(acknowledgment(name, kept), number, expected);
        self.submit(vec![call(expected)], shared);
        if breaking.is_doubled && !is_opening {
            if let Some(holder) = shared.caching.get_mut(number) {
                holder.acknowledging += 1;
            }
            self.submit(vec![call(Expected::Refusal)], shared);
        }
    }

    /// Processes the response to an acknowledgment.
    pub(super) fn has_acknowledged(
        &self,
        number: u64,
        expected: Expected,
        header: &Header,
        shared: &mut Shared<'_>,
    ) -> Check {
        self.end_acknowledgment(number, shared);
        let is_success = header.status == Status::SUCCESS;
        shared.report.acknowledgments += u64::from(is_success);
        let is_right = match expected {
            Expected::Success => is_success || shared.caching.get(number).is_none(),
            Expected::Refusal => !is_success,
            Expected::Anything => true,
        };
        ensure(is_right, || {
            let holder = shared.caching.get(number);
            format!("{expected:?} was expected: {header:?}, {holder:?}")
        })
    }

    /// An acknowledgment is no longer in flight.
    pub(super) fn end_acknowledgment(&self, number: u64, shared: &mut Shared<'_>) {
        if let Some(holder) = shared.caching.get_mut(number) {
            holder.acknowledging = holder.acknowledging.saturating_sub(1);
        }
    }
}

/// Returns the acknowledgment of a break that keeps these rights.
fn acknowledgment(name: Name, kept: LeaseState) -> Request {
    match name {
        Name::Lease(_, lease_key) => Request::Lease(LeaseBreak {
            lease_key,
            lease_state: kept,
        }),
        Name::Oplock(_, file_id) => Request::Oplock(OplockBreak {
            oplock_level: level_of(kept),
            file_id,
        }),
    }
}

fn level_of(rights: LeaseState) -> OplockLevel {
    match rights {
        _ if rights.contains(READ | WRITE | HANDLE) => OplockLevel::BATCH,
        _ if rights.contains(READ | WRITE) => OplockLevel::EXCLUSIVE,
        _ if rights.contains(READ) => OplockLevel::II,
        _ => OplockLevel::NONE,
    }
}
