//! Receiving. \[MS-SMBD\] 3.1.5.5, 3.1.5.8

use wire::smbd::{DataTransfer, TransferFlags};

use super::config::Role;
use super::connection::{Connection, Phase};
use super::credit::Load;
use super::effect::{Effect, Effects, Violation};
use crate::time::Instant;

impl Connection {
    /// Processes an RDMA SEND of the peer, which completed one posted receive. `message` has all
    /// its bytes, with the header of SMB Direct. Appends [`Effect::Fragment`] for a part of an SMB2
    /// message, [`Effect::Message`] after the last part, and SENDs that became possible by granted
    /// credits.
    ///
    /// # Panics
    /// When no receive was posted.
    pub fn received(&mut self, now: Instant, message: &[u8], effects: &mut Effects) {
        let result = match (self.phase, self.config.role) {
            (Phase::Over | Phase::Refusing(_), _) => return,
            (Phase::Negotiating, Role::Client) => self.receive_response(message, effects),
            (Phase::Negotiating, Role::Server) => self.receive_request(message, effects),
            (Phase::Preparing | Phase::Ready, _) => self.receive_data(now, message, effects),
            (Phase::Fresh | Phase::Opening, _) => unreachable!("no receive was posted"),
        };
        match result {
            Ok(()) => self.pump(now, effects),
            Err(violation) => self.end(violation, effects),
        }
    }

    fn receive_data(
        &mut self,
        now: Instant,
        message: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Violation> {
        self.timers.restart(now, &self.config);
        self.credits.receive()?;
        let limit = self.sizes.max_receive_size;
        if message.len() > limit as usize {
            let length = message.len();
            return Err(Violation::SendTooLong { length, limit });
        }
        let transfer = DataTransfer::decode(message)?;
        at_least("CreditsRequested", transfer.credits_requested.into(), 1)?;
        let limit = self.sizes.max_fragmented_receive_size;
        let place = self.reassembly.add(&transfer, limit)?;
        self.credits.receive_grant(transfer.credits_granted)?;
        self.credits.set_requested(transfer.credits_requested);
        self.is_reply_owed |= transfer.flags.contains(TransferFlags::RESPONSE_REQUESTED);
        if let Some(place) = place {
            effects.push(Effect::Fragment {
                range: transfer.data(),
                offset: place.offset,
                total: place.total,
            });
            if place.is_last {
                let length = place.total;
                effects.push(Effect::Message { length });
            }
        }
        self.credits.update_low_water(match place {
            Some(_) => Load::Data,
            None => Load::Empty,
        });
        self.ask_for_receives(effects);
        Ok(())
    }

    /// Requests the missing receives.
    pub(super) fn ask_for_receives(&mut self, effects: &mut Effects) {
        match self.credits.ask() {
            0 => {}
            count => effects.push(Effect::PostReceives(count)),
        }
    }
}

/// Checks that a field has at least the minimum value.
pub(super) fn at_least(name: &'static str, value: u32, least: u32) -> Result<(), Violation> {
    if value < least {
        return Err(Violation::Field { name, value });
    }
    Ok(())
}
