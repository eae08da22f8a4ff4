//! The close of an open by an administrator. \[MS-SMB2\] 3.3.4.13

use super::Connection;
use crate::effect::{Effect, Effects};
use crate::server::close;
use crate::server::session::Session;
use crate::time::Now;

impl Connection {
    /// Closes an open of a session, unless another channel has closed it. `id` is the persistent
    /// part of its FileId.
    pub(super) fn close_open(
        &mut self,
        now: Now,
        session: &Session,
        id: u64,
        effects: &mut Effects,
    ) {
        // Only the connection that takes the open out of the table closes it.
        let open = {
            let mut opens = session.opens.lock();
            let mut found = opens.extract_if(.., |_, open| open.id.persistent == id);
            found.next()
        };
        if let Some((_, open)) = open {
            // Nothing waits for these operations, as after a CLOSE.
            close::abandon(
                &self.server,
                now,
                (&open, session),
                self.waits.op_ids(),
                effects,
            );
        }
        let pipe = {
            let mut pipes = session.pipes.lock();
            let mut found = pipes.extract_if(.., |_, pipe| pipe.id.persistent == id);
            found.next()
        };
        if let Some((_, pipe)) = pipe {
            let woken = pipe.end().into_iter();
            woken.for_each(|(to, notice)| effects.push(Effect::Notify(to, notice)));
        }
    }
}
