//! Delivery of notices between connections.

use alloc::sync::Arc;

use wire::{Guid, SessionId};

use crate::effect::{Effect, Effects};
use crate::id::ConnectionId;
use crate::notice::{CachingBreak, Notice};
use crate::server::Server;
use crate::server::notices::Notices;
use crate::server::session::Session;

impl Server {
    /// Delivers notices. A break goes to a connected channel of the session: to the one that made
    /// the open, if it is still connected.
    pub(crate) fn post(&self, notices: Notices, effects: &mut Effects) {
        for (to, notice) in notices {
            let (to, notice) = match notice {
                Notice::BreakCaching(caching_break) => match self.notifier(caching_break, to) {
                    Some((to, caching_break)) => (to, Notice::BreakCaching(caching_break)),
                    None => continue,
                },
                other => (to, other),
            };
            effects.push(Effect::Notify(to, notice));
        }
    }

    /// The channel that sends a break, and the break for it. The break of a lease may use any
    /// session of its client (\[MS-SMB2\] 3.3.4.7). `None` if no channel is connected: then the
    /// break ends with its time limit or with the opens.
    fn notifier(
        &self,
        caching_break: CachingBreak,
        wanted: ConnectionId,
    ) -> Option<(ConnectionId, CachingBreak)> {
        let found = self.living_channel(caching_break.session, wanted);
        let Some((session, notifier)) = found else {
            let client = caching_break.lease?.client;
            let (session, notifier) = self.channel_of_client(client)?;
            return Some((
                notifier,
                CachingBreak {
                    session,
                    ..caching_break
                },
            ));
        };
        let open = session
            .opens
            .lock()
            .get(&caching_break.file_id.volatile)
            .cloned();
        if let Some(open) = open {
            open.state.lock().notified_on = Some(notifier);
        }
        Some((notifier, caching_break))
    }

    fn living_channel(
        &self,
        id: SessionId,
        wanted: ConnectionId,
    ) -> Option<(Arc<Session>, ConnectionId)> {
        let session = self.sessions.lock().get(&id).cloned()?;
        let notifier = session.channels.living(wanted)?;
        Some((session, notifier))
    }

    /// A connected channel of any session of a client.
    fn channel_of_client(&self, client: Guid) -> Option<(SessionId, ConnectionId)> {
        let sessions = self.sessions.lock();
        let mut own = sessions
            .values()
            .filter(|session| session.origin.client_guid == client);
        own.find_map(|session| Some((session.id, session.channels.any_living()?)))
    }
}
