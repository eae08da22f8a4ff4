//! The cache of a client: it requests oplocks and leases, reads from its cache, delays writes and
//! CLOSEs, and writes delayed data to the server.

use wire::access::{AccessMask, OplockLevel};
use wire::create_context::{Lease, LeaseFlags, LeaseState, LeaseV2, find, name};
use wire::dialect::Dialect;
use wire::{Guid, Header, Status};

use super::call::{Asked, Call, Intent, Opening, overwrites};
use super::ledger::Pending;
use super::{Client, Shared, State};
use crate::check::caching::{Arrival, Delayed, Grant, HANDLE, Holder, NONE, Name, READ, WRITE};
use crate::check::contents::{Filling, Span};
use crate::check::{Check, ensure, opens};

/// Maximum number of cells of one read from the cache.
const FEW: usize = 6;

/// Sets of rights that clients request for a lease.
const WANTED: [LeaseState; 5] = [
    READ,
    LeaseState(READ.0 | HANDLE.0),
    LeaseState(READ.0 | WRITE.0),
    LeaseState(READ.0 | WRITE.0 | HANDLE.0),
    LeaseState(READ.0 | WRITE.0 | HANDLE.0),
];

const LEVELS: [OplockLevel; 3] = [OplockLevel::II, OplockLevel::EXCLUSIVE, OplockLevel::BATCH];

/// Returns the rights of an oplock level. \[MS-FSA\] 2.1.4.12
pub(super) fn rights_of(level: OplockLevel) -> LeaseState {
    match level {
        OplockLevel::II => READ,
        OplockLevel::EXCLUSIVE => READ | WRITE,
        OplockLevel::BATCH => READ | WRITE | HANDLE,
        _ => NONE,
    }
}

/// An open ends. Writes that it delayed may never reach the server.
pub(super) fn leave(open: opens::Holder, shared: &mut Shared<'_>) {
    let (key, lost) = shared.caching.leave(open);
    lose(key, lost, shared);
}

/// A CREATE got no caching rights.
pub(super) fn refused(open: opens::Holder, shared: &mut Shared<'_>) {
    let (key, lost) = shared.caching.refused(open);
    lose(key, lost, shared);
}

/// The client loses delayed writes.
pub(super) fn lose(key: Option<u64>, lost: Vec<Delayed>, shared: &mut Shared<'_>) {
    for write in lost {
        let end = Some(shared.tick());
        let span = Span {
            start: write.at,
            end,
        };
        let what = (write.cells, Filling::Stamp(write.stamp));
        shared.contents.wrote(key, what, span, false);
    }
}

impl Client {
    /// Decides which caching rights the next CREATE requests, and for which holder.
    pub(super) fn ask_to_cache(
        &mut self,
        path: &str,
        slot: u64,
        shared: &mut Shared<'_>,
    ) -> (Option<u64>, Asked) {
        let dialect = self.agreed.map(|agreed| agreed.dialect);
        let is_audit = self.audit.is_some();
        if is_audit || !self.choices.per_mille(shared.scenario.leases) {
            return (None, Asked::Nothing);
        }
        let first = match self.peers.len() {
            1 => Dialect::SMB_2_1,
            _ => Dialect::SMB_3_0,
        };
        let has_leases = dialect.is_some_and(|dialect| dialect >= first);
        let (number, asked) = match !has_leases || self.choices.per_mille(200) {
            true => {
                let holder = Holder::new(None, self.machine, Some(self.id));
                let level = self.choices.pick(&LEVELS);
                (shared.caching.add(holder), Asked::Oplock(level))
            }
            false => self.ask_for_lease(path, dialect >= Some(Dialect::SMB_3_0), shared),
        };
        let holder = shared.caching.get_mut(number).expect("it is new or found");
        holder.members.insert((self.id, slot), false);
        (Some(number), asked)
    }

    /// Usually the lease that the computer has for the path already.
    fn ask_for_lease(
        &mut self,
        path: &str,
        may_be_v2: bool,
        shared: &mut Shared<'_>,
    ) -> (u64, Asked) {
        let found = shared.caching.lease_for(self.machine, self.id, path);
        let found = found.filter(|number| !shared.caching.is_dirty(Some(*number)));
        let number = match found {
            Some(number) if !self.choices.per_mille(150) => number,
            _ => {
                // Without epochs, a notification may not arrive on another connection.
                let is_v1 = self.peers.len() == 1 && self.choices.per_mille(300);
                let is_v2 = may_be_v2 && !is_v1;
                let bytes = self.choices.bytes();
                let key = Guid(*bytes.first_chunk().expect("32 bytes"));
                let name = Name::Lease(self.guid(), key);
                let owner = (!is_v2).then_some(self.id);
                let mut holder = Holder::new(Some(name), self.machine, owner);
                holder.path = path.into();
                holder.is_v2 = is_v2;
                shared.caching.add(holder)
            }
        };
        let holder = shared.caching.get(number).expect("it is new or found");
        let Some(Name::Lease(_, lease_key)) = holder.name else {
            unreachable!("a lease has a key");
        };
        let lease = Lease {
            lease_key,
            lease_state: self.choices.pick(&WANTED),
            lease_flags: LeaseFlags::NONE,
            v2: holder.is_v2.then(|| LeaseV2 {
                parent_lease_key: Guid::default(),
                epoch: holder.epoch(),
            }),
        };
        (number, Asked::Lease(lease))
    }

