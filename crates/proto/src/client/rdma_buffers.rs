//! Memory that a READ or WRITE names, for its data to go by RDMA. \[MS-SMB2\] 3.2.4.6, 3.2.4.7,
//! 3.2.5.11, 3.2.5.12
//!
//! What is to be sent and long enough has its memory named first: the driver is asked with
//! [`Effect::Expose`] and tells with [`Connection::exposed`]. That comes as late as can be, when
//! the credits are there, for the server may use the memory from then on, and an adapter can name
//! only so much. [`Effect::Withdraw`] says when the server may not any more, once for each time
//! that memory was named.
//!
//! Nothing that is sealed goes that way, nor anything of a session that signs: there would be no
//! seal and no signature for the data. cifs.ko and Windows have it so, too.

use alloc::vec::Vec;

use wire::Status;
use wire::dialect::Dialect;
use wire::read::{self, ResponseFlags};
use wire::smbd::BufferDescriptorV1;

use super::connection::{Connection, Phase};
use super::effect::{Direction, Effect, Effects};
use super::flight::Waiting;
use super::message::Message;
use super::registration::{Placement, Registration};
use super::request::{Request, RequestId, Step};
use super::violation::Violation;
use crate::time::Now;

impl Connection {
    /// The one transfer of a request whose data go by RDMA if there is memory for them.
    pub(super) fn transfer(&self, request: &Request) -> Option<(Direction, u32)> {
        let limits = self.carrier.rdma?;
        let session = self.session.as_ref()?;
        if session.is_protected(request.seal) || session.negotiated.dialect < Dialect::SMB_3_0 {
            return None;
        }
        let mut transfers = request.steps.iter().filter_map(transfer_of);
        let (direction, length) = transfers.next()?;
        let is_alone = transfers.next().is_none();
        let range = self.config.rdma_threshold.max(1)..=limits.max_read_write;
        (is_alone && range.contains(&length)).then_some((direction, length))
    }

    /// Asks for memory for a request that is to go out now. Gives it back if it needs none.
    pub(super) fn expose(&mut self, waiting: Waiting, effects: &mut Effects) -> Option<Waiting> {
        if waiting.placement != Placement::Undecided {
            return Some(waiting);
        }
        let Some((direction, length)) = self.transfer(&waiting.request) else {
            return Some(waiting);
        };
        effects.push(Effect::Expose {
            request: waiting.id,
            direction,
            length,
        });
        self.exposing.insert(waiting.id, waiting);
        None
    }

    /// Tells what came of [`Effect::Expose`]: pieces that hold exactly as many bytes, or that there
    /// is no memory to be had; then the data go in messages, if those have room for them.
    ///
    /// # Panics
    /// When the pieces hold more or fewer bytes, or are more than the transport's limits allow.
    pub fn exposed(
        &mut self,
        now: Now,
        id: RequestId,
        pieces: Option<Vec<BufferDescriptorV1>>,
        effects: &mut Effects,
    ) {
        let Some(mut waiting) = self.exposing.remove(&id) else {
            // It was given up on meanwhile.
            if pieces.is_some() {
                let (request, is_revoked) = (id, false);
                effects.push(Effect::Withdraw {
                    request,
                    is_revoked,
                });
            }
            return;
        };
        waiting.placement = match pieces {
            Some(pieces) => {
                self.check_pieces(&waiting.request, &pieces);
                Placement::Registered(Registration {
                    pieces,
                    is_revoked: false,
                })
            }
            None => Placement::Inline,
        };
        let session = self.session.as_ref().expect("the login is done");
        let is_inline = waiting.placement == Placement::Inline;
        if is_inline && !session.fits_inline(&self.carrier, &waiting.request) {
            self.stop_clock(id, waiting.deadline);
            let what = "longer than a message, and there is no memory to be named";
            self.refuse(id, &waiting.request, what, effects);
            return;
        }
        self.queue.put_back(waiting);
        self.pump(now, effects);
    }

    fn check_pieces(&self, request: &Request, pieces: &[BufferDescriptorV1]) {
        let length = self.transfer(request).map(|(_, length)| u64::from(length));
        let total = BufferDescriptorV1::total(pieces);
        assert_eq!(Some(total), length, "the memory is as long as it has to be");
        let limits = self.carrier.rdma.expect("it was asked for");
        assert!(pieces.len() <= limits.max_descriptors, "few enough pieces");
    }

    /// Takes note that the server took a key back. To be told before the frame that it came with.
    /// A key that nobody uses any more does no harm.
    pub fn invalidated(&mut self, key: u32) {
        let memories = self.flights.values_mut();
        let mut memories = memories.filter_map(|flight| flight.memory.as_mut());
        let is_meant = |memory: &&mut Registration| memory.pieces[0].token == key;
        if let Some(memory) = memories.find(is_meant) {
            memory.is_revoked = true;
        }
    }

    /// The server may use the memory no more.
    pub(super) fn withdraw(id: RequestId, memory: Option<Registration>, effects: &mut Effects) {
        if let Some(memory) = memory {
            effects.push(Effect::Withdraw {
                request: id,
                // The answer takes one key back. The others, if there are any, are ours to.
                is_revoked: memory.is_revoked && memory.pieces.len() == 1,
            });
        }
    }

    /// Gives back what was to be named and is not sent.
    pub(super) fn stop_exposing(&mut self) -> Vec<Waiting> {
        assert!(self.phase == Phase::Over);
        core::mem::take(&mut self.exposing).into_values().collect()
    }
}

/// Whether an answer can be that of a READ whose memory was named: it says of no more bytes than
/// there is room for, and brings none besides. Who says otherwise may have written anywhere.
pub(super) fn check(step: &Step, message: &Message<'_>) -> Result<(), Violation> {
    let is_good = matches!(
        message.header.status,
        Status::SUCCESS | Status::BUFFER_OVERFLOW
    );
    let Step::Read { length, .. } = step else {
        return Ok(());
    };
    if !is_good {
        return Ok(());
    }
    // What is no answer at all fails the request.
    let Ok((response, data)) = read::Response::decode(message.bytes) else {
        return Ok(());
    };
    if response.data_remaining > *length {
        return Err(Violation::RemoteMemory("more bytes than there is room for"));
    }
    if response.data_remaining > 0 && !data.is_empty() {
        return Err(Violation::RemoteMemory("data in memory and in the answer"));
    }
    // Not offered.
    if response.flags.contains(ResponseFlags::RDMA_TRANSFORM) {
        return Err(Violation::RemoteMemory("data that are transformed"));
    }
    Ok(())
}

fn transfer_of(step: &Step) -> Option<(Direction, u32)> {
    match step {
        Step::Read { length, .. } => Some((Direction::Read, *length)),
        Step::Write { length, .. } => Some((Direction::Write, *length)),
        _ => None,
    }
}
