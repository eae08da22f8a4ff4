//! LOCK: lock and unlock ranges of bytes. \[MS-SMB2\] 3.3.5.14
//!
//! Locks are kept here and bind the clients of this server: READ, WRITE and what else touches data
//! ask [`Open::check_locks`]. Local processes are not bound, nor are clients bound by theirs.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use wire::Status;
use wire::access::AccessMask;
use wire::lock::{LockElement, LockFlags, Request, Response};

use crate::effect::Outcome;
use crate::notice::Notice;
use crate::server::context::{Context, Parked, Progress, Reply};
use crate::server::fsa::byte_range::{ByteRange, LockKind};
use crate::server::fsa::file_locks::Wanted;
use crate::server::lock_sequence::{Sequence, Waiting};
use crate::server::notices::{Notices, Waiter};
use crate::server::open::{Open, malformed};
use crate::server::write::WRITES;

/// Rights of which an open needs one to lock: otherwise a user without read access could keep all
/// others from reading. Windows asks for as much: LockFileEx.
const DATA: AccessMask = AccessMask(
    AccessMask::FILE_READ_DATA.0
        | AccessMask::FILE_WRITE_DATA.0
        | AccessMask::FILE_APPEND_DATA.0
        | AccessMask::FILE_EXECUTE.0,
);

const SHARED_NOW: LockFlags = LockFlags(LockFlags::SHARED_LOCK.0 | LockFlags::FAIL_IMMEDIATELY.0);
const EXCLUSIVE_NOW: LockFlags =
    LockFlags(LockFlags::EXCLUSIVE_LOCK.0 | LockFlags::FAIL_IMMEDIATELY.0);

/// The state of a request that waits for its lock.
pub(crate) struct Step {
    open: Arc<Open>,
    waiter: Waiter,
    sequence: Option<Sequence>,
    /// The same request came again and waits instead.
    is_replaced: Arc<AtomicBool>,
    /// Counts as long as it waits.
    _turn: Turn,
}

/// One of the requests of a connection that wait for a lock.
struct Turn(Arc<AtomicUsize>);

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    // [MS-SMB2] 3.3.5.14: there is something to lock or unlock.
    let first = request.locks.first().ok_or(Status::INVALID_PARAMETER)?;
    let is_unlock = first.flags == LockFlags::UNLOCK;
    check_expiry(context, is_unlock)?;
    let open = context.open(request.file_id)?;
    let may_repeat = context.has_multichannel || open.state.lock().durability.is_lasting();
    let sequence = Sequence::of(may_repeat, request.lock_sequence);
    if let Some(sequence) = sequence
        && open.state.lock().lock_sequences.is_replay(sequence)
    {
        return Ok(done());
    }
    if let Some(sequence) = sequence
        && is_granted_since(context, &open, sequence)
    {
        return locked(context, &open, Some(sequence));
    }
    if is_unlock {
        unlock(context, &open, &request.locks)?;
        return Ok(succeed(&open, sequence));
    }
    let (wanted, may_wait) = wanted(&request.locks)?;
    check_open(&open, &wanted)?;
    let limits = &context.config.limits;
    open.lock_charge.lock().grow(wanted.len())?;
    let mut notices = Notices::new();
    let owner = open.lock_owner();
    let granted = open.locks.lock(owner, &wanted, limits, &mut notices);
    context.post(notices);
    count_locks(&open);
    match granted {
        Ok(()) => locked(context, &open, sequence),
        Err(Status::LOCK_NOT_GRANTED) if may_wait => wait(context, open, wanted[0], sequence),
        Err(status) => Err(status),
    }
}

