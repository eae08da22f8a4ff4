//! Checks of the contents of responses.

use wire::access::{AccessMask, CreateOptions};
use wire::create::CreateAction;
use wire::create_context::{OnDiskIdResponse, find, name};
use wire::fscc::{DirectoryEntries, FileInfoClass};
use wire::fsctl::ResumeKeyResponse;
use wire::{Command, Header, Status};

use super::call::{Call, Intent, Opening, overwrites};
use super::ledger::Pending;
use super::memory::FILL;
use super::{Client, Deletion, Shared, Slot, State, cache};
use crate::check::contents::{CELL, CELLS, Filling, Span, Stamp};
use crate::check::directories::Listing;
use crate::check::opens::Held;
use crate::check::{Check, ensure};

/// Failures that certainly changed nothing. After any other failure there may be a change.
pub(super) const REFUSALS: [Status; 14] = [
    Status::ACCESS_DENIED,
    Status::CANNOT_DELETE,
    Status::DELETE_PENDING,
    Status::DIRECTORY_NOT_EMPTY,
    Status::FILE_CLOSED,
    Status::FILE_IS_A_DIRECTORY,
    Status::FILE_LOCK_CONFLICT,
    Status::INVALID_PARAMETER,
    Status::NOT_A_DIRECTORY,
    Status::OBJECT_NAME_COLLISION,
    Status::OBJECT_NAME_INVALID,
    Status::OBJECT_NAME_NOT_FOUND,
    Status::OBJECT_PATH_NOT_FOUND,
    Status::SHARING_VIOLATION,
];

/// Failures of a READ of an open that the server does not have, or of a file that it has lost.
const LOST_OPEN: [Status; 4] = [
    Status::DELETE_PENDING,
    Status::FILE_CLOSED,
    Status::OBJECT_NAME_NOT_FOUND,
    Status::OBJECT_PATH_NOT_FOUND,
];

impl Client {
    /// Processes the final response to a request.
    pub(super) fn answer(
        &mut self,
        pending: Pending,
        header: &Header,
        message: &[u8],
        (is_encrypted, end): (bool, u64),
        shared: &mut Shared<'_>,
    ) -> Check {
        if let Intent::Login { .. } = pending.intent {
            return self.logged_in(&pending, header, message, is_encrypted, shared);
        }
        self.check_signature(&pending, header, message, is_encrypted)?;
        // [MS-SMB2] 3.3.5.22.2: no break of the lease is in progress.
        let has_no_break = header.command == Command::OPLOCK_BREAK;
        if !has_no_break || header.status != Status::UNSUCCESSFUL {
            check_status(header)?;
        }
        check_time(&pending, header, shared)?;
        self.end_change(&pending, shared);
        shared.report.answers += 1;
        let memory = shared.adapter.settle(&pending.memory);
        let is_remote = !pending.memory.is_empty();
        let span = Span {
            start: pending.start,
            end: Some(end),
        };
        match pending.intent {
            Intent::Negotiate => self.negotiated(message, shared),
            Intent::Login { .. } => unreachable!("`logged_in` processes logins"),
            Intent::Tree => self.entered(header, shared),
            Intent::ForbiddenTree => ensure(header.status != Status::SUCCESS, || {
                format!("a user without access connected to a share: {header:?}")
            }),
            Intent::LeaveTree => self.left_tree(header, shared),
            Intent::Logoff => self.logged_off(header, shared),
            Intent::Create(opening) => self.created(&opening, header, message, span, shared),
            Intent::Close { slot } => {
                self.has_closed(slot, header, span, shared);
                Ok(())
            }
            Intent::Read { slot, cells } => {
                let data = match (header.status, is_remote) {
                    (Status::SUCCESS, false) => read_data(message, &cells)?.to_vec(),
                    (Status::SUCCESS, true) => placed_data(message, memory, &cells)?,
                    _ => Vec::new(),
                };
                shared.report.remote += u64::from(is_remote && !data.is_empty());
                self.has_read(slot, cells, header, &data, span, shared)
            }
            Intent::Write { slot, cells, stamp } => {
                let key = self.slots.get(&slot).and_then(|slot| slot.key);
                let is_certain = header.status == Status::SUCCESS;
                shared.report.remote += u64::from(is_remote && is_certain);
                if is_certain && pending.command != Command::SET_INFO {
                    self.check_locks(slot, &cells, true, span, shared)?;
                }
                if !REFUSALS.contains(&header.status) {
                    let what = (cells, Filling::Stamp(stamp));
                    shared.contents.wrote(key, what, span, is_certain);
                }
                Ok(())
            }
            Intent::Resilient { slot } => {
                let slot = self.slots.get_mut(&slot);
                let is_resilient = header.status == Status::SUCCESS;
                slot.into_iter()
                    .for_each(|slot| slot.is_resilient = is_resilient);
                Ok(())
            }
            Intent::Reconnect { slot } => self.reconnected(slot, header, shared),
            Intent::Key { slot } => self.has_key(slot, header, message),
            Intent::Copy { slot, fillings } => {
                let key = self.slots.get(&slot).and_then(|slot| slot.key);
                let is_certain = header.status == Status::SUCCESS;
                shared.report.copies += u64::from(is_certain);
                // A failed copy may have copied some cells.
                for what in fillings {
                    if is_certain {
                        self.check_locks(slot, &what.0, true, span, shared)?;
                    }
                    shared.contents.wrote(key, what, span, is_certain);
                }
                Ok(())
            }
            Intent::Lock {
                slot,
                lock,
                may_wait,
            } => self.has_locked(slot, lock, may_wait, header, span, shared),
            Intent::Unlock { slot, place } => {
                self.has_unlocked(slot, place, header, span, shared);
                Ok(())
            }
            Intent::Flush { holder, write } => {
                self.has_flushed(holder, &write, header, end, shared);
                Ok(())
            }
            Intent::Acknowledge { holder, expected } => {
                self.has_acknowledged(holder, expected, header, shared)
            }
            ref intent @ (Intent::Rename { slot, .. } | Intent::Delete { slot, .. }) => {
                self.has_changed_names(intent, header, span, shared);
                let slot = self.slots.get(&slot);
                match slot.and_then(|slot| Some((slot.holder, slot.key?))) {
                    Some((own, key)) if header.status == Status::SUCCESS => {
                        (shared.caching).moved(own, key, span, shared.now.instant)
                    }
                    _ => Ok(()),
                }
            }
            Intent::Scan { slot } => self.has_scanned(slot, header, message, span, shared),
            Intent::List | Intent::Any => Ok(()),
            Intent::Impossible => {
                shared.report.refused += 1;
                ensure(header.status != Status::SUCCESS, || {
                    format!("the server accepted invalid memory: {header:?}")
                })
            }
            Intent::Refused(with) => ensure(with.contains(&header.status), || {
                format!("refused with another status than {with:?}: {header:?}")
            }),
        }
    }

