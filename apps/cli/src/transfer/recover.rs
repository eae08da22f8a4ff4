//! Goes on after a connection was lost: a cable was pulled, a device was reset, a server restarted.
//!
//! What a session held on the server is gone with its last connection. What a transfer needs of it
//! is little: files are opened by their names again, and the names of files that are not whole say
//! of which state of their source they are (see [`part`](super::part)).

use std::thread;
use std::time::{Duration, Instant};

use client::{Error, Share, Wait as _};

use super::Transfer;
use crate::exit::{Failure, Outcome, lock};
use crate::place::Place;

/// How long to wait before it is tried again.
const PAUSE: Duration = Duration::from_millis(500);

impl Transfer<'_> {
    /// Connects places anew whose sessions are lost, if that is wanted. Says whether there was one.
    ///
    /// # Errors
    /// It cannot be done in time, or the server refuses.
    pub(super) fn reconnect<const N: usize>(&self, places: [&mut Place; N]) -> Outcome<bool> {
        let mut was_lost = false;
        if self.policy.reconnect.is_zero() {
            return Ok(was_lost);
        }
        for place in places {
            let Place::Remote(remote) = place else {
                continue;
            };
            if !remote.share.session().is_lost() {
                continue;
            }
            let _alone = lock(&self.reconnecting);
            let share = self.reconnect_share(&remote.share);
            remote.share = share.map_err(|failed| match failed {
                Some(error) => remote.failure(&error),
                None => Failure::interrupted(&*remote),
            })?;
            was_lost = true;
        }
        Ok(was_lost)
    }

    /// `None`: somebody wants the work to end.
    fn reconnect_share(&self, share: &Share) -> Result<Share, Option<Error>> {
        let begin = Instant::now();
        loop {
            let error = match share.reconnected().wait() {
                Ok(share) => return Ok(share),
                Err(error) => error,
            };
            if !may_pass(&error) || begin.elapsed() > self.policy.reconnect {
                return Err(Some(error));
            }
            if self.is_over() {
                return Err(None);
            }
            thread::sleep(PAUSE);
        }
    }
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
