//! The changes that an administrator makes to a running server: ends sessions, closes opens,
//! disables shares.

use std::fmt;
use std::sync::Arc;

use tracing::{info, warn};
use wire::SessionId;

use crate::reload::{Reloader, ShareStateError};
use crate::shared::Shared;

/// A handle with which an administrator changes a running server, from any thread. A clone refers
/// to the same server.
#[derive(Clone)]
pub struct Administrator {
    shared: Arc<Shared>,
    reloader: Reloader,
}

impl fmt::Debug for Administrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Administrator").finish_non_exhaustive()
    }
}

impl Administrator {
    pub(crate) fn new(shared: Arc<Shared>, reloader: Reloader) -> Self {
        Self { shared, reloader }
    }

    /// Ends the session with the SessionId `id`, and closes all its opens, also durable ones. The
    /// client may log in again. Returns whether there was such a session.
    pub fn end_session(&self, id: u64) -> bool {
        let Some(notices) = self.shared.core.end_session(SessionId(id)) else {
            return false;
        };
        info!(
            session = format_args!("{id:016x}"),
            "session ended by an administrator"
        );
        self.shared.notify_all(notices);
        true
    }

    /// Closes the open file, directory or pipe with the persistent part `id` of the FileId. Returns
    /// whether there was such an open. Data that the client still caches is lost.
    pub fn close_open(&self, id: u64) -> bool {
        let Some(notices) = self.shared.core.close_open(id) else {
            return false;
        };
        info!(
            open = format_args!("{id:x}"),
            "open closed by an administrator"
        );
        self.shared.notify_all(notices);
        true
    }

    /// Disables a share or enables it again; see [`Reloader::set_share_enabled`].
    ///
    /// # Errors
    /// There is no share of this name, or its directory cannot be used.
    pub fn set_share_enabled(&self, name: &str, is_enabled: bool) -> Result<bool, ShareStateError> {
        let result = self.reloader.set_share_enabled(name, is_enabled);
        match &result {
            Ok(true) => info!(
                share = name,
                is_enabled, "share changed by an administrator"
            ),
            Ok(false) => {}
            Err(error) => warn!(share = name, is_enabled, %error, "share not changed"),
        }
        result
    }
}