    fn created(
        &mut self,
        opening: &Opening,
        header: &Header,
        message: &[u8],
        span: Span,
        shared: &mut Shared<'_>,
    ) -> Check {
        let blank = (0..CELLS, Filling::Stamp(Stamp::default()));
        let is_missing = header.status == Status::OBJECT_NAME_NOT_FOUND;
        if is_missing || header.status == Status::SUCCESS {
            (shared.directories).observe(&opening.path, !is_missing, span);
        }
        if header.status != Status::SUCCESS {
            self.has_not_created(opening, header, span, shared);
            self.slots.remove(&opening.slot);
            cache::refused((self.id, opening.slot), shared);
            if overwrites(opening.disposition) && !REFUSALS.contains(&header.status) {
                shared.contents.wrote(None, blank, span, false);
            }
            return check_audit(opening, header);
        }
        let response = wire::create::Response::decode(message);
        let response = response.map_err(|error| format!("CREATE: {error}"))?;
        let id = find(&response.contexts, name::ON_DISK_ID).ok_or("a CREATE without QFid")?;
        let id = OnDiskIdResponse::decode(id).map_err(|error| format!("QFid: {error}"))?;
        let key = id.disk_file_id;
        if response.create_action != CreateAction::OPENED {
            shared.contents.wrote(Some(key), blank, span, true);
        }
        self.has_created(opening, key, response.create_action, span, shared);
        shared.file_ids.push(response.file_id);
        self.open(opening, key, response.file_id, shared)?;
        self.may_cache(opening, key, &response, span, shared)
    }

    fn open(
        &mut self,
        opening: &Opening,
        key: u64,
        file_id: wire::FileId,
        shared: &mut Shared<'_>,
    ) -> Check {
        let Some(slot) = self.slots.get_mut(&opening.slot) else {
            return Ok(());
        };
        slot.file_id = file_id;
        slot.key = Some(key);
        if slot.state != State::Opening {
            return Ok(());
        }
        slot.state = State::Open;
        let held = Held {
            key,
            access: specific(opening.access),
            share: opening.share,
            is_posix: opening.is_posix,
        };
        let timeout = shared.scenario.resilient_timeout;
        if !timeout.is_zero() {
            let call = Call::resilient(opening.slot, file_id, timeout);
            self.submit_one(call, shared);
        }
        shared.opens.opened((self.id, opening.slot), held)
    }

