//! Reconnection after a lost connection, for example after a restart of the server.
//!
//! The client library reconnects first, and reclaims the open files. If the server has closed them,
//! or a request could not be repeated, the transfer opens its files again by name. The names of
//! incomplete files identify the state of their source (see [`part`](super::part)).

use std::thread;
use std::time::{Duration, Instant};

use smbeam_client::{Error, Share, Wait as _};

use super::Transfer;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::FilePath;
use crate::mutex::lock;

/// Maximum number of reconnects for one step. A file that always breaks the connection is given up.
pub(super) const RECONNECTS_MAX: usize = 4;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

impl Transfer<'_> {
    /// Reconnects the paths with a lost session. Returns whether any was lost. Without
    /// `--reconnect` it does nothing.
    ///
    /// # Errors
    ///
    /// The time limit is over, or the server refuses.
    pub(super) fn reconnect<const N: usize>(&self, paths: [&mut FilePath; N]) -> Outcome<bool> {
        let mut was_lost = false;
        if self.policy.reconnect.is_zero() {
            return Ok(was_lost);
        }
        for path in paths {
            let FilePath::Remote(remote) = path else {
                continue;
            };
            if !remote.share.session().is_lost() {
                continue;
            }
            let mut since = lock(&self.reconnecting);
            if self.interrupt.is_raised() {
                return Err(Failure::interrupted(&*remote));
            }
            // The previous holder of the lock may have given up. The time limit is common to all
            // threads.
            if self.report.is_over() || is_late(*since, self.policy.reconnect) {
                return Err(Failure::new(
                    Exit::Lost,
                    &*remote,
                    "the connection was lost",
                ));
            }
            let share = self.reconnect_share(&remote.share, &mut since);
            remote.share = share.map_err(|failed| match failed {
                Some(error) => remote.failure(&error),
                None => Failure::interrupted(&*remote),
            })?;
            was_lost = true;
        }
        Ok(was_lost)
    }

    /// Waits until the library has connected the sessions of the paths again, after a request
    /// failed with a lost connection although no session is lost. Returns whether that succeeded.
    pub(super) fn is_resumed<const N: usize>(&self, paths: [&FilePath; N]) -> bool {
        let remotes = paths.into_iter().filter_map(|path| match path {
            FilePath::Remote(remote) => Some(remote),
            FilePath::Local(_) => None,
        });
        let mut is_any = false;
        for remote in remotes {
            is_any = true;
            // The resumption may have failed: then only `reconnect` finds a new session.
            if remote.share.reconnected().wait().is_err() || remote.share.session().is_lost() {
                return false;
            }
        }
        is_any && !self.policy.reconnect.is_zero()
    }

    /// Runs a step on a path, and runs it again after the library has connected the session again.
    /// The step has the same effect if it runs twice.
    pub(super) fn repeated<T>(
        &self,
        path: &FilePath,
        mut step: impl FnMut() -> Outcome<T>,
    ) -> Outcome<T> {
        let mut outcome = step();
        for _ in 0..RECONNECTS_MAX {
            match &outcome {
                Err(failure) if failure.exit == Exit::Lost && !self.is_over() => {}
                _ => break,
            }
            if !self.is_resumed([path]) {
                break;
            }
            outcome = step();
        }
        outcome
    }

    /// The error is `None` if the user interrupted the command.
    fn reconnect_share(
        &self,
        share: &Share,
        since: &mut Option<Instant>,
    ) -> Result<Share, Option<Error>> {
        since.get_or_insert_with(Instant::now);
        loop {
            let error = match share.reconnected().wait() {
                Ok(share) => {
                    *since = None;
                    return Ok(share);
                }
                Err(error) => error,
            };
            if !may_pass(&error) || is_late(*since, self.policy.reconnect) {
                return Err(Some(error));
            }
            if self.is_over() {
                return Err(None);
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Whether the time limit is over. `since` is the time of the first failed attempt.
fn is_late(since: Option<Instant>, limit: Duration) -> bool {
    since.is_some_and(|since| since.elapsed() > limit)
}

/// Whether a later attempt can succeed.
fn may_pass(error: &Error) -> bool {
    matches!(
        error,
        Error::Resolve(..)
            | Error::Connect(..)
            // Of a server that is starting or stopping.
            | Error::NotSmb(..)
            | Error::Unreachable { .. }
            | Error::Lost { .. }
            | Error::TimedOut { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_attempt_begins_after_the_common_limit() {
        let limit = Duration::from_secs(60);
        assert!(!is_late(None, limit));
        assert!(!is_late(Some(Instant::now()), limit));
        let long_ago = Instant::now().checked_sub(limit * 2);
        assert!(is_late(Some(long_ago.expect("the clock runs")), limit));
    }
}
