//! The end of each request: its effects, and whether it is permitted.

use proto::client::request::Reply;
use proto::client::{Failure, Fate};
use wire::Status;
use wire::create::CreateAction;
use wire::fsctl::ResumeKeyResponse;

use super::appends::RECORD;
use super::peer::{Around, Call, End, Order, Peer, Phase};
use super::script::{Attempt, Intent, State, Subject};
use crate::check::contents::{CELL, CELLS, Filling, Stamp};
use crate::check::{Check, ensure};

/// How a request of one step ended.
#[derive(Debug)]
enum Came {
    Well(Reply),
    /// The server responded.
    Failed(Status),
    /// The peer canceled it before it was sent.
    NotDone,
    /// It may have been executed, or may still be.
    Unknown,
    Cancelled,
}

/// Permitted failures of any request: the disk fails, or the server still executes earlier
/// requests.
const ALWAYS: [Status; 2] = [Status::IO_DEVICE_ERROR, Status::FILE_NOT_AVAILABLE];

impl Peer {
    /// A request has ended. Nothing new is sent here: the frame of its response is still in use.
    pub(super) fn ended(&mut self, call: &Call, end: End, around: &mut Around<'_>) -> Check {
        if let Some(number) = call.intent.slot()
            && let Some(slot) = self.script.slots.get_mut(&number)
        {
            slot.busy = slot.busy.saturating_sub(1);
        }
        let end = self.unless_session_ended(call, end, around);
        if let Intent::Peek(peeks) = &call.intent {
            return peeked(peeks, call, &end, around);
        }
        let (came, bytes) = came(end)?;
        match &call.intent {
            Intent::Enter => self.entered(&came, around),
            Intent::Open { .. } => self.opened(call, &came, around),
            Intent::Close { slot } => self.closed(*slot, call, &came, around),
            Intent::Write { .. } | Intent::Copy { .. } => self.wrote(call, &came, around),
            Intent::Read { slot, key, cells } => {
                let may_be_closed = self.is_closing(*slot);
                let is_eof = matches!(came, Came::Failed(Status::END_OF_FILE));
                if is_eof || matches!(came, Came::Well(_)) {
                    return saw(*key, cells.clone(), call, &bytes, around);
                }
                self.check_failure(call, &came, may_be_closed)
            }
            Intent::Append { file, number, .. } => {
                self.appended(*file, *number, call, &came, around)
            }
            Intent::Rename { file, to, .. } => self.renamed(*file, to, call, &came, around),
            Intent::Delete { slot } => self.deleted(*slot, call, &came),
            Intent::Lock {
                slot,
                byte,
                attempt,
            } => {
                let came = match came {
                    // The first attempt may hold the lock.
                    Came::Cancelled | Came::NotDone if call.was_resent => Came::Unknown,
                    came => came,
                };
                self.locked(*slot, *byte, *attempt, &came, around)
            }
            Intent::Key { slot } => {
                if let Came::Well(Reply::Ioctl(output, _)) = &came {
                    let key = ResumeKeyResponse::decode(output);
                    let key = key.map_err(|error| format!("a resume key: {error}"))?;
                    if let Some(slot) = self.script.slots.get_mut(slot) {
                        slot.resume_key = Some(key.resume_key);
                    }
                }
                let may_be_closed = self.is_closing(*slot);
                self.check_failure(call, &came, may_be_closed)
            }
            Intent::Ask { slot } => {
                let may_be_closed = self.is_closing(*slot);
                self.check_failure(call, &came, may_be_closed)
            }
            Intent::Leave => {
                around.orders.push(Order::Think);
                Ok(())
            }
            Intent::Peek(_) => unreachable!("it has several steps"),
        }
    }

