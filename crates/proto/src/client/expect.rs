//! The location for the next bytes of the stream: the data of a READ are received straight into
//! their destination.

use wire::header::PROTOCOL_ID;
use wire::read::DATA_OFFSET;
use wire::{Command, Flags, Header, Status, read};

use super::connection::{Connection, Phase};
use super::effect::{Effects, Expect};
use super::flight::Owner;
use super::message::Message;
use super::request::Step;
use super::violation::Violation;
use crate::time::Now;

impl Connection {
    /// Determines into which memory the I/O driver receives a frame of `frame_len` bytes. `start`
    /// has the first bytes of the frame: at least 80, or the whole frame.
    ///
    /// [`Expect::Split`] is the result only for an unencrypted response to a READ that is alone in
    /// its frame, with at most the requested data and nothing behind them. The READ must be the
    /// only one of its request. Every other frame is received as a whole.
    pub fn expect(&self, start: &[u8], frame_len: usize) -> Expect {
        self.split(start, frame_len).unwrap_or(Expect::Frame)
    }

    fn split(&self, start: &[u8], frame_len: usize) -> Option<Expect> {
        if self.phase != Phase::Ready || !start.starts_with(&PROTOCOL_ID) {
            return None;
        }
        let header = Header::decode(start).ok()?;
        let is_plain = header.is_response()
            && header.command == Command::READ
            && header.next_command == 0
            && matches!(header.status, Status::SUCCESS | Status::BUFFER_OVERFLOW);
        let pending = self.pending.get(&header.message_id)?;
        let session = self.session.as_ref()?;
        if !is_plain || pending.is_encrypted || session.encrypt || header.session_id != session.id {
            return None;
        }
        let must_be_signed = session.signing_required || pending.is_signed;
        if must_be_signed && !header.flags.contains(Flags::SIGNED) {
            return None;
        }
        let Owner::Step(request, index) = pending.owner else {
            return None;
        };
        let flight = self.flights.get(&request)?;
        // The server may write to the destination by RDMA.
        if flight.memory.is_some() {
            return None;
        }
        let step = &flight.request.steps[index];
        let Step::Read { length, .. } = step else {
            return None;
        };
        let is_read = |step: &&Step| matches!(step, Step::Read { .. });
        if flight.request.steps.iter().filter(is_read).count() > 1 {
            return None;
        }
        let (head, len) = read::Response::extent(start).ok()?;
        let is_exact = head >= usize::from(DATA_OFFSET) && head + len as usize == frame_len;
        (is_exact && len > 0 && len <= *length).then_some(Expect::Split { head, request, len })
    }

    /// Processes the response to a READ when its data are already in the destination of the READ,
    /// because [`Connection::expect`] returned [`Expect::Split`]. `head` has the bytes of the frame
    /// before the data, `payload` the data. Appends the same effects as [`Connection::receive`].
    ///
    /// # Panics
    /// [`Connection::expect`] returned another value, or another frame was received since.
    pub fn receive_split(
        &mut self,
        now: Now,
        head: &mut [u8],
        payload: &[u8],
        effects: &mut Effects,
    ) {
        if self.phase == Phase::Over {
            return;
        }
        self.heard(now);
        let result = self.take_split(head, payload, effects);
        self.settle(now, result, effects);
    }

    fn take_split(
        &mut self,
        head: &[u8],
        payload: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        let message = Message {
            header: Header::decode(head).map_err(Violation::Malformed)?,
            bytes: head,
            placed: Some(payload),
            start: 0,
            is_encrypted: false,
        };
        self.take(&message, effects)
    }
}
