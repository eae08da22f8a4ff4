//! Delivery of notices between connections.

use crate::effect::{Effect, Effects};
use crate::id::ConnectionId;
use crate::notice::{CachingBreak, Notice};
use crate::server::Server;
use crate::server::notices::Notices;

impl Server {
    /// Delivers notices. A break goes to a connected channel of the session: to the one that made
    /// the open, if it is still connected. Without such a channel, it concerns a disconnected open.
    pub(crate) fn post(&self, notices: Notices, effects: &mut Effects) {
        for (to, notice) in notices {
            if let Some((to, notice)) = self.route((to, notice.clone())) {
                effects.push(Effect::Notify(to, notice));
            } else if let Notice::BreakCaching(caching_break) = notice {
                self.break_disconnected(&caching_break, effects);
            }
        }
    }

    /// The connection that receives a notice, and the notice for it; `None` for a break of which no
    /// connected channel can notify the client.
    pub(crate) fn route(
        &self,
        (to, notice): (ConnectionId, Notice),
    ) -> Option<(ConnectionId, Notice)> {
        let Notice::BreakCaching(caching_break) = notice else {
            return Some((to, notice));
        };
        let (to, caching_break) = self.notifier(caching_break, to)?;
        Some((to, Notice::BreakCaching(caching_break)))
    }

    /// The channel that sends a break, and the break for it. The break of a lease uses a
    /// connection of the oldest session of its client (\[MS-SMB2\] 3.3.4.7; smbtorture
    /// smb2.lease.v2_complex1), unless all its opens are disconnected; that of an oplock a channel
    /// of its session. `None` if no channel is connected: then the break ends the disconnected
    /// opens.
    fn notifier(
        &self,
        caching_break: CachingBreak,
        wanted: ConnectionId,
    ) -> Option<(ConnectionId, CachingBreak)> {
        if caching_break.lease.is_some() && self.is_disconnected(&caching_break) {
            return None;
        }
        let sessions = self.sessions.lock();
        let opened_by = sessions.get(caching_break.session).cloned();
        let (session, notifier) = match caching_break.lease {
            None => {
                let session = opened_by.as_ref()?;
                (session.id, session.channels.living(wanted)?)
            }
            Some(lease) => {
                let of_client = sessions.of_client(lease.client);
                let channels = of_client.filter_map(|session| {
                    let channel = session.channels.oldest_living()?;
                    Some((session, channel))
                });
                // The numbers of connections are not in the order of their age.
                let (session, channel) =
                    channels.min_by_key(|(session, channel)| (session.created, *channel))?;
                (session.id, channel)
            }
        };
        drop(sessions);
        if let Some(opened_by) = opened_by {
            let opens = opened_by.opens.lock();
            let open = opens.get(&caching_break.file_id.volatile).cloned();
            drop(opens);
            if let Some(open) = open {
                open.state.lock().notified_on = Some(notifier);
            }
        }
        let caching_break = CachingBreak {
            session,
            ..caching_break
        };
        Some((notifier, caching_break))
    }
}