    /// A CREATE succeeded: processes the rights in its response.
    pub(super) fn may_cache(
        &mut self,
        opening: &Opening,
        key: u64,
        response: &wire::create::Response<'_>,
        span: Span,
        shared: &mut Shared<'_>,
    ) -> Check {
        let open = (self.id, opening.slot);
        let (rights, epoch, is_breaking, name) = match opening.asked {
            Asked::Nothing => (NONE, 0, false, None),
            Asked::Oplock(level) => {
                let (granted, name) = (response.oplock_level, response.file_id);
                ensure(rights_of(level).contains(rights_of(granted)), || {
                    format!("{granted:?} was granted instead of {level:?}")
                })?;
                let name = Name::Oplock(self.session, name);
                (rights_of(granted), 0, false, Some(name))
            }
            Asked::Lease(asked) => match find(&response.contexts, name::LEASE) {
                None => (NONE, 0, false, None),
                Some(data) => {
                    let lease = Lease::decode(data).map_err(|error| format!("RqLs: {error}"))?;
                    let is_same = lease.lease_key == asked.lease_key;
                    ensure(is_same && lease.v2.is_some() == asked.v2.is_some(), || {
                        format!("{lease:?} was granted instead of {asked:?}")
                    })?;
                    let is_breaking = lease.lease_flags.contains(LeaseFlags::BREAK_IN_PROGRESS);
                    let epoch = lease.v2.map_or(0, |v2| v2.epoch);
                    let name = Name::Lease(self.guid(), lease.lease_key);
                    (lease.lease_state, epoch, is_breaking, Some(name))
                }
            },
        };
        let state = self.slots.get(&opening.slot).map(|slot| slot.state);
        let (Some(number), Some(name), Some(State::Open)) = (opening.holder, name, state) else {
            refused(open, shared);
            return Ok(());
        };
        if let Some(holder) = shared.caching.get_mut(number) {
            holder.members.insert(open, true);
        }
        shared.report.grants += u64::from(!rights.is_empty());
        let grant = Grant {
            name,
            key,
            rights,
            epoch,
            is_breaking,
        };
        let arrival = Arrival {
            link: self.link.unwrap_or(0),
            tick: span.end.unwrap_or(0),
            now: shared.now.instant,
        };
        if let Some(early) = shared.caching.granted(number, &grant, arrival)? {
            self.plan_acknowledgment(number, early.to, shared);
        }
        Ok(())
    }

    /// Returns the holder of caching rights under which a request changes the data of a file.
    pub(super) fn changed_holder(&self, intent: &Intent) -> Option<u64> {
        match intent {
            Intent::Create(opening) if overwrites(opening.disposition) => opening.holder,
            Intent::Write { slot, .. } | Intent::Copy { slot, .. } => {
                self.slots.get(slot).and_then(|slot| slot.holder)
            }
            _ => None,
        }
    }

    /// A request has ended.
    pub(super) fn end_change(&self, pending: &Pending, shared: &mut Shared<'_>) {
        if let Some(number) = pending.changes {
            let tick = shared.tick();
            if let Some(holder) = shared.caching.get_mut(number) {
                holder.has_changed(tick);
            }
        }
    }

    /// Uses a cache, if the client has one. Returns whether it did.
    pub(super) fn use_cache(&mut self, shared: &mut Shared<'_>) -> bool {
        let open = self.slots.iter().filter(|(_, slot)| {
            let is_used = slot.state == State::Open && !slot.is_idle;
            is_used && (slot.holder).is_some_and(|number| shared.caching.get(number).is_some())
        });
        let open: Vec<(u64, u64)> = open
            .filter_map(|(slot, it)| Some((*slot, it.holder?)))
            .collect();
        if open.is_empty() {
            return false;
        }
        let (slot, number) = self.choices.pick(&open);
        if matches!(self.slots[&slot].path.as_str(), "d" | "e") && shared.scenario.listings {
            return self.scan(slot, number, shared);
        }
        match self.choices.below(8) {
            0..3 => self.delay_write(slot, number, shared),
            3..6 => self.read_cached(slot, number, shared),
            6 => self.delay_close(slot, number, shared),
            _ => self.flush_one(shared),
        }
    }

    fn delay_write(&mut self, slot: u64, number: u64, shared: &mut Shared<'_>) -> bool {
        let now = shared.now.instant;
        let access = self.slots[&slot].access;
        let holder = shared.caching.get(number).expect("it was found");
        if !access.contains(AccessMask::FILE_WRITE_DATA) || !holder.may_delay(now) {
            return false;
        }
        let start = self.choices.below(8) as u32;
        let write = Delayed {
            cells: start..start + 1 + self.choices.below(FEW as u64) as u32,
            stamp: self.next_stamp(),
            at: shared.tick(),
            by: (self.id, slot),
        };
        shared.report.delayed_writes += 1;
        let holder = shared.caching.get_mut(number).expect("it was found");
        holder.delay(write);
        true
    }

