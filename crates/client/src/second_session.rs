//! A share once more, on a session of its own.
//!
//! Samba has a process for each client and does all for it on one thread: looking names up,
//! reading, signing and sealing for however many channels. Other servers have a thread or a core
//! for each connection. So what goes over one connection of TCP may have a second one, of another
//! session and as another client: a large file is opened there too
//! ([`opens`](crate::transfer::opens)), and
//! of many small ones each is read by the one that has less to do
//! ([`read_each`](Share::read_each)). Where the second one is refused or lost, the first does all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use crate::error::Error;
use crate::file::File;
use crate::io::slot::lock;
use crate::options::Channels;
use crate::session::Session;
use crate::share::{SecondSession, Share};

/// Small files from which on another login is worth its while: it costs a server as much as some
/// dozens of them.
const MANY_FILES: usize = 128;

impl SecondSession {
    /// The share, as long as its connection is there.
    fn share(&self) -> Option<Share> {
        lock(&self.share).clone().filter(is_there)
    }

    /// Keeps the first that comes, and says which that was.
    fn keep(&self, fresh: Share) -> Share {
        let mut share = lock(&self.share);
        let kept = share.take().filter(is_there).unwrap_or(fresh);
        share.insert(kept).clone()
    }

    /// Begins with a login.
    fn begin(&self, session: Session, name: String) {
        *lock(&self.opening) = Some(Box::pin(async move { open(&session, &name).await }));
        self.proceed();
    }

    /// Goes on with a login under way, as far as it gets without waiting.
    fn proceed(&self) {
        // Somebody else is at it, then.
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
    /// Announces that [`read_each`](Share::read_each) will be asked for so many small files more.
    /// Once they are many, the same user logs in once more, as another client, and both sessions
    /// are used: a server with a thread for each client, as Samba is, has two at work then.
    ///
    /// Nothing is waited for here. Where the session has several channels or another transport
    /// than TCP, or the client's options say something about channels or requests, the one session
    /// does all.
    pub fn announce(&self, files: usize) {
        self.count(&self.inner.second_session.announced, files);
    }

    /// The same for files that are asked for. Who announces them is not to count twice.
    pub(crate) fn ask_for(&self, files: usize) {
        self.count(&self.inner.second_session.asked, files);
    }

    fn count(&self, count: &AtomicUsize, files: usize) {
        let second = &self.inner.second_session;
        let before = count.fetch_add(files, Ordering::Relaxed);
        let are_many = before.saturating_add(files) >= MANY_FILES;
        // What takes a lock is asked once the rest is known, and never after the login.
        let is_due = are_many && !second.was_begun.load(Ordering::Relaxed);
        if !is_due || !self.may_have_another() {
            return;
        }
        let was_begun = second.was_begun.swap(true, Ordering::Relaxed);
        if !was_begun && second.share().is_none() {
            second.begin(self.session().clone(), self.name().to_owned());
        }
    }

    /// The session to read a small file by.
    pub(crate) fn less_busy(&self) -> Share {
        let second = &self.inner.second_session;
        second.proceed();
        let load = |share: &Share| share.session().dispatch().load();
        let other = second.share();
        let other = other.filter(|other| is_there(self) && load(other) < load(self));
        other.unwrap_or_else(|| self.clone())
    }

    /// The same share on a session of its own. It is there for all who ask, as long as its
    /// connection is.
    pub(crate) async fn of_another_client(&self) -> Result<Share, Error> {
        match self.inner.second_session.share() {
            Some(share) => Ok(share),
            None => {
                let fresh = open(self.session(), self.name()).await?;
                // Whoever else asks meanwhile may have been faster.
                Ok(self.inner.second_session.keep(fresh))
            }
        }
    }

    /// Whether there may be a second session: there is one connection, of TCP, and nobody has said
    /// how many there shall be or what goes over them.
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
    /// Whether a transfer may open it once more on another connection.
    pub(crate) fn may_be_opened_again(&self) -> bool {
        let is_plain = !self.is_append() && !self.is_write_through();
        is_plain && self.share().may_have_another()
    }
}
