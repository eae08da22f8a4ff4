//! Caching by clients: oplocks, leases, and the data that clients cache under them.
//!
//! The rules follow the order of the ticks at which clients send and receive, and at which the
//! server posts a break notice, which precedes the notification on the network.
//!
//! - *Certain rights.* A right is certain from the response that grants it. It ends when the client
//!   sends an acknowledgment without it or closes the last open of the holder; when the server
//!   posts a break that needs no acknowledgment; or 30 of the server's 35 seconds after the server
//!   posted a break that needs one.
//! - *Exclusivity.* While WRITE_CACHING of one holder of a file is certain, no other holder of the
//!   file has a certain right.
//! - *Coherence.* A read from a cache may return what a READ could return that starts and ends at
//!   that tick. So it sees every write that another client had completed before. One exception: a
//!   break of READ_CACHING is posted and has not reached the client. Then the read may also return
//!   older data, but it still sees every write that had completed before the first such notice. A
//!   delayed write is complete at its tick, before the server has it, unless the client loses it.
//! - *Handles.* When a rename or a deletion succeeds, no other lease has had HANDLE_CACHING on the
//!   file since before the request.
//! - *Epochs.* On one connection, the epochs of a lease of version 2 never go back. One exception:
//!   after a break without acknowledgment, the client may get new rights before the notification.
//!   Where the epoch of a response is more than one step ahead, the client missed a break: its
//!   cached data are invalid. Where a notification has the epoch after the known one, it breaks
//!   exactly the known rights. A notification with the known epoch is the next step of a break if
//!   it breaks exactly these rights, and a repetition otherwise.
//! - *Delivery.* A posted break reaches the client within a time limit, while its holder has opens.

mod holder;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use proto::notice::CachingBreak;
use proto::time::Instant;
use wire::create_context::LeaseState;

use crate::check::contents::Span;
use crate::check::opens;
use crate::check::{Check, ensure};
pub(crate) use holder::{Breaking, Delayed, HANDLE, Holder, NONE, Name, READ, WRITE};

/// Time limit from the notice of a break to its arrival at the client.
const DELIVERY: Duration = Duration::from_secs(20);
/// Time after which a right is no longer certain, see [`holder`].
const CERTAIN: Duration = Duration::from_secs(30);

/// A break of which the server has posted a notice, and that has not reached the client.
#[derive(Clone, Copy, Debug)]
struct Posted {
    tick: u64,
    at: Instant,
    to: LeaseState,
    needs_ack: bool,
    epoch: u16,
}

/// The rights in the response to a CREATE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) name: Name,
    /// Number of the file.
    pub(crate) key: u64,
    pub(crate) rights: LeaseState,
    /// 0 in version 1.
    pub(crate) epoch: u16,
    /// Whether a break is in progress, of which the notification follows.
    pub(crate) is_breaking: bool,
}

/// A notification of a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notified {
    pub(crate) name: Name,
    /// `None` for an oplock: the notification does not contain it.
    pub(crate) from: Option<LeaseState>,
    pub(crate) to: LeaseState,
    /// 0 in version 1.
    pub(crate) epoch: u16,
    pub(crate) needs_ack: bool,
}

/// The place and time at which a client receives a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The connection.
    pub(crate) link: u64,
    pub(crate) tick: u64,
    pub(crate) now: Instant,
}

/// The holders of all clients.
#[derive(Debug, Default)]
pub(crate) struct Caching {
    holders: BTreeMap<u64, Holder>,
    posted: BTreeMap<Name, Vec<Posted>>,
    next: u64,
}