    /// Processes the response to a reconnect. It succeeds unless the time of the open is up.
    fn reconnected(&mut self, number: u64, header: &Header, shared: &mut Shared<'_>) -> Check {
        let holder = (self.id, number);
        if header.status != Status::SUCCESS {
            let slot = self.slots.remove(&number);
            // Another client may have replaced the file just before the server had this open. The
            // server takes that for a deletion by a local program, unless the open is a POSIX one.
            let may_be_gone = slot.as_ref().is_some_and(|slot| !slot.is_posix);
            let may_be_gone = may_be_gone && shared.scenario.posix > 0;
            let is_not_found = header.status == Status::OBJECT_NAME_NOT_FOUND;
            let is_missing = is_not_found && !may_be_gone;
            let lost = shared.opens.lost(holder, is_missing);
            return lost.map_err(|what| format!("{what}: {slot:?}"));
        }
        let slot = self.slots.get_mut(&number);
        if let Some(slot) = slot.filter(|slot| slot.state == State::Opening) {
            slot.state = State::Open;
            shared.report.opens_reclaimed += 1;
            shared.report.posix_opens_reclaimed += u64::from(slot.is_posix);
            shared.locks.reconnected(holder);
            return shared.opens.reconnected(holder);
        }
        Ok(())
    }

    fn has_key(&mut self, slot: u64, header: &Header, message: &[u8]) -> Check {
        let slot = self.slots.get_mut(&slot);
        let (Some(slot), Status::SUCCESS) = (slot, header.status) else {
            return Ok(());
        };
        let answer = wire::ioctl::Response::decode(message);
        let answer = answer.map_err(|error| format!("IOCTL: {error}"))?;
        let answer = ResumeKeyResponse::decode(answer.output);
        let answer = answer.map_err(|error| format!("a resume key: {error}"))?;
        slot.resume_key = Some(answer.resume_key);
        Ok(())
    }

    fn has_read(
        &mut self,
        slot: u64,
        cells: std::ops::Range<u32>,
        header: &Header,
        data: &[u8],
        span: Span,
        shared: &mut Shared<'_>,
    ) -> Check {
        let Some(found) = self.slots.get(&slot) else {
            return Ok(());
        };
        let (Some(key), holder) = (found.key, found.holder) else {
            return Ok(());
        };
        ensure(
            found.state != State::Open || !LOST_OPEN.contains(&header.status),
            || format!("a READ of an open that certainly exists: {header:?}"),
        )?;
        let is_nameless = found.deletion == Deletion::Posix;
        match header.status {
            Status::SUCCESS => self.check_locks(slot, &cells, false, span, shared)?,
            Status::END_OF_FILE => {}
            _ => return Ok(()),
        }
        let mut next = cells.start;
        for cell in data.chunks(CELL) {
            let stamp = Stamp::read(cell).ok_or("a cell is torn")?;
            self.check_owner(stamp, shared)?;
            shared.contents.read(key, next, stamp, span);
            if let Some(holder) = holder.and_then(|holder| shared.caching.get_mut(holder)) {
                holder.fill(next, stamp, span);
            }
            next += 1;
        }
        shared.report.cells_read += u64::from(next - cells.start);
        shared.report.nameless_reads += u64::from(is_nameless) * u64::from(next - cells.start);
        // Missing bytes are past the end of the file.
        if shared.scenario.faults.short_read == 0 {
            for cell in next..cells.end {
                (shared.contents).read(key, cell, Stamp::default(), span);
            }
        }
        Ok(())
    }

    /// Processes a listing of a directory.
    fn has_scanned(
        &mut self,
        slot: u64,
        header: &Header,
        message: &[u8],
        span: Span,
        shared: &mut Shared<'_>,
    ) -> Check {
        let holder = self.slots.get(&slot).and_then(|slot| slot.holder);
        let holder = holder.and_then(|holder| shared.caching.get_mut(holder));
        let (Some(holder), Status::SUCCESS) = (holder, header.status) else {
            return Ok(());
        };
        let response = wire::query_directory::Response::decode(message);
        let response = response.map_err(|error| format!("QUERY_DIRECTORY: {error}"))?;
        let entries = DirectoryEntries::new(FileInfoClass::NAMES, response.output);
        let names = entries.into_iter().flatten().map(|entry| {
            let entry = entry.map_err(|error| format!("QUERY_DIRECTORY: {error}"))?;
            let name = entry.name.decode().ok_or("a name that is not UTF-16")?;
            Ok(name.to_lowercase())
        });
        let names = names.collect::<Check<_>>()?;
        holder.list(Listing { names, span });
        Ok(())
    }