    fn read_cached(&mut self, slot: u64, number: u64, shared: &mut Shared<'_>) -> bool {
        let now = shared.now.instant;
        let may_read = (self.slots[&slot].access).contains(AccessMask::FILE_READ_DATA);
        let holder = shared.caching.get(number).expect("it was found");
        let (cells, key) = (holder.readable(now), holder.key);
        let Some(key) = key.filter(|_| may_read && !cells.is_empty()) else {
            return false;
        };
        let end = shared.tick();
        let span = Span {
            start: shared.caching.stale_since(number).unwrap_or(end),
            end: Some(end),
        };
        let first = self.choices.index(cells.len());
        for (cell, stamp) in cells.into_iter().skip(first).take(FEW) {
            shared.contents.read(key, cell, stamp, span);
            shared.report.cached_reads += 1;
        }
        true
    }

    /// Lists a directory: from the cache, where the client may use it, and sometimes again.
    fn scan(&mut self, slot: u64, number: u64, shared: &mut Shared<'_>) -> bool {
        let holder = shared.caching.get(number).expect("it was found");
        if let Some(listing) = holder.listing(shared.now.instant).cloned() {
            let path = holder.path.clone();
            let tick = shared.tick();
            let since = shared.caching.stale_since(number).unwrap_or(tick);
            shared.report.cached_listings += 1;
            shared.directories.list(&path, &listing, since);
            return true;
        }
        let file_id = self.slots[&slot].file_id;
        self.submit(vec![Call::scan(slot, file_id)], shared);
        true
    }

    /// Keeps an open for later instead of closing it.
    fn delay_close(&mut self, slot: u64, number: u64, shared: &mut Shared<'_>) -> bool {
        let holder = shared.caching.get(number).expect("it was found");
        let may_delay = holder.rights.contains(HANDLE) && holder.breaking.is_none();
        if let Some(slot) = self.slots.get_mut(&slot) {
            slot.is_idle = may_delay;
        }
        may_delay
    }

    /// Uses an open of which the client has delayed the CLOSE. Returns whether it did.
    pub(super) fn reuse_open(&mut self, shared: &mut Shared<'_>) -> bool {
        let mut slots = self.slots.values_mut();
        let Some(slot) = slots.find(|slot| slot.is_idle) else {
            return false;
        };
        if !self.choices.per_mille(300) {
            return false;
        }
        slot.is_idle = false;
        shared.report.reused_opens += 1;
        true
    }

    /// Writes delayed data of this client to the server. Returns whether there are some, in flight
    /// or not.
    pub(super) fn flush_one(&mut self, shared: &mut Shared<'_>) -> bool {
        let is_own = |write: &Delayed| write.by.0 == self.id;
        let mut holders = shared.caching.of_machine(self.machine);
        let dirty = holders.find(|(_, holder)| holder.delayed.front().is_some_and(is_own));
        let dirty = dirty.map(|(number, holder)| (number, holder.flushing.is_some()));
        drop(holders);
        let Some((number, is_flushing)) = dirty else {
            return false;
        };
        if !is_flushing {
            self.flush(number, shared);
        }
        true
    }

    /// Writes the first delayed data of a holder to the server.
    pub(super) fn flush(&mut self, number: u64, shared: &mut Shared<'_>) {
        let holder = shared.caching.get_mut(number).expect("it has data");
        let slot = holder.delayed.front().map(|write| write.by.1);
        let file_id = slot.and_then(|slot| Some(self.slots.get(&slot)?.file_id));
        let (Some(file_id), true) = (file_id, self.can_send(1)) else {
            return;
        };
        let Some(write) = holder.delayed.pop_front() else {
            return;
        };
        holder.flushing = Some(write.clone());
        let mut call = Call::write(write.by.1, file_id, write.cells.clone(), write.stamp);
        call.intent = Intent::Flush {
            holder: number,
            write,
        };
        self.submit(vec![call], shared);
    }

    /// Processes the response to a WRITE of delayed data. For the application, it was complete at
    /// the tick of the delayed write. If the server has taken WRITE_CACHING away meanwhile, other
    /// clients may have written before it.
    pub(super) fn has_flushed(
        &self,
        number: u64,
        write: &Delayed,
        header: &Header,
        end: u64,
        shared: &mut Shared<'_>,
    ) {
        let key = self.slots.get(&write.by.1).and_then(|slot| slot.key);
        let is_certain = header.status == Status::SUCCESS;
        let was_exclusive = shared.caching.may_write(number, shared.now.instant);
        let span = Span {
            start: write.at,
            end: Some(match is_certain && was_exclusive {
                true => write.at,
                false => end,
            }),
        };
        let what = (write.cells.clone(), Filling::Stamp(write.stamp));
        shared.contents.wrote(key, what, span, is_certain);
        if let Some(holder) = shared.caching.get_mut(number) {
            holder.flushed(write, is_certain, end);
        }
    }
}
