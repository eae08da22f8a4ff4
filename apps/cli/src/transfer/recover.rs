//! Goes on after a connection was lost: a cable was pulled, a device was reset, a server restarted.
//!
//! What a session held on the server is gone with its last connection. What a transfer needs of it
//! is little: files are opened by their names again, and the names of files that are not whole say
//! of which state of their source they are (see [`part`](super::part)).

use std::thread;
use std::time::{Duration, Instant};

use smbeam_client::{Error, Share, Wait as _};

use super::Transfer;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::FilePath;
use crate::report::lock;

/// How long to wait before it is tried again.
const PAUSE: Duration = Duration::from_millis(500);

impl Transfer<'_> {
    /// Connects paths anew whose sessions are lost, if that is wanted. Says whether there was one.
    ///
    /// # Errors
    /// It cannot be done in time, or the server refuses.
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
            // Who held it before may have given up, and all wait for the same server.
            if self.report.is_over() || is_late(*since, self.policy.reconnect) {
                return Err(Failure::new(Exit::Lost, &*remote, "the connection is lost"));
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

    /// `None`: somebody wants the work to end.
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

/// Whether there is no time left for another attempt, where nobody has got through `since` then.
fn is_late(since: Option<Instant>, limit: Duration) -> bool {
    since.is_some_and(|since| since.elapsed() > limit)
}

/// Whether it may be another time.
fn may_pass(error: &Error) -> bool {
    matches!(
        error,
        Error::Resolve(..)
            | Error::Connect(..)
            | Error::Unreachable { .. }
            | Error::Lost { .. }
            | Error::TimedOut { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_begins_when_the_time_of_all_is_over() {
        let limit = Duration::from_secs(60);
        assert!(!is_late(None, limit));
        assert!(!is_late(Some(Instant::now()), limit));
        let long_ago = Instant::now().checked_sub(limit * 2);
        assert!(is_late(Some(long_ago.expect("the clock runs")), limit));
    }
}
