//! Signals that end the process.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Waits until somebody wants the server to stop.
pub(crate) struct Stop(Signals);

impl Stop {
    /// Catches the signals from now on. Call it before threads are started.
    pub(crate) fn catch() -> io::Result<Self> {
        Signals::new([SIGTERM, SIGINT, SIGHUP]).map(Self)
    }

    /// The name of the signal that came.
    pub(crate) fn wait(mut self) -> &'static str {
        match self.0.forever().next() {
            Some(SIGINT) => "SIGINT",
            Some(SIGHUP) => "SIGHUP",
            _ => "SIGTERM",
        }
    }
}
