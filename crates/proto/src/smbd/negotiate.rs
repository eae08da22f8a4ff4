//! Negotiation. \[MS-SMBD\] 3.1.5.2, 3.1.5.3, 3.1.5.6, 3.1.5.7

use wire::Status;
use wire::smbd::{
    MIN_FRAGMENTED_SIZE, MIN_RECEIVE_SIZE, NegotiateRequest, NegotiateResponse, VERSION_1,
};

use super::config::Negotiated;
use super::connection::{Connection, Phase};
use super::effect::{Effect, Effects, Header, Outgoing, Violation};
use super::receive::at_least;
use crate::time::Instant;

impl Connection {
    /// Sends the client's request.
    pub(super) fn send_negotiate_request(&mut self, effects: &mut Effects) {
        let request = NegotiateRequest {
            min_version: VERSION_1,
            max_version: VERSION_1,
            credits_requested: self.config.send_credit_target,
            preferred_send_size: self.config.max_send_size,
            max_receive_size: self.config.max_receive_size,
            max_fragmented_size: self.config.max_fragmented_size,
        };
        self.phase = Phase::Negotiating;
        self.send_alone(|message| request.encode(message), effects);
    }

    /// Handles the request at the server.
    pub(super) fn receive_request(
        &mut self,
        message: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        self.credits.take_first();
        let request = NegotiateRequest::decode(message)?;
        let (min, max) = (request.min_version, request.max_version);
        if !(min..=max).contains(&VERSION_1) {
            self.refuse(Violation::Version { min, max }, effects);
            return Ok(());
        }
        at_least("CreditsRequested", request.credits_requested.into(), 1)?;
        at_least("MaxReceiveSize", request.max_receive_size, MIN_RECEIVE_SIZE)?;
        at_least(
            "MaxFragmentedSize",
            request.max_fragmented_size,
            MIN_FRAGMENTED_SIZE,
        )?;
        self.sizes = Negotiated {
            max_send_size: self.config.max_send_size.min(request.max_receive_size),
            max_receive_size: self.receive_size(request.preferred_send_size),
            max_fragmented_send_size: request.max_fragmented_size,
            ..self.sizes
        };
        self.prepare(request.credits_requested, effects);
        Ok(())
    }

    /// Largest SEND of the peer in bytes, given its preferred size.
    fn receive_size(&self, preferred: u32) -> u32 {
        self.config
            .max_receive_size
            .min(preferred)
            .max(MIN_RECEIVE_SIZE)
    }

    /// Requests the receives for the credits that the peer will get.
    fn prepare(&mut self, credits_requested: u16, effects: &mut Effects) {
        self.phase = Phase::Preparing;
        self.credits.set_requested(credits_requested);
        self.ask_for_receives(effects);
    }

    /// Refuses the connection. All other fields of the response are zero.
    fn refuse(&mut self, violation: Violation, effects: &mut Effects) {
        let response = NegotiateResponse {
            min_version: VERSION_1,
            max_version: VERSION_1,
            negotiated_version: 0,
            credits_requested: 0,
            credits_granted: 0,
            status: Status::NOT_SUPPORTED,
            max_read_write_size: 0,
            preferred_send_size: 0,
            max_receive_size: 0,
            max_fragmented_size: 0,
        };
        self.phase = Phase::Refusing(violation);
        self.send_alone(|message| response.encode(message), effects);
    }

    /// Sends the server's response, when receives are posted for the credits that it grants.
    pub(super) fn send_negotiate_response(&mut self, effects: &mut Effects) {
        let response = NegotiateResponse {
            min_version: VERSION_1,
            max_version: VERSION_1,
            negotiated_version: VERSION_1,
            credits_requested: self.config.send_credit_target,
            credits_granted: self.credits.grant(),
            status: Status::SUCCESS,
            max_read_write_size: self.sizes.max_read_write_size,
            preferred_send_size: self.sizes.max_send_size,
            max_receive_size: self.sizes.max_receive_size,
            max_fragmented_size: self.sizes.max_fragmented_receive_size,
        };
        self.send_alone(|message| response.encode(message), effects);
    }

    /// Handles the response at the client.
    pub(super) fn receive_response(
        &mut self,
        message: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        self.credits.take_first();
        let response = NegotiateResponse::decode(message)?;
        // Check this first: all other fields of a refusal are zero.
        if response.status != Status::SUCCESS {
            return Err(Violation::Refused(response.status));
        }
        self.check_response(&response)?;
        let (wanted, sizes) = (&self.config, self.sizes);
        self.sizes = Negotiated {
            max_send_size: wanted.max_send_size.min(response.max_receive_size),
            max_receive_size: self.receive_size(response.preferred_send_size),
            max_fragmented_send_size: response.max_fragmented_size,
            max_read_write_size: wanted.max_read_write_size.min(response.max_read_write_size),
            ..sizes
        };
        self.credits.receive_grant(response.credits_granted)?;
        self.prepare(response.credits_requested, effects);
        Ok(())
    }

    fn check_response(&self, response: &NegotiateResponse) -> Result<(), Violation> {
        if response.negotiated_version != VERSION_1 {
            let (name, value) = ("NegotiatedVersion", response.negotiated_version.into());
            return Err(Violation::Field { name, value });
        }
        at_least(
            "MaxReceiveSize",
            response.max_receive_size,
            MIN_RECEIVE_SIZE,
        )?;
        at_least(
            "MaxFragmentedSize",
            response.max_fragmented_size,
            MIN_FRAGMENTED_SIZE,
        )?;
        at_least("CreditsGranted", response.credits_granted.into(), 1)?;
        at_least("CreditsRequested", response.credits_requested.into(), 1)?;
        if response.preferred_send_size > self.config.max_receive_size {
            let (name, value) = ("PreferredSendSize", response.preferred_send_size);
            return Err(Violation::Field { name, value });
        }
        Ok(())
    }

    /// Enters the phase in which messages can be sent.
    pub(super) fn become_ready(&mut self, now: Instant, effects: &mut Effects) {
        self.phase = Phase::Ready;
        self.timers.restart(now, &self.config);
        effects.push(Effect::Ready(self.sizes));
    }

    /// Posts a SEND of the negotiation, which needs no credit.
    fn send_alone(&mut self, encode: impl FnOnce(&mut alloc::vec::Vec<u8>), effects: &mut Effects) {
        let header = Header::new(&mut self.scratch, encode);
        let id = self.queue.post(None);
        effects.push(Effect::Send(Outgoing {
            id,
            header,
            piece: None,
            invalidate: None,
        }));
    }
}
