//! The part of an I/O thread that its channels use.

use std::time::{Instant, SystemTime};

use proto::time::{self, Now};
use ring::{Handle, Sender};

use crate::io::message::Message;

/// The ring, the mailbox and the clock of an I/O thread.
pub(crate) struct ThreadContext {
    pub(crate) handle: Handle,
    pub(crate) sender: Sender<Message>,
    /// Start of the core's clock.
    started: Instant,
}

impl ThreadContext {
    pub(crate) fn new(handle: Handle, sender: Sender<Message>) -> Self {
        Self {
            handle,
            sender,
            started: Instant::now(),
        }
    }

    /// The time in the form that the core takes.
    pub(crate) fn now(&self) -> Now {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Now {
            instant: time::Instant(self.started.elapsed()),
            wall: wire::FileTime::from_unix(seconds, since.subsec_nanos()),
        }
    }
}