/// Takes the place of the same request, sent before by a client that lost its channel, which still
/// waits for the lock: two would be granted it one after the other, or never the second. Whether it
/// was granted the lock a moment ago.
fn is_granted_since(context: &mut Context<'_>, open: &Open, sequence: Sequence) -> bool {
    let mut state = open.state.lock();
    let Some(first) = state.lock_sequences.replace(sequence) else {
        return false;
    };
    if !open.locks.withdraw(first.waiter) {
        return true;
    }
    drop(state);
    first.is_replaced.store(true, Ordering::Release);
    let Waiter { connection, op } = first.waiter;
    let is_granted = false;
    context.post(Notices::from([(
        connection,
        Notice::LockSettled { op, is_granted },
    )]));
    false
}

/// A session with an expired login may unlock, but not lock, as with Samba.
fn check_expiry(context: &Context<'_>, is_unlock: bool) -> Result<(), Status> {
    let expires = context.session.rules().and_then(|rules| rules.expires);
    if !is_unlock && expires.is_some_and(|expires| expires <= context.now.instant) {
        return Err(Status::NETWORK_SESSION_EXPIRED);
    }
    Ok(())
}

/// Samba refuses a directory with this status, \[MS-FSA\] 2.1.5.8 with INVALID_PARAMETER. An
/// exclusive lock of a POSIX open needs the right to write, as fcntl(2) does.
fn check_open(open: &Open, wanted: &[Wanted]) -> Result<(), Status> {
    if open.is_directory {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    if !open.granted.intersects(DATA) {
        return Err(Status::ACCESS_DENIED);
    }
    let is_exclusive = wanted.iter().any(|(_, kind)| *kind == LockKind::Exclusive);
    if open.is_posix && is_exclusive && !open.granted.intersects(WRITES) {
        return Err(Status::INVALID_HANDLE);
    }
    Ok(())
}

/// The requested locks, and whether the request may wait: only a request for one lock may.
/// \[MS-SMB2\] 3.3.5.14.2
fn wanted(elements: &[LockElement]) -> Result<(Vec<Wanted>, bool), Status> {
    let (mut wanted, mut may_wait) = (Vec::with_capacity(elements.len()), false);
    for element in elements {
        let kind = match element.flags {
            LockFlags::SHARED_LOCK | SHARED_NOW => LockKind::Shared,
            LockFlags::EXCLUSIVE_LOCK | EXCLUSIVE_NOW => LockKind::Exclusive,
            _ => return Err(Status::INVALID_PARAMETER),
        };
        may_wait |= !element.flags.contains(LockFlags::FAIL_IMMEDIATELY);
        wanted.push((element, kind));
    }
    if may_wait && elements.len() > 1 {
        return Err(Status::INVALID_PARAMETER);
    }
    let placed = wanted.into_iter().map(|(it, kind)| Ok((range(it)?, kind)));
    Ok((placed.collect::<Result<_, Status>>()?, may_wait))
}

fn range(element: &LockElement) -> Result<ByteRange, Status> {
    ByteRange::new(element.offset, element.length).ok_or(Status::INVALID_LOCK_RANGE)
}

/// \[MS-SMB2\] 3.3.5.14.1: ranges that were unlocked before an element fails stay unlocked.
fn unlock(context: &mut Context<'_>, open: &Open, elements: &[LockElement]) -> Result<(), Status> {
    if open.is_directory {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    let mut notices = Notices::new();
    let (owner, limits) = (open.lock_owner(), &context.config.limits);
    let result = elements.iter().try_for_each(|element| {
        if element.flags != LockFlags::UNLOCK {
            return Err(Status::INVALID_PARAMETER);
        }
        let range = range(element)?;
        open.locks.unlock(owner, range, limits, &mut notices)
    });
    context.post(notices);
    count_locks(open);
    result
}

fn wait(
    context: &mut Context<'_>,
    open: Arc<Open>,
    wanted: Wanted,
    sequence: Option<Sequence>,
) -> Result<Progress<Step>, Status> {
    // Windows and Samba wait for nothing amid a compound.
    if !context.is_last {
        return Err(Status::INTERNAL_ERROR);
    }
    let turn = Turn::take(context.lock_waits, context.config.limits.lock_waits)?;
    let op = context.op();
    let waiter = Waiter {
        connection: context.connection,
        op,
    };
    let limits = &context.config.limits;
    let is_replaced = Arc::new(AtomicBool::new(false));
    // While the open is locked, so that a replay finds the request in both tables or in none.
    let mut state = open.state.lock();
    open.lock_charge.lock().grow(1)?;
    let (owner, mut notices) = (open.lock_owner(), Notices::new());
    let locks = &open.locks;
    let is_granted = locks.lock_or_wait(owner, wanted, waiter, limits, &mut notices);
    context.post(notices);
    count_locks(&open);
    let is_granted = is_granted?;
    if let (Some(sequence), false) = (sequence, is_granted) {
        state.lock_sequences.wait(Waiting {
            sequence,
            waiter,
            is_replaced: is_replaced.clone(),
        });
    }
    drop(state);
    if is_granted {
        return locked(context, &open, sequence);
    }
    if !is_open(context, &open) {
        return Err(abandon(context, &open));
    }
    let parked = Parked {
        op,
        key: open.key,
        until: None,
        is_limited: false,
    };
    let step = Step {
        open,
        waiter,
        sequence,
        is_replaced,
        _turn: turn,
    };
    Ok(Progress::Park(parked, step))
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        if self.sequence.is_some() {
            let mut state = self.open.state.lock();
            state.lock_sequences.forget(self.waiter);
        }
        count_locks(&self.open);
        if self.is_replaced.load(Ordering::Acquire) {
            return Err(Status::CANCELLED);
        }
        let Err(status) = outcome.expect_woken() else {
            return locked(context, &self.open, self.sequence);
        };
        let has_waited = self.open.locks.withdraw(self.waiter);
        // smbtorture smb2.lock.cancel, cancel-tdis and cancel-logoff.
        if !is_open(context, &self.open) {
            return Err(Status::RANGE_NOT_LOCKED);
        }
        if has_waited {
            return Err(status);
        }
        // It was granted before it was given up on.
        locked(context, &self.open, self.sequence)
    }
}

/// The locks are granted: breaks the read caching of clients, as Windows and Samba do, so that no
/// client reads locked bytes from its cache. smbtorture smb2.oplock.brl1.
fn locked(
    context: &mut Context<'_>,
    open: &Open,
    sequence: Option<Sequence>,
) -> Result<Progress<Step>, Status> {
    // A CLOSE takes the open out of its table first and removes its locks then: a lock that came
    // in between is seen by the CLOSE, by this request, or by both.
    if !is_open(context, open) {
        return Err(abandon(context, open));
    }
    context.data_changed(open);
    Ok(succeed(open, sequence))
}

fn is_open(context: &Context<'_>, open: &Open) -> bool {
    let session = &context.session;
    session.trees.lock().contains_key(&open.tree())
        && session.opens.lock().contains_key(&open.id.volatile)
}

/// The open was closed meanwhile, and the CLOSE may have removed its locks too early.
fn abandon(context: &mut Context<'_>, open: &Open) -> Status {
    let mut notices = Notices::new();
    open.locks.leave(open.file, &mut notices);
    context.post(notices);
    count_locks(open);
    Status::RANGE_NOT_LOCKED
}

fn succeed(open: &Open, sequence: Option<Sequence>) -> Progress<Step> {
    if let Some(sequence) = sequence {
        open.state.lock().lock_sequences.remember(sequence);
    }
    done()
}

/// Counts the locks that the open now has.
fn count_locks(open: &Open) {
    let mut charge = open.lock_charge.lock();
    charge.set(open.locks.count_of(open.file));
}

fn done() -> Progress<Step> {
    Progress::Done(Reply::message(|out| Response.encode(out)))
}

impl Turn {
    fn take(waits: &Arc<AtomicUsize>, limit: usize) -> Result<Self, Status> {
        // Only its own connection counts it up.
        if waits.load(Ordering::Relaxed) >= limit {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        waits.fetch_add(1, Ordering::Relaxed);
        Ok(Self(waits.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
