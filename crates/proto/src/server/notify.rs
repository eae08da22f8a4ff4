//! Delivery of notices between connections.

use wire::{FileId, SessionId};

use crate::effect::{Effect, Effects};
use crate::id::ConnectionId;
use crate::notice::Notice;
use crate::server::Server;
use crate::server::notices::Notices;

impl Server {
    /// Says what connections are to be told. What a client is to be told goes to a channel of its
    /// session that lives, if it can be the one that the open was made on.
    pub(crate) fn post(&self, notices: Notices, effects: &mut Effects) {
        for (to, notice) in notices {
            let to = match notice {
                Notice::BreakCaching {
                    session, file_id, ..
                } => self.teller(session, file_id, to),
                _ => Some(to),
            };
            if let Some(to) = to {
                effects.push(Effect::Notify(to, notice));
            }
        }
    }

    /// Nobody, where the session ends: then its oplocks do too.
    fn teller(&self, id: SessionId, file_id: FileId, wanted: ConnectionId) -> Option<ConnectionId> {
        let session = self.sessions.lock().get(&id).cloned()?;
        let teller = session.channels.living(wanted)?;
        let open = session.opens.lock().get(&file_id.volatile).cloned();
        if let Some(open) = open {
            open.state.lock().told_on = Some(teller);
        }
        Some(teller)
    }
}
