//! Signals that a server handles.

use std::fs;
use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals as Caught;

/// A request that a signal makes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Stop. The text is the name of the signal.
    Stop(&'static str),
    /// Read the configuration, the users and the certificates again.
    Reload,
    /// Log a summary of the status.
    Report,
}

/// The caught signals.
pub(super) struct Signals(Caught);

impl Signals {
    /// Catches the signals from now on. The caller has not started threads yet.
    ///
    /// A server that inherits an ignored SIGHUP ignores it, too: nohup(1) asks for that.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn catch() -> io::Result<Self> {
        let mut signals = vec![SIGTERM, SIGINT, SIGUSR1, SIGUSR2];
        if !is_ignored(&fs::read_to_string("/proc/self/status")?, SIGHUP) {
            signals.push(SIGHUP);
        }
        Caught::new(signals).map(Self)
    }

    /// Waits for signals, one after the other.
    pub(super) fn requests(&mut self) -> impl Iterator<Item = Request> {
        self.0.forever().map(|signal| match signal {
            SIGHUP => Request::Reload,
            SIGUSR1 | SIGUSR2 => Request::Report,
            SIGINT => Request::Stop("SIGINT"),
            _ => Request::Stop("SIGTERM"),
        })
    }
}

/// Returns whether the process ignores a signal. `status` is its file in /proc. proc_pid_status(5)
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_found() {
        let status = "Name:\tsmbeam\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT));
        assert!(!is_ignored("SigIgn:\t0000000000001000\n", SIGHUP));
        assert!(!is_ignored("", SIGHUP));
    }
}
