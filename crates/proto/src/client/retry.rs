//! Retries of FILE_NOT_AVAILABLE after the loss of a channel. \[MS-SMB2\] 3.3.5.2.10
//!
//! A request that was in flight on one channel when another one was lost carries the old
//! ChannelSequence. The server refuses it without executing it, and the client sends it again with
//! the new one. The server also refuses a replay while it executes the original request, and the
//! client sends the replay again a little later.

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

/// Count of retries before the request fails: five seconds together.
const RETRIES_MAX: u8 = 8;
/// Time between the first refusal and the retry of a replay. It doubles with each retry.
const PAUSE: Duration = Duration::from_millis(20);

impl Connection {
    /// Time at which an answered request is sent again; `None` if the answer is final.
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
            // The send queue sets it.
            deadline: None,
            // The response ended the registration.
            placement: Placement::Undecided,
            request: flight.request,
        };
        self.retries.insert((at, id), waiting);
    }

    /// Sends the retries that are due.
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