    /// If files are private, no user reads data of another user.
    pub(super) fn check_owner(&self, stamp: Stamp, shared: &Shared<'_>) -> Check {
        let owner = stamp.user();
        let is_open = !shared.scenario.private_files || owner.is_none_or(|user| user == self.user);
        ensure(is_open, || {
            format!("user {} read data of user {owner:?}", self.user)
        })
    }

    pub(super) fn new_slot(&mut self, opening: &Opening) {
        let slot = Slot {
            state: State::Opening,
            file_id: wire::FileId::RELATED,
            path: opening.path.clone(),
            key: None,
            resume_key: None,
            is_resilient: false,
            access: specific(opening.access),
            holder: opening.holder,
            is_idle: false,
            is_posix: opening.is_posix,
            is_locking: false,
            deletion: match opening.options.contains(CreateOptions::DELETE_ON_CLOSE) {
                true => Deletion::Requested,
                false => Deletion::None,
            },
        };
        self.slots.insert(opening.slot, slot);
    }
}

fn read_data<'m>(message: &'m [u8], cells: &std::ops::Range<u32>) -> Check<&'m [u8]> {
    let (_, data) = wire::read::Response::decode(message).map_err(|e| format!("READ: {e}"))?;
    check_length(data.len(), cells)?;
    Ok(data)
}

/// Returns the bytes that a READ wrote to the registered memory: no more than its response says.
fn placed_data(
    message: &[u8],
    mut memory: Vec<u8>,
    cells: &std::ops::Range<u32>,
) -> Check<Vec<u8>> {
    let read = wire::read::Response::decode(message).map_err(|e| format!("READ: {e}"))?;
    let (response, inline) = read;
    let length = response.data_remaining as usize;
    check_length(length, cells)?;
    let is_good = inline.is_empty() && memory[length..].iter().all(|byte| *byte == FILL);
    ensure(is_good, || {
        format!(
            "{} bytes in the message, {length} in memory and some behind them",
            inline.len()
        )
    })?;
    memory.truncate(length);
    Ok(memory)
}

fn check_length(length: usize, cells: &std::ops::Range<u32>) -> Check {
    let wanted = (cells.end - cells.start) as usize * CELL;
    let is_good = length > 0 && length <= wanted && length.is_multiple_of(CELL);
    ensure(is_good, || format!("{length} bytes were read of {wanted}"))
}

/// Statuses that a server never returns to a valid request.
fn check_status(header: &Header) -> Check {
    let is_bug = matches!(
        header.status,
        Status::INTERNAL_ERROR | Status::NOT_IMPLEMENTED | Status::UNSUCCESSFUL
    );
    ensure(!is_bug, || {
        format!("a status that reveals a bug: {header:?}")
    })
}

/// In some scenarios, every request that may wait for the break of another client's caching rights
/// ends within a time limit.
fn check_time(pending: &Pending, header: &Header, shared: &Shared<'_>) -> Check {
    let limit = shared.scenario.answer_limit;
    let may_break = matches!(pending.command, Command::CREATE | Command::SET_INFO);
    let is_late = |limit| shared.now.instant > pending.sent.after(limit);
    ensure(!may_break || !limit.is_some_and(is_late), || {
        format!("a response after more than {limit:?}: {pending:?}, {header:?}")
    })
}

/// In an audit no other client is connected: no open fails because of a conflict.
fn check_audit(opening: &Opening, header: &Header) -> Check {
    let is_explained = matches!(
        header.status,
        Status::OBJECT_NAME_NOT_FOUND
            | Status::OBJECT_PATH_NOT_FOUND
            | Status::FILE_IS_A_DIRECTORY
            | Status::ACCESS_DENIED
    );
    ensure(!opening.is_audit || is_explained, || {
        format!("an earlier open is left: {header:?}")
    })
}

/// The minimum rights of an open.
fn specific(access: AccessMask) -> AccessMask {
    let mut specific = access;
    if access.intersects(AccessMask::GENERIC_READ | AccessMask::GENERIC_ALL) {
        specific |= AccessMask::FILE_READ_DATA;
    }
    if access.intersects(AccessMask::GENERIC_WRITE | AccessMask::GENERIC_ALL) {
        specific |= AccessMask::FILE_WRITE_DATA;
    }
    if access.contains(AccessMask::GENERIC_ALL) {
        specific |= AccessMask::DELETE;
    }
    specific
}
