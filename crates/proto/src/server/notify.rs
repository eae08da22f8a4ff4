//! Delivery of notices between connections.

use wire::{FileId, SessionId};

use crate::effect::{Effect, Effects};
use crate::id::ConnectionId;
use crate::notice::Notice;
use crate::server::Server;
use crate::server::notices::Notices;

impl Server {
    /// Delivers notices. A break goes to a connected channel of the session: to the one that made
    /// the open, if it is still connected.
    pub(crate) fn post(&self, notices: Notices, effects: &mut Effects) {
        for (to, notice) in notices {
            let to = match notice {
                Notice::BreakCaching {
                    session, file_id, ..
                } => self.notifier(session, file_id, to),
                _ => Some(to),
            };
            if let Some(to) = to {
                effects.push(Effect::Notify(to, notice));
            }
        }
    }

    /// The channel that sends a break; `None` if the session ends, because its oplocks end too.
    fn notifier(
        &self,
        id: SessionId,
        file_id: FileId,
        wanted: ConnectionId,
    ) -> Option<ConnectionId> {
        let session = self.sessions.lock().get(&id).cloned()?;
        let notifier = session.channels.living(wanted)?;
        let open = session.opens.lock().get(&file_id.volatile).cloned();
        if let Some(open) = open {
            open.state.lock().notified_on = Some(notifier);
        }
        Some(notifier)
    }
}
