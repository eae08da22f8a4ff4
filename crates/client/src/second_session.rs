//! The same share over a second session, for servers that are single-threaded per client.
//!
//! Samba has one process for each client, and one thread of it looks up names, reads, signs and
//! encrypts for all channels. Other servers have a thread or a core for each connection. So a share
//! over one TCP connection may get a second connection, with a second session and as another
//! client. A transfer opens a large file there too (`transfer::opens`), and of many small files
//! each is read by the less busy session ([`read_each`](Share::read_each)). If the server refuses
//! the second session, or it is lost, the first one does all the work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use crate::error::Error;
use crate::file::File;
use crate::io::slot::lock;
use crate::options::Channels;
use crate::session::Session;
use crate::share::{SecondSession, Share};

/// Count of small files from which a second login pays off: a login costs a server as much as some
/// dozens of files.
const MANY_FILES: usize = 128;

impl SecondSession {
    /// The share, unless its connection is lost.
    fn share(&self) -> Option<Share> {
        lock(&self.share).clone().filter(is_there)
    }

    /// Stores the share, unless another caller was faster. Returns the stored one.
    fn keep(&self, fresh: Share) -> Share {
        let mut share = lock(&self.share);
        let kept = share.take().filter(is_there).unwrap_or(fresh);
        share.insert(kept).clone()
    }

    /// Starts a login.
    fn begin(&self, session: Session, name: String) {
        *lock(&self.opening) = Some(Box::pin(async move { open(&session, &name).await }));
        self.proceed();
    }

    /// Continues a pending login as far as possible without waiting.
    fn proceed(&self) {
        // Another thread continues it.
        let Ok(mut opening) = self.opening.try_lock() else {
            return;
        };
        let mut context = Context::from_waker(Waker::noop());
        let polled = opening.as_mut().map(|it| it.as_mut().poll(&mut context));
        let Some(Poll::Ready(opened)) = polled else {
            return;
        };
        *opening = None;
        match opened {
            Ok(share) => drop(self.keep(share)),
            Err(error) => tracing::debug!(%error, "no second session"),
        }
    }
}

impl Share {
    /// Announces that the program will read `files` further small files with
    /// [`read_each`](Share::read_each). From 128 announced files on, the client logs in a second
    /// time under another ClientGuid and uses both sessions: a server with one thread per client,
    /// such as Samba, then serves the files with two threads.
    ///
    /// This function does not wait for the login. The client opens no second session if the session
    /// has several connections or does not use TCP, or if `channels`, `io_size` or `depth` of the
    /// options is not the default.
    pub fn announce(&self, files: usize) {
        self.count(&self.inner.second_session.announced, files);
    }

    /// Counts files that are requested, separately from announced ones.
    pub(crate) fn ask_for(&self, files: usize) {
        self.count(&self.inner.second_session.asked, files);
    }

    fn count(&self, count: &AtomicUsize, files: usize) {
        let second = &self.inner.second_session;
        let before = count.fetch_add(files, Ordering::Relaxed);
        let are_many = before.saturating_add(files) >= MANY_FILES;
        // The last condition takes a lock, so it is checked last and never after the login.
        let is_due = are_many && !second.was_begun.load(Ordering::Relaxed);
        if !is_due || !self.may_have_another() {
            return;
        }
        let was_begun = second.was_begun.swap(true, Ordering::Relaxed);
        if !was_begun && second.share().is_none() {
            second.begin(self.session().clone(), self.name().to_owned());
        }
    }

    /// The share of the session that is less busy.
    pub(crate) fn less_busy(&self) -> Share {
        let second = &self.inner.second_session;
        second.proceed();
        let load = |share: &Share| share.session().dispatch().load();
        let other = second.share();
        let other = other.filter(|other| is_there(self) && load(other) < load(self));
        other.unwrap_or_else(|| self.clone())
    }

    /// The same share on the second session. All callers get the same one until its connection is
    /// lost.
    pub(crate) async fn of_another_client(&self) -> Result<Share, Error> {
        match self.inner.second_session.share() {
            Some(share) => Ok(share),
            None => {
                let fresh = open(self.session(), self.name()).await?;
                // Another caller may have been faster.
                Ok(self.inner.second_session.keep(fresh))
            }
        }
    }

    /// Whether a second session is allowed: the session has one TCP connection, and no option sets
    /// the count of channels or the length of requests.
    pub(crate) fn may_have_another(&self) -> bool {
        let is_alone = self.links().is_some_and(|links| links.count == 1);
        is_alone && self.session().options().channels == Channels::Auto
    }
}

async fn open(session: &Session, name: &str) -> Result<Share, Error> {
    let share = session.of_another_client().await?.share(name).await?;
    share.inner.is_fresh.store(true, Ordering::Relaxed);
    Ok(share)
}

fn is_there(share: &Share) -> bool {
    !share.session().is_lost()
}

impl File {
    /// Whether a transfer may open the file a second time over another connection.
    pub(crate) fn may_be_opened_again(&self) -> bool {
        let is_plain = !self.is_append() && !self.is_write_through();
        is_plain && self.share().may_have_another()
    }
}
