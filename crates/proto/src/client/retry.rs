//! Requests that the server put off, since a channel of the session was lost: FILE_NOT_AVAILABLE.
//! \[MS-SMB2\] 3.3.5.2.10
//!
//! A request that was under way on one channel when another was lost carries the ChannelSequence
//! of before, and the server refuses it: it was not done, and is sent again with the new one. And
//! a replay is refused for as long as the server is busy with what was sent before: it is sent
//! again a little later.

use core::time::Duration;

use wire::Status;
use wire::dialect::Dialect;

use super::connection::Connection;
use super::credits;
use super::effect::Effects;
use super::encode;
use super::flight::{Flight, Waiting};
use super::registration::Placement;
use super::request::{Failure, RequestId};
use crate::time::{Instant, Now};

/// How often a request is put off before the driver is told; five seconds in all.
const RETRIES_MAX: u8 = 8;
/// How long after the first refusal a replay is sent again; after each further one it is twice as
/// long.
const PAUSE: Duration = Duration::from_millis(20);

impl Connection {
    /// When a request is to be sent again that was answered, if it is.
    pub(super) fn retry_at(&self, flight: &Flight) -> Option<Instant> {
        let session = self.session.as_ref()?;
        let is_refused = matches!(
            &flight.results[..],
            [Some(Err(Failure::Status(Status::FILE_NOT_AVAILABLE)))]
        );
        let is_3 = session.negotiated.dialect >= Dialect::SMB_3_0;
        if !is_refused || !is_3 || flight.is_cancelled || flight.retries >= RETRIES_MAX {
            return None;
        }
        if flight.request.is_replay {
            let pause = PAUSE.saturating_mul(1 << flight.retries);
            return Some(self.heard.after(pause));
        }
        let is_stale = flight.sequence != session.channel_sequence();
        is_stale.then_some(self.heard)
    }

    pub(super) fn retry_later(&mut self, at: Instant, id: RequestId, flight: Flight) {
        let step = &flight.request.steps[0];
        let charge = match self.has_large_mtu() {
            true => credits::charge(encode::sent(step), encode::asked(step)),
            false => 1,
        };
        let waiting = Waiting {
            id,
            charge,
            bytes: flight.bytes,
            retries: flight.retries + 1,
            // From when it waits to be sent.
            deadline: None,
            // Named anew: the answer took the key back.
            placement: Placement::Undecided,
            request: flight.request,
        };
        self.retries.insert((at, id), waiting);
    }

    /// Sends what was put off until now.
    pub(super) fn send_retries(&mut self, now: Now, effects: &mut Effects) {
        while let Some(entry) = self.retries.first_entry() {
            if entry.key().0 > now.instant {
                break;
            }
            let waiting = entry.remove();
            self.enqueue(now, waiting);
        }
        self.pump(now, effects);
    }
}
