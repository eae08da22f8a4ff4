//! CANCEL. \[MS-SMB2\] 3.3.5.16

use wire::Status;
use wire::header::Target;

use crate::effect::{Effect, Effects, Outcome};
use crate::server::connection::Connection;
use crate::server::connection::task::Request;
use crate::time::Now;

impl Connection {
    /// Cancels the request that a CANCEL of the same session names, if it still waits: by AsyncId
    /// if the header has one, by MessageId otherwise. The response to that request reports the
    /// outcome. A member of a compound before the last is not canceled, because later members may
    /// depend on it; Samba does the same.
    pub(super) fn cancel(&mut self, now: Now, cancel: &Request, effects: &mut Effects) {
        let session = cancel.session.as_ref().map(|session| session.id);
        let is_meant = |request: &Request| match cancel.header.target {
            Target::Async(async_id) => request.async_id == Some(async_id),
            Target::Sync { .. } => request.header.message_id == cancel.header.message_id,
        };
        let found = (self.tasks.cancelable())
            .filter(|pending| pending.request.session.as_ref().map(|s| s.id) == session)
            .find(|pending| is_meant(&pending.request));
        let op = found.and_then(|pending| {
            pending.request.is_cancelled = true;
            pending.op
        });
        match op {
            Some(op) if self.waits.is_parked(op) => {
                self.unpark(now, op, Outcome::Failed(Status::CANCELLED), effects);
            }
            Some(op) => effects.push(Effect::Cancel(op)),
            None => {}
        }
    }
}
