//! Registered memory of READ and WRITE, whose data move by RDMA. \[MS-SMB2\] 3.2.4.6, 3.2.4.7,
//! 3.2.5.11, 3.2.5.12
//!
//! Before the core sends a request that is long enough, it asks the driver with [`Effect::Expose`]
//! to register the memory, and [`Connection::exposed`] takes the result. This happens as late as
//! possible, when the credits are available: the server may access the memory from then on, and an
//! adapter registers a limited amount. [`Effect::Withdraw`] ends the access, once for each
//! registration.
//!
//! Data of encrypted messages and of a session that signs do not move by RDMA, because neither
//! encryption nor a signature would cover them. cifs.ko and Windows do the same.

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
    /// The one transfer of a request whose data may move by RDMA.
    pub(super) fn transfer(&self, request: &Request) -> Option<(Direction, u32)> {
        let limits = self.carrier.rdma?;
        let session = self.session.as_ref()?;
        if session.is_protected(request.encrypt) || session.negotiated.dialect < Dialect::SMB_3_0 {
            return None;
        }
        let mut transfers = request.steps.iter().filter_map(transfer_of);
        let (direction, length) = transfers.next()?;
        let is_alone = transfers.next().is_none();
        let range = self.config.rdma_threshold.max(1)..=limits.max_read_write;
        (is_alone && range.contains(&length)).then_some((direction, length))
    }

    /// Asks the driver to register the memory of a request that is about to be sent. Returns the
    /// request if that is not needed.
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

    /// Receives the result of [`Effect::Expose`] for the request `id`: `pieces` describe the
    /// registered memory, with exactly the requested length together; `None` if the I/O driver
    /// cannot register it. Without memory the data move in messages, if they fit; otherwise the
    /// request fails.
    ///
    /// # Panics
    /// The pieces have another length, or there are more than the transport allows.
    pub fn exposed(
        &mut self,
        now: Now,
        id: RequestId,
        pieces: Option<Vec<BufferDescriptorV1>>,
        effects: &mut Effects,
    ) {
        let Some(mut waiting) = self.exposing.remove(&id) else {
            // The request ended in the meantime.
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
            let what = "the data are longer than a message, and the memory cannot be registered";
            self.refuse(id, &waiting.request, what, effects);
            return;
        }
        self.queue.put_back(waiting);
        self.pump(now, effects);
    }

    fn check_pieces(&self, request: &Request, pieces: &[BufferDescriptorV1]) {
        let length = self.transfer(request).map(|(_, length)| u64::from(length));
        let total = BufferDescriptorV1::total(pieces);
        assert_eq!(Some(total), length, "the memory has the requested length");
        let limits = self.carrier.rdma.expect("the carrier has RDMA");
        assert!(
            pieces.len() <= limits.max_descriptors,
            "the count of pieces is within the limit"
        );
    }

    /// Reports that a message of the server (Send with Invalidate) ended the RDMA registration of
    /// local memory with this key. The I/O driver calls this before it passes the frame of that
    /// message. An unknown key has no effect.
    pub fn invalidated(&mut self, key: u32) {
        let memories = self.flights.values_mut();
        let mut memories = memories.filter_map(|flight| flight.memory.as_mut());
        let is_meant = |memory: &&mut Registration| memory.pieces[0].token == key;
        if let Some(memory) = memories.find(is_meant) {
            memory.is_revoked = true;
        }
    }

    /// Ends the server's access to the memory.
    pub(super) fn withdraw(id: RequestId, memory: Option<Registration>, effects: &mut Effects) {
        if let Some(memory) = memory {
            effects.push(Effect::Withdraw {
                request: id,
                // The response invalidates one piece. The client invalidates the others.
                is_revoked: memory.is_revoked && memory.pieces.len() == 1,
            });
        }
    }

    /// Takes the requests that wait for a registration.
    pub(super) fn stop_exposing(&mut self) -> Vec<Waiting> {
        assert!(self.phase == Phase::Over);
        core::mem::take(&mut self.exposing).into_values().collect()
    }
}

/// Checks the response to a READ with registered memory: it reports at most the requested length,
/// and has no data of its own. A server that violates this may have written anywhere.
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
    // A malformed response fails the request later.
    let Ok((response, data)) = read::Response::decode(message.bytes) else {
        return Ok(());
    };
    if response.data_remaining > *length {
        return Err(Violation::RemoteMemory(
            "it reports more bytes than the memory has",
        ));
    }
    if response.data_remaining > 0 && !data.is_empty() {
        return Err(Violation::RemoteMemory(
            "it sends data in the memory and in the response",
        ));
    }
    // The client does not offer RDMA transforms.
    if response.flags.contains(ResponseFlags::RDMA_TRANSFORM) {
        return Err(Violation::RemoteMemory("it transforms data"));
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
