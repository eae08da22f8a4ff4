//! The pause of a connection with too much memory in responses, as the driver of the server does
//! it, and the clients that cause it.

use proto::server::Server;
use proto::server::ledger::{Charge, Ledger, Resource};
use proto::time::Instant;

use crate::host::Host;

/// Bytes of responses from which on a connection handles no further frame.
const PAUSE_BYTES: usize = 4 << 10;

/// The responses of a connection that its client has not received.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    /// Time until which the client receives nothing.
    withheld_until: Option<Instant>,
    /// Bytes of sent frames that have not arrived.
    in_flight: usize,
    /// Bytes of responses in all: in the making and in flight.
    bytes: usize,
    /// The same, counted for the user; `None` before the login.
    charge: Option<Charge>,
    /// A frame of the client waits.
    pub(crate) is_paused: bool,
}

impl Backpressure {
    /// The client receives nothing until this time.
    pub(crate) fn withhold(&mut self, until: Instant) {
        self.withheld_until = Some(until);
    }

    /// Returns the time until which the client receives nothing; `None` if it receives now.
    pub(crate) fn withheld_until(&self, now: Instant) -> Option<Instant> {
        self.withheld_until.filter(|until| *until > now)
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.in_flight += bytes;
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        self.in_flight -= bytes;
    }

    /// Updates the sums after an event.
    pub(crate) fn count(&mut self, server: &Server, host: &Host) {
        self.bytes = self.in_flight + host.pending_response_bytes();
        if self.charge.is_none() {
            self.charge = (host.account()).map(|account| {
                server
                    .ledger()
                    .user(&account)
                    .none_of(Resource::ResponseBytes)
            });
        }
        if let Some(charge) = &mut self.charge {
            charge.set(self.bytes);
        }
    }

    /// Returns whether the server handles a further frame now.
    pub(crate) fn may_handle(&self, ledger: &Ledger) -> bool {
        let Some(charge) = &self.charge else {
            return true;
        };
        match self.bytes {
            0 => !ledger.is_response_memory_full(),
            bytes => bytes < PAUSE_BYTES && charge.user().has_response_share(),
        }
    }
}
