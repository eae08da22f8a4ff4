//! Signals that stop the server.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Waits for a signal that stops the server.
pub(crate) struct Stop(Signals);

impl Stop {
    /// Catches the signals from now on. The caller has not started threads yet.
    pub(crate) fn catch() -> io::Result<Self> {
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map(Self)
    }

    /// Waits for a signal and returns its name.
    pub(crate) fn wait(mut self) -> &'static str {
        match self.0.forever().next() {
            Some(SIGINT) => "SIGINT",
            Some(SIGHUP) => "SIGHUP",
            _ => "SIGTERM",
        }
    }
}