    /// The server closes the opens of a session that it ends, while requests are in progress: a
    /// failed request may have been executed in part, and a lock may be held only for a moment.
    fn unless_session_ended(&self, call: &Call, end: End, around: &Around<'_>) -> End {
        let session = self.session_id();
        let is_ended = session.is_some_and(|id| around.books.ended.contains(&id));
        let is_certain = match &end {
            End::Answer(results, _) => {
                results.iter().all(Result::is_ok) && !matches!(call.intent, Intent::Lock { .. })
            }
            End::GivenUp(_) => true,
        };
        match is_ended && !is_certain {
            true => End::GivenUp(Fate::Sent),
            false => end,
        }
    }

    fn is_closing(&self, slot: u64) -> bool {
        (self.script.slots.get(&slot)).is_none_or(|slot| slot.state == State::Closing)
    }

    /// Fails if a request failed without a reason.
    fn check_failure(&self, call: &Call, came: &Came, may_be_closed: bool) -> Check {
        let Came::Failed(status) = *came else {
            return Ok(());
        };
        let is_closed = status == Status::FILE_CLOSED && may_be_closed;
        // The source of a copy may have been closed or truncated.
        let is_copy = matches!(call.intent, Intent::Copy { .. })
            && [
                Status::INVALID_VIEW_SIZE,
                Status::OBJECT_NAME_NOT_FOUND,
                Status::FILE_CLOSED,
            ]
            .contains(&status);
        ensure(ALWAYS.contains(&status) || is_closed || is_copy, || {
            let id = self.id;
            format!("session {id}: {:?} failed with {status:?}", call.intent)
        })
    }

    fn entered(&mut self, came: &Came, around: &mut Around<'_>) -> Check {
        match came {
            Came::Well(Reply::TreeConnected { tree, .. }) => {
                self.tree = Some(*tree);
                self.phase = Phase::Running;
            }
            // The disk has failed in the lookup of the root; the next attempt may succeed.
            Came::Failed(Status::IO_DEVICE_ERROR) => {}
            Came::Well(_) | Came::Failed(_) | Came::Cancelled => {
                return Err(format!("the share is closed: {came:?}"));
            }
            // The peer connects again, unless the session has ended.
            Came::NotDone | Came::Unknown => {}
        }
        around.orders.push(Order::Think);
        Ok(())
    }

    fn opened(&mut self, call: &Call, came: &Came, around: &mut Around<'_>) -> Check {
        let Intent::Open {
            slot: number,
            overwrites,
            name,
        } = &call.intent
        else {
            unreachable!("only those come here");
        };
        let Some(slot) = self.script.slots.get_mut(number) else {
            return Ok(());
        };
        let (subject, books) = (slot.subject.clone(), &mut *around.books);
        let zeros = (0..CELLS, Filling::Stamp(Stamp::default()));
        if let Came::Well(Reply::Created(created)) = came {
            slot.state = State::Open;
            slot.file_id = created.file_id;
            match (&subject, name) {
                (Subject::Named(file), Some(name)) => {
                    books.names.settled(*file, Some(name), call.start);
                    ensure(created.action == CreateAction::CREATED.0, || {
                        format!("{name} is new, and was not created: {created:?}")
                    })?;
                }
                (Subject::Content(key), _) if *overwrites => books.wrote(*key, zeros, call.start),
                _ => {}
            }
            return Ok(());
        }
        match (&subject, name) {
            (_, _) if matches!(came, Came::NotDone) && !call.was_resent => {}
            (Subject::Named(file), Some(name)) => {
                books.perhaps_at(*file, Some(name), &call.links);
            }
            (Subject::Content(key), _) if *overwrites => {
                books.perhaps_wrote(*key, zeros, call.start, &call.links);
            }
            _ => {}
        }
        self.script.slots.remove(number);
        if self.script.is_of_rig(*number) {
            self.script.abandon_rig();
        }
        self.check_failure(call, came, false)
    }