impl Caching {
    /// Adds a holder, and returns its number.
    pub(crate) fn add(&mut self, holder: Holder) -> u64 {
        self.next += 1;
        self.holders.insert(self.next, holder);
        self.next
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Holder> {
        self.holders.get(&number)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Holder> {
        self.holders.get_mut(&number)
    }

    /// Returns all holders of a machine.
    pub(crate) fn of_machine(&self, machine: usize) -> impl Iterator<Item = (u64, &Holder)> {
        let holders = self.holders.iter();
        let own = holders.filter(move |(_, holder)| holder.machine == machine);
        own.map(|(number, holder)| (*number, holder))
    }

    /// Returns the lease that a client uses for a path.
    pub(crate) fn lease_for(&self, machine: usize, client: usize, path: &str) -> Option<u64> {
        let mut own = self.of_machine(machine);
        let found = own.find(|(_, holder)| {
            let is_usable = holder.owner.is_none_or(|owner| owner == client);
            holder.is_lease() && is_usable && holder.path == path && !holder.members.is_empty()
        });
        found.map(|(number, _)| number)
    }

    /// Returns whether the holder of an open has data that the server does not have.
    pub(crate) fn is_dirty(&self, number: Option<u64>) -> bool {
        let holder = number.and_then(|number| self.holders.get(&number));
        holder.is_some_and(Holder::is_dirty)
    }

    /// An open of a holder ends, or may end. Returns the number of its file and the delayed writes
    /// that are lost with it.
    ///
    /// A holder ends with the last open that certainly exists. If a CREATE is in flight then, the
    /// server may have a new lease with the same key: with another epoch, and without the breaks of
    /// the previous one. The same is true of an open of which the client never received the
    /// response: the server may have granted a lease for it, broken it and closed the open.
    pub(crate) fn leave(&mut self, open: opens::Holder) -> (Option<u64>, Vec<Delayed>) {
        self.end(open, true)
    }

    /// A CREATE has failed, or has not got the requested rights: no lease began with it, unless a
    /// break of one shows the contrary.
    pub(crate) fn refused(&mut self, open: opens::Holder) -> (Option<u64>, Vec<Delayed>) {
        self.end(open, false)
    }

    fn end(&mut self, open: opens::Holder, has_existed: bool) -> (Option<u64>, Vec<Delayed>) {
        let mut holders = self.holders.iter_mut();
        let found = holders.find(|(_, holder)| holder.members.contains_key(&open));
        let Some((number, holder)) = found else {
            return (None, Vec::new());
        };
        holder.members.remove(&open);
        let has_open = holder.members.values().any(|is_open| *is_open);
        let is_posted = |name| self.posted.contains_key(&name);
        let was_broken = holder.early.is_some() || holder.name.is_some_and(is_posted);
        let has_begun = holder.is_granted || has_existed || was_broken;
        let is_over = holder.members.is_empty() || (has_begun && !has_open);
        let delayed = std::mem::take(&mut holder.delayed).into_iter();
        let (lost, left): (Vec<_>, Vec<_>) = delayed.partition(|write| is_over || write.by == open);
        holder.delayed = left.into();
        let (number, key, name) = (*number, holder.key, holder.name);
        if is_over {
            self.holders.remove(&number);
            if let Some(name) = name {
                self.posted.remove(&name);
            }
        }
        (key, lost)
    }

    /// The server posts the notice of a break.
    pub(crate) fn post(&mut self, notice: &CachingBreak, tick: u64, now: Instant) {
        let (name, needs_ack, epoch) = match notice.lease {
            Some(lease) => {
                let name = Name::Lease(lease.client, lease.key);
                (name, lease.needs_ack, lease.epoch)
            }
            None => {
                let name = Name::Oplock(notice.session, notice.file_id);
                (name, notice.from != READ, 0)
            }
        };
        let posted = Posted {
            tick,
            at: now,
            to: notice.to,
            needs_ack,
            epoch,
        };
        self.posted.entry(name).or_default().push(posted);
    }

    /// The client receives the response that grants rights to a holder.
    /// Returns the notification that the client must act on now, because it arrived before.
    pub(crate) fn granted(
        &mut self,
        number: u64,
        grant: &Grant,
        arrival: Arrival,
    ) -> Check<Option<Notified>> {
        let Some(holder) = self.holders.get_mut(&number) else {
            return Ok(None);
        };
        holder.name = Some(grant.name);
        let key = *holder.key.get_or_insert(grant.key);
        ensure(key == grant.key, || {
            format!("a lease on {key:#x} is on {:#x} too: {grant:x?}", grant.key)
        })?;
        holder.arrives(grant.epoch, true, arrival)?;
        let is_first = !std::mem::replace(&mut holder.is_granted, true);
        let is_newer = !holder.is_v2 || diff(grant.epoch, holder.epoch) > 0;
        // The notification of a break in progress follows, or has come already.
        if is_first || (is_newer && !grant.is_breaking) {
            if holder.is_v2 && diff(grant.epoch, holder.epoch) > 1 {
                holder.note_reads(false, arrival.tick);
            }
            holder.receive(grant.rights, arrival.tick);
            let known = u16::from(grant.is_breaking);
            holder.epoch = grant.epoch.wrapping_sub(known);
        }
        let early = holder.early.take();
        let must_act = early.is_some_and(|early| holder.is_broken(&early, arrival));
        self.check_exclusivity(number, arrival.now)?;
        Ok(early.filter(|_| must_act))
    }

    /// While one holder of the file may write, no other caches anything.
    fn check_exclusivity(&self, number: u64, now: Instant) -> Check {
        let one = &self.holders[&number];
        let rights = self.certain(one, now);
        let others = self.holders.iter();
        for (other, its) in others.filter(|(other, its)| **other != number && its.key == one.key) {
            let its_rights = self.certain(its, now);
            let has_writer = rights.contains(WRITE) || its_rights.contains(WRITE);
            let is_exclusive = rights.is_empty() || its_rights.is_empty();
            ensure(!has_writer || is_exclusive, || {
                format!(
                    "holders {number} with {rights:?} and {other} with {its_rights:?} of one file: \
                     {one:?}, {its:?}, posted {:?}",
                    self.posted
                )
            })?;
        }
        Ok(())
    }

    /// Returns whether the right of a holder to delay writes is certain.
    pub(crate) fn may_write(&self, number: u64, now: Instant) -> bool {
        let holder = self.holders.get(&number);
        holder.is_some_and(|holder| self.certain(holder, now).contains(WRITE))
    }

    fn certain(&self, holder: &Holder, now: Instant) -> LeaseState {
        let posted = self.posted_to(holder).iter();
        posted.fold(holder.certain(now), |rights, posted| {
            match posted.needs_ack {
                true if now < posted.at.after(CERTAIN) => rights,
                true => NONE,
                false => rights & posted.to,
            }
        })
    }

    fn posted_to(&self, holder: &Holder) -> &[Posted] {
        let posted = holder.name.and_then(|name| self.posted.get(&name));
        posted.map_or(&[], Vec::as_slice)
    }

    /// The client receives the notification of a break. Returns the holder, if the client must act.
    pub(crate) fn notified(&mut self, notified: &Notified, arrival: Arrival) -> Check<Option<u64>> {
        let Notified {
            name, from, epoch, ..
        } = *notified;
        self.arrived(notified);
        let mut holders = self.holders.iter_mut();
        let found = holders.find(|(_, holder)| holder.name == Some(name));
        // The client has closed its opens meanwhile.
        let Some((number, holder)) = found else {
            return Ok(None);
        };
        holder.arrives(epoch, notified.needs_ack, arrival)?;
        if !holder.is_granted {
            ensure(holder.is_v2, || {
                format!("{notified:?} arrived before the rights of {holder:?}")
            })?;
            holder.early = Some(*notified);
            return Ok(None);
        }
        let ahead = diff(epoch, holder.epoch);
        let is_settled = holder.breaking.is_none() && holder.acknowledging == 0;
        let is_next = holder.is_v2 && ahead == 1 && is_settled;
        ensure(!is_next || from == Some(holder.rights), || {
            format!("{notified:?} does not break the rights of {holder:?}")
        })?;
        Ok(holder.is_broken(notified, arrival).then_some(*number))
    }

    /// Removes the notice of a notification that has arrived.
    fn arrived(&mut self, notified: &Notified) {
        let Some(posted) = self.posted.get_mut(&notified.name) else {
            return;
        };
        let is_it = |posted: &Posted| posted.to == notified.to && posted.epoch == notified.epoch;
        match posted.iter().position(is_it) {
            // A repeated notification has the same epoch.
            Some(_) if notified.epoch != 0 => posted.retain(|posted| !is_it(posted)),
            Some(index) => _ = posted.remove(index),
            None => {}
        }
    }

    /// Returns the rights of the holder with this name; `None` if the client has closed its opens.
    pub(crate) fn rights_of(&self, name: Name) -> Option<LeaseState> {
        let mut holders = self.holders.values();
        let holder = holders.find(|holder| holder.name == Some(name))?;
        Some(holder.rights)
    }

    /// The client no longer counts on the rights of a holder: it did not acknowledge a break in
    /// time. Returns the delayed writes, which are lost.
    pub(crate) fn give_up(&mut self, number: u64, tick: u64) -> (Option<u64>, Vec<Delayed>) {
        let Some(holder) = self.holders.get_mut(&number) else {
            return (None, Vec::new());
        };
        holder.breaking = None;
        holder.rights = NONE;
        holder.note_reads(false, tick);
        (holder.key, std::mem::take(&mut holder.delayed).into())
    }

    /// The client sends an acknowledgment that keeps these rights.
    pub(crate) fn acknowledges(&mut self, number: u64, rights: LeaseState, tick: u64) {
        if let Some(holder) = self.holders.get_mut(&number) {
            holder.breaking = None;
            holder.acknowledging += 1;
            holder.receive(rights, tick);
        }
    }

    /// A rename or a deletion succeeded: no other lease caches the handle of the file.
    pub(crate) fn moved(&self, own: Option<u64>, key: u64, span: Span, now: Instant) -> Check {
        let others = self.holders.iter();
        let mut others = others.filter(|(number, holder)| {
            holder.is_lease() && holder.key == Some(key) && Some(**number) != own
        });
        let caching = others.find(|(_, holder)| {
            holder.since < span.start && self.certain(holder, now).contains(HANDLE)
        });
        ensure(caching.is_none(), || {
            format!("the name of {key:#x} changed at {span:?} in spite of {caching:?}")
        })
    }

    /// The start of the time in which a read from the cache may miss the writes of other clients:
    /// the tick of the first break that is posted and takes READ_CACHING away.
    pub(crate) fn stale_since(&self, number: u64) -> Option<u64> {
        let posted = self.posted_to(self.holders.get(&number)?).iter();
        let ends_reads = posted.filter(|posted| !posted.to.contains(READ));
        ends_reads.map(|posted| posted.tick).min()
    }

    /// Checks that every break has reached its client in time.
    pub(crate) fn check_delivery(&self, now: Instant) -> Check {
        for (number, holder) in self.holders.iter().filter(|(_, it)| it.is_granted) {
            let mut posted = self.posted_to(holder).iter();
            let late = posted.find(|posted| now > posted.at.after(DELIVERY));
            ensure(late.is_none(), || {
                format!("holder {number} never received {late:?}: {holder:?}")
            })?;
        }
        Ok(())
    }
}

impl Holder {
    /// A notification takes rights away, unless it is older than the known rights. Returns whether
    /// the client must act.
    fn is_broken(&mut self, notified: &Notified, arrival: Arrival) -> bool {
        let Notified {
            from,
            to,
            epoch,
            needs_ack,
            ..
        } = *notified;
        // The steps of one break have one epoch (smbtorture smb2.lease.v2_breaking3).
        let is_next_step = epoch == self.epoch && from == Some(self.rights);
        let is_newer = diff(epoch, self.epoch) > 0 || (is_next_step && self.breaking.is_none());
        if self.is_v2 && !is_newer {
            return false;
        }
        self.epoch = epoch;
        let may_read = to.contains(READ) || (needs_ack && self.rights.contains(WRITE));
        if !needs_ack {
            self.rights = self.rights & to;
        }
        if !may_read {
            self.note_reads(false, arrival.tick);
        }
        needs_ack
    }

    /// A message with an epoch arrives; `is_ordered` unless it may be late.
    fn arrives(&mut self, epoch: u16, is_ordered: bool, arrival: Arrival) -> Check {
        let last = self.epochs.get(&arrival.link).copied();
        let is_late = last.is_some_and(|last| diff(epoch, last) < 0);
        if !self.is_v2 || (is_late && !is_ordered) {
            return Ok(());
        }
        self.epochs.insert(arrival.link, epoch);
        ensure(last.is_none_or(|last| diff(epoch, last) >= 0), || {
            format!("epoch {epoch} arrived after {last:?}: {self:?}")
        })
    }
}

/// Returns how far an epoch is ahead of another.
fn diff(epoch: u16, other: u16) -> i16 {
    epoch.wrapping_sub(other) as i16
}