    fn closed(&mut self, number: u64, call: &Call, came: &Came, around: &mut Around<'_>) -> Check {
        let Some(slot) = self.script.slots.remove(&number) else {
            return Ok(());
        };
        if let Subject::Named(file) = slot.subject {
            match (slot.deletes, came) {
                (Some(false), _) => {}
                // A CLOSE does not fail, even if the disk could not remove the name.
                (Some(true), Came::Well(_)) if around.scenario.faults.disk_error == 0 => {
                    around.books.names.settled(file, None, call.start);
                }
                _ => around.books.perhaps_at(file, None, &call.links),
            }
        }
        // Another channel closed it before.
        self.check_failure(call, came, call.was_resent)
    }

    fn wrote(&mut self, call: &Call, came: &Came, around: &mut Around<'_>) -> Check {
        let (slot, key, fillings, length) = match &call.intent {
            Intent::Write {
                slot,
                key,
                cells,
                stamp,
            } => {
                let length = (cells.end - cells.start) * CELL as u32;
                let what = (cells.clone(), Filling::Stamp(*stamp));
                (*slot, *key, vec![what], length)
            }
            Intent::Copy {
                slot,
                key,
                fillings,
            } => (*slot, *key, fillings.clone(), 0),
            _ => unreachable!("only those come here"),
        };
        let is_whole = match came {
            Came::Well(Reply::Written(count)) => *count == length,
            Came::Well(_) => true,
            _ => false,
        };
        let is_not_done = match came {
            Came::NotDone => !call.was_resent,
            Came::Failed(_) => !call.was_resent,
            _ => false,
        };
        for what in fillings {
            if is_whole {
                around.books.wrote(key, what, call.start);
            } else if !is_not_done {
                let links = &call.links;
                around.books.perhaps_wrote(key, what, call.start, links);
            }
        }
        let may_be_closed = self.is_closing(slot);
        self.check_failure(call, came, may_be_closed)
    }

    fn appended(
        &mut self,
        file: u64,
        number: u64,
        call: &Call,
        came: &Came,
        around: &mut Around<'_>,
    ) -> Check {
        let span = around.books.until_now(call.start);
        let is_certain = match came {
            Came::Well(Reply::Written(count)) => *count as usize == RECORD,
            Came::Well(_) | Came::Unknown | Came::Cancelled => false,
            Came::NotDone | Came::Failed(_) => return self.check_failure(call, came, false),
        };
        around.books.appends.note(file, number, span, is_certain);
        Ok(())
    }

    fn renamed(
        &mut self,
        file: u64,
        to: &str,
        call: &Call,
        came: &Came,
        around: &mut Around<'_>,
    ) -> Check {
        match came {
            Came::Well(_) => around.books.names.settled(file, Some(to), call.start),
            Came::Unknown => around.books.perhaps_at(file, Some(to), &call.links),
            Came::NotDone | Came::Failed(_) | Came::Cancelled => {}
        }
        self.check_failure(call, came, false)
    }

    fn deleted(&mut self, slot: u64, call: &Call, came: &Came) -> Check {
        let is_known = !call.was_resent;
        if let Some(slot) = self.script.slots.get_mut(&slot) {
            slot.deletes = match came {
                Came::Well(_) => Some(true),
                Came::NotDone | Came::Failed(_) if is_known => Some(false),
                _ => None,
            };
        }
        self.check_failure(call, came, false)
    }

    /// Updates the locks from the responses, also after a request was sent twice.
    fn locked(
        &mut self,
        slot: u64,
        byte: usize,
        attempt: Attempt,
        came: &Came,
        around: &mut Around<'_>,
    ) -> Check {
        let id = self.id;
        let Some(rig) = self
            .script
            .rig
            .as_mut()
            .filter(|rig| rig.slots.contains(&slot))
        else {
            return Ok(());
        };
        let owner = &mut rig.owners[byte];
        match attempt {
            Attempt::Wait => rig.waiter = None,
            _ => rig.is_busy = false,
        }
        let is_right = match (attempt, came) {
            (Attempt::Lock | Attempt::Wait, Came::Well(_)) => {
                // The response to the UNLOCK that it waited for may arrive later.
                let is_free = owner.is_none() || attempt == Attempt::Wait && rig.is_busy;
                *owner = Some(slot);
                is_free
            }
            (Attempt::Unlock, Came::Well(_)) => {
                // Unless the waiting request holds it already.
                if *owner == Some(slot) {
                    *owner = None;
                }
                true
            }
            (Attempt::Try, Came::Failed(Status::LOCK_NOT_GRANTED))
            | (Attempt::Wait, Came::Cancelled)
            | (_, Came::NotDone) => true,
            (_, Came::Unknown | Came::Cancelled) => {
                self.script.abandon_rig();
                return Ok(());
            }
            _ => false,
        };
        around.outcome.locks += 1;
        ensure(is_right, || {
            let rig = &self.script.rig;
            format!("session {id}: {attempt:?} of {byte} by {slot} came to {came:?}, {rig:?}")
        })
    }
}

fn came(end: End) -> Check<(Came, Vec<u8>)> {
    let (mut results, mut bytes) = match end {
        End::GivenUp(Fate::Unsent) => return Ok((Came::NotDone, Vec::new())),
        End::GivenUp(Fate::Sent) => return Ok((Came::Unknown, Vec::new())),
        End::Answer(results, bytes) => (results, bytes),
    };
    let result = results.pop().ok_or("an answer without a result")?;
    let bytes = bytes.pop().unwrap_or_default();
    let came = match result {
        Ok(reply) => Came::Well(reply),
        Err(Failure::Status(status) | Failure::StatusWith(status, _)) => Came::Failed(status),
        Err(Failure::TimedOut) => Came::Unknown,
        Err(Failure::Cancelled) => Came::Cancelled,
        Err(failure) => return Err(format!("the client says {failure:?}")),
    };
    Ok((came, bytes))
}

/// Checks that a step in a compound of several files has the result that it would have alone.
fn peeked(
    peeks: &[(u64, std::ops::Range<u32>)],
    call: &Call,
    end: &End,
    around: &mut Around<'_>,
) -> Check {
    let End::Answer(results, bytes) = end else {
        return Ok(());
    };
    ensure(results.len() == 3 * peeks.len(), || {
        format!("three steps were asked for of each: {results:?}")
    })?;
    let fine = [
        Status::IO_DEVICE_ERROR,
        Status::OBJECT_NAME_NOT_FOUND,
        Status::END_OF_FILE,
    ];
    let each = results.chunks(3).zip(bytes.chunks(3)).zip(peeks);
    for ((results, bytes), (key, cells)) in each {
        for result in results {
            let is_fine = match result {
                Ok(_) | Err(Failure::TimedOut) => true,
                Err(Failure::Status(status)) => fine.contains(status),
                Err(_) => false,
            };
            ensure(is_fine, || {
                format!("to look into {key} failed: {results:?}")
            })?;
        }
        let (opened, read) = (&results[0], &results[1]);
        let is_eof = matches!(read, Err(Failure::Status(Status::END_OF_FILE)));
        let is_seen = opened.is_ok() && (read.is_ok() || is_eof);
        if is_seen {
            saw(*key, cells.clone(), call, &bytes[1], around)?;
        }
    }
    Ok(())
}

/// Cells were read; cells past the end of the file are zeros.
fn saw(
    key: u64,
    cells: std::ops::Range<u32>,
    call: &Call,
    bytes: &[u8],
    around: &mut Around<'_>,
) -> Check {
    let span = around.books.until_now(call.start);
    let mut pieces = bytes.chunks(CELL);
    for cell in cells {
        let stamp = match pieces.next() {
            None => Stamp::default(),
            Some(piece) => {
                Stamp::read(piece).ok_or_else(|| format!("cell {cell} of {key} is torn"))?
            }
        };
        around.books.contents.read(key, cell, stamp, span);
    }
    Ok(())
}
